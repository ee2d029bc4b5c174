"""What to break an output with, for property-based tests of what reads it."""

import re
from collections.abc import Callable

from hypothesis import strategies as st

NUMBERS = ["1e400", "inf", "-inf", "nan", "-1", "1_000", "٣", "²", "0x10", "+5", " ", ""]
NUMBERS += ["0", "-0", "9" * 20, "9" * 5000, "1" + "0" * 400, "1.5", ".", "1,5"]
PIECES = [
    "\0",
    "\r",
    "\x0b",
    "\x1c",
    "\x85",
    "\u2028",
    "\n",
    "\t",
    "=",
    ":",
    " (",
    ") ",
    "\x1b]0;x\a",
]
PIECES += ["\ufffd", "'", '"', "$(id)", "`id`", "\\", "🙂", "TCP: ", "MemTotal: ", "cpu ", "some "]

anything = st.one_of(
    st.text(max_size=200),
    st.binary(max_size=200).map(lambda raw: raw.decode(errors="replace")),
    st.lists(st.sampled_from([*PIECES, *NUMBERS]), max_size=30).map("".join),
)


def damaged(real: str) -> st.SearchStrategy[str]:
    """A real output to which something happened, up to three times."""

    @st.composite
    def made(draw: st.DrawFn) -> str:
        text = real
        for _ in range(draw(st.integers(1, 3))):
            text = draw(st.sampled_from(DAMAGES))(draw, text)
        return text

    return made()


def _cut(draw: st.DrawFn, text: str) -> str:
    return text[: draw(st.integers(0, len(text)))]


def _insert(draw: st.DrawFn, text: str) -> str:
    place = draw(st.integers(0, len(text)))
    return text[:place] + draw(st.sampled_from([*PIECES, *NUMBERS])) + text[place:]


def _other_number(draw: st.DrawFn, text: str) -> str:
    result = list(re.finditer(r"[0-9]+", text))
    if not result:
        return text
    hit = draw(st.sampled_from(result))
    return text[: hit.start()] + draw(st.sampled_from(NUMBERS)) + text[hit.end() :]


def _drop(draw: st.DrawFn, text: str) -> str:
    kept = text.splitlines(keepends=True)
    if kept:
        del kept[draw(st.integers(0, len(kept) - 1))]
    return "".join(kept)


def _repeat(draw: st.DrawFn, text: str) -> str:
    kept = text.splitlines(keepends=True)
    if kept:
        line = draw(st.sampled_from(kept))
        kept.insert(draw(st.integers(0, len(kept))), line)
    return "".join(kept)


def _shuffle(draw: st.DrawFn, text: str) -> str:
    return "".join(draw(st.permutations(text.splitlines(keepends=True))))


def _other_ends(draw: st.DrawFn, text: str) -> str:
    return text.replace("\n", draw(st.sampled_from(["\r\n", "\r", "\x85", "\u2028", "\n\n", "\0"])))


DAMAGES: list[Callable[[st.DrawFn, str], str]] = [
    _cut, _insert, _other_number, _drop, _repeat, _shuffle, _other_ends,
]  # fmt: skip
