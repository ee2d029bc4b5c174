"""The configuration that a host's nginx runs with, as nginx itself shows it (`nginx -T`)."""

import hashlib
import re
from collections.abc import Iterable, Sequence
from ipaddress import ip_address
from posixpath import dirname

from intop.domain.trial import UNKNOWN
from intop.hosts.scripts import script

MARK = "nginx_conf"
"""The line before each configuration."""

SHOW, REFUSALS = script("nginx_conf.sh"), script("nginx_refusals.sh")
DIGITS = 8
"""The length of a fingerprint, which a person can compare."""

_FILE = re.compile(r"^# configuration file (.+):$", re.MULTILINE)
_WORD = re.compile(
    r"""\#[^\n]*                       # a comment
    | "(?:\\.|[^"\\])*"
    | '(?:\\.|[^'\\])*'
    | [{};]
    | (?:\\.|\$\{|[^ \t\r\n;{\\])+     # in a word, neither # nor } nor quotes are special
    """,
    re.VERBOSE | re.DOTALL,
)
"""The words of a file, as nginx's ngx_conf_read_token() takes it apart."""


def parse_shown(lines: Iterable[str]) -> tuple[str, ...]:
    """Return the configurations in the lines that SHOW prints."""
    confs: list[list[str]] = []
    for line in lines:
        if line == MARK:
            confs.append([])
        elif confs:
            confs[-1].append(line)
    return tuple("\n".join(conf) for conf in confs)


def is_known(confs: Sequence[str]) -> bool:
    """Return whether an nginx runs, and each of them showed its configuration."""
    return bool(confs) and all(confs)


def fingerprint(confs: Sequence[str], hosts: Sequence[str]) -> str:
    """Return DIGITS digits that change with the configurations; UNKNOWN where they are not known.

    Comments, blanks and the folder of the main file don't matter, nor the addresses of `hosts` (as
    the study has them, in its order): the lab made again has other ones.
    """
    if not is_known(confs):
        return UNKNOWN
    text = "\n".join(sorted({_normalised(conf, hosts) for conf in confs}))
    return hashlib.sha256(text.encode(errors="backslashreplace")).hexdigest()[:DIGITS]


def _normalised(conf: str, hosts: Sequence[str]) -> str:
    if "_by_lua" in conf:
        words = conf.split()  # in Lua, # is the length of something
    else:
        words = [word for word in _WORD.findall(conf) if not word.startswith("#")]
    text = " ".join(words)
    if main := _FILE.search(conf):
        text = re.sub(rf"(?<![\w./-]){re.escape(dirname(main[1]))}/", "", text)
    for place, host in enumerate(hosts):
        if _is_address(host):
            end = r"(?![\w:])" if ":" in host else r"(?!\w|\.\w)"
            text = re.sub(rf"(?<![\w.]){re.escape(host)}{end}", f"@{place}", text)
    return text


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
