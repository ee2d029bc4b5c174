"""The words of a statement as they are to be, and the least that changes in its text."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from intop.domain.nginx import quantity
from intop.domain.nginx.standing import zone_in
from intop.domain.nginx.syntax import Word

_PLAIN = re.compile(r"[A-Za-z0-9_.,:=/*\[\]-]+")


@dataclass
class Splice:
    """What comes in place of a file's text from `start` to `end`."""

    start: int
    end: int
    text: str


def with_last(words: Sequence[str], old: str, new: str) -> list[str]:
    """The words with another one in place of the last that is `old`."""
    at = len(words) - 1 - list(reversed(words)).index(old)
    return [*words[:at], new, *words[at + 1 :]]


def without_repeats(words: Sequence[str], prefixes: Sequence[str]) -> list[str]:
    """The words, but of those with one of these prefixes only the last, which nginx goes by."""
    last = {p: n for p in prefixes for n, word in enumerate(words) if word.startswith(p)}
    return [
        word
        for n, word in enumerate(words)
        if all(last[p] == n for p in prefixes if word.startswith(p))
    ]


def with_zone(words: Sequence[str], name: str, size: str) -> list[str]:
    """An `ssl_session_cache` with a shared zone of a size, which keeps the name that it has."""
    shared = zone_in(words[1:])
    if shared is None:
        return [words[0], f"shared:{name}:{size}"]
    if quantity.read(shared[2], "bytes") == quantity.read(size, "bytes"):
        return list(words)
    return with_last(words, shared[0], f"shared:{shared[1]}:{size}")


def difference(words: Sequence[Word], old: Sequence[str], new: Sequence[str]) -> Splice:
    """The least of a statement that must be replaced to have the new words."""
    first = next(
        (n for n, (a, b) in enumerate(zip(old, new, strict=False)) if a != b),
        min(len(old), len(new)),
    )
    texts = {word.value: word.text for word in words if not _PLAIN.fullmatch(word.value)}
    last = 0
    while last < min(len(old), len(new)) - first and old[-1 - last] == new[-1 - last]:
        last += 1
    gone, come = len(old) - last, len(new) - last
    text = " ".join(texts.get(word, word) for word in new[first:come])
    if first == gone:  # only new words
        return Splice(words[first - 1].end, words[first - 1].end, f" {text}")
    if first == come:  # only words that go
        return Splice(words[first - 1].end, words[gone - 1].end, "")
    return Splice(words[first].start, words[gone - 1].end, text)
