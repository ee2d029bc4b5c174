"""What sets sysctls on a host by itself, in the order in which it takes effect."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from intop.domain.sysctl_file import NAME

FILES, PROCPS_LAST, TUNED, REREAD, REREAD_LAST = range(5)
"""The turns in which settings take effect: the sysctl.d files; etc/sysctl.conf, where procps does
it; TuneD's profile; and what TuneD reads again after it, sysctl.d files and etc/sysctl.conf."""


@dataclass(frozen=True)
class Setting:
    """A key (or a glob pattern of keys) that is given a value, and where that is said.

    `place` is `FILE:LINE`, or `TuneD profile NAME, FILE:LINE`. `turn` says when it takes effect:
    the turn, and within it the name of the file.
    """

    key: str
    value: str
    place: str
    turn: tuple[int, str] = (FILES, "")

    @property
    def file(self) -> str:
        """The path of the file that says it."""
        place = self.place.partition(", ")[2] if self.is_tuned else self.place
        return place.rpartition(":")[0]

    @property
    def is_tuned(self) -> bool:
        """Whether TuneD's profile says it."""
        return self.turn[0] == TUNED


@dataclass(frozen=True, kw_only=True)
class Persistent:
    """All settings that take effect when the host boots, in their order: the last one wins.

    `on_reload` are those that only `sysctl --system` makes, after all others: systemd-sysctl does
    not read etc/sysctl.conf, and procps reads it last. `excluded` are patterns of keys that no glob
    sets. `rereads` says that TuneD makes the settings of files again after its own. `files` are the
    paths in all sysctl.d folders, also of those that set nothing. `problems` are what could not be
    read, a sentence each.
    """

    settings: tuple[Setting, ...] = ()
    on_reload: tuple[Setting, ...] = ()
    excluded: tuple[str, ...] = ()
    rereads: bool = False
    files: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()

    def winner(self, key: str) -> Setting | None:
        """What the key has after booting; None where nothing sets it.

        A glob pattern sets only keys that no setting names and no line excludes (sysctl.d(5)).
        """
        if named := self._named(self.settings, key):
            return named[-1]
        if any(_matches(pattern, key) for pattern in self.excluded):
            return None
        return next((s for s in reversed(self.settings) if _matches(s.key, key)), None)

    def after(self, key: str, path: str) -> tuple[Setting, ...]:
        """The settings of the key that take effect after a file of etc/sysctl.d that names it, too.

        With another value or not, also where the file is not there yet. No glob is among them:
        the file's naming the key keeps globs off it.
        """
        turn = REREAD if self.rereads else FILES, _name(path)
        return tuple(s for s in self._named(self.settings, key) if s.turn > turn)

    def reloaded(self, key: str) -> Setting | None:
        """What makes the key something else at the next `sysctl --system`, whatever booting did."""
        return next(iter(self._named(self.on_reload, key)[-1:]), None)

    def without(self, path: str) -> "Persistent":
        """The same without what a file says."""
        return replace(
            self,
            settings=tuple(s for s in self.settings if s.file != path),
            on_reload=tuple(s for s in self.on_reload if s.file != path),
        )

    def _named(self, settings: Sequence[Setting], key: str) -> list[Setting]:
        return [s for s in settings if s.key == key]


def our_file(config_root: str) -> str:
    """The path of the file in which a host below this root keeps what intop has deployed."""
    return f"{config_root.rstrip('/')}/etc/sysctl.d/{NAME}"


def canonical_key(text: str) -> str:
    """A key or pattern as sysctl shows it, with dots between its parts.

    Where the first separator is a slash, dots belong to the parts (an interface `eth0.5`), and
    become slashes; so sysctl.d(5) has it.
    """
    first = re.search(r"[./]", text)
    if first is not None and first[0] == "/":
        return text.translate(str.maketrans("./", "/."))
    return text


def is_glob(key: str) -> bool:
    """Whether a key is a pattern of keys."""
    return any(character in key for character in "*?[")


def _matches(pattern: str, key: str) -> bool:
    """Whether a pattern is one of this key; as in glob(7), no wildcard is for a separator."""
    parts, wanted = key.split("."), pattern.split(".")
    return len(parts) == len(wanted) and all(map(fnmatchcase, parts, wanted))


def _name(path: str) -> str:
    return path.rpartition("/")[2]
