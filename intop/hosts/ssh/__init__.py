"""SSH, by paramiko and by OpenSSH's own configuration. Nothing else knows paramiko."""

from intop.hosts.ssh.connection import SshHost, connect, with_passwords
from intop.hosts.ssh.sudo import Secret

__all__ = ["Secret", "SshHost", "connect", "with_passwords"]
