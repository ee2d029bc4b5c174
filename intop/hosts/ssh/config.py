"""How a host is reached: what the study says, then what OpenSSH's own configuration says."""

import os
import re
import shlex
import socket
from dataclasses import dataclass, replace
from pathlib import Path

from intop.domain.cluster import SHELL_WORD, HostAddress
from intop.errors import UnreachableError
from intop.hosts.ssh.known_hosts import SSH_PORT
from intop.hosts.ssh.openssh import NO_JUMP, WITHOUT, asked, file_of, last
from intop.hosts.ssh.tokens import Tokens, expanded, of_commands, tokens_of

DEFAULT_USER = "root"
CONNECT_TIMEOUT_S = 15.0
IDENTITIES = ("id_rsa", "id_ecdsa", "id_ecdsa_sk", "id_ed25519", "id_ed25519_sk")
FAMILIES = {"inet": socket.AF_INET, "inet6": socket.AF_INET6}
Options = dict[str, list[str]]


@dataclass(frozen=True, kw_only=True)
class Route:
    """How one connection is made.

    `identities` are files of private keys, perhaps missing; with `only_identities` the agent (its
    socket is `agent`) is asked for no others. `certificates` are files; without any, each
    identity's own is used. `known_as` and `known_port` are what the host is looked up by in
    `known_hosts`; `revoked` is a file of keys that no host may have. It is reached through the
    host `jump`, or by `command`, whose standard input and output are the connection, or by TCP
    (from `bind_address`, by addresses of `family`). `ignored` says what could name the host's key
    besides, and is not asked.
    """

    hostname: str
    port: int
    user: str
    identities: tuple[Path, ...]
    certificates: tuple[Path, ...]
    only_identities: bool
    agent: str | None
    known_hosts: tuple[Path, ...]
    known_as: str
    known_port: int
    revoked: Path | None
    command: str | None
    jump: HostAddress | None
    bind_address: str | None
    family: socket.AddressFamily
    timeout_s: float
    ignored: str

    @property
    def where(self) -> str:
        """Such as `root@192.0.2.20:22`."""
        return f"{self.user}@{self.hostname}:{self.port}"


def route(address: HostAddress) -> Route:
    """The route to a host. Raises UnreachableError when the configuration can't be read or used."""
    options = asked(address, DEFAULT_USER, NO_JUMP if address.jump else ())
    hostname, port, user, tokens = _names(address, options)
    for what, value in (("host", hostname), ("user", user)):
        if not re.fullmatch(SHELL_WORD, value):
            raise UnreachableError(address.name, f"{value!r} can't be the name of a {what}")
    timeout = last(options, "connecttimeout")
    own_key, own_known = address.key_file, address.known_hosts
    name, alias = address.name, last(options, "hostkeyalias")
    revoked = last(options, "revokedhostkeys")
    found = Route(
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
    _check_understood(name, options, found)
    return found


def by_hand(address: HostAddress, found: Route) -> str:
    """The line that a person types to make the same connection."""
    words = ["ssh"]
    words += ["-F", address.ssh_config] if address.ssh_config else []
    words += ["-i", address.key_file] if address.key_file else []
    words += ["-o", f"UserKnownHostsFile={address.known_hosts}"] if address.known_hosts else []
    if (jump := address.jump) is not None:
        # ssh expands its tokens in the word of -J, so a zone's sign stands twice there.
        host = jump.hostname.replace("%", "%%")
        host = f"[{host}]" if ":" in host else host
        words += ["-J", f"{jump.user or DEFAULT_USER}@{host}:{jump.port or 22}"]
    words += ["-p", str(found.port), "-l", found.user]
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


def _check_understood(name: str, options: Options, found: Route) -> None:
    """Raises UnreachableError for what would lead elsewhere if it were ignored."""
    is_direct = found.jump is None and found.command is None
    interface = last(options, "bindinterface")
    if is_direct and interface and not found.bind_address:
        raise UnreachableError(
            name,
            f"OpenSSH's configuration says BindInterface {interface}, which intop can't do: write "
            "BindAddress with an address of that interface",
        )
    if found.command is not None and last(options, "proxyusefdpass") == "yes":
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


def _agent(said: str | None) -> str | None:
    """`ssh -G` has replaced its tokens and variables, but for the form `$NAME`."""
    if said == WITHOUT:
        return None
    if said is None or said == "SSH_AUTH_SOCK":
        return os.environ.get("SSH_AUTH_SOCK")
    return os.environ.get(said[1:]) if said.startswith("$") else str(file_of(said))


def _known_hosts(options: Options) -> tuple[Path, ...]:
    """`ssh -G` has replaced the tokens of the user's files, and ssh replaces none of the others."""
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


def _command(name: str, said: str | None, tokens: Tokens) -> str | None:
    if said is None or said.lower() == WITHOUT:
        return None
    return _expanded(name, "ProxyCommand", said, of_commands(tokens), variables=False)


_HOP = re.compile(
    r"(?:ssh://)?(?:(?P<user>.+)@)?(?P<host>\[[^\]]+\]|[^:\[\]]+)(?::(?P<port>\d+))?/?"
)


def _jump(address: HostAddress, said: str | None, tokens: Tokens) -> HostAddress | None:
    """The last of the hops, each reached through the one before it; the first as ssh would.

    To ssh the hops are a ProxyCommand: an ssh to the last hop, with -J and the other hops. So the
    tokens are this host's, and whatever they leave is the last hop's to expand.
    """
    if not said or said.lower() == WITHOUT:
        return None
    hops = _expanded(address.name, "ProxyJump", said, of_commands(tokens), variables=False)
    before, _, hop = hops.rpartition(",")
    if (found := _HOP.fullmatch(hop)) is None:
        raise UnreachableError(address.name, f"ProxyJump {said} can't be understood")
    host = found["host"].strip("[]")
    given = HostAddress(
        name=f"jump host {host}",
        role=address.role,
        hostname=host,
        port=int(found["port"]) if found["port"] else None,
        user=found["user"],
        ssh_config=address.ssh_config,
    )
    # Of a jump host that ssh names we are the user that ssh would be.
    options = asked(given, None, NO_JUMP if before else ())
    _, _, user, its_tokens = _names(given, options)
    return replace(given, user=user, jump=_jump(given, before, its_tokens))
