"""The record of an apply on a host, and what has become of it since."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from intop.domain.parameter import zeroed
from intop.domain.persistent import Persistent, does_words

FileState = Literal["ours", "edited", "missing"]
NginxFileState = Literal["ours", "own", "edited", "missing"]
DriftKind = Literal["changed", "lost", "missing", "edited", "overridden", "not known"]


@dataclass(frozen=True, kw_only=True)
class StayingKey:
    """A key that was applied."""

    key: str
    before: str
    """Its value before any apply."""
    left: str
    """Its value as intop left it."""
    now: str
    """The present value of a directive, "" where a changed file of nginx was edited since."""


@dataclass(frozen=True, kw_only=True)
class StayingFile:
    """A file of nginx that an apply has changed."""

    path: str
    state: NginxFileState
    """`ours` as the apply left it, its `own` as it was found, `edited` since, or `missing`."""


@dataclass(frozen=True, kw_only=True)
class Applied:
    """The record of an apply, as the host has it."""

    about: Mapping[str, str]
    """Since when, from which study and campaign, for which workload, and by whom."""
    keys: tuple[StayingKey, ...]
    """Keys of the kernel."""
    directives: tuple[StayingKey, ...] = ()
    """Directives of nginx, which are in its `nginx_files`."""
    nginx_files: tuple[StayingFile, ...] = ()
    file: str = ""
    """Our persistent file, "" where there is none."""
    file_is: FileState | None = None
    """The state of that file."""
    was_rebooted: bool = False
    """Whether its kernel was started since."""

    @property
    def since(self) -> str:
        """The time of the apply in UTC, ISO 8601."""
        return self.about.get("since", "an unknown time")

    @property
    def title(self) -> str:
        """The title, such as `x86 slt of study lab, campaign 3`."""
        return title_of(self.about)

    @property
    def values(self) -> Mapping[str, str]:
        """Each key with the value that it was left at."""
        return {key.key: key.left for key in (*self.keys, *self.directives)}


@dataclass(frozen=True, kw_only=True)
class Drift:
    """A difference from what was applied."""

    kind: DriftKind
    """A key was `changed` to what intop never left, or `lost`: it is as before all applies. It is
    `overridden` by what takes effect after our file, or may be where that is `not known`. Our file,
    or a file of nginx, is `missing` or was `edited`; one of nginx is `lost` where it is as it was
    found."""
    where: str
    """A key or a file."""
    detail: str


def title_of(about: Mapping[str, str]) -> str:
    """Return what was applied, in words."""
    deployment = " ".join(about.get(name, "?") for name in ("arch", "workload"))
    return f"{deployment} of study {about.get('study', '?')}, campaign {about.get('campaign', '?')}"


def drift_of(
    applied: Applied, persistent: Persistent | None, *, is_held: bool = False
) -> tuple[Drift, ...]:
    """Return all differences from what was applied, without keys where a session holds the host.

    `persistent` is what sets sysctls there by itself, None where that was not asked for.
    """
    drifts: list[Drift] = []
    if not is_held:
        drifts += [drift for key in applied.keys if (drift := _of_key(key, applied))]
        drifts += [drift for file in applied.nginx_files if (drift := _of_nginx_file(file))]
    if applied.file_is == "missing":
        drifts.append(
            Drift(kind="missing", where=applied.file, detail="the file is gone: lost at a reboot")
        )
    if applied.file_is == "edited":
        drifts.append(
            Drift(kind="edited", where=applied.file, detail="the file is not as intop wrote it")
        )
    if applied.file and persistent is not None:
        drifts += overruled(applied, persistent)
    return tuple(drifts)


def overruled(applied: Applied, persistent: Persistent) -> list[Drift]:
    """Return the keys of our file that something sets, or may set, to another value after it.

    So does a partner that the kernel zeroes with one of them: set later, it takes that one back.
    """
    drifts: list[Drift] = []
    known = {key.key: (key.before, key.now) for key in applied.keys}
    values = {key.key: key.left for key in applied.keys}
    partners = zeroed(values)
    for key, value in {**partners, **values}.items():
        known_values = known.get(key, ())
        fate = persistent.fate(key, value, applied.file, known_values)
        when = "after our file, at each boot"
        if fate is None:
            fate = persistent.reloaded(key, value, known_values)
            when = "at the next sysctl --system"
        if fate is None or (key in partners and key not in values and not fate.sets):
            continue
        kind: DriftKind = "not known" if fate.effect == "unknown" else "overridden"
        drifts.append(Drift(kind=kind, where=key, detail=does_words(fate, when)))
    if persistent.unknown:
        detail = f"{persistent.unknown}, so it may override our file"
        drifts.append(Drift(kind="not known", where="TuneD", detail=detail))
    return drifts


def _of_nginx_file(file: StayingFile) -> Drift | None:
    match file.state:
        case "ours":
            return None
        case "own":
            detail = f"the file is as it was before it was applied: {_BY_WHOM}"
            return Drift(kind="lost", where=file.path, detail=detail)
        case "missing":
            return Drift(kind="missing", where=file.path, detail="the file is gone")
        case "edited":
            detail = "the file is not as intop left it: what was added since is in it, too"
            return Drift(kind="edited", where=file.path, detail=detail)


_BY_WHOM = "somebody has set it back, or a rollback that could not restore all"
"""The host does not know who has set a value from before."""


def _of_key(key: StayingKey, applied: Applied) -> Drift | None:
    if key.now == key.left:
        return None
    if key.now != key.before:
        detail = f"is {key.now or 'gone'}, was left at {key.left}, and was {key.before} before"
        return Drift(kind="changed", where=key.key, detail=detail)
    why = "the host was started anew" if applied.was_rebooted else _BY_WHOM
    detail = f"is {key.now} as before it was applied, and was left at {key.left}: {why}"
    return Drift(kind="lost", where=key.key, detail=detail)
