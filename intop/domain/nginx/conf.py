"""All files of one nginx, joined by their includes, as `nginx -T` shows them."""

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from posixpath import dirname, join

from intop.domain.nginx.syntax import Source, Statement, parse
from intop.errors import NginxFileError

_HEADER = re.compile(r"^# configuration file (/.+):\n", re.MULTILINE)

MOST = 200_000
"""Statements of one nginx. Files that include others twice, on and on, would have no end."""


@dataclass(frozen=True)
class Place:
    """The place of a statement."""

    source: Source
    statement: Statement
    parents: tuple["Place", ...] = ()
    """The blocks around it, from outside in."""

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
        """A key of the statement's text. A file that is included twice has it once."""
        return self.source.path, self.statement.start


@dataclass(frozen=True)
class Conf:
    """The files that nginx reads."""

    main: str
    """The path of the first file."""
    sources: Mapping[str, Source] = field(repr=False)

    @classmethod
    def of(cls, main: str, texts: Mapping[str, str]) -> "Conf":
        """Raises NginxFileError for a text that nginx could not read, or circular includes."""
        conf = cls(main, {path: parse(text, path) for path, text in texts.items()})
        _ = conf.places
        return conf

    def edited(self, texts: Mapping[str, str]) -> "Conf":
        """Return it with these files in place of its own, or besides them."""
        old = {path: source for path, source in self.sources.items() if path not in texts}
        return Conf(self.main, old | {path: parse(text, path) for path, text in texts.items()})

    @cached_property
    def places(self) -> tuple[Place, ...]:
        """All statements in nginx's order, once for each place that a file is included in."""
        places: list[Place] = []
        for place in self._walk(self.main, (), ()):
            places.append(place)
            if len(places) > MOST:
                source, line = place.source, place.statement.line
                raise NginxFileError(source.path, line, f"there are more than {MOST} statements")
        return tuple(places)

    def named(self, name: str) -> list[Place]:
        """Return the places of a directive."""
        return self._by_name.get(name, [])

    @cached_property
    def _by_name(self) -> Mapping[str, list[Place]]:
        by_name: dict[str, list[Place]] = {}
        for place in self.places:
            by_name.setdefault(place.statement.name, []).append(place)
        return by_name

    def block(self, name: str) -> Place | None:
        """Return a block of the top level, such as `http`."""
        return next((p for p in self.named(name) if not p.parents), None)

    def included(self, pattern: str) -> list[str]:
        """Return the files that an include names, in nginx's order."""
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
    """Return the configuration that `nginx -T` prints: each file after a line with its path, once.

    Raises NginxFileError for any other print, also for a file that no other file includes: then a
    file has a line that looks like the print's own.
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
            what = f"{header[1]} is shown twice: a file has {_in_a_saved_print(header, main)}"
            raise NginxFileError("nginx -T", line, what)
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
        what = f"no include names {strangers[0][1]}, which it shows: if a file has {saved}"
        raise NginxFileError("nginx -T", 1, what)
    return conf


def _in_a_saved_print(header: re.Match[str], main: str) -> str:
    """Return a line that a file must not have, and how to find it, in words."""
    line = header[0].rstrip("\n")
    find = f"grep -rn '^# configuration file /' {shlex.quote(dirname(main))}"
    return f'the line "{line}", as a saved print of nginx -T has. Take it out: {find}'


_PART = re.compile(
    r"""\\(?P<escaped>.)
    | (?P<many>\*+)
    | (?P<any>\?)
    | \[ (?P<negated>[!^]?) (?P<set> \]? (?: \[:[a-z]+:\] | \\. | [^\]\\] )* ) \]
    | (?P<plain>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_MEMBER = re.compile(r"\[:(?P<named>[a-z]+):\]|\\?(?P<low>.)(?:-\\?(?P<high>.))?", re.DOTALL)
_CLASSES = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "blank": r"\ \t",
    "digit": "0-9",
    "lower": "a-z",
    "punct": r"!-/:-@\[-`{-~",
    "space": r"\ \t-\r",
    "upper": "A-Z",
    "xdigit": "0-9A-Fa-f",
}
"""Character classes of the C locale, which nginx runs in."""


def matches(path: str, pattern: str) -> bool:
    """Return whether nginx finds a path by what an `include` says, as glob(3) does.

    Without `*`, `?` and `[` that is the path itself. No wildcard stands for a slash, nor for a dot
    that begins a name; each stands for bytes, and not for letters.
    """
    if not re.search(r"[*?\[]", pattern):
        return path == pattern
    parts, patterns = _bytes(path).split("/"), _bytes(pattern).split("/")
    return len(parts) == len(patterns) and all(
        _regex(wanted).fullmatch(part) and (part[:1] != "." or wanted.lstrip("\\")[:1] == ".")
        for part, wanted in zip(parts, patterns, strict=True)
    )


def _bytes(text: str) -> str:
    return text.encode(errors="surrogateescape").decode("latin-1")


@lru_cache
def _regex(pattern: str) -> re.Pattern[str]:
    return re.compile("".join(map(_translated, _PART.finditer(pattern))), re.DOTALL)


def _translated(part: re.Match[str]) -> str:
    if part["many"]:
        return ".*"
    if part["any"]:
        return "."
    if part["set"] is not None:
        members = "".join(map(_member, _MEMBER.finditer(part["set"])))
        if not members:
            return r"." if part["negated"] else r"(?!)"
        return f"[{'^' if part['negated'] else ''}{members}]"
    return re.escape(part["escaped"] or part["plain"])


def _member(member: re.Match[str]) -> str:
    if member["named"]:
        return _CLASSES.get(member["named"], "")
    low, high = member["low"], member["high"]
    if high is None:
        return re.escape(low)
    return f"{re.escape(low)}-{re.escape(high)}" if low <= high else ""
