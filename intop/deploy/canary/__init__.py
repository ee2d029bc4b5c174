"""Canary: a configuration and the default in turn, on a host with real traffic."""
