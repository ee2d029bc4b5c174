"""OpenSSH's own configuration of a host, by `ssh -G`. It makes no connection.

So Host, Match, Include, quotes and canonical names mean what they mean to `ssh`.
"""

import os
import pwd
import re
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from intop.domain.cluster import HostAddress
from intop.errors import UnreachableError

SYSTEM_CONFIG = "/etc/ssh/ssh_config"
USER_CONFIG = "~/.ssh/config"
WITHOUT = "none"
"""The word in place of a file: no configuration of OpenSSH is read."""
ASK_LIMIT_S = 20
NOBODY = "intop-nobody"
"""The user that stands behind a configuration, to see whether it names one itself."""
NO_JUMP = ("-o", "ProxyJump=none")
"""Options for a host whose way there is known: ssh refuses a jump host that would be its own."""

Tokens = Mapping[str, str]
OF_COMMANDS = "%hknpr"
"""The tokens that a ProxyCommand and a ProxyJump may have."""
_SIGN = re.compile(r"%(?P<token>.?)|\$\{(?P<variable>[^}]*)\}?", re.DOTALL)


def asked(
    address: HostAddress, default_user: str | None, words: Sequence[str] = ()
) -> dict[str, list[str]]:
    """Return the words of `ssh -G` by keyword, in lower case; nothing where ssh is not asked.

    `default_user` is who we are where neither the study nor the configuration names a user; None
    leaves that to ssh. `words` are further ones of its command. Raises UnreachableError.
    """
    if address.ssh_config == WITHOUT:
        return {}
    options = _asked(address, address.user, words)
    own_name = local_user()
    if address.user or default_user in (None, own_name) or last(options, "user") != own_name:
        return options
    # The name is our own by default, or because the configuration says so.
    if last(_asked(address, None, words, f"Host *\nUser {NOBODY}\n"), "user") != NOBODY:
        return options
    return _asked(address, default_user, words)


def last(options: dict[str, list[str]], keyword: str) -> str | None:
    """Return the last value of a keyword."""
    return options.get(keyword, [None])[-1]


def local_user() -> str | None:
    """Return what ssh takes for our name, whatever the environment says."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return None


def file_of(text: str) -> Path:
    """Return a path with its `~` replaced."""
    try:
        return Path(text).expanduser()
    except RuntimeError:  # nobody's home; whoever opens it says that it isn't there
        return Path(text)


def _asked(
    address: HostAddress, user: str | None, further: Sequence[str], behind: str = ""
) -> dict[str, list[str]]:
    """Ask once, with the lines `behind` after the configuration."""
    words = [*further, *(["-p", str(address.port)] if address.port else [])]
    words += ["-l", user] if user else []
    try:
        with _configuration(address, behind) as files:
            done = subprocess.run(
                ["ssh", "-G", *files, *words, "--", address.hostname],
                stdin=subprocess.DEVNULL,
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
        message = "; ".join(done.stderr.strip().splitlines()) or f"exit code {done.returncode}"
        raise UnreachableError(
            address.name, f"ssh can't read how it is reached: {message}. Correct that file"
        )
    options: dict[str, list[str]] = {}
    for line in done.stdout.split("\n"):
        keyword, _, value = line.partition(" ")
        options.setdefault(keyword, []).append(value)
    return options


@contextmanager
def _configuration(address: HostAddress, behind: str) -> Iterator[list[str]]:
    """The words that let ssh read the address's files, and the lines `behind` after them.

    ssh reads a configuration twice for `Match final` and canonical names, so no pipe will do.
    """
    own = file_of(address.ssh_config).absolute() if address.ssh_config else None
    if own and not own.is_file():
        raise UnreachableError(address.name, f"its ssh_config file {own} is not there")
    if not behind and (own or _is_at_home()):
        yield ["-F", str(own)] if own else []
        return
    users = Path(USER_CONFIG).expanduser()
    text = own.read_bytes() if own else f'Include "{users}"\nInclude "{SYSTEM_CONFIG}"'.encode()
    with tempfile.NamedTemporaryFile(prefix="intop-ssh-") as file:
        file.write(text + b"\n" + behind.encode())
        file.flush()
        yield ["-F", file.name]


def _is_at_home() -> bool:
    """Whether $HOME is where ssh looks by itself."""
    try:
        return Path.home() == Path(pwd.getpwuid(os.getuid()).pw_dir)
    except (KeyError, RuntimeError):
        return True


# -- tokens, where `ssh -G` leaves them to its reader ---------------------------------------------


def tokens_of(*, alias: str, hostname: str, port: int, user: str, known_as: str | None) -> Tokens:
    """Return the tokens' values; without %C and %j, whose meaning depends on ssh's version."""
    here = socket.gethostname()
    tokens = {
        "%": "%",
        "h": hostname,
        "i": str(os.getuid()),
        "k": known_as or alias,
        "L": here.partition(".")[0],
        "l": here,
        "n": alias,
        "p": str(port),
        "r": user,
    }
    with suppress(KeyError):  # nobody's account has a file of OpenSSH's to expand
        tokens["u"] = pwd.getpwuid(os.getuid()).pw_name
    with suppress(RuntimeError):
        tokens["d"] = os.path.expanduser("~")  # noqa: PTH111 - as it is, for a text
    return tokens


def expanded(text: str, tokens: Tokens, *, variables: bool) -> str:
    """Return the text with each token, and each of the environment's `variables`, replaced once.

    Raises ValueError for what stands for nothing, of which ssh makes no connection either.
    """

    def value(sign: re.Match[str]) -> str:
        token, variable = sign["token"], sign["variable"]
        if token is not None:
            if token not in tokens:
                raise ValueError(f"intop doesn't know what {sign[0]} stands for")
            return tokens[token]
        if not variables:
            return sign[0]
        if not sign[0].endswith("}") or variable not in os.environ:
            raise ValueError(f"the environment has no {variable or sign[0]}")
        return os.environ[variable]

    return _SIGN.sub(value, text)


def of_commands(tokens: Tokens) -> Tokens:
    """Return the few tokens of a ProxyCommand and a ProxyJump."""
    return {token: value for token, value in tokens.items() if token in OF_COMMANDS}
