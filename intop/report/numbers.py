"""Numbers for people: so many digits as say something, and intervals beside them."""


def interval(value: float, low: float, high: float, sign: str = "") -> str:
    """Such as 11.7 (10.1 to 13.7)."""
    return f"{number(value, sign)} ({number(low, sign)} to {number(high, sign)})"


def number(value: float, sign: str = "") -> str:
    """Three digits; two below 1, where more say nothing."""
    size = abs(float(f"{value:.3g}"))
    if size >= 100 or size == 0:
        return f"{value:{sign}z.0f}"
    return f"{value:{sign}z.{1 if size >= 10 else 2}f}" if size >= 0.1 else f"{value:{sign}.2g}"


def percent(level: float) -> str:
    """Such as 95 %, 99.5 %."""
    return f"{100 * level:.4g} %"


def counted(count: int, noun: str) -> str:
    """Such as 2 keys, 1 key."""
    return f"{count} {noun}{'' if count == 1 else 's'}"
