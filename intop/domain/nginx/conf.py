"""All files of one nginx, joined by their includes, as `nginx -T` shows them."""

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from posixpath import dirname, join

from intop.domain.nginx.pattern import matches
from intop.domain.nginx.syntax import Source, Statement, parse
from intop.errors import NginxFileError

_HEADER = re.compile(r"^# configuration file (/.+):\n", re.MULTILINE)

MOST = 200_000
"""Statements of one nginx. Files that include others twice, on and on, would have no end."""


@dataclass(frozen=True)
class Place:
    """Where a statement stands: its file, and the blocks around it from outside in."""

    source: Source
    statement: Statement
    parents: tuple["Place", ...] = ()

    @cached_property
    def context(self) -> tuple[str, ...]:
        """The names of the blocks around it, such as ("http", "server")."""
        return tuple(parent.statement.name for parent in self.parents)

    @property
    def where(self) -> str:
        """File, line and blocks, such as `/etc/nginx/nginx.conf:12 (http, server)`."""
        blocks = ", ".join(self.context) or "main"
        return f"{self.source.path}:{self.statement.line} ({blocks})"

    @property
    def span(self) -> tuple[str, int]:
        """What tells the text of a statement from all others. Included twice, it is one."""
        return self.source.path, self.statement.start


@dataclass(frozen=True)
class Conf:
    """What nginx reads: `main` is the path of its first file, `sources` are all of them by path."""

    main: str
    sources: Mapping[str, Source] = field(repr=False)

    @classmethod
    def of(cls, main: str, texts: Mapping[str, str]) -> "Conf":
        """Raises NginxFileError for a text that nginx could not read, or circular includes."""
        conf = cls(main, {path: parse(text, path) for path, text in texts.items()})
        _ = conf.places
        return conf

    def edited(self, texts: Mapping[str, str]) -> "Conf":
        """With these files in place of its own, or besides them."""
        old = {path: source for path, source in self.sources.items() if path not in texts}
        return Conf(self.main, old | {path: parse(text, path) for path, text in texts.items()})

    @cached_property
    def places(self) -> tuple[Place, ...]:
        """All statements in nginx's order. What is included in several places is there for each."""
        found: list[Place] = []
        for place in self._walk(self.main, (), ()):
            found.append(place)
            if len(found) > MOST:
                source, line = place.source, place.statement.line
                raise NginxFileError(source.path, line, f"there are more than {MOST} statements")
        return tuple(found)

    def named(self, name: str) -> list[Place]:
        """Where a directive stands."""
        return self._by_name.get(name, [])

    @cached_property
    def _by_name(self) -> Mapping[str, list[Place]]:
        found: dict[str, list[Place]] = {}
        for place in self.places:
            found.setdefault(place.statement.name, []).append(place)
        return found

    def block(self, name: str) -> Place | None:
        """A block of the top level, such as `http`."""
        return next((p for p in self.named(name) if not p.parents), None)

    def included(self, pattern: str) -> list[str]:
        """The files that an include names, in nginx's order."""
        whole = join(dirname(self.main), pattern)
        return sorted(path for path in self.sources if matches(path, whole))

    def _walk(
        self, path: str, parents: tuple[Place, ...], chain: tuple[str, ...]
    ) -> Iterator[Place]:
        source = self.sources[path]
        yield from self._within(source, source.statements, parents, (*chain, path))

    def _within(
        self,
        source: Source,
        statements: Iterable[Statement],
        parents: tuple[Place, ...],
        chain: tuple[str, ...],
    ) -> Iterator[Place]:
        for statement in statements:
            place = Place(source, statement, parents)
            yield place
            if statement.name == "include" and statement.body is None and statement.arguments:
                for path in self.included(statement.arguments[0]):
                    if path in chain:
                        raise NginxFileError(
                            source.path, statement.line, f"{path} includes itself in the end"
                        )
                    yield from self._walk(path, parents, chain)
            elif statement.body:
                yield from self._within(source, statement.body, (*parents, place), chain)


def parse_shown(text: str) -> Conf:
    """The configuration that `nginx -T` prints: each file after a line with its path, once.

    Raises NginxFileError where the print is not that, also for a file that no other one includes:
    then a file has a line that looks like the print's own.
    """
    headers = list(_HEADER.finditer(text))
    if not headers:
        raise NginxFileError("nginx -T", 1, 'no line "# configuration file PATH:"')
    main = headers[0][1]
    ends = [*(m.start() for m in headers[1:]), len(text)]
    texts: dict[str, str] = {}
    for header, end in zip(headers, ends, strict=True):
        if header[1] in texts:
            line = text.count("\n", 0, header.start()) + 1
            told = f"{header[1]} is shown twice: a file has {_in_a_saved_print(header, main)}"
            raise NginxFileError("nginx -T", line, told)
        # nginx adds a line end to each file.
        texts[header[1]] = text[header.end() : end].removesuffix("\n")
    conf = Conf.of(main, texts)
    reached = {conf.main} | {
        path
        for place in conf.named("include")
        for argument in place.statement.arguments[:1]
        for path in conf.included(argument)
    }
    if strangers := [header for header in headers if header[1] not in reached]:
        saved = _in_a_saved_print(strangers[0], main)
        told = f"no include names {strangers[0][1]}, which it shows: if a file has {saved}"
        raise NginxFileError("nginx -T", 1, told)
    return conf


def _in_a_saved_print(header: re.Match[str], main: str) -> str:
    """A line that a file must not have, and how to find it, in words."""
    line = header[0].rstrip("\n")
    find = f"grep -rn '^# configuration file /' {shlex.quote(dirname(main))}"
    return f'the line "{line}", as a saved print of nginx -T has. Take it out: {find}'
