"""SSH, by paramiko. The only module that knows it."""

import shlex
import socket
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

import paramiko

from intop.domain.cluster import HostAddress
from intop.errors import CommandError, UnreachableError
from intop.hosts.host import Completed, output

CONNECT_TIMEOUT_S = 15.0
KEEPALIVE_S = 5
SILENCE_S = 20
"""How long the other side may leave unacknowledged what we sent before the connection is lost."""
LOST = (paramiko.SSHException, OSError, EOFError)
"""What paramiko raises when a connection can't be made, or has ended."""
NO_EXIT_CODE = -1
"""What paramiko gives for a command that ended by a signal, and for a connection that was lost."""


class SshHost:
    """A host behind an open SSH connection, perhaps through a jump host."""

    def __init__(self, address: HostAddress, client: paramiko.SSHClient, stack: ExitStack) -> None:
        self._address = address
        self._client = client
        self._stack = stack

    @property
    def address(self) -> HostAddress:
        """Where it is and what it is called."""
        return self._address

    def run(self, command: str, *, stdin: str = "", timeout_s: float = 30.0) -> Completed:
        """Run a command by `sh`, as root through sudo where the address says so."""
        words = f"sh -c {shlex.quote(command)}"
        if self._address.sudo:
            words = f"sudo -n -- {words}"
        name = self._address.name
        try:
            transport = self._client.get_transport()
            if transport is None or not transport.is_active():
                raise UnreachableError(name, "the SSH connection was lost")
            with transport.open_session(timeout=CONNECT_TIMEOUT_S) as channel:
                channel.settimeout(timeout_s)
                channel.exec_command(words)
                channel.sendall(stdin.encode())
                channel.shutdown_write()
                # Our commands say little on stderr, so it can't fill its window meanwhile.
                out = channel.makefile("rb").read()
                err = channel.makefile_stderr("rb").read()
                exit_code = channel.recv_exit_status()
            if exit_code == NO_EXIT_CODE and _is_over(transport):
                raise UnreachableError(name, "the SSH connection was lost")
            return Completed(exit_code, out.decode(errors="replace"), err.decode(errors="replace"))
        except TimeoutError as error:
            raise CommandError(
                name, f"no answer within {timeout_s:g} s from `{command[:100]}`"
            ) from error
        except LOST as error:
            raise UnreachableError(
                name, f"the SSH connection failed: {str(error) or 'it ended'}"
            ) from error

    def put(self, directory: str, files: Mapping[str, str]) -> None:
        """Write texts to files by name, readable by their owner only.

        Each file is replaced at once: a script may be running from the one that was there.
        """
        folder = shlex.quote(directory)
        output(self, f"umask 077; mkdir -p {folder}")
        for name, text in files.items():
            path = shlex.quote(f"{directory}/{name}")
            output(self, f"umask 077; cat > {path}.new && mv {path}.new {path}", stdin=text)

    def forward(self, hostname: str, port: int) -> paramiko.Channel:
        """A channel from this host to another one, for the connection behind it."""
        transport = self._client.get_transport()
        if transport is None:
            raise UnreachableError(self._address.name, "the SSH connection was lost")
        try:
            return transport.open_channel("direct-tcpip", (hostname, port), ("127.0.0.1", 0))
        except LOST as error:
            raise UnreachableError(
                self._address.name, f"as jump host it can't reach {hostname}:{port}: {error}"
            ) from error

    def close(self) -> None:
        """End the connection, and the jump host's."""
        self._stack.close()


def connect(address: HostAddress) -> SshHost:
    """Open a connection; keys come from `key_file`, the agent or ~/.ssh.

    Raises UnreachableError, also for a host key that is not in the known hosts.
    """
    with ExitStack() as stack:
        channel = None
        if address.jump is not None:
            jump = connect(address.jump)
            stack.callback(jump.close)
            channel = jump.forward(address.hostname, address.port)
        client = paramiko.SSHClient()
        stack.callback(client.close)
        _load_known_hosts(client, address)
        client.set_missing_host_key_policy(paramiko.RejectPolicy())
        _open(client, address, channel)
        return SshHost(address, client, stack.pop_all())


def _is_over(transport: paramiko.Transport) -> bool:
    """Whether the connection has ended. It closes its channels a moment before it says so."""
    transport.join(timeout=1)
    return not transport.is_active()


def _load_known_hosts(client: paramiko.SSHClient, address: HostAddress) -> None:
    if address.known_hosts is None:
        client.load_system_host_keys()
        return
    path = Path(address.known_hosts).expanduser()
    try:
        client.load_host_keys(str(path))
    except OSError as error:
        raise UnreachableError(
            address.name, f"its known_hosts file {path} can't be read: {error.strerror}"
        ) from error


def _open(
    client: paramiko.SSHClient, address: HostAddress, channel: paramiko.Channel | None
) -> None:
    where = f"{address.user}@{address.hostname}:{address.port}"
    try:
        client.connect(
            address.hostname,
            port=address.port,
            username=address.user,
            key_filename=str(Path(address.key_file).expanduser()) if address.key_file else None,
            sock=channel,
            timeout=CONNECT_TIMEOUT_S,
            banner_timeout=CONNECT_TIMEOUT_S,
            auth_timeout=CONNECT_TIMEOUT_S,
            look_for_keys=address.key_file is None,
            allow_agent=address.key_file is None,
        )
    except paramiko.BadHostKeyException as error:
        raise UnreachableError(
            address.name,
            f"the host key of {where} is not the known one. If the host was really set up anew, "
            f"remove the old key with: ssh-keygen -R {address.hostname}",
        ) from error
    except paramiko.AuthenticationException as error:
        raise UnreachableError(address.name, f"{where} refused the key: {error}") from error
    except LOST as error:
        hint = ""
        if "not found in known_hosts" in str(error):
            hint = f". Check it, then add it with: ssh-keyscan -p {address.port} {address.hostname}"
        raise UnreachableError(
            address.name, f"no SSH connection to {where}: {error}{hint}"
        ) from error
    transport = client.get_transport()
    if transport is not None:
        transport.set_keepalive(KEEPALIVE_S)
        if isinstance(transport.sock, socket.socket):
            # Commands are small and wait for an answer: Nagle's delay would only cost time.
            transport.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if hasattr(socket, "TCP_USER_TIMEOUT"):
                # A host that lost its power says nothing: else the kernel hopes for 15 minutes.
                limit = SILENCE_S * 1000
                transport.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, limit)
