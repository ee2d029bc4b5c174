"""The route to a host: by the study, then by OpenSSH's own configuration."""

import os
import re
import shlex
import socket
from dataclasses import dataclass, replace
from pathlib import Path

from intop.domain.cluster import SHELL_WORD, HostAddress
from intop.errors import UnreachableError
from intop.hosts.ssh.known_hosts import SSH_PORT
from intop.hosts.ssh.openssh import (
    NO_JUMP,
    WITHOUT,
    Tokens,
    asked,
    expanded,
    file_of,
    last,
    of_commands,
    tokens_of,
)

DEFAULT_USER = "root"
CONNECT_TIMEOUT_S = 15.0
IDENTITIES = ("id_rsa", "id_ecdsa", "id_ecdsa_sk", "id_ed25519", "id_ed25519_sk")
FAMILIES = {"inet": socket.AF_INET, "inet6": socket.AF_INET6}
Options = dict[str, list[str]]


@dataclass(frozen=True, kw_only=True)
class Route:
    """The way of one connection: through a jump host, by a command, or by TCP."""

    hostname: str
    port: int
    user: str
    identities: tuple[Path, ...]
    """Files of private keys, perhaps missing."""
    certificates: tuple[Path, ...]
    """Files of certificates; without any, each identity's own is used."""
    only_identities: bool
    """Whether the agent is asked for no other keys."""
    agent: str | None
    """The socket of the agent."""
    known_hosts: tuple[Path, ...]
    known_as: str
    """The host's name in `known_hosts`."""
    known_port: int
    """The host's port in `known_hosts`."""
    revoked: Path | None
    """A file of keys that no host may have."""
    command: str | None
    """A command whose standard input and output are the connection."""
    jump: HostAddress | None
    """The host through which this one is reached."""
    bind_address: str | None
    """Our own address, for a connection by TCP."""
    family: socket.AddressFamily
    """The family of addresses, for a connection by TCP."""
    timeout_s: float
    ignored: str
    """A keyword of ssh's that could name the host's key, and is not followed."""

    @property
    def where(self) -> str:
        """The route in words, such as `root@192.0.2.20:22`."""
        return f"{self.user}@{self.hostname}:{self.port}"


def route(address: HostAddress) -> Route:
    """Return the route to a host. Raises UnreachableError where the configuration is unusable."""
    options = asked(address, DEFAULT_USER, NO_JUMP if address.jump else ())
    hostname, port, user, tokens = _names(address, options)
    for what, value in (("host", hostname), ("user", user)):
        if not re.fullmatch(SHELL_WORD, value):
            raise UnreachableError(address.name, f"{value!r} can't be the name of a {what}")
    timeout = last(options, "connecttimeout")
    own_key, own_known = address.key_file, address.known_hosts
    name, alias = address.name, last(options, "hostkeyalias")
    revoked = last(options, "revokedhostkeys")
    result = Route(
        hostname=hostname,
        port=port,
        user=user,
        identities=(file_of(own_key),) if own_key else _identities(name, options, tokens),
        certificates=_paths(name, "CertificateFile", options.get("certificatefile", []), tokens),
        only_identities=bool(own_key) or last(options, "identitiesonly") == "yes",
        agent=_agent(last(options, "identityagent")),
        known_hosts=_own_known_hosts(name, own_known) if own_known else _known_hosts(options),
        known_as=alias or hostname,
        # As ssh: the name in place of the host's stands for itself, whatever the port.
        known_port=SSH_PORT if alias else port,
        revoked=file_of(revoked) if revoked and revoked != WITHOUT else None,
        command=None if address.jump else _command(name, last(options, "proxycommand"), tokens),
        jump=address.jump or _jump(address, last(options, "proxyjump"), tokens),
        bind_address=last(options, "bindaddress"),
        family=FAMILIES.get(last(options, "addressfamily") or "", socket.AF_UNSPEC),
        timeout_s=float(timeout)
        if timeout and timeout.isdigit() and int(timeout)
        else CONNECT_TIMEOUT_S,
        ignored="KnownHostsCommand" if last(options, "knownhostscommand") else "",
    )
    _check_understood(name, options, result)
    return result


def by_hand(address: HostAddress, route: Route) -> str:
    """Return the line that a person types to make the same connection."""
    words = ["ssh"]
    words += ["-F", address.ssh_config] if address.ssh_config else []
    words += ["-i", address.key_file] if address.key_file else []
    words += ["-o", f"UserKnownHostsFile={address.known_hosts}"] if address.known_hosts else []
    if (jump := address.jump) is not None:
        # ssh expands its tokens in the word of -J, so a zone's sign stands twice there.
        host = jump.hostname.replace("%", "%%")
        host = f"[{host}]" if ":" in host else host
        words += ["-J", f"{jump.user or DEFAULT_USER}@{host}:{jump.port or 22}"]
    words += ["-p", str(route.port), "-l", route.user]
    return shlex.join([*words, address.hostname, "true"])


# -- what ssh says -------------------------------------------------------------------------------


def _names(address: HostAddress, options: Options) -> tuple[str, int, str, Tokens]:
    """Return the host's name, port and user, and what tokens stand for with them."""
    hostname = last(options, "hostname") or address.hostname
    port = address.port or int(last(options, "port") or SSH_PORT)
    user = address.user or last(options, "user") or DEFAULT_USER
    tokens = tokens_of(
        alias=address.hostname,
        hostname=hostname,
        port=port,
        user=user,
        known_as=last(options, "hostkeyalias"),
    )
    return hostname, port, user, tokens


def _check_understood(name: str, options: Options, route: Route) -> None:
    """Raises UnreachableError for what would lead elsewhere if it were ignored."""
    is_direct = route.jump is None and route.command is None
    interface = last(options, "bindinterface")
    if is_direct and interface and not route.bind_address:
        raise UnreachableError(
            name,
            f"OpenSSH's configuration says BindInterface {interface}, which intop can't do: write "
            "BindAddress with an address of that interface",
        )
    if route.command is not None and last(options, "proxyusefdpass") == "yes":
        raise UnreachableError(
            name,
            "OpenSSH's configuration says ProxyUseFdpass yes, which intop can't do: let the "
            "ProxyCommand pass the connection on by its standard input and output",
        )


def _expanded(name: str, keyword: str, text: str, tokens: Tokens, *, variables: bool) -> str:
    try:
        return expanded(text, tokens, variables=variables)
    except ValueError as error:
        raise UnreachableError(
            name, f"{keyword} {text} of OpenSSH's configuration can't be used: {error}"
        ) from error


def _paths(name: str, keyword: str, texts: list[str], tokens: Tokens) -> tuple[Path, ...]:
    files = [str(file_of(text)) for text in texts]
    return tuple(Path(_expanded(name, keyword, file, tokens, variables=True)) for file in files)


def _identities(name: str, options: Options, tokens: Tokens) -> tuple[Path, ...]:
    files = options.get("identityfile") or [f"~/.ssh/{identity}" for identity in IDENTITIES]
    files = [file for file in files if file.lower() != WITHOUT]
    return _paths(name, "IdentityFile", files, tokens)


def _agent(socket_name: str | None) -> str | None:
    """Return the agent's socket. `ssh -G` has replaced tokens and variables, but for `$NAME`."""
    if socket_name == WITHOUT:
        return None
    if socket_name is None or socket_name == "SSH_AUTH_SOCK":
        return os.environ.get("SSH_AUTH_SOCK")
    if socket_name.startswith("$"):
        return os.environ.get(socket_name[1:])
    return str(file_of(socket_name))


def _known_hosts(options: Options) -> tuple[Path, ...]:
    """Return the files. `ssh -G` has replaced the tokens of the user's; ssh replaces no others."""
    users = _separate(last(options, "userknownhostsfile") or "~/.ssh/known_hosts")
    everyones = _separate(last(options, "globalknownhostsfile") or "")
    return tuple(file_of(file) for file in (*users, *everyones) if file.lower() != WITHOUT)


def _separate(files: str) -> list[str]:
    """Return the files of one line, in which `ssh -G` leaves out the quotes around blanks."""
    parts = [part.strip() for part in re.split(r"\s(?=[/~])", files)]
    return [
        file
        for part in parts
        for file in ([part] if file_of(part).exists() else part.split())
        if file
    ]


def _own_known_hosts(name: str, file: str) -> tuple[Path, ...]:
    path = file_of(file)
    try:
        path.open("rb").close()
    except OSError as error:
        raise UnreachableError(
            name, f"its known_hosts file {path} can't be read: {error.strerror}"
        ) from error
    return (path,)


def _command(name: str, command: str | None, tokens: Tokens) -> str | None:
    if command is None or command.lower() == WITHOUT:
        return None
    return _expanded(name, "ProxyCommand", command, of_commands(tokens), variables=False)


_HOP = re.compile(
    r"(?:ssh://)?(?:(?P<user>.+)@)?(?P<host>\[[^\]]+\]|[^:\[\]]+)(?::(?P<port>\d+))?/?"
)


def _jump(address: HostAddress, listed: str | None, tokens: Tokens) -> HostAddress | None:
    """Return the last of the hops, each reached through the one before it; the first as ssh would.

    To ssh the hops are a ProxyCommand: an ssh to the last hop, with -J and the other hops. So the
    tokens are this host's, and whatever they leave is the last hop's to expand.
    """
    if not listed or listed.lower() == WITHOUT:
        return None
    hops = _expanded(address.name, "ProxyJump", listed, of_commands(tokens), variables=False)
    before, _, hop = hops.rpartition(",")
    if (match := _HOP.fullmatch(hop)) is None:
        raise UnreachableError(address.name, f"ProxyJump {listed} can't be understood")
    host = match["host"].strip("[]")
    given = HostAddress(
        name=f"jump host {host}",
        role=address.role,
        hostname=host,
        port=int(match["port"]) if match["port"] else None,
        user=match["user"],
        ssh_config=address.ssh_config,
    )
    # Of a jump host that ssh names we are the user that ssh would be.
    options = asked(given, None, NO_JUMP if before else ())
    _, _, user, its_tokens = _names(given, options)
    return replace(given, user=user, jump=_jump(given, before, its_tokens))
