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
"""The size of each word in its dimension's unit, in any case of letters.

A kilobyte is 1,024 bytes, in all spellings: what a program means by each of them differs, and is
the same throughout a column. The first dimension that has all words of a column is the one, so that
m are minutes only beside other times.
"""

_PATTERN = re.compile(r"([+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)\s*([a-zµμ%]*)")


@lru_cache(maxsize=10_000)  # the columns of a wide table have the same few numbers
def quantity(text: str) -> tuple[float, str] | None:
    """Return the number and its unit in small letters, "" for none; None for another text.

    The number is infinite where a float can't hold it.
    """
    match = _PATTERN.fullmatch(text.lower())
    if match is None or dimension([match[2]]) is None:
        return None
    return float(match[1]), match[2]


LONGEST_NUMBER = 60
"""Characters. A longer text is no number that somebody wrote."""

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


_DRESSED = {
    r"\((.+)\)": "stands in brackets: write a minus, or the number alone",
    r"(.*\d)[-+]": "has its sign behind it: write it before the number",
    r"[~\N{ALMOST EQUAL TO}]\s*(.+)": "is not exact: write the number alone",
    r"(.+?)\s*(?:\N{PLUS-MINUS SIGN}|\+/-).+": "has its error beside it: write the number alone",
    r"[$\N{EURO SIGN}\N{POUND SIGN}\N{YEN SIGN}]\s*(.+)": "has a currency: write the number alone",
    r"(.+?)\s*[$\N{EURO SIGN}\N{POUND SIGN}\N{YEN SIGN}]": "has a currency: write the number alone",
    r"=?\"(.+)\"": "is marked as text by a spreadsheet: write the number alone",
    r"'(.+?)'?": "is marked as text by a spreadsheet: write the number alone",
    r"=(.+)": "is a formula of a spreadsheet: write the number alone",
    r"(?:\w+\.)?[a-z]+\d*\('?([^()']+)'?\)": "is an object of Python: write the number alone",
}
"""Texts around a number (the group) that are no part of it, and how to write it here."""
_DURATION = r"\d+:\d\d:\d\d(\.\d+)?|(\d+(\.\d+)?(ns|[uµμ]s|ms|s|sec|min|m|h|d)\s*){2,}"


def rewriting(text: str) -> str:
    """Return how to write a number that has another form than ours; "" for any other text."""
    if len(text) > LONGEST_NUMBER or quantity(text) is not None:
        return ""
    lowered = text.lower()
    for pattern, advice in _DRESSED.items():
        dressed = re.fullmatch(pattern, lowered)
        if dressed and (quantity(dressed[1]) is not None or _in_other_form(dressed[1])):
            return advice
    return _in_other_form(text)


def _in_other_form(text: str) -> str:
    if not re.match(r"[+\-\N{MINUS SIGN}]?[,\d]", text):
        return ""
    lowered = text.lower()
    for pattern, advice in _OTHER_FORMS.items():
        if re.fullmatch(pattern + _END, lowered):
            return advice
    if re.fullmatch("[+-]?0(x[0-9a-f]+|b[01]+|o[0-7]+)", lowered):
        return f"is not decimal: write {int(lowered, 0)}"
    if re.fullmatch(_DURATION, lowered):
        return "is a time of several units: write it in one"
    plain = "".join(map(_plain, text))
    return f"has another sign or other digits: write {plain}" if quantity(plain) else ""


def foreign_unit(texts: Iterable[str]) -> str:
    """Return the unknown unit that many texts have behind their numbers; "" for none.

    It may have a prefix (Mbit, Gbit) or an s at its end. Other texts are plain numbers.
    """
    common: set[str] | None = None
    shown = ""
    foreign = 0
    for text in texts:
        match = _WITH_UNIT.fullmatch(text.strip())
        if match is None or quantity(text) is not None:
            if quantity(text) is None:
                return ""
            continue
        unit = match[1].lower().removesuffix("s")
        forms = {unit, unit[1:]} if unit[0] in "kmgt" and unit[1:] else {unit}
        common = forms if common is None else common & forms
        foreign += 1
        shown = shown or match[1]
    return shown if common and foreign >= LEAST_WITH_UNIT else ""


LEAST_WITH_UNIT = 3
"""Different numbers with a unit that is not known: fewer may be names, such as 32bit and 64bit."""
_WITH_UNIT = re.compile(r"[+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?\s*([^\W\d_]{1,16}(?:/\w+)?)")


def _plain(character: str) -> str:
    """Return the ASCII character that stands for the same digit or sign."""
    if character == "\N{MINUS SIGN}":
        return "-"
    digit = unicodedata.decimal(character, None)
    return unicodedata.normalize("NFKC", character) if digit is None else str(digit)


def dimension(words: Iterable[str]) -> str | None:
    """Return the key of UNITS that has all of these, "" where all are ""; None where none has."""
    named = {word for word in words if word}
    if not named:
        return ""
    return next((name for name, units in UNITS.items() if named <= units.keys()), None)


def in_unit(number: float, word: str, of: str) -> float:
    """Return a number in its dimension's unit, which one without a word has already."""
    return number * UNITS[of][word] if word else number
