"""TuneD's profiles: which sysctls the active ones set (TuneD's profiles/loader.py, merger.py)."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from intop.domain.parameter import normalised
from intop.domain.persistent import TUNED, Setting, canonical_key

FOLDERS = ("etc/tuned", "etc/tuned/profiles", "usr/lib/tuned", "usr/lib/tuned/profiles")
"""Where profiles are; of two files of one name, the one in the earlier folder is taken first."""
MOST_PROFILES = 100
"""Included by each other: TuneD itself has no limit, and a few are usual."""
_SECTION = re.compile(r"\[(?P<name>[^\]]+)\]")
_COMMENT = re.compile(r"(^|\s)#.*")


@dataclass
class _Unit:
    """A section of a profile: its options, each with its number of line."""

    name: str
    options: dict[str, tuple[str, int]] = field(default_factory=dict)

    @property
    def sets_sysctls(self) -> bool:
        return self.options.get("type", (self.name, 0))[0] == "sysctl"

    @property
    def replaces(self) -> bool:
        return self.options.get("replace", ("", 0))[0].lower() in ("1", "true", "yes", "on")


def settings(
    active: Sequence[str], profiles: Mapping[str, Sequence[str]]
) -> tuple[list[Setting], list[str]]:
    """What the active profiles set, with all that they include, and what is wrong with them.

    `profiles` are the lines of each tuned.conf by its path, those that are taken first at first.
    An included profile comes before the one that includes it, and is overridden by it. A profile
    that includes its own name means the next file of that name. Where one is missing, TuneD sets
    nothing at all.
    """
    files: list[str] = []
    if problem := _load(active, profiles, files, []):
        return [], [problem]
    units: dict[str, dict[str, Setting]] = {}
    for path in files:
        for unit in _units(profiles[path]):
            if not unit.sets_sysctls:
                continue
            if unit.replaces:
                units.pop(unit.name, None)
            mine = units.setdefault(unit.name, {})
            for option, (value, line) in unit.options.items():
                if "." in option or "/" in option:
                    key = canonical_key(option)
                    place = f"TuneD profile {_name(path)}, {path}:{line}"
                    mine[key] = Setting(key, normalised(_unquoted(value)), place, (TUNED, ""))
    return [setting for unit in units.values() for setting in unit.values()], []


def reapplies(main: Iterable[str]) -> bool:
    """Whether TuneD reads the sysctl.d files again after its profile, by its tuned-main.conf."""
    said = True
    for line in main:
        option, equals, value = _COMMENT.sub("", line).partition("=")
        if equals and option.strip() == "reapply_sysctl":
            said = value.strip().lower() in ("1", "true", "yes", "on")
    return said


def _load(
    names: Iterable[str],
    profiles: Mapping[str, Sequence[str]],
    files: list[str],
    seen: list[str],
) -> str:
    """Put the files of profiles in order, each after what it includes; what is wrong, or ""."""
    for name in names:
        if len(seen) >= MOST_PROFILES:
            return f"TuneD's profiles include each other more than {MOST_PROFILES} times"
        called = [path for path in profiles if _name(path) == name]
        if not called:
            return f"TuneD's profile {name[:80]} is not there, so TuneD sets nothing"
        path = next((path for path in called if path not in seen), None)
        if path is None:
            continue
        seen.append(path)
        if problem := _load(_included(profiles[path]), profiles, files, seen):
            return problem
        files.append(path)
    return ""


def _included(lines: Sequence[str]) -> list[str]:
    options = [unit.options for unit in _units(lines) if unit.name == "main"]
    said = options[-1].get("include", ("", 0))[0] if options else ""
    return [name for name in re.split(r"\s*[,;]\s*", said.strip()) if name]


def _units(lines: Sequence[str]) -> list[_Unit]:
    """The sections of a file, those of one name as one; the last value of an option counts."""
    units: dict[str, _Unit] = {}
    unit: _Unit | None = None
    for number, line in enumerate(lines, start=1):
        text = _COMMENT.sub("", line).strip()
        if found := _SECTION.fullmatch(text):
            unit = units.setdefault(found["name"], _Unit(found["name"]))
        elif unit is not None and text and not text.startswith(";"):
            option, equals, value = text.partition("=")
            if equals:
                unit.options[option.strip()] = value.strip(), number
    return list(units.values())


def _unquoted(value: str) -> str:
    return re.sub(r'^"(.*)"$', r"\1", value)


def _name(path: str) -> str:
    """A profile is called as its folder."""
    return path.rpartition("/")[0].rpartition("/")[2]
