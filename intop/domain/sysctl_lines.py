"""The lines of sysctl.d files, as each program that loads them reads them."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from intop.domain.parameter import normalised

Loader = Literal["systemd", "procps", "tuned"]

_BLANKS = {"systemd": " \t\n\r", "procps": " \t\n\v\f\r", "tuned": None}
"""Characters that each program takes off the ends of a key and a value; None is all that Python
knows."""


@dataclass(frozen=True)
class Line:
    """A line about a key, or a glob pattern of keys."""

    number: int
    key: str
    value: str | None
    """None for a line `-KEY`."""
    is_lenient: bool
    """A line `-KEY = VALUE`: the key may be missing."""


def read_lines(texts: Iterable[str], loader: Loader) -> list[Line]:
    """Return the lines of a file that this program reads, in their order."""
    lines: list[Line] = []
    blanks = _BLANKS[loader]
    for number, text in enumerate(texts, start=1):
        for part in _parts(text, loader):
            line = part.strip(blanks)
            if not line or line[0] in "#;":
                continue
            key, equals, value = line.partition("=")
            is_lenient = key.startswith("-")
            name = canonical_key(_name(key, loader).strip(blanks), loader)
            if name and (equals or is_lenient):
                text_of = normalised(value.strip(blanks)) if equals else None
                lines.append(Line(number, name, text_of, is_lenient))
    return lines


def unread(text: str) -> str:
    """Return why no program sets anything by a line that was meant to; "" if one may."""
    line = text.strip(_BLANKS["procps"])
    bare = line.lstrip("\ufeff")
    if not bare or bare[0] in "#;" or re.search(r"[\r\0]", line):
        return ""
    key, equals, _ = bare.removeprefix("-").partition("=")
    key = key.strip(_BLANKS["procps"])
    if re.match(r"(/\S*/)?sysctl\s", bare):
        return "a command in place of KEY = VALUE"
    if not equals:
        # A line -KEY is about globs, and about earlier lines.
        return "" if bare.startswith("-") and not re.search(r"\s", key) else "no = in it"
    if bare != line:
        return "a byte order mark (BOM) before the key"
    if not key:
        return "no key before the ="
    if re.search(r"\s", key):
        return "a key with a blank in it"
    first = re.split(r"[./]", key.lstrip("./"))[0]
    if first == "proc":
        return "a key begins below /proc/sys"
    if first != first.lower() and first.lower() in _FIRST:
        return "keys are written in lower case"
    return ""


_FIRST = ("abi", "debug", "dev", "fs", "kernel", "net", "sunrpc", "user", "vm")
"""The folders of /proc/sys."""


def canonical_key(text: str, loader: Loader = "systemd") -> str:
    """Return a key or pattern as sysctl shows it, with dots between its parts.

    Where the first separator is a slash, dots belong to the parts (an interface `eth0.5`), and
    become slashes; so sysctl.d(5) has it. Separators before it, and doubled ones, say nothing;
    one after it does to procps, which then knows no such key.
    """
    first = re.search(r"[./]", text)
    if first is not None and first[0] == "/":
        text = text.translate(str.maketrans("./", "/."))
    text = re.sub(r"\.{2,}", ".", text).removeprefix(".")
    return text.removesuffix(".") if loader == "systemd" else text


def is_glob(key: str) -> bool:
    """Return whether a key is a pattern of keys."""
    return any(character in key for character in "*?[")


def _parts(text: str, loader: Loader) -> list[str]:
    """A line ends at a return and at NUL for systemd; procps leaves out what follows a NUL."""
    if loader == "systemd":
        return re.split(r"[\r\0]", text)
    return [text.partition("\0")[0] if loader == "procps" else text]


def _name(key: str, loader: Loader) -> str:
    if loader == "procps":
        # It takes two hyphens for one, and a blank after them for a part of the key.
        bare = key.removeprefix("-").removeprefix("-")
        return "" if bare != key and bare[:1].isspace() else bare
    return key.removeprefix("-")
