"""Quantities: numbers as people write them, with a unit or without."""

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache

UNITS: dict[str, dict[str, float]] = {
    "bytes": {"b": 1, "byte": 1, "bytes": 1}
    | {
        prefix + end: 1024.0**power
        for power, prefix in enumerate("kmgt", start=1)
        for end in ("", "b", "ib")
    },
    "seconds": {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1, "sec": 1}
    | {"m": 60, "min": 60, "h": 3600, "d": 86400},
    "per cent": {"%": 1},
    "Hz": {"hz": 1, "khz": 1e3, "mhz": 1e6, "ghz": 1e9},
}
"""How many of its dimension's unit each word stands for, in any case of letters.

A kilobyte is 1,024 bytes, in all spellings: what a program means by each of them differs, and is
the same throughout a column. The first dimension that has all words of a column is the one, so that
m are minutes only beside other times.
"""

_PATTERN = re.compile(r"([+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)\s*([a-zµμ%]*)")


@lru_cache(maxsize=10_000)  # the columns of a wide table have the same few numbers
def quantity(text: str) -> tuple[float, str] | None:
    """The number and its unit in small letters, "" where there is none; None for another text.

    The number is infinite where a float can't hold it.
    """
    found = _PATTERN.fullmatch(text.lower())
    if found is None or dimension([found[2]]) is None:
        return None
    return float(found[1]), found[2]


LONGEST_NUMBER = 60
"""In characters. A longer text is no number that somebody wrote."""

_END = r"(e[+-]?\d+)?\s*[a-zµμ%]*"
_APOSTROPHE = "['`\N{RIGHT SINGLE QUOTATION MARK}\N{ACUTE ACCENT}]"
_OTHER_FORMS = {
    rf"[+-]?(\d*|\d{{1,3}}(([.\s]|{_APOSTROPHE})\d{{3}})+),\d+": (
        "has a comma: write a point before decimals, and nothing between thousands"
    ),
    r"[+-]?\d{1,3}(,\d{2,3})+(\.\d*)?": (
        "has a comma: write a point before decimals, and nothing between thousands"
    ),
    r"[+-]?\d{1,3}(\s\d{3})+(\.\d*)?": "has a blank between its digits: write them together",
    rf"[+-]?(\d{{1,3}}({_APOSTROPHE}\d{{3}})+|\d+(_\d+)+)(\.\d*)?": (
        "has a mark between its digits: write them together"
    ),
    r"[+-]?\d{1,3}(\.\d{3}){2,}": "has several points: write a point before decimals only",
}
"""Numbers as people and other programs write them, and how to write them here.

What they are is not certain: 1,200 is one number in Berlin, and another one in London.
"""


def rewriting(text: str) -> str:
    """How to write a number that has another form than ours; "" for a number and any other text."""
    is_like_one = len(text) <= LONGEST_NUMBER and re.match(r"[+\-\N{MINUS SIGN}]?[,\d]", text)
    if not is_like_one or quantity(text) is not None:
        return ""
    lowered = text.lower()
    for pattern, advice in _OTHER_FORMS.items():
        if re.fullmatch(pattern + _END, lowered):
            return advice
    if re.fullmatch("[+-]?0(x[0-9a-f]+|b[01]+|o[0-7]+)", lowered):
        return f"is not decimal: write {int(lowered, 0)}"
    plain = "".join(map(_plain, text))
    return f"has another sign or other digits: write {plain}" if quantity(plain) else ""


def _plain(character: str) -> str:
    """The ASCII character that stands for the same digit or sign."""
    if character == "\N{MINUS SIGN}":
        return "-"
    digit = unicodedata.decimal(character, None)
    return unicodedata.normalize("NFKC", character) if digit is None else str(digit)


def dimension(words: Iterable[str]) -> str | None:
    """The key of UNITS that has all of these, "" where all are ""; None where none has."""
    named = {word for word in words if word}
    if not named:
        return ""
    return next((name for name, units in UNITS.items() if named <= units.keys()), None)


def in_unit(number: float, word: str, of: str) -> float:
    """A number in its dimension's unit. One without a word has that unit already."""
    return number * UNITS[of][word] if word else number
