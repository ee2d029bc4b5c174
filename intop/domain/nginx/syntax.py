"""nginx's configuration files as trees of statements that know where they stand.

A statement keeps offsets into its file's text and no copy of it, so that an edit replaces a few
characters and the rest of the file stays as it is: comments, blanks, quotes, line ends.

The rules are those of `ngx_conf_read_token` (src/core/ngx_conf_file.c). A quote, `#` and `}` mean
something only where a word begins. Blocks of Lua (`content_by_lua_block { }`) are taken as a whole,
as OpenResty takes them.

More is read than nginx accepts: nginx refuses a word or a comment of 4,096 bytes.
"""

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from intop.errors import NginxFileError

DEEPEST = 60
"""Blocks in blocks. nginx has no limit, and nobody needs a tenth of it."""

_BLANKS = re.compile(r"(?:[ \t\r\n]+|\#[^\n]*)+")
_WORD = re.compile(
    r"""(?P<quoted> "(?:\\.|[^"\\])*" | '(?:\\.|[^'\\])*' )
    | (?:\\.|\$\{+|[^ \t\r\n;{\\])+
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPED = re.compile(r"\\([\"'\\trn])")
_CONTROLS = {"t": "\t", "r": "\r", "n": "\n"}
_LUA = re.compile(
    r"""--\[(?P<note>=*)\[.*?\](?P=note)\]      # a long comment
    | --[^\n]*
    | \[(?P<level>=*)\[.*?\](?P=level)\]        # a long string
    | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*'
    | (?P<open>["'])                            # a quote that its line does not close
    | (?P<brace>[{}])
    """,
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True)
class Word:
    """A part of a statement, from `start` to `end` of the file's text; `text` as it is written."""

    start: int
    end: int
    text: str

    @property
    def value(self) -> str:
        """The text as nginx takes it: without quotes, and without the backslashes that it drops.

        nginx drops one before a quote and a backslash, and one with t, r or n is a character. All
        others stay.
        """
        inner = self.text[1:-1] if self.text[0] in "\"'" else self.text
        return _ESCAPED.sub(lambda m: _CONTROLS.get(m[1], m[1]), inner)


@dataclass(frozen=True, kw_only=True)
class Statement:
    """A directive with its arguments, and the block that may follow."""

    words: tuple[Word, ...]
    start: int
    end: int
    """The offsets in its file's text."""
    line: int
    """The number of its first line, from 1."""
    inner: int = 0
    closing: int = 0
    """The offsets in the text of a block's body, which ends before its brace."""
    body: tuple["Statement", ...] | None = None
    """The statements of a block. A block of Lua has none."""

    @property
    def name(self) -> str:
        """The directive."""
        return self.words[0].value

    @property
    def arguments(self) -> tuple[str, ...]:
        """The words after its name, as nginx takes them."""
        return tuple(word.value for word in self.words[1:])


@dataclass(frozen=True)
class Source:
    """A file's text, and the statements in it."""

    path: str
    text: str
    statements: tuple[Statement, ...] = field(repr=False)

    @cached_property
    def newline(self) -> str:
        """The end of its lines."""
        first = self.text.find("\n")
        return "\r\n" if first > 0 and self.text[first - 1] == "\r" else "\n"


@dataclass
class _Block:
    """A block that is being read: its head's words, where its body begins, what is in it so far."""

    words: Sequence[Word]
    inner: int
    body: list[Statement] = field(default_factory=list)


def parse(text: str, path: str) -> Source:
    """Return a file's statements. Raises NginxFileError for what nginx could not read either."""
    return _Reader(text, path).read()


class _Reader:
    def __init__(self, text: str, path: str) -> None:
        self.text = text
        self.path = path
        self._starts = [0, *(m.end() for m in re.finditer("\n", text))]

    def read(self) -> Source:
        stack = [_Block((), 0)]
        words: list[Word] = []
        at = 0
        while (at := self._skip(at)) < len(self.text):
            if self.text[at] not in ";{}":
                words.append(self._word(at))
                at = words[-1].end
                continue
            at = self._step(at, words, stack)
            words = []
        if words:
            raise self._wrong(words[0].start, f'{words[0].text[:60]!r} is not ended by ";" or "{{"')
        if len(stack) > 1:
            head = stack[-1].words[0]
            raise self._wrong(head.start, f'the block {head.text[:60]!r} is not ended by "}}"')
        return Source(self.path, self.text, tuple(stack[0].body))

    def _step(self, at: int, words: Sequence[Word], stack: list[_Block]) -> int:
        """End a statement, or begin or end a block. Return where the text goes on."""
        character = self.text[at]
        is_possible = not words and len(stack) > 1 if character == "}" else bool(words)
        if not is_possible:
            raise self._wrong(at, f'unexpected "{character}"')
        if character == "}":
            block = stack.pop()
            stack[-1].body.append(self._closed(block, at))
        elif character == ";":
            stack[-1].body.append(self._simple(words, at + 1))
        elif words[0].value.endswith("_by_lua_block"):
            closing = self._end_of_lua(at)
            stack[-1].body.append(self._closed(_Block(words, at + 1), closing))
            return closing + 1
        elif len(stack) > DEEPEST:
            raise self._wrong(at, f"blocks are nested more than {DEEPEST} deep")
        else:
            stack.append(_Block(words, at + 1))
        return at + 1

    def _skip(self, at: int) -> int:
        blanks = _BLANKS.match(self.text, at)
        return blanks.end() if blanks else at

    def _word(self, at: int) -> Word:
        match = _WORD.match(self.text, at)
        if match is None or (self.text[at] in "\"'" and not match["quoted"]):
            what = "a quote is not closed" if self.text[at] in "\"'" else "ends in a backslash"
            raise self._wrong(at, what)
        end = match.end()
        if match["quoted"] and end < len(self.text) and self.text[end] not in " \t\r\n;{)":
            raise self._wrong(end, f"unexpected {self.text[end]!r} after a quote")
        return Word(at, end, match[0])

    def _end_of_lua(self, at: int) -> int:
        """Return the offset of the brace that closes the one at `at`."""
        depth = 0
        for token in _LUA.finditer(self.text, at):
            if token["open"]:
                break
            if token["brace"]:
                depth += 1 if token["brace"] == "{" else -1
                if depth == 0:
                    return token.start()
        raise self._wrong(at, 'the block of Lua is not ended by "}"')

    def _simple(self, words: Sequence[Word], end: int) -> Statement:
        start = words[0].start
        return Statement(words=tuple(words), start=start, end=end, line=self._line(start))

    def _closed(self, block: _Block, closing: int) -> Statement:
        start = block.words[0].start
        return Statement(
            words=tuple(block.words),
            start=start,
            end=closing + 1,
            line=self._line(start),
            inner=block.inner,
            closing=closing,
            body=tuple(block.body),
        )

    def _line(self, offset: int) -> int:
        return bisect_right(self._starts, offset)

    def _wrong(self, offset: int, what: str) -> NginxFileError:
        return NginxFileError(self.path, self._line(offset), what)
