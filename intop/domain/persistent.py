"""Settings of sysctls that a host makes by itself, in the order in which they take effect."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Literal

from intop.domain.kernel_value import reading
from intop.domain.sysctl_file import NAME

Effect = Literal["sets", "may set", "drops", "refused", "unknown"]
"""The effect of a line on a key: it sets a value, or does if the kernel takes that; it makes
systemd drop the key; the kernel refuses its value; or its effect is not known."""

FILES, PROCPS_LAST, TUNED, REREAD, REREAD_LAST, TUNED_LAST = range(6)
"""The turns in which settings take effect: the sysctl.d files; etc/sysctl.conf, where procps does
it; TuneD's profile; what TuneD reads again after its sysctls, sysctl.d files and etc/sysctl.conf;
and the sections of its profile that come after those of sysctls."""


@dataclass(frozen=True)
class Setting:
    """A key (or a glob pattern of keys) that is given a value, and where."""

    key: str
    value: str
    place: str
    """`FILE:LINE`, or `TuneD profile NAME, FILE:LINE`."""
    turn: tuple[int, str] = (FILES, "")
    """The time of its effect: the turn, and within it the name of the file."""
    drops: bool = False
    """Whether it is a line `-KEY`, which drops what systemd has read of the key before."""
    doubt: str = ""
    """The reason why it is not known what is set, "" where that is known."""

    @property
    def file(self) -> str:
        """The path of the file that it stands in."""
        place = self.place.partition(", ")[2] if self.is_tuned else self.place
        return place.rpartition(":")[0]

    @property
    def is_tuned(self) -> bool:
        """Whether it is of TuneD's profile."""
        return self.turn[0] in (TUNED, TUNED_LAST)


@dataclass(frozen=True, kw_only=True)
class Fate:
    """The fate of a value that our file sets."""

    setting: Setting
    """A setting that comes later, and has this `effect`."""
    effect: Effect
    value: str | None
    """The value of the key then, None where that is not known."""

    @property
    def sets(self) -> bool:
        """Whether another value is set, and not only none."""
        return self.effect not in ("drops", "refused")


@dataclass(frozen=True, kw_only=True)
class Persistent:
    """All settings that take effect when the host boots, in their order: the last one wins."""

    settings: tuple[Setting, ...] = ()
    on_reload: tuple[Setting, ...] = ()
    """Settings that only `sysctl --system` makes, after all others: systemd-sysctl does not read
    etc/sysctl.conf, and procps reads it last."""
    excluded: tuple[str, ...] = ()
    """Keys that no glob sets."""
    by_systemd: bool = False
    """Whether systemd loads the files: of all lines of a key it writes only the last, also where
    the kernel refuses that."""
    rereads: bool = False
    """Whether TuneD makes the settings of files again after its own."""
    files: tuple[str, ...] = ()
    """Paths in all sysctl.d folders, also of files that set nothing."""
    unknown: str = ""
    """The reason why anything may be set beyond the settings, after our file, "" for nothing."""
    problems: tuple[str, ...] = ()
    """Settings that could not be read, a sentence each."""
    unread: tuple[str, ...] = ()
    """Lines of the files that no program reads."""

    def winner(self, key: str) -> Setting | None:
        """Return the setting that counts after booting; None where nothing sets the key.

        A glob pattern sets only keys that no line names and none excludes (sysctl.d(5)).
        """
        if named := self._named(self.settings, key):
            return None if named[-1].drops else named[-1]
        if key in self.excluded:
            return None
        globs = self._globs() if self.by_systemd else self.settings
        return next((s for s in reversed(globs) if _matches(s.key, key)), None)

    def _globs(self) -> list[Setting]:
        """Return the patterns in systemd's order: one that comes again unchanged stays first."""
        patterns: dict[str, Setting] = {}
        for setting in self.settings:
            earlier = patterns.get(setting.key)
            if earlier is None or setting.drops or earlier.value != setting.value:
                patterns.pop(setting.key, None)
                patterns[setting.key] = setting
        return [setting for setting in patterns.values() if not setting.drops]

    def fate(self, key: str, value: str, path: str, known: Iterable[str]) -> Fate | None:
        """Return what gives a value of a file of etc/sysctl.d another one at boot, if anything.

        `known` are values that the key is known to take.
        """
        later = self.after(key, path)
        values = [value, *known]
        if self.by_systemd and not self.rereads:
            files = [setting for setting in later if setting.turn[0] == FILES]
            later = (*files[-1:], *(s for s in later if s.turn[0] != FILES))
            return _folded(later, value, values, only_one=bool(files))
        return _folded(later, value, values)

    def reloaded(self, key: str, value: str, known: Iterable[str]) -> Fate | None:
        """Return what gives it another one at the next `sysctl --system`, whatever booting did."""
        return _folded(self._named(self.on_reload, key), value, [value, *known])

    def after(self, key: str, path: str) -> tuple[Setting, ...]:
        """Return the settings of the key after a file of etc/sysctl.d that names it, too.

        With another value or not, also where the file is not there yet. No glob is among them: the
        file's naming the key keeps globs off it.
        """
        turn = REREAD if self.rereads else FILES, _name(path)
        return tuple(s for s in self._named(self.settings, key) if s.turn > turn)

    def without(self, path: str) -> "Persistent":
        """Return the same without the settings of a file."""
        return replace(
            self,
            settings=tuple(s for s in self.settings if s.file != path),
            on_reload=tuple(s for s in self.on_reload if s.file != path),
        )

    def _named(self, settings: Sequence[Setting], key: str) -> list[Setting]:
        return [s for s in settings if s.key == key]


def our_file(config_root: str) -> str:
    """Return the path of the file that keeps what intop has deployed, below this root."""
    return f"{config_root.rstrip('/')}/etc/sysctl.d/{NAME}"


def effect_of(setting: Setting, known: Iterable[str]) -> tuple[Effect, str | None]:
    """Return the effect of a setting, and the value that the key has after it."""
    if setting.drops:
        return "drops", None
    if setting.doubt:
        return "unknown", None
    taken = reading(setting.key, setting.value, known)
    match taken.outcome:
        case "taken":
            return "sets", taken.value
        case "likely":
            return "may set", taken.value
        case "refused":
            return "refused", None
        case "unknown":
            return "unknown", None


def does_words(fate: Fate, when: str) -> str:
    """Return the effect on our value in words, such as: FILE:3 sets it to 5 at each boot."""
    setting = fate.setting
    match fate.effect:
        case "sets":
            return f"{setting.place} sets it to {fate.value} {when}"
        case "may set":
            return f"{setting.place} sets it to {fate.value} {when}, if the kernel takes that"
        case "drops":
            return f"{setting.place} makes systemd drop the key {when}: ours is not set"
        case "refused":
            return (
                f"{setting.place} says {setting.value!r} {when}: the kernel refuses that, and "
                "systemd writes only the last line of a key, so ours is not set"
            )
        case "unknown":
            why = setting.doubt or "intop does not know what the kernel makes of it"
            return f"{setting.place} says {setting.value!r} {when}: {why}"


def _folded(
    later: Sequence[Setting], value: str, known: Sequence[str], *, only_one: bool = False
) -> Fate | None:
    """Return what settings make of a value one after the other; None where it stays at the end.

    With `only_one` the first of them is written in place of the value.
    """
    fate: Fate | None = None
    for number, setting in enumerate(later):
        now = value if fate is None else fate.value
        written = _raised(setting, now)
        if written is None:
            continue
        effect, after = effect_of(written, known)
        if effect == "refused" and not (only_one and number == 0):
            continue
        if after == value and effect == "sets":
            fate = None
        elif not (setting.doubt and setting.value == now):
            fate = Fate(setting=setting, effect=effect, value=after)
    return fate


def _raised(setting: Setting, now: str | None) -> Setting | None:
    """Resolve TuneD's `>2048`, which only raises a key, and `<2048`; None for no change."""
    sign, text = setting.value[:1], setting.value[1:]
    if not setting.is_tuned or setting.doubt or sign not in ("<", ">") or not text:
        return setting
    if now is None:
        return replace(setting, doubt="it depends on what the key has")
    try:
        wanted, has = int(text), int(now)
    except ValueError:
        return setting  # it is written with its sign
    changes = wanted > has if sign == ">" else wanted < has
    return replace(setting, value=text) if changes else None


def _matches(pattern: str, key: str) -> bool:
    """Whether a pattern is one of this key; as in glob(7), no wildcard is for a separator."""
    pattern = re.sub(r"\\(.)", r"[\1]", pattern).replace("[^", "[!")
    parts, wanted = key.split("."), pattern.split(".")
    return len(parts) == len(wanted) and all(map(fnmatchcase, parts, wanted))


def _name(path: str) -> str:
    return path.rpartition("/")[2]
