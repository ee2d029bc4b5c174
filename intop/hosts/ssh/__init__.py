"""SSH, by paramiko and with what OpenSSH's own configuration says. Nothing else knows paramiko."""

from intop.hosts.ssh.connection import SshHost, connect, with_passwords
from intop.hosts.ssh.secret import Secret

__all__ = ["Secret", "SshHost", "connect", "with_passwords"]
