"""The files that a pattern of `include` names, as glob(3) finds them for nginx."""

import re
from functools import lru_cache

_PART = re.compile(
    r"""\\(?P<escaped>.)
    | (?P<many>\*+)
    | (?P<any>\?)
    | \[ (?P<negated>[!^]?) (?P<set> \]? (?: \[:[a-z]+:\] | \\. | [^\]\\] )* ) \]
    | (?P<plain>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_MEMBER = re.compile(r"\[:(?P<named>[a-z]+):\]|\\?(?P<low>.)(?:-\\?(?P<high>.))?", re.DOTALL)
_CLASSES = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "blank": r"\ \t",
    "digit": "0-9",
    "lower": "a-z",
    "punct": r"!-/:-@\[-`{-~",
    "space": r"\ \t-\r",
    "upper": "A-Z",
    "xdigit": "0-9A-Fa-f",
}
"""Of the C locale, which nginx runs in."""


def matches(path: str, pattern: str) -> bool:
    """Whether nginx finds a path by what an `include` says.

    Without `*`, `?` and `[` that is the path itself. No wildcard stands for a slash, nor for a dot
    that begins a name; each stands for bytes, and not for letters.
    """
    if not re.search(r"[*?\[]", pattern):
        return path == pattern
    parts, patterns = _bytes(path).split("/"), _bytes(pattern).split("/")
    return len(parts) == len(patterns) and all(
        _regex(wanted).fullmatch(part) and (part[:1] != "." or wanted.lstrip("\\")[:1] == ".")
        for part, wanted in zip(parts, patterns, strict=True)
    )


def _bytes(text: str) -> str:
    return text.encode(errors="surrogateescape").decode("latin-1")


@lru_cache
def _regex(pattern: str) -> re.Pattern[str]:
    return re.compile("".join(map(_translated, _PART.finditer(pattern))), re.DOTALL)


def _translated(part: re.Match[str]) -> str:
    if part["many"]:
        return ".*"
    if part["any"]:
        return "."
    if part["set"] is not None:
        members = "".join(map(_member, _MEMBER.finditer(part["set"])))
        if not members:
            return r"." if part["negated"] else r"(?!)"
        return f"[{'^' if part['negated'] else ''}{members}]"
    return re.escape(part["escaped"] or part["plain"])


def _member(member: re.Match[str]) -> str:
    if member["named"]:
        return _CLASSES.get(member["named"], "")
    low, high = member["low"], member["high"]
    if high is None:
        return re.escape(low)
    return f"{re.escape(low)}-{re.escape(high)}" if low <= high else ""
