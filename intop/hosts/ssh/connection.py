"""Connections: made by TCP, through jump hosts or a command, to hosts whose key is known."""

import logging
import shlex
import socket
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from typing import IO, Any

from intop.domain.cluster import HostAddress
from intop.errors import CommandError, UnreachableError
from intop.hosts.host import MOST_SHOWN, Completed, Connect, output
from intop.hosts.scripts import UNTRUSTED, script
from intop.hosts.ssh import command as commands
from intop.hosts.ssh import config, keys, known_hosts, sudo
from intop.hosts.ssh.command import SshConversation
from intop.hosts.ssh.config import Route
from intop.hosts.ssh.sudo import Secret
from intop.hosts.ssh.transport import LOST, Transport, is_over

KEEPALIVE_S = 5
SILENCE_S = 20
"""The time for which a question stays unanswered before the connection is lost."""
CLOSE_LIMIT_S = 5
CHECK_LIMIT_S = 30.0
MOST_JUMPS = 8
SHOWN = 100
"""Characters of a command in a message."""
NO_EXIT_CODE = -1
"""paramiko's exit code for a command that ended by a signal, and for a lost connection."""

# Our messages have the reasons; paramiko would print tracebacks beside them.
logging.getLogger("paramiko").addHandler(logging.NullHandler())


class SshHost:
    """A host behind an open SSH connection, perhaps through jump hosts."""

    def __init__(
        self,
        address: HostAddress,
        transport: Transport,
        stack: ExitStack,
        password: Secret | None,
    ) -> None:
        self._address = address
        self._transport = transport
        self._stack = stack
        self._password = password

    @property
    def address(self) -> HostAddress:
        """Its address and name."""
        return self._address

    def run(self, command: str, *, stdin: str = "", timeout_s: float = 30.0) -> Completed:
        """Run a command by `sh`, as root through sudo where the address says so.

        Raises:
            CommandError: It takes longer than `timeout_s` altogether or prints more than 64 MB, or
                sudo refuses.
            UnreachableError: The connection is lost.
        """
        return self._run(command, stdin, timeout_s)

    def converse(self, command: str) -> SshConversation:
        """Start a command by `sh` that answers requests, as root where `run` does.

        Raises CommandError and UnreachableError as `run` does.
        """
        name = self._address.name
        if not self._transport.is_active():
            raise self._lost()
        _check_text(name, command, "")
        dialogue = sudo.Dialogue(self._password) if self._password else None
        words = sudo.wrapped(command, dialogue, self._address.sudo)
        program = command.split(maxsplit=1)[0]
        conversation = SshConversation(name, program, self._transport, dialogue)
        conversation.start(words, CHECK_LIMIT_S)
        return conversation

    def put(self, directory: str, files: Mapping[str, str]) -> None:
        """Write texts to files by name, readable by their owner only.

        Each file is replaced at once: a script may be running from the one that was there.

        Raises:
            CommandError: Others than root and who logs in can change the folder: they could put
                another script there.
        """
        done = self.run(script("ssh/folder.sh", folder=directory))
        if done.exit_code != 0:
            why = done.message
            if done.exit_code != UNTRUSTED:
                why = f"can't be made: {why}"
            raise CommandError(self._address.name, f"{why}. Nothing was written to {directory}")
        for name, text in files.items():
            path = shlex.quote(f"{directory}/{name}")
            output(self, f"umask 077; cat > {path}.new && mv {path}.new {path}", stdin=text)

    def close(self) -> None:
        """End the connection, and those of the jump hosts."""
        self._stack.close()

    def check(self) -> None:
        """Check that commands arrive as they are, and that sudo works.

        Raises:
            CommandError: They don't. It says what to change on the host.
        """
        # sudo's words have to be understood, so they shall be English.
        done = self._run(_PROBE, "", CHECK_LIMIT_S, before="env LC_ALL=C ")
        if done.stdout == _PROBED:
            return
        if self._address.sudo and done.exit_code != 0:
            reason = sudo.refusal(
                self._user,
                done.stderr,
                asked=False,
                exit_code=done.exit_code,
                by=self._address.sudo,
            )
            raise CommandError(self._address.name, reason)
        words = " ".join((done.stdout + done.stderr).split())[:200]
        raise CommandError(
            self._address.name,
            "its login shell does not pass on what it is given: where an echo was asked for, it "
            f"says {words!r}. Let that user's shell be sh, bash or zsh (chsh), and its start-up "
            "files print nothing where there is no terminal",
        )

    @property
    def _user(self) -> str:
        return self._transport.get_username() or "the user"

    def _run(self, command: str, stdin: str, timeout_s: float, *, before: str = "") -> Completed:
        name = self._address.name
        if not self._transport.is_active():
            raise self._lost()
        _check_text(name, command, stdin)
        short = command if len(command) <= SHOWN else f"{command[:SHOWN]} ..."
        dialogue = sudo.Dialogue(self._password) if self._password else None
        words = before + sudo.wrapped(command, dialogue, self._address.sudo)
        exchange = commands.Exchange(dialogue)
        try:
            exit_code = exchange.run(self._transport, words, stdin.encode(), timeout_s)
        except TimeoutError as error:
            if dialogue and not dialogue.running:
                reason = sudo.unfinished(_text(dialogue.heard(exchange.err)), timeout_s)
                raise CommandError(name, reason) from error
            raise CommandError(name, f"no answer within {timeout_s:g} s from `{short}`") from error
        except commands.TooMuchError as error:
            limit = commands.OUTPUT_LIMIT_BYTES >> 20
            raise CommandError(
                name, f"was stopped after more than {limit} MB of output: `{short}`"
            ) from error
        except LOST as error:
            if is_over(self._transport):
                raise self._lost() from error
            raise UnreachableError(
                name, f"the SSH connection failed: {str(error) or 'it ended'}"
            ) from error
        if exit_code == NO_EXIT_CODE and is_over(self._transport):
            raise self._lost()
        err = dialogue.heard(exchange.err) if dialogue else exchange.err
        if dialogue and not dialogue.running:
            reason = sudo.refusal(self._user, _text(err), asked=dialogue.asked, exit_code=exit_code)
            raise CommandError(name, reason)
        return Completed(exit_code, _text(exchange.out), _text(err))

    def _lost(self) -> UnreachableError:
        return UnreachableError(
            self._address.name, f"the SSH connection was lost: {self._transport.why}"
        )


def _check_text(name: str, command: str, stdin: str) -> None:
    """Raises CommandError for a text that would not arrive as it is."""
    if "\0" in command:
        raise CommandError(name, "a command with a NUL is not run: sshd would run a part of it")
    try:
        command.encode()
        stdin.encode()
    except UnicodeEncodeError as error:
        raise CommandError(
            name, f"{command[:SHOWN]!r} or its input is no text: {error.reason}"
        ) from error


# Two lines, and characters that other shells than POSIX's take for something else in quotes.
_PROBED = "it's \\\\ here!\n"
_PROBE = f"true\nprintf '%s\\n' {shlex.quote(_PROBED.rstrip())}"


def connect(address: HostAddress, password: Secret | None = None) -> SshHost:
    """Open a connection to a host whose key is known, and check that commands run there.

    `password` is sudo's, for a host of `sudo = "ask"`.

    Raises:
        UnreachableError: The host can't be reached. It says the next step.
        CommandError: Nothing can be run. It says the next step.
    """
    if address.sudo == "ask" and password is None:
        raise CommandError(
            address.name, 'nobody was asked for the password of sudo = "ask": use sudo = true'
        )
    with ExitStack() as stack:
        transport = _connected(address, stack, jumps=0)
        kept = ExitStack()
        host = SshHost(address, transport, kept, password if address.sudo == "ask" else None)
        host.check()
        kept.enter_context(stack.pop_all())
        return host


def with_passwords(password_of: Callable[[HostAddress], Secret]) -> Connect:
    """Return `connect`, which asks `password_of` where a host's sudo needs one."""

    def connect_to(address: HostAddress) -> SshHost:
        return connect(address, password_of(address) if address.sudo == "ask" else None)

    return connect_to


# -- the way there -------------------------------------------------------------------------------


def _connected(address: HostAddress, stack: ExitStack, jumps: int) -> Transport:
    """Return an authenticated connection. `stack` closes it, and those on which it stands."""
    if jumps > MOST_JUMPS:
        raise UnreachableError(
            address.name, f"is behind more than {MOST_JUMPS} jump hosts: do they go in a circle?"
        )
    route = config.route(address)
    try:
        sock = _way(address, route, stack, jumps)
        transport = Transport(sock)
        stack.callback(transport.close)
        transport.banner_timeout = transport.handshake_timeout = route.timeout_s
        _check_key(address, transport, route)
        keys.authenticate(address.name, transport, route)
    except (*LOST, UnicodeError) as error:
        raise UnreachableError(
            address.name,
            f"no SSH connection to {route.where}: {str(error) or 'it ended at once'}. "
            f"Try it by hand: {config.by_hand(address, route)}",
        ) from error
    over = threading.Event()
    stack.callback(over.set)
    threading.Thread(target=_watch, args=(transport, over), daemon=True).start()
    return transport


def _way(address: HostAddress, route: Route, stack: ExitStack, jumps: int) -> Any:
    """Return something like a socket that leads to the host's sshd."""
    if route.jump is not None:
        jump = _connected(route.jump, stack, jumps + 1)
        target = (route.hostname, route.port)
        try:
            return jump.open_channel(
                "direct-tcpip", target, ("127.0.0.1", 0), timeout=route.timeout_s
            )
        except LOST as error:
            raise UnreachableError(
                route.jump.name,
                f"as jump host it can't reach {route.hostname}:{route.port}: {error}",
            ) from error
    if route.command is not None:
        return stack.enter_context(_spoken_to(address, route.command))
    sock = _tcp(route)
    stack.callback(sock.close)
    # Commands are small and wait for an answer: Nagle's delay would only cost time.
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        # A host that lost its power says nothing: else the kernel hopes for 15 minutes.
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, SILENCE_S * 1000)
    return sock


def _tcp(route: Route) -> socket.socket:
    """Return a connection to the first address that takes it, of those that the route allows."""
    source = (route.bind_address, 0) if route.bind_address else None
    problem: OSError | None = None
    kind = socket.SOCK_STREAM
    for *_, target in socket.getaddrinfo(route.hostname, route.port, route.family, kind):
        host, port = str(target[0]), int(target[1])
        try:
            return socket.create_connection((host, port), route.timeout_s, source)
        except OSError as error:
            problem = problem or error
    raise problem or OSError(f"{route.hostname} has no address")


@contextmanager
def _spoken_to(address: HostAddress, command: str) -> Iterator[socket.socket]:
    """Return a socket whose other end is the input and output of a ProxyCommand.

    It has a session of its own: a Ctrl-C is for us, who still need it to restore the hosts.
    """
    ours, theirs = socket.socketpair()
    with ours, tempfile.TemporaryFile() as err:
        with theirs:
            process = subprocess.Popen(
                ["sh", "-c", f"exec {command}"],
                stdin=theirs.fileno(),
                stdout=theirs.fileno(),
                stderr=err,
                start_new_session=True,
            )
        try:
            yield ours
        except UnreachableError as error:
            raise UnreachableError(address.name, f"{error.message}{_last_line(err)}") from error
        finally:
            ours.close()
            _end(process)


def _last_line(err: IO[bytes]) -> str:
    err.seek(0)
    lines = err.read(1 << 16).decode(errors="replace").strip().splitlines()
    return f". Its ProxyCommand says: {lines[-1][:MOST_SHOWN]}" if lines else ""


def _end(process: "subprocess.Popen[bytes]") -> None:
    for ask in (process.terminate, process.kill):
        ask()
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=CLOSE_LIMIT_S)
            return


# -- who is there, and for how long --------------------------------------------------------------


def _check_key(address: HostAddress, transport: Transport, route: Route) -> None:
    """Greet the host, and check that its key is a known one."""
    try:
        listed = known_hosts.kinds(route.known_hosts, route.known_as, route.known_port)
    except OSError as error:
        raise UnreachableError(
            address.name, f"its known_hosts file can't be read: {error}"
        ) from error
    options = transport.get_security_options()
    # It may have several keys: let it show one that we know.
    known = [kind for kind in options.key_types if _family(kind) in listed]
    options.key_types = tuple(known + [kind for kind in options.key_types if kind not in known])
    transport.start_client(timeout=route.timeout_s)
    key = transport.get_remote_server_key()
    shown = key.get_name(), key.asbytes()
    problem = known_hosts.revocation(route.revoked, *shown) if route.revoked else None
    problem = problem or known_hosts.refusal(
        route.known_hosts, route.known_as, route.known_port, *shown, ignored=route.ignored
    )
    if problem is not None:
        raise UnreachableError(address.name, f"{route.where} was refused: {problem}")


def _family(kind: str) -> str:
    """Return the kind of key of a kind of signature."""
    return "ssh-rsa" if kind.startswith("rsa-sha2-") else kind


def _watch(transport: Transport, over: threading.Event) -> None:
    """Ask for a sign of life now and then; close a connection that gives none.

    Else a command behind a jump host would be waited for as long as it may take. Seconds are
    counted one by one, so that those during which we were stopped ourselves don't count.
    """
    while not over.wait(KEEPALIVE_S) and transport.is_active():
        asking = threading.Thread(target=_ask, args=(transport,), daemon=True)
        asking.start()
        for _ in range(SILENCE_S):
            asking.join(1)
            if not asking.is_alive():
                break
        else:
            transport.give_up(f"no answer for {SILENCE_S} s")


def _ask(transport: Transport) -> None:
    with suppress(*LOST):
        # No server knows this request, and each of them says so.
        transport.global_request("keepalive@openssh.com", wait=True)


def _text(output: bytes | bytearray) -> str:
    return output.decode(errors="replace")
