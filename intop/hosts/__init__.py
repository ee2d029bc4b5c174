"""Other machines: SSH, sysctl, the guard, the load and its measurement."""
