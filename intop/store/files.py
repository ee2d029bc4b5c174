"""Names of stores that can't be meant, and what an SQLite file's disk has against it."""

import os
import re
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from intop.errors import UsageError
from intop.masking import masked_url
from intop.store.engine import PSYCOPG, file_of, parsed_url

LONGEST_SUFFIX = "-journal"
"""SQLite puts files beside a database, whose names are longer than its own."""
LONGEST_PATH = 512
"""SQLite's own limit (MAX_PATHNAME), in bytes, with the suffix."""
LEAST_FREE = 64 * 1024
"""A disk with fewer free bytes takes not one more write of SQLite's log."""

DRIVERS = ("sqlite", "sqlite+pysqlite", PSYCOPG)
"""SQLAlchemy's drivers that stores are made with."""

SUCH_AS = "a file such as intop.db, or a URL such as postgresql://user@host/name"

_OF_DISK = ("SQLITE_IOERR", "SQLITE_FULL", "SQLITE_CANTOPEN", "SQLITE_READONLY")
_DSN = re.compile(r"\s*(host|hostaddr|port|dbname|user|password|service|sslmode)\s*=")
_NEARLY_URL = re.compile(
    r"(postgres(ql)?|sqlite3?|mysql|mariadb|file|jdbc)(\+\w+)?:", re.IGNORECASE
)


def check_name(url: str) -> None:
    """Raises UsageError for what can't be meant as a store, or has no place on the disk."""
    _check_text(url)
    if "://" not in url:
        _check_plain(url)
    try:
        parsed = parsed_url(url)
    except (SQLAlchemyError, ValueError):
        # Not shown: what can't be taken apart may have a password anywhere.
        raise UsageError(f"the store is no URL: write {SUCH_AS}") from None
    except RuntimeError as error:
        raise UsageError(f"the store {url}: there is no user of that home folder") from error
    if parsed.drivername not in DRIVERS:
        raise UsageError(
            f"{masked_url(url)} is no store: stores are in SQLite or PostgreSQL, by psycopg: "
            f"write {SUCH_AS}"
        )
    if parsed.drivername != PSYCOPG:
        _check_sqlite(url, parsed)


def _check_text(url: str) -> None:
    if not url.strip():
        raise UsageError(f"the store has no name: write {SUCH_AS}")
    if url != url.strip():
        raise UsageError(
            f"the store {masked_url(url)!r} has a blank at its beginning or end: take it out"
        )
    if control := re.search(r"[\x01-\x1f\x7f-\x9f\u2028\u2029]", url):
        raise UsageError(
            f"the store's name has the control character U+{ord(control[0]):04X}: take it out"
        )


def _check_sqlite(url: str, parsed: sa.URL) -> None:
    if parsed.host:
        raise UsageError(
            f"the store {masked_url(url)} names no file: write three slashes before its name, such "
            "as sqlite:///intop.db, or the name alone"
        )
    path = file_of(parsed)
    if path is None or parsed.query.get("mode") == "memory":
        raise UsageError(
            f"the store {masked_url(url)} is in memory, so all that is measured would be lost when "
            f"the command ends: write {SUCH_AS}"
        )
    try:
        _check_path(path)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else f"{error}"
        raise UsageError(f"the store {masked_url(url)} can't be opened: {reason}") from error


def of_disk(error: Exception, url: str) -> str:
    """Return the words of the disk, to be put behind an SQLite error; "" for any other error."""
    name = str(getattr(error.orig, "sqlite_errorname", "")) if isinstance(error, DBAPIError) else ""
    path = file_of(parsed_url(url))
    if path is None or not name.startswith(_OF_DISK):
        return ""
    folder = path.absolute().parent
    free = os.statvfs(folder)
    if not free.f_blocks:
        return f" ({folder} is no place for files: name another one)"  # /proc, /sys
    if free.f_flag & os.ST_RDONLY:
        return f" (the file system of {folder} is read-only)"
    if free.f_bavail * free.f_frsize < LEAST_FREE:
        return f" (the disk is full: make room in {folder})"
    if free.f_files and not free.f_favail:
        return f" (the disk is full: {folder} takes no more files, whatever their size)"
    if name == "SQLITE_CANTOPEN" and not os.access(folder, os.W_OK):
        return f" (you may not write into {folder})"
    if name.startswith(("SQLITE_CANTOPEN", "SQLITE_READONLY")):
        return ""
    return f" (see df {folder}, the user's quota, and the kernel's log: dmesg)"


def _check_plain(name: str) -> None:
    """Raises UsageError for a file's name that was meant to be a URL."""
    if _DSN.match(name) or _NEARLY_URL.match(name):
        raise UsageError(
            f"the store {masked_url(name)} is neither a file's name nor a URL: write {SUCH_AS}"
        )


def _check_path(path: Path) -> None:
    """Raises UsageError, OSError or ValueError for a path that no database file can have."""
    whole = path.absolute()
    if "\0" in str(path):
        raise ValueError("its name has a null character")
    folder = whole.parent
    if not folder.is_dir():
        raise UsageError(f"the store {path} can't be made: there is no folder {folder}")
    longest = os.pathconf(folder, "PC_NAME_MAX") - len(LONGEST_SUFFIX)
    if len(os.fsencode(whole.name)) > longest:
        raise UsageError(
            f"the store {path.name[:40]}... has too long a name: at most {longest} bytes, since "
            "SQLite puts files with longer names beside it"
        )
    if len(os.fsencode(whole)) + len(LONGEST_SUFFIX) > LONGEST_PATH:
        raise UsageError(
            f"the store's path {folder}/... is too long for SQLite: at most "
            f"{LONGEST_PATH - len(LONGEST_SUFFIX)} bytes"
        )
    if whole.exists() and not whole.is_file():
        kind = "a folder: name a file in it" if whole.is_dir() else "no file: name another one"
        raise ValueError(f"it is {kind}")
