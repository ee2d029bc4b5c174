"""How a host is reached: what the study says, then what OpenSSH's own configuration says.

`ssh -G` is asked for the latter, so Host, Match, Include, tokens and all else mean what they mean
to `ssh`. It makes no connection.
"""

import getpass
import os
import re
import shlex
import socket
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path

from intop.domain.cluster import SHELL_WORD, HostAddress
from intop.errors import UnreachableError

SYSTEM_CONFIG = "/etc/ssh/ssh_config"
USER_CONFIG = "~/.ssh/config"
WITHOUT = "none"
"""In place of a file: no configuration of OpenSSH is read."""
DEFAULT_USER = "root"
CONNECT_TIMEOUT_S = 15.0
ASK_LIMIT_S = 20
IDENTITIES = ("id_rsa", "id_ecdsa", "id_ecdsa_sk", "id_ed25519", "id_ed25519_sk")


@dataclass(frozen=True, kw_only=True)
class Route:
    """How one connection is made.

    `identities` are files of private keys, perhaps missing; with `only_identities` the agent (its
    socket is `agent`) is asked for no others. `known_as` and `port` are what the host is looked up
    by in `known_hosts`. It is reached through the host `jump`, or by `command`, whose
    standard input and output are the connection, or by TCP.
    """

    hostname: str
    port: int
    user: str
    identities: tuple[Path, ...]
    only_identities: bool
    agent: str | None
    known_hosts: tuple[Path, ...]
    known_as: str
    command: str | None
    jump: HostAddress | None
    timeout_s: float

    @property
    def where(self) -> str:
        """Such as `root@192.0.2.20:22`."""
        return f"{self.user}@{self.hostname}:{self.port}"


def route(address: HostAddress) -> Route:
    """The route to a host. Raises UnreachableError when the configuration can't be read or used."""
    said = _asked(address, DEFAULT_USER)
    hostname = _last(said, "hostname") or address.hostname
    port = address.port or int(_last(said, "port") or 22)
    user = address.user or _last(said, "user") or DEFAULT_USER
    for what, value in (("host", hostname), ("user", user)):
        if not re.fullmatch(SHELL_WORD, value):
            raise UnreachableError(address.name, f"{value!r} can't be the name of a {what}")
    timeout = _last(said, "connecttimeout")
    tokens = _tokens(address.hostname, hostname, port, user)
    own_key, own_known = address.key_file, address.known_hosts
    return Route(
        hostname=hostname,
        port=port,
        user=user,
        identities=(_file(own_key),) if own_key else _identities(said, tokens),
        only_identities=bool(own_key) or _last(said, "identitiesonly") == "yes",
        agent=_agent(_last(said, "identityagent"), tokens),
        known_hosts=_own_known_hosts(address.name, own_known)
        if own_known
        else _known_hosts(said, tokens),
        known_as=_last(said, "hostkeyalias") or hostname,
        command=None if address.jump else _command(_last(said, "proxycommand"), tokens),
        jump=address.jump or _jump(address, _last(said, "proxyjump")),
        timeout_s=float(timeout) if timeout and timeout.isdigit() else CONNECT_TIMEOUT_S,
    )


def by_hand(address: HostAddress, found: Route) -> str:
    """The line that a person types to make the same connection."""
    words = ["ssh"]
    words += ["-F", address.ssh_config] if address.ssh_config else []
    words += ["-i", address.key_file] if address.key_file else []
    words += ["-o", f"UserKnownHostsFile={address.known_hosts}"] if address.known_hosts else []
    if (jump := address.jump) is not None:
        words += ["-J", f"{jump.user or DEFAULT_USER}@{jump.hostname}:{jump.port or 22}"]
    words += ["-p", str(found.port), "-l", found.user]
    return shlex.join([*words, address.hostname, "true"])


# -- what ssh says -------------------------------------------------------------------------------


def _asked(address: HostAddress, default_user: str | None) -> dict[str, list[str]]:
    """The words of `ssh -G` by keyword, in lower case; nothing where it is not to be asked."""
    if address.ssh_config == WITHOUT:
        return {}
    words = ["ssh", "-G", "-F", "/dev/stdin"]
    words += ["-p", str(address.port)] if address.port else []
    words += ["-l", address.user] if address.user else []
    try:
        done = subprocess.run(
            [*words, "--", address.hostname],
            input=_configuration(address, default_user),
            capture_output=True,
            text=True,
            errors="replace",
            timeout=ASK_LIMIT_S,
        )
    except FileNotFoundError as error:
        raise UnreachableError(
            address.name,
            "`ssh -G` is asked how it is reached, and there is no ssh here: install "
            'openssh-client, or set ssh_config = "none" for that host',
        ) from error
    except (OSError, subprocess.TimeoutExpired, ValueError) as error:
        raise UnreachableError(address.name, f"`ssh -G` can't be asked: {error}") from error
    if done.returncode != 0:
        said = "; ".join(done.stderr.strip().splitlines()) or f"exit code {done.returncode}"
        raise UnreachableError(
            address.name, f"ssh can't read how it is reached: {said}. Correct that file"
        )
    found: dict[str, list[str]] = {}
    for line in done.stdout.splitlines():
        keyword, _, value = line.partition(" ")
        found.setdefault(keyword, []).append(value)
    return found


def _configuration(address: HostAddress, default_user: str | None) -> str:
    """The files, and our default behind them: of two values OpenSSH takes the first."""
    if address.ssh_config:
        own = _file(address.ssh_config).absolute()
        if not own.is_file():
            raise UnreachableError(address.name, f"its ssh_config file {own} is not there")
        files = [str(own)]
    else:
        files = [str(Path(USER_CONFIG).expanduser()), SYSTEM_CONFIG]
    lines = [f'Include "{file}"\n' for file in files]
    lines += [f"Host *\nUser {default_user}\n"] if default_user else []
    return "".join(lines)


def _last(said: dict[str, list[str]], keyword: str) -> str | None:
    return said.get(keyword, [None])[-1]


def _tokens(alias: str, hostname: str, port: int, user: str) -> dict[str, str]:
    """What OpenSSH's tokens stand for, but those of its control sockets and host keys."""
    here = socket.gethostname()
    return {
        "%": "%",
        "d": str(Path.home()),
        "h": hostname,
        "i": str(os.getuid()),
        "L": here.partition(".")[0],
        "l": here,
        "n": alias,
        "p": str(port),
        "r": user,
        "u": getpass.getuser(),
    }


def _expanded(text: str, tokens: dict[str, str]) -> str:
    return re.sub(r"%(.)", lambda m: tokens.get(m[1], m[0]), text)


def _path(text: str, tokens: dict[str, str]) -> Path:
    variables = re.sub(r"\$\{(\w+)\}", lambda m: os.environ.get(m[1], m[0]), text)
    return _file(_expanded(variables, tokens))


def _file(text: str) -> Path:
    try:
        return Path(text).expanduser()
    except RuntimeError:  # nobody's home; whoever opens it says that it isn't there
        return Path(text)


def _identities(said: dict[str, list[str]], tokens: dict[str, str]) -> tuple[Path, ...]:
    files = said.get("identityfile") or [f"~/.ssh/{name}" for name in IDENTITIES]
    return tuple(_path(file, tokens) for file in files if file != WITHOUT)


def _agent(said: str | None, tokens: dict[str, str]) -> str | None:
    if said == WITHOUT:
        return None
    if said is None or said == "SSH_AUTH_SOCK":
        return os.environ.get("SSH_AUTH_SOCK")
    return os.environ.get(said[1:]) if said.startswith("$") else str(_path(said, tokens))


def _known_hosts(said: dict[str, list[str]], tokens: dict[str, str]) -> tuple[Path, ...]:
    users = (_last(said, "userknownhostsfile") or "~/.ssh/known_hosts").split()
    everyones = (_last(said, "globalknownhostsfile") or "").split()
    return tuple(_path(file, tokens) for file in (*users, *everyones) if file != WITHOUT)


def _own_known_hosts(name: str, file: str) -> tuple[Path, ...]:
    path = _file(file)
    try:
        path.open("rb").close()
    except OSError as error:
        raise UnreachableError(
            name, f"its known_hosts file {path} can't be read: {error.strerror}"
        ) from error
    return (path,)


def _command(said: str | None, tokens: dict[str, str]) -> str | None:
    return None if said is None or said == WITHOUT else _expanded(said, tokens)


_HOP = re.compile(
    r"(?:ssh://)?(?:(?P<user>.+)@)?(?P<host>\[[^\]]+\]|[^:\[\]]+)(?::(?P<port>\d+))?/?"
)


def _jump(address: HostAddress, said: str | None) -> HostAddress | None:
    """The last of the hops, each reached through the one before it; the first as ssh would."""
    jump: HostAddress | None = None
    for hop in said.split(",") if said and said != WITHOUT else ():
        if (found := _HOP.fullmatch(hop)) is None:
            raise UnreachableError(address.name, f"ProxyJump {said} can't be understood")
        given = HostAddress(
            name=f"jump host {found['host']}",
            role=address.role,
            hostname=found["host"].strip("[]"),
            port=int(found["port"]) if found["port"] else None,
            user=found["user"],
            ssh_config=address.ssh_config,
            jump=jump,
        )
        # Of a jump host that ssh names we are the user that ssh would be.
        jump = replace(given, user=given.user or _last(_asked(given, None), "user"))
    return jump
