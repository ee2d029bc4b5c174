"""Archives in the format "newc" of cpio, which the kernel unpacks as its first file system."""

import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import BinaryIO

MAGIC = b"070701"
TRAILER = "TRAILER!!!"


@dataclass(frozen=True)
class Entry:
    """A file, folder, link or device. Everything belongs to root.

    `mode` includes the kind, as `stat` has it; `data` is a file's content or a link's target.
    """

    mode: int
    data: bytes = b""
    device: tuple[int, int] = (0, 0)


def file(data: bytes, permissions: int = 0o644) -> Entry:
    """A regular file."""
    return Entry(stat.S_IFREG | permissions, data)


def folder(permissions: int = 0o755) -> Entry:
    """A folder."""
    return Entry(stat.S_IFDIR | permissions)


def link(target: str) -> Entry:
    """A symbolic link."""
    return Entry(stat.S_IFLNK | 0o777, target.encode())


def character_device(major: int, minor: int, permissions: int = 0o600) -> Entry:
    """A character device."""
    return Entry(stat.S_IFCHR | permissions, device=(major, minor))


def with_parents(entries: Mapping[str, Entry]) -> dict[str, Entry]:
    """The entries and the folders that they need, folders before what is in them."""
    parents = {
        str(parent): folder()
        for path in entries
        for parent in PurePosixPath(path).parents
        if str(parent) != "."
    }
    return dict(sorted((parents | dict(entries)).items()))


def write(output: BinaryIO, entries: Mapping[str, Entry]) -> None:
    """Write an archive. Paths are relative, such as `usr/bin/sh`."""
    for block in blocks(entries.items()):
        output.write(block)


def blocks(entries: Iterable[tuple[str, Entry]]) -> Iterator[bytes]:
    """The archive in pieces, each of them a multiple of four bytes long."""
    for number, (path, entry) in enumerate(entries, start=1):
        yield _header(path, entry, number)
        yield _padded(entry.data)
    yield _header(TRAILER, Entry(0), 0)


def _header(path: str, entry: Entry, number: int) -> bytes:
    name = path.encode() + b"\0"
    links = 2 if stat.S_ISDIR(entry.mode) else 1
    owner = modified = 0  # nothing of the machine or the time it was made: same in, same out
    fields = (
        *(number, entry.mode, owner, owner, links, modified, len(entry.data)),
        *(0, 0, *entry.device, len(name), 0),
    )
    return _padded(MAGIC + b"".join(b"%08X" % value for value in fields) + name)


def _padded(data: bytes) -> bytes:
    return data + b"\0" * (-len(data) % 4)
