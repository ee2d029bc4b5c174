"""The kernel's reading of a text that is written to a sysctl (its kernel/sysctl.c).

Numbers are read in C's way: `010` is 8, `0xff` is 255. What follows the last number that a key
needs is left out: `65535   # same` is 65535. Quotes and commas are refused.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal

from intop.domain.parameter import normalised

Outcome = Literal["taken", "likely", "refused", "unknown"]

LONGEST_NUMBER = 20
"""Characters, with the sign: the kernel refuses longer ones whatever they say."""

_BLANKS = re.compile(r"[ \t\n\v\f\r]*")
_NUMBER = re.compile(r"(-?)(0[xX][0-9a-fA-F]+|0[0-7]*|[1-9][0-9]*)(?=[ \t\n]|$)")
_PLAIN = re.compile(r"-?[0-9]+( -?[0-9]+)*")
_NO_NUMBERS = ("*_mask", "*_bitmap", "*_ports", "kernel.core_*")
"""Keys (glob patterns) that look like numbers, and are bit masks, lists or texts."""
_ROUNDED = ("*interval_ms", "*_time_ms", "*ratelimit")
"""Keys of milliseconds that the kernel rounds to its clock's ticks: 255 may become 256."""


@dataclass(frozen=True)
class Reading:
    """The kernel's reading of a text."""

    outcome: Outcome
    """`likely` is for a number beyond the known values; a key that refuses stays as it is."""
    value: str
    """The value as the kernel then shows it."""


def reading(key: str, text: str, known: Iterable[str]) -> Reading:
    """Return how the kernel reads a text, going by values that are `known` to be the key's.

    They show whether it takes numbers, how many, and in which range.
    """
    text = normalised(text)
    values = [normalised(value) for value in known]
    if text in values:
        return Reading("taken", text)
    ranges = _ranges(key, values)
    if not ranges:
        return Reading("unknown", text)
    numbers, refused = _numbers(text, len(ranges))
    if not numbers:
        return Reading("refused", text)
    if refused or len(numbers) < len(ranges):
        # Some keys take the numbers before a bad one, others none; too few leave the rest.
        return Reading("unknown", text)
    value = " ".join(map(str, numbers))
    is_within = all(low <= n <= high for n, (low, high) in zip(numbers, ranges, strict=True))
    is_exact = "-0" not in text and not any(fnmatchcase(key, pattern) for pattern in _ROUNDED)
    is_sure = is_exact and is_within and (_rises(numbers) or not _all_rise(values))
    is_sure |= value in values and "-0" not in text
    return Reading("taken" if is_sure else "likely", value)


def odd_numbers(text: str) -> dict[str, int]:
    """Return the numbers in a text that the kernel reads in another way than people: `010` is 8."""
    matches = {word: _NUMBER.fullmatch(word) for word in text.split()}
    return {
        word: _value(match)
        for word, match in matches.items()
        if match and re.fullmatch(r"-?0[0-9]+", word) and _value(match) != int(word)
    }


def _ranges(key: str, values: Sequence[str]) -> list[tuple[int, int]]:
    """Return the lowest and highest known of each number of the key; nothing for texts."""
    if any(fnmatchcase(key, pattern) for pattern in _NO_NUMBERS):
        return []
    if not values or not all(_PLAIN.fullmatch(value) for value in values):
        return []
    columns = [[int(word) for word in value.split()] for value in values]
    if len({len(numbers) for numbers in columns}) > 1:
        return []
    return [(min(column), max(column)) for column in zip(*columns, strict=True)]


def _numbers(text: str, most: int) -> tuple[list[int], bool]:
    """Return the first numbers of a text, and whether the kernel refuses what follows."""
    numbers: list[int] = []
    place = _skipped(text, 0)
    while len(numbers) < most and place < len(text):
        match = _NUMBER.match(text, place)
        if match is None or len(match[0]) > LONGEST_NUMBER:
            return numbers, True
        numbers.append(_value(match))
        place = _skipped(text, match.end())
    return numbers, False


def _skipped(text: str, place: int) -> int:
    match = _BLANKS.match(text, place)
    return match.end() if match else place


def _value(match: re.Match[str]) -> int:
    sign, digits = match[1], match[2]
    base = 16 if digits[1:2] in ("x", "X") else 8 if digits[0] == "0" else 10
    return int(f"{sign}{digits}", base)


def _rises(numbers: Sequence[int]) -> bool:
    return list(numbers) == sorted(numbers)


def _all_rise(values: Iterable[str]) -> bool:
    return all(_rises([int(word) for word in value.split()]) for value in values)
