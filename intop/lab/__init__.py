"""The embedded cluster: real nginx and sshd in network namespaces of this machine."""
