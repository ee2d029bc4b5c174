"""What happens on other machines: SSH, sysctl, the guard, the load and its measurement."""
