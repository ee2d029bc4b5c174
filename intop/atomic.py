"""Files that are there as a whole or not at all."""

import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path


def write_atomically(path: Path, data: bytes) -> None:
    """Under another name first: a reader, and a kill, find the old content or the new one.

    A file that is replaced keeps its mode, and its owner where we may give it away. What a symbolic
    link leads to is replaced, not the link. Raises OSError.
    """
    path = Path(os.path.realpath(path))
    draft = beside(path)
    try:
        with draft.open("xb") as output:
            _be_like(path, output.fileno())
            output.write(data)
            output.flush()
            os.fsync(output.fileno())
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def beside(path: Path) -> Path:
    """A new name in the same folder: hidden, and of another ending, so that nobody reads it."""
    return path.with_name(f".{path.name}.{secrets.token_hex(4)}")


def _be_like(path: Path, draft: int) -> None:
    """Give an open file, by its number, the mode and the owner of another one, if that is there."""
    with suppress(FileNotFoundError):
        old = path.stat()
        with suppress(PermissionError):
            os.fchown(draft, old.st_uid, old.st_gid)
        os.fchmod(draft, stat.S_IMODE(old.st_mode))
