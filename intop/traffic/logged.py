"""Numbers in a log's line, any part of which may be hostile."""

import math
import re

_WHOLE = re.compile("[0-9]{1,18}")


def is_whole(text: str) -> bool:
    """Return whether a text is a whole number. `isdigit` also takes digits that `int` refuses."""
    return _WHOLE.fullmatch(text) is not None


def whole(text: str | None) -> int:
    """Return a whole number; 0 for another text."""
    return int(text) if text and is_whole(text) else 0


def seconds(text: str | None) -> float | None:
    """Return a duration in s; None for a text that is none, such as -, nan or -1."""
    try:
        value = float(text) if text else math.nan
    except ValueError:
        return None
    return value if 0 <= value < math.inf else None
