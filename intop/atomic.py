"""Files that are there as a whole or not at all."""

import os
import secrets
from pathlib import Path


def write_atomically(path: Path, data: bytes) -> None:
    """Under another name first: a reader, and a kill, find the old content or the new one.

    Raises OSError.
    """
    draft = beside(path)
    try:
        with draft.open("xb") as output:
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
