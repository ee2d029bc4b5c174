"""Numbers and names as words, and text from elsewhere made inert: a secret is not shown."""

from collections.abc import Iterable, Sequence

from intop.masking import masked

LOADS = {"slt": "static files", "dlt": "pages made on request"}
"""Requests of a workload."""
KEPT = "\n\t"
_WITHOUT_KEPT = str.maketrans("", "", KEPT)


def interval(value: float, low: float, high: float, sign: str = "") -> str:
    """Return such as 11.7 (10.1 to 13.7)."""
    return f"{number(value, sign)} ({number(low, sign)} to {number(high, sign)})"


def number(value: float, sign: str = "") -> str:
    """Three digits; two below 1, where more say nothing."""
    size = abs(float(f"{value:.3g}"))
    if size >= 100 or size == 0:
        return f"{value:{sign}z.0f}"
    return f"{value:{sign}z.{1 if size >= 10 else 2}f}" if size >= 0.1 else f"{value:{sign}.2g}"


def percent(level: float) -> str:
    """Return such as 95 %, 99.5 %."""
    return f"{100 * level:.4g} %"


def percent_change(ratio: float) -> str:
    """A ratio as a change in percent; powers of ten from 100-fold on."""
    change = 100 * (ratio - 1)
    return f"{change:+.0f}" if change < 9900 else f"{change:+.0e}"


def counted(count: int, noun: str) -> str:
    """Return such as 2 keys, 1 key."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def few(keys: Sequence[str], limit: int = 4) -> str:
    """The first keys, and how many there are more."""
    more = f" and {len(keys) - limit} more" if len(keys) > limit else ""
    return ", ".join(keys[:limit]) + more


def capital(text: str) -> str:
    """Return the text with a capital letter."""
    return f"{text[:1].upper()}{text[1:]}"


def shared(names: Iterable[str], otherwise: str) -> str:
    """Return the name that all share, else another word."""
    different = set(names)
    return different.pop() if len(different) == 1 else otherwise


def inert(text: str) -> str:
    r"""The text with every character that is not to be seen written as \uXXXX, as JSON has it.

    That is what moves the cursor, colours, sets titles or turns the direction of writing, wherever
    it came from: a value that a host reads back, the words of a failed command, a file's name. Also
    what no stream could write (a name that is not UTF-8). Line ends and tabs stay. Secrets that
    show by their form are masked.
    """
    text = masked(text)
    if text.isprintable() or text.translate(_WITHOUT_KEPT).isprintable():
        return text
    return "".join(c if c.isprintable() or c in KEPT else _escaped(c) for c in text)


def _escaped(character: str) -> str:
    units = character.encode("utf-16-be", errors="surrogatepass").hex()
    return "".join(rf"\u{units[n : n + 4]}" for n in range(0, len(units), 4))


def duration(seconds: float) -> str:
    """Seconds as a person says them: 45 s, 3 min 20 s, 2 h 5 min."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
