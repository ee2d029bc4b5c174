"""Experiments: arms under loads in interleaved rounds, beside what `tune` measures."""
