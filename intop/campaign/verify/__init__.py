"""The verdict: candidates against the default, under one workload or all."""
