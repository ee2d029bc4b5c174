"""nginx's files under the guard: directives become texts that are sent, and read back."""

import hashlib
from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from intop.domain.nginx.conf import Conf, parse_shown
from intop.domain.nginx.directive import Effective, NginxFacts
from intop.domain.nginx.edits import accepts, changed
from intop.domain.nginx.standing import Directives, current, is_without_effect
from intop.errors import (
    CommandError,
    ForeignChangeError,
    HostError,
    NginxFileError,
    RefusedValueError,
    UsageError,
)
from intop.hosts.answers import count
from intop.hosts.host import Host
from intop.hosts.nginx import running, what_it_reads

DRAIN_S = 10
"""The wait for old workers of nginx after a reload."""
EFFECT_LIMIT_S = 180.0
"""A restart may take a minute, and taking it back another one."""

FILE, CONTENT, SHOWN, DRAINING = "file\t", "content\t", "shown\t", "draining\t"
"""Beginnings of the lines of guard.sh about nginx."""


@dataclass(frozen=True, kw_only=True)
class TunableNginx:
    """The one nginx of a host before it is guarded."""

    directives: Directives
    facts: NginxFacts
    conf: Conf
    """Its files as it shows them."""


def tunable_nginx(host: Host, directives: Directives) -> TunableNginx:
    """Return the nginx of a host, by two commands.

    Raises HostError where not exactly one nginx runs, and for files that can't be read.
    """
    conf = what_it_reads(host)
    facts = running(host).facts
    if facts is None:
        raise HostError(host.address.name, "its nginx does not say its version (nginx -V)")
    return TunableNginx(directives=directives, facts=facts, conf=conf)


@dataclass(frozen=True)
class Sending:
    """The part of a write that gives nginx some values."""

    values: Mapping[str, str]
    texts: Mapping[str, str]
    """The texts of all files."""
    lines: tuple[str, ...]
    """The lines to send; none where the files have the values already."""
    by: Effective
    """The way in which nginx takes the files."""


class GuardedNginx:
    """nginx's files in a guard's snapshot, and their state on the host."""

    def __init__(
        self, host: str, nginx: TunableNginx, texts: Mapping[str, str], numbers: Mapping[str, int]
    ) -> None:
        """Take the snapshot's texts and file numbers, by the paths that nginx has.

        Raises HostError when these are not the files that nginx has shown.
        """
        if set(texts) != set(nginx.conf.sources):
            raise HostError(host, "the files in its snapshot are not those that nginx reads")
        self._host = host
        self._directives, self.facts = nginx.directives, nginx.facts
        self.conf = Conf.of(nginx.conf.main, texts)
        self.own = current(nginx.directives, self.conf, nginx.facts)
        """The value of each directive in the snapshot; None for one that is not known."""
        self._own = dict(texts)
        self._numbers = numbers
        self._now: dict[str, str | None] = dict(texts)
        self._values: Mapping[str, str] | None = {}

    def sending(self, values: Mapping[str, str]) -> Sending:
        """Return the part of a write that gives nginx these values, and all other ones its own.

        Raises ValueError for a key that is no directive, UsageError for a value that it can't have.
        """
        for key, value in values.items():
            if key not in self._directives.by_key:
                raise ValueError(f"not guarded: {key}")
            if not accepts(self._directives.by_key[key], value):
                raise UsageError(f"{key} can't be {value[:100]!r}")
        edited = changed(self._directives, self.conf, values, self.facts).texts
        texts = {**self._own, **edited}
        lines = tuple(
            f"/{self._numbers[path]} {'own' if text == self._own[path] else _sent(text)}"
            for path, text in texts.items()
            if text != self._now[path]
        )
        return Sending(values, texts, lines, self._effect(values))

    def _effect(self, values: Mapping[str, str]) -> Effective:
        before = self._values
        if before is None:
            return "restart"
        keys = {*before, *values}
        of = {self._directives.by_key[k].effective for k in keys if before.get(k) != values.get(k)}
        return "restart" if "restart" in of else "reload"

    def is_sent(self, sending: Sending) -> None:
        """Note that the lines are on their way.

        Should we never hear how it went, the next write sends all of them again.
        """
        if sending.lines:
            self._now = {p: t if t == self._now[p] else None for p, t in sending.texts.items()}
            self._values = None

    def is_refused(self) -> None:
        """Note that the host has put back the files as they were found."""
        self._now, self._values = dict(self._own), {}

    def is_done(self, sending: Sending, shown: str | None) -> None:
        """Read back the configuration that nginx shows, in base64; None where nothing was sent.

        Raises:
            CommandError: nginx does not show a configuration.
            ForeignChangeError: nginx reads other texts.
            RefusedValueError: A directive reads back as something else.
        """
        if sending.lines:
            self._check(sending, "" if shown is None else shown)
            self._now = dict(sending.texts)
        self._values = sending.values

    def _check(self, sending: Sending, shown: str) -> None:
        try:
            conf = parse_shown(_text(shown))
        except (NginxFileError, ValueError) as error:
            raise CommandError(self._host, f"nginx -T can't be read back: {error}") from error
        read = {path: source.text for path, source in conf.sources.items()}
        differing = [path for path, text in sending.texts.items() if read.get(path) != text]
        differing += [path for path in read if path not in sending.texts]
        if differing:
            raise ForeignChangeError(
                self._host, [f"{path} (nginx reads something else)" for path in differing]
            )
        held = current(self._directives, conf, self.facts)
        for key, value in sending.values.items():
            if held[key] != value and not is_without_effect(self._directives, key, held):
                raise RefusedValueError(self._host, key, value, held[key])


def guarded_nginx(
    host: str, nginx: TunableNginx, files: Iterable[str], contents: Iterable[str]
) -> GuardedNginx:
    """Return the files from lines of `begin`. Raises CommandError and HostError."""
    try:
        numbers = {
            path: count(number) for number, _, path in (line.partition("\t") for line in files)
        }
        texts = {
            count(number): _text(text)
            for number, _, text in (line.partition("\t") for line in contents)
        }
        by_path = {path: texts[number] for path, number in numbers.items()}
    except (ValueError, KeyError) as error:
        raise CommandError(host, f"its nginx's files can't be read: {error}") from error
    if len(set(numbers.values())) < len(numbers):
        raise HostError(host, "two files that nginx reads are one: a link to the other")
    return GuardedNginx(host, nginx, by_path, numbers)


def _sent(text: str) -> str:
    raw = text.encode(errors="surrogateescape")
    return f"{hashlib.sha256(raw).hexdigest()} {b64encode(raw).decode()}"


def _text(encoded: str) -> str:
    """Return the text of any bytes, so that unedited ones stay as they are. Raises ValueError."""
    try:
        return b64decode(encoded, validate=True).decode(errors="surrogateescape")
    except NotBase64 as error:
        raise ValueError(f"not in base64: {encoded[:40]!r}") from error
