"""TuneD's profiles: which sysctls the active ones set (TuneD's profiles/loader.py, merger.py).

TuneD reads a profile with Python's configparser, and so does this. What only TuneD on the host
can evaluate, such as its functions `${f:...}`, is reported as not known.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from configparser import ConfigParser
from configparser import Error as SyntaxProblem
from dataclasses import dataclass, field, replace

from intop.domain.parameter import normalised
from intop.domain.persistent import TUNED, TUNED_LAST, Setting
from intop.domain.sysctl_lines import canonical_key

FOLDERS = ("etc/tuned", "etc/tuned/profiles", "usr/lib/tuned", "usr/lib/tuned/profiles")
"""The folders of profiles; of two files of one name, the one in the earlier folder comes first."""
MOST_PROFILES = 100
"""The most profiles that include each other: TuneD itself has no limit, and a few are usual."""
TRUE = ("True", "true", "1")
"""True values of `enabled` and `replace`: everything else is false."""
FALSE = ("0", "no", "false", "off")
"""False values of `reapply_sysctl`. With a word that is neither, TuneD does not start."""
_SCHEDULER = (
    *("sched_min_granularity_ns", "sched_latency_ns", "sched_wakeup_granularity_ns"),
    *("sched_tunable_scaling", "sched_migration_cost_ns", "sched_nr_migrate"),
    *("numa_balancing_scan_delay_ms", "numa_balancing_scan_period_min_ms"),
    *("numa_balancing_scan_period_max_ms", "numa_balancing_scan_size_mb"),
)
_OTHER_SECTIONS = {
    "scheduler": dict.fromkeys(_SCHEDULER, "kernel"),
    "vm": dict.fromkeys(
        ("dirty_bytes", "dirty_ratio", "dirty_background_bytes", "dirty_background_ratio"), "vm"
    ),
}
"""Options by which TuneD's other plugins set sysctls, and the folder of each (plugin_scheduler.py,
plugin_vm.py)."""
_CONDITIONS = ("cpuinfo_regex", "uname_regex")
_NO_KEYS = {"type", "enabled", "replace", "drop", "priority", "devices", "devices_udev_regex"}
_NO_KEYS |= {"script_pre", "script_post", *_CONDITIONS}
_NAME = re.compile(r"[a-zA-Z0-9_.-]+")
_VARIABLE = re.compile(r"(\\?)\$\{(\w+)\}")


@dataclass(frozen=True, kw_only=True)
class Profile:
    """The active profiles together."""

    settings: tuple[Setting, ...] = ()
    sets_sysctls: bool = False
    """Whether TuneD sets sysctls; it may then read the sysctl.d files once more."""
    unknown: str = ""
    """The reason why they may set more than is known."""
    problems: tuple[str, ...] = ()
    """The problems of the profiles, a sentence each."""


@dataclass
class _Unit:
    """A section of a profile."""

    name: str
    options: dict[str, tuple[str, str]]
    """The value of each option, and its place."""

    def value(self, option: str, default: str = "") -> str:
        """Return the value of an option."""
        return self.options.get(option, (default, ""))[0]

    @property
    def sets_sysctls(self) -> bool:
        """Whether TuneD's plugin for sysctls reads it."""
        return self.value("type", self.name) == "sysctl"

    def sets(self, option: str) -> bool:
        """Return whether an option sets a key."""
        if self.sets_sysctls:
            return option not in _NO_KEYS and bool(re.search("[./]", option))
        return option in self.other_keys

    @property
    def other_keys(self) -> Mapping[str, str]:
        """The options by which another plugin sets sysctls, with the folders of those."""
        return _OTHER_SECTIONS.get(self.value("type", self.name), {})

    def updated(self, newer: "_Unit") -> "_Unit":
        """Return the section with the options of a later profile."""
        if newer.value("replace") in TRUE:
            return newer
        dropped = re.split(r"\b\s*[,;]\s*", newer.value("drop"))
        kept = {o: v for o, v in self.options.items() if o not in (*dropped, "type", "enabled")}
        options = {o: v for o, v in newer.options.items() if o != "drop"}
        return replace(self, options=kept | options)


@dataclass
class _Loaded:
    """The profiles in the order in which they are merged, by the paths of their files."""

    units: dict[str, list[_Unit]] = field(default_factory=dict)
    unknown: str = ""


class _UnusableError(Exception):
    """The reason why TuneD does not load the profiles, and so sets nothing."""


def merged(active: Sequence[str], profiles: Mapping[str, Sequence[str]]) -> Profile:
    """Return the settings of the active profiles, with all that they include, and their problems.

    `profiles` are the lines of each tuned.conf by its path, those that are taken first at first.
    An included profile comes before the one that includes it, and is overridden by it. A profile
    that includes its own name means the next file of that name. Where one is missing, TuneD sets
    nothing at all.
    """
    loaded = _Loaded()
    try:
        _load([name for name in active if _NAME.fullmatch(name)], profiles, loaded, [])
        units: dict[str, _Unit] = {}
        for unit in (unit for file in loaded.units.values() for unit in file):
            earlier = units.get(unit.name)
            units[unit.name] = unit if earlier is None else earlier.updated(unit)
        variables = _variables(units.pop("variables", None))
        enabled = [unit for unit in units.values() if unit.value("enabled", "1") in TRUE]
        in_order = sorted(enabled, key=_priority)
    except _UnusableError as error:
        return Profile(problems=(str(error),))
    last = max((n for n, unit in enumerate(in_order) if unit.sets_sysctls), default=-1)
    settings = [
        _setting(option, unit, variables, loaded.unknown, TUNED if number <= last else TUNED_LAST)
        for number, unit in enumerate(in_order)
        for option in unit.options
        if unit.sets(option)
    ]
    problem = f"{loaded.unknown}: what else TuneD sets is not known" if loaded.unknown else ""
    return Profile(
        settings=tuple(settings),
        sets_sysctls=last >= 0,
        unknown=loaded.unknown,
        problems=(problem,) if problem else (),
    )


def reapplies(main: Iterable[str]) -> bool:
    """Return whether TuneD reads the sysctl.d files again after its profile (tuned-main.conf)."""
    parser = _parser()
    try:
        parser.read_file(["[main]\n", *(f"{line}\n" for line in main)])
    except SyntaxProblem:
        return True
    value = parser.get("main", "reapply_sysctl", raw=True, fallback="1")
    return value.strip().lower() not in FALSE


def _load(
    names: Iterable[str],
    profiles: Mapping[str, Sequence[str]],
    loaded: _Loaded,
    seen: list[str],
) -> None:
    """Load profiles in order, each after what it includes. Raises _UnusableError."""
    for name in names:
        if len(seen) >= MOST_PROFILES:
            raise _UnusableError(
                f"TuneD's profiles include each other more than {MOST_PROFILES} times"
            )
        wanted = name.removeprefix("-").rpartition("/")[2]
        paths = [path for path in profiles if _name(path) == wanted]
        if not paths:
            if name.startswith("-"):
                continue
            shown = " ".join(name.split())[:80]
            problem = f"TuneD's profile {shown} is not there" if name else "TuneD's include ends"
            raise _UnusableError(f"{problem}, so TuneD sets nothing")
        path = next((path for path in paths if path not in seen), None)
        if path is None:
            continue
        seen.append(path)
        units = _units(path, profiles[path])
        main = next((unit for unit in units if unit.name == "main"), _Unit("main", {}))
        if "include" in main.options:
            included = main.value("include")
            if "$" in included:
                loaded.unknown = (
                    f"TuneD's profile {wanted} includes {included[:80]}, which only TuneD evaluates"
                )
            else:
                _load(re.split(r"\s*[,;]\s*", included), profiles, loaded, seen)
        loaded.units[path] = [unit for unit in units if unit is not main]


def _parser() -> ConfigParser:
    parser = ConfigParser(delimiters=("=",), inline_comment_prefixes=("#",), strict=False)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    return parser


def _units(path: str, lines: Sequence[str]) -> list[_Unit]:
    """Return the sections of a file. Raises _UnusableError."""
    parser = _parser()
    try:
        parser.read_file(f"{line}\n" for line in lines)
    except SyntaxProblem as error:
        reason = " ".join(str(error).split("\n")[-1].split())[:100]
        raise _UnusableError(
            f"{path} is no profile that TuneD can read ({reason}), so TuneD sets nothing"
        ) from error
    folder = path.rpartition("/")[0]
    return [
        _Unit(
            section,
            {
                option: (
                    parser.get(section, option, raw=True).replace("${i:PROFILE_DIR}", folder),
                    f"TuneD profile {_name(path)}, {path}:{_line_of(section, option, lines)}",
                )
                for option in parser.options(section)
            },
        )
        for section in parser.sections()
    ]


def _line_of(section: str, option: str, lines: Sequence[str]) -> int:
    """Return the number of the last line in a section that gives an option its value."""
    last = 0
    within = False
    for number, line in enumerate(lines, start=1):
        text = line.strip()
        if text.startswith("["):
            within = text.startswith((f"[{section}]", "[DEFAULT]"))
        elif within and text.partition("=")[0].strip() == option:
            last = number
    return last


def _priority(unit: _Unit) -> int:
    try:
        return int(unit.value("priority", "0"))
    except ValueError:
        raise _UnusableError(
            f"TuneD's section [{unit.name[:80]}] has a priority that is no number, so TuneD sets "
            "nothing"
        ) from None


def _variables(unit: _Unit | None) -> dict[str, str | None]:
    """Return the values of variables; None for one that only TuneD can evaluate.

    A file of variables, which is not read, may have any that were set before it.
    """
    values: dict[str, str | None] = {}
    for name, (value, _) in unit.options.items() if unit else ():
        if name == "include":
            values = dict.fromkeys(values)
        elif name not in _NO_KEYS and re.fullmatch(r"\w+", name):
            values[name] = _expanded(value, values)
    return values


def _expanded(value: str, variables: Mapping[str, str | None]) -> str | None:
    """Return a text with its variables' values; None where not all of it is known.

    A variable that no profile has may be in a file of variables.
    """
    unknown = False

    def inserted(match: re.Match[str]) -> str:
        nonlocal unknown
        known = variables.get(match[2])
        unknown = unknown or bool(match[1]) or known is None
        return known or ""

    text = _VARIABLE.sub(inserted, value)
    return None if unknown or "${" in text else text


def _setting(
    option: str, unit: _Unit, variables: Mapping[str, str | None], doubt: str, turn: int
) -> Setting:
    value, place = unit.options[option]
    key, bare = canonical_key(option), re.sub(r'^"(.*)"$', r"\1", value)
    folder = unit.other_keys.get(option)
    if folder is not None:
        key, bare = f"{folder}.{option}", value
    text = _expanded(bare, variables)
    shown = normalised(bare if text is None else text)
    if text is None:
        doubt = "only TuneD evaluates that"
    elif any(name in unit.options for name in _CONDITIONS):
        doubt = doubt or "TuneD sets it on some machines only"
    elif folder == "vm":
        doubt = doubt or "some versions of TuneD set it, others don't"
    if folder == "vm" and shown.endswith("%"):
        key, shown = key.replace("_bytes", "_ratio"), shown.rstrip("%").rstrip()
    return Setting(key, shown, place, (turn, ""), doubt=doubt)


def _name(path: str) -> str:
    """Return the name of a profile, which is that of its folder."""
    return path.rpartition("/")[0].rpartition("/")[2]
