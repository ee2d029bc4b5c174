"""Sizes and times as nginx writes them, and as the numbers of a parameter's unit."""

import re

SIZES = {"bytes": 1, "KiB": 1024, "MiB": 1024 * 1024}
"""Bytes in a unit of memory."""
TIMES = {"ms": 1, "s": 1000}
"""Milliseconds in a unit of time."""

_SUFFIXES = {"bytes": "", "KiB": "k", "MiB": "m", "ms": "ms", "s": "s"}
_SIZE = re.compile(r"([0-9]{1,15})([kKmMgG]?)")
_TIME = re.compile(r"([0-9]{1,15})(ms|[smhdwMy]?) *")
_SIZE_SUFFIX = {"": 1, "k": 1024, "m": 1024**2, "g": 1024**3}
_TIME_SUFFIX = {
    "": 1000,
    "ms": 1,
    "s": 1000,
    "m": 60_000,
    "h": 3_600_000,
    "d": 86_400_000,
    "w": 7 * 86_400_000,
    "M": 30 * 86_400_000,
    "y": 365 * 86_400_000,
}


def written(number: str, unit: str) -> str:
    """Return a number of a unit as nginx reads it, such as `16k`."""
    return f"{number}{_SUFFIXES.get(unit, '')}"


def read(text: str, unit: str) -> int | None:
    """Return the number of units in nginx's text, rounded up; None for no such quantity.

    "off" is 0, as nginx has it where a number may be off.
    """
    if text == "off":
        return 0
    if unit in SIZES:
        match = _SIZE.fullmatch(text)
        if match is None:
            return None
        return -(-int(match[1]) * _SIZE_SUFFIX[match[2].lower()] // SIZES[unit])
    if unit in TIMES:
        parts = _TIME.findall(text)
        if not parts or "".join(f"{n}{s}" for n, s in parts) != text.replace(" ", ""):
            return None
        total = sum(int(number) * _TIME_SUFFIX[suffix] for number, suffix in parts)
        return -(-total // TIMES[unit])
    return int(text) if re.fullmatch(r"[+-]?[0-9]{1,15}", text) else None
