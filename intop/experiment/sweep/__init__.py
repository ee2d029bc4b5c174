"""Sweep: the winner at other rates, connections, cores and files."""
