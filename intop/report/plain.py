"""Text from elsewhere, made inert: what a terminal would obey is shown, a secret is not."""

from intop.masking import masked

KEPT = "\n\t"
_WITHOUT_KEPT = str.maketrans("", "", KEPT)


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
