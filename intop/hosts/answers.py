"""The output of a host, taken apart: lines, words and numbers.

Python's own ways take too much. `splitlines` ends a line at U+0085, U+2028 and others that a value
or a program's name may hold; `int` and `float` also take nan, inf, 1_000 and other scripts' digits,
of any length.
"""

import re
from collections.abc import Iterable

_WHOLE = re.compile(r"-?[0-9]{1,20}")
_DECIMAL = re.compile(r"-?[0-9]{1,20}(\.[0-9]{0,20})?")


def lines(text: str) -> list[str]:
    """Return the lines of an output, without one that was cut off before its end."""
    return text.split("\n")[:-1]


def joined(listed: Iterable[str]) -> str:
    """Return the text that has these lines, as `lines` takes it apart."""
    return "".join(f"{line}\n" for line in listed)


def by_word(text: str) -> dict[str, list[str]]:
    """Return, by the first word of each line, the rest of all such lines."""
    rests: dict[str, list[str]] = {}
    for line in lines(text):
        word, _, rest = line.partition(" ")
        rests.setdefault(word, []).append(rest)
    return rests


def whole(text: str) -> int:
    """Return a whole number of up to 20 digits. Raises ValueError for anything else."""
    if not _WHOLE.fullmatch(text):
        raise ValueError(f"{_short(text)} is no whole number")
    return int(text)


def count(text: str) -> int:
    """Return a whole number from 0 on. Raises ValueError for anything else."""
    number = whole(text)
    if number < 0:
        raise ValueError(f"{_short(text)} is below zero")
    return number


def decimal(text: str) -> float:
    """Return a decimal number without an exponent. Raises ValueError for anything else."""
    if not _DECIMAL.fullmatch(text):
        raise ValueError(f"{_short(text)} is no number")
    return float(text)


def _short(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:37] + "...")
