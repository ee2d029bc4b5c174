"""What `%h`, `${HOME}` and their like stand for where `ssh -G` leaves them to its reader."""

import os
import pwd
import re
import socket
from collections.abc import Mapping
from contextlib import suppress

Tokens = Mapping[str, str]
OF_COMMANDS = "%hknpr"
"""All that a ProxyCommand and a ProxyJump may have."""
_SIGN = re.compile(r"%(?P<token>.?)|\$\{(?P<variable>[^}]*)\}?", re.DOTALL)


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
