"""Across: one configuration and the default under all workloads of a study."""
