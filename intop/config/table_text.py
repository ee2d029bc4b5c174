"""The text of a table's file: unpacked, decoded, and one clear error for what is no text.

pandas would unpack without a limit, and say no line of what isn't text.
"""

import bz2
import gzip
import lzma
import re
import zipfile
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import IO, Any

from intop.config.source import UTF_16, check_kind
from intop.errors import ConfigurationError

LARGEST_FILE = 100_000_000
"""Bytes, unpacked. 50,000 rows of 40 columns have some ten million."""
FEWER = "leave rows or columns out"


def separated(path: Path, mark: str) -> ConfigurationError:
    """Return the error of a table whose columns another mark than the comma separates."""
    what = f"its columns are separated by {mark!r}: commas are needed, and a point before decimals"
    return ConfigurationError([f"{path}: {what}"])


def _opened(path: Path) -> IO[bytes]:
    """Raises OSError and its like, also for an archive of several files."""
    suffix = path.suffix.lower()
    if suffix == ".zip":
        archive = zipfile.ZipFile(path)
        names = [member for member in archive.infolist() if _is_meant(member)]
        if len(names) != 1:
            raise OSError(0, f"the archive has {len(names)} files, and one is needed")
        return archive.open(names[0])
    packed: dict[str, Callable[[Path], Any]] = {
        ".gz": gzip.open,
        ".bz2": bz2.open,
        ".xz": lzma.open,
    }
    opened: IO[bytes] = packed.get(suffix, partial(open, mode="rb"))(path)
    return opened


def _is_meant(member: zipfile.ZipInfo) -> bool:
    """Return whether a file of an archive is more than what macOS adds to each."""
    return not (member.is_dir() or member.filename.startswith("__MACOSX/"))


_BROKEN = (OSError, EOFError, RuntimeError, zlib.error, lzma.LZMAError, zipfile.BadZipFile)


def table_text(path: Path) -> str:
    """Return the text of a file, unpacked and decoded.

    Raises ConfigurationError for what is no text, and for one that is too large.
    """
    try:
        check_kind(path)
        with _opened(path) as file:
            data = file.read(LARGEST_FILE + 1)
    except _BROKEN as error:
        why = getattr(error, "strerror", None) or error
        raise ConfigurationError([f"{path}: can't be read: {why}"]) from error
    if len(data) > LARGEST_FILE:
        raise ConfigurationError([f"{path}: has more than {LARGEST_FILE // 10**6} MB: {FEWER}"])
    if data.startswith(UTF_16):
        return _without_mark(path, _utf_16(path, data))
    if kind := next((kind for start, kind in _OTHERS.items() if data.startswith(start)), ""):
        raise ConfigurationError([f"{path}: {kind}"])
    if b"\0" in data:
        line = data.count(b"\n", 0, data.index(b"\0")) + 1
        if set(data[:40:2]) == {0} or set(data[1:40:2]) == {0}:
            what = f"{path}: is UTF-16 without its byte-order mark: save it as UTF-8"
            raise ConfigurationError([what])
        raise ConfigurationError([f"{path}:{line}: has a NUL byte: this is no CSV file in UTF-8"])
    try:
        return _without_mark(path, data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigurationError(
            [f"{path}:{line}: is not UTF-8: convert it, as by iconv -f latin1 -t utf-8"]
        ) from error


_WORKBOOK = "is a workbook, not CSV: save its sheet as CSV (UTF-8)"
_OTHERS = {
    b"PK\x03\x04": f"{_WORKBOOK}; of a packed file, the name has to end in .zip",
    b"\xd0\xcf\x11\xe0": _WORKBOOK,
    b"\x1f\x8b": "is packed by gzip: its name has to end in .gz",
    b"BZh": "is packed by bzip2: its name has to end in .bz2",
    b"\xfd7zXZ": "is packed by xz: its name has to end in .xz",
    b"\x28\xb5\x2f\xfd": "is packed by zstd: unpack it, or pack it by gzip",
    b"PAR1": "is Parquet: its name has to end in .parquet",
}
_OTHERS |= dict.fromkeys((b'{"', b"{\n", b"{\r", b"[{", b"[\n", b"[\r"), "is JSON: save it as CSV")
_OTHERS |= dict.fromkeys((b"<!", b"<?", b"<html", b"<table"), "is HTML or XML: save it as CSV")
"""The beginnings of files of another kind."""


def _utf_16(path: Path, data: bytes) -> str:
    """Return text of Excel and PowerShell. Raises ConfigurationError for what is damaged."""
    try:
        text = data.decode("utf-16")
    except UnicodeDecodeError as error:
        line = data[: error.start].decode("utf-16", errors="replace").count("\n") + 1
        what = f"{path}:{line}: is not UTF-16, as its first two bytes say: save it as UTF-8"
        raise ConfigurationError([what]) from error
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise ConfigurationError([f"{path}:{line}: has a NUL character: this is no CSV file"])
    return text


def _without_mark(path: Path, text: str) -> str:
    """Return a table without the line that tells Excel how columns are separated.

    Raises ConfigurationError where that is not by commas.
    """
    match = re.match(r'"?sep=(.)"?[ \t]*(?=\r|\n|\Z)', text, re.IGNORECASE)
    if match is None:
        return text
    if match[1] != ",":
        raise separated(path, match[1])
    return text[match.end() :]
