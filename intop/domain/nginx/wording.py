"""The words of a statement as they are to be, and the least that changes in its text."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from intop.domain.nginx import quantity
from intop.domain.nginx.directive import Directive, NginxFacts
from intop.domain.nginx.standing import (
    Directives,
    choice_of,
    default,
    is_file_log,
    is_off,
    zone_in,
)
from intop.domain.nginx.syntax import Word

Part = tuple[Directive, str]
"""A directive with its value. Several may stand in one statement."""

_PLAIN = re.compile(r"[A-Za-z0-9_.,:/=*\[\]-]+")


@dataclass(frozen=True)
class Wording:
    """The words of statements, by what an nginx takes and has by itself."""

    directives: Directives
    facts: NginxFacts

    def words(self, old: Sequence[str], parts: Sequence[Part]) -> list[str] | None:
        """Return a statement's words with these values, or None where it is to go."""
        words: list[str] | None = list(old)
        for directive, value in parts:
            if words is not None:
                words = self._with(words, directive, value)
        return words

    def _with(self, words: list[str], directive: Directive, value: str) -> list[str] | None:
        head = 1 + len(directive.fixed)
        text = _written(directive, value)
        if directive.flag:
            remaining_words = [word for word in words if word != directive.flag]
            if value == "off":
                return remaining_words
            return words if directive.flag in words else [*words, directive.flag]
        if directive.option:
            return self._with_option(words, directive, value, text)
        at = head + directive.argument - 1
        end = at + 1 if directive.parameter.is_numeric or directive.as_is is not None else None
        if directive.argument and self._is_same(words[at:end], directive, value):
            return words
        if value == directive.absent:
            return words if directive.zone and zone_in(words[head:]) is None else None
        if directive.zone:
            return with_zone(words, directive.zone, text)
        if directive.as_is is not None:
            return words if value == directive.as_is else [words[0], text]
        return [*words[:at], text, *(words[end:] if end else ())]

    def _with_option(
        self, words: list[str], directive: Directive, value: str, text: str
    ) -> list[str] | None:
        if not directive.inserted and not is_file_log(tuple(words[1:])):
            return words
        prefix = f"{directive.option}="
        head = 1 + len(directive.fixed)
        if is_off(directive, words[head:]):
            if value == directive.absent or directive.beside:
                return words
            words = [*words[:head], *(word for word in words[head:] if word != "off")]
        has = [word for word in words if word.startswith(prefix)]
        if value == directive.absent:
            return self._without_option(words, directive) if has else words
        if has:
            # Of several nginx takes the last.
            if self._is_same([has[-1].removeprefix(prefix)], directive, value):
                return words
            return with_last(self._once(words, directive), has[-1], f"{prefix}{text}")
        if directive.beside and not any(w.startswith(f"{directive.beside}=") for w in words):
            return words
        if default(directive, self.facts) == value:
            return words
        # A log's format comes before its buffer.
        missing = ["combined"] if words[0] == "access_log" and len(words) == 2 else []
        return [*self._once(words, directive), *missing, f"{prefix}{text}"]

    def _without_option(self, words: list[str], directive: Directive) -> list[str] | None:
        """Return the words without an option and those beside it, or None where none is left."""
        siblings = [
            f"{d.option}="
            for d in self.directives.by_key.values()
            if d.beside == directive.option and _use(d) == _use(directive)
        ]
        gone = (f"{directive.option}=", *siblings)
        rest = [word for word in words if not word.startswith(gone)]
        return rest if len(rest) > 1 + len(directive.fixed) else None

    def _once(self, words: Sequence[str], directive: Directive) -> list[str]:
        """Return the words without options that a later word replaces: nginx counts them, too."""
        options = [d.option for d in self.directives.by_key.values() if _use(d) == _use(directive)]
        return without_repeats(words, [f"{option}=" for option in options if option])

    def _is_same(self, texts: Sequence[str], directive: Directive, value: str) -> bool:
        """Return whether a text says a value already, perhaps in other words: 1024k, 1m."""
        if texts == ["auto"] and directive.per_cpu:
            return value == str(self.facts.cpus)
        if directive.as_is is not None:
            return list(texts) == [value]
        if not directive.parameter.is_numeric:
            return len(texts) == 1 and choice_of(directive, texts[0]) == value
        return bool(texts) and str(quantity.read(texts[0], directive.parameter.unit)) == value

    def statement(self, parts: Sequence[Part]) -> str | None:
        """Return a new statement of these values, or None where nginx has them without one."""
        parts = [part for part in parts if part[0].inserted]
        if not parts:
            return None
        first = parts[0][0]
        values = {directive.key: value for directive, value in parts}
        has = {
            d.key
            for d, value in parts
            if value != d.absent and (value != default(d, self.facts) or d.follows)
        }
        if not has:
            return None
        words = [first.name, *first.fixed]
        if first.argument:
            words += self._arguments(first, values)
        elif first.zone:
            words = with_zone(words, first.zone, _written(first, parts[0][1]))
        else:
            options = {d.option for d, _ in parts if d.key in has}
            words += [
                f"{d.option}={_written(d, value)}"
                for d, value in parts
                if value != d.absent and (not d.beside or d.beside in options)
            ]
            if len(words) == 1 + len(first.fixed):
                return None
        return f"{' '.join(words)};"

    def _arguments(self, first: Directive, values: Mapping[str, str]) -> list[str]:
        """Return all arguments of a directive, since one of them can't stand alone."""
        same = [d for d in self.directives.by_key.values() if _use(d) == _use(first) and d.argument]
        same.sort(key=lambda d: d.argument)
        return [_written(d, values.get(d.key, default(d, self.facts))) for d in same]


def _use(directive: Directive) -> tuple[str, str]:
    return directive.level, directive.name


def _written(directive: Directive, value: str) -> str:
    return quantity.written(value, directive.parameter.unit)


@dataclass
class Splice:
    """A text that replaces a file's text from `start` to `end`."""

    start: int
    end: int
    text: str


def with_last(words: Sequence[str], old: str, new: str) -> list[str]:
    """Return the words with `new` in place of the last that is `old`."""
    at = len(words) - 1 - list(reversed(words)).index(old)
    return [*words[:at], new, *words[at + 1 :]]


def without_repeats(words: Sequence[str], prefixes: Sequence[str]) -> list[str]:
    """Return the words, but only the last of those with a prefix, which nginx goes by."""
    last = {p: n for p in prefixes for n, word in enumerate(words) if word.startswith(p)}
    return [
        word
        for n, word in enumerate(words)
        if all(last[p] == n for p in prefixes if word.startswith(p))
    ]


def with_zone(words: Sequence[str], name: str, size: str) -> list[str]:
    """Return an `ssl_session_cache` with a shared zone of a size, which keeps its name."""
    shared = zone_in(words[1:])
    if shared is None:
        return [words[0], f"shared:{name}:{size}"]
    if quantity.read(shared[2], "bytes") == quantity.read(size, "bytes"):
        return list(words)
    return with_last(words, shared[0], f"shared:{shared[1]}:{size}")


def difference(words: Sequence[Word], old: Sequence[str], new: Sequence[str]) -> Splice:
    """Return the least of a statement that must be replaced to have the new words."""
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
