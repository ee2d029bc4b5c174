"""Folders that are root's alone: made, checked before root writes there, and removed.

Nobody else can put a link where the lab makes a file, so no path of the lab leads elsewhere.
"""

import shutil
import stat
from pathlib import Path

from intop.errors import LabError
from intop.lab.commands import run

MOUNTS = Path("/proc/self/mountinfo")
WRITABLE = stat.S_IWGRP | stat.S_IWOTH


def problem(folder: Path) -> str | None:
    """Return why somebody else than root may change a folder's content; None where nobody can.

    A folder on the way that is not there yet is no problem. A sticky folder such as /tmp may be on
    the way, since nobody moves what belongs to another user there.
    """
    for place in (*reversed(folder.parents), folder):
        try:
            status = place.lstat()
        except FileNotFoundError:
            return None
        is_way = place != folder and status.st_mode & stat.S_ISVTX
        if stat.S_ISLNK(status.st_mode):
            return f"{place} is a symbolic link"
        if not stat.S_ISDIR(status.st_mode):
            return f"{place} is no folder"
        if status.st_uid != 0:
            return f"{place} belongs to user {status.st_uid}, and not to root"
        if status.st_mode & WRITABLE and not is_way:
            return f"others can change what is in {place} (mode {stat.S_IMODE(status.st_mode):o})"
    return None


def check(folder: Path) -> None:
    """Raise LabError for a folder in which somebody else may change something."""
    if why := problem(folder):
        raise LabError(
            f"the lab's folder {folder} can't be trusted: {why}. "
            "Look at what it is, then remove it or make it root's alone"
        )


def make(folder: Path, mode: int) -> None:
    """Make a folder with exactly these permissions, whatever the umask.

    Raises LabError where somebody else may change something in it.
    """
    check(folder)
    folder.mkdir(parents=True, exist_ok=True)
    check(folder)
    folder.chmod(mode)


def write(file: Path, text: str, mode: int = 0o600) -> None:
    """Write a file that never, not for a moment, has wider permissions than `mode`."""
    file.unlink(missing_ok=True)
    file.touch(mode=0o600, exist_ok=False)
    file.write_text(text)
    file.chmod(mode)


def mount_memory(folder: Path, mode: int) -> None:
    """Make a folder whose files are in memory. Raises LabError where root may not mount."""
    make(folder, mode)
    options = f"mode={mode:o},nosuid,nodev,noexec"
    run(["mount", "-t", "tmpfs", "-o", options, "intop-lab", str(folder)])


def mounted_below(folder: Path) -> list[Path]:
    """Return all that is mounted at a folder or below it, the last one first."""
    places = (Path(line.split()[4]) for line in MOUNTS.read_text().splitlines())
    return [place for place in places if place.is_relative_to(folder)][::-1]


def remove(place: Path) -> None:
    """Remove a folder with all in it, or what is in its place. A link's target stays.

    What is mounted in the folder is unmounted first.
    """
    if place.is_symlink() or not place.is_dir():
        place.unlink(missing_ok=True)
        return
    for mount in mounted_below(place):
        # Lazily: somebody may be looking at a log. It is gone for all others at once.
        run(["umount", "--lazy", str(mount)])
    shutil.rmtree(place)
