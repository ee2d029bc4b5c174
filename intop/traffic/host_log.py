"""Lines of access logs on a host, read in parts, so that memory does not grow with them."""

import shlex
import zlib
from base64 import b64decode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from intop.domain.nginx.access_logs import AccessLog, access_logs
from intop.errors import CommandError, UsageError
from intop.hosts.facts import server_conf
from intop.hosts.host import Host, output
from intop.hosts.nginx import serving_conf
from intop.traffic.access_log import GZIP, LineCutter

PART = 4 * 1024 * 1024
"""Bytes of a part."""
PART_LIMIT_S = 120.0
GZIP_OR_ZLIB = 47
"""The window bits by which zlib finds out the kind of a stream."""


@dataclass
class HostLines:
    """The lines of some logs on a host, the oldest first, plain or gzip."""

    host: Host
    paths: Sequence[str]
    part: int = PART
    notes: list[str] = field(default_factory=list)
    too_long: int = 0

    def __iter__(self) -> Iterator[tuple[str, str]]:
        """Yield the place of each line, such as lb:access.log:7, and its text.

        Raises CommandError for a file that can't be read, UnreachableError for a lost connection.
        """
        for path in self.paths:
            yield from self._file(path)

    def _file(self, path: str) -> Iterator[tuple[str, str]]:
        cutter = LineCutter()
        for part in self._unpacked(path):
            for number, text in cutter.cut(part):
                yield f"{self.host.address.name}:{path}:{number}", text
        self.too_long += cutter.too_long
        if cutter.is_in_line:
            self.notes.append(f"{path} ends in the middle of a line, which was left out")

    def _unpacked(self, path: str) -> Iterator[bytes]:
        parts = self._parts(path)
        first = next(parts, b"")
        if not first.startswith(GZIP):
            yield first
            yield from parts
            return
        stream = zlib.decompressobj(GZIP_OR_ZLIB)
        try:
            yield stream.decompress(first)
            for part in parts:
                yield stream.decompress(part)
        except zlib.error as error:
            self.notes.append(f"{path} is damaged: {error}")

    def _parts(self, path: str) -> Iterator[bytes]:
        quoted = shlex.quote(path)
        # The size of now: a log that grows would have no end.
        size = int(output(self.host, f"wc -c < {quoted}"))
        for place in range(0, size, self.part):
            most = min(self.part, size - place)
            command = f"tail -c +{place + 1} -- {quoted} | head -c {most} | base64"
            yield b64decode(output(self.host, command, timeout_s=PART_LIMIT_S))


def logs_on(host: Host) -> tuple[AccessLog, ...]:
    """Return the access logs that a host's nginx writes. Raises CommandError without any."""
    logs = tuple(access_logs(serving_conf(host, server_conf(host))))
    if not logs:
        raise CommandError(host.address.name, "its nginx writes no access log to a file")
    return logs


def log_of(logs: Sequence[AccessLog], paths: Sequence[str]) -> AccessLog | None:
    """Return the log that these files are of, by the path before what a rotation adds.

    Without paths it is the only one. None where nginx does not write such a log. Raises UsageError
    where there are several and none is named.
    """
    if not paths:
        if len(logs) > 1:
            listed = ", ".join(log.path for log in logs)
            raise UsageError(f"nginx writes several access logs. Name one of them: {listed}")
        return logs[0]
    return next((log for log in logs if _is_of(paths[0], log.path)), None)


def _is_of(path: str, log: str) -> bool:
    """Return whether a file is the log, or such as access.log.2.gz or access.log-20261127."""
    return path == log or path.startswith((f"{log}.", f"{log}-"))
