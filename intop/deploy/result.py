"""A plan: what deploying changes on hosts, key by key, and what stands in its way.

`intop plan` makes it, `intop apply` carries it out.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from intop.domain.applied import Applied
from intop.domain.deployment import Change, Deployment
from intop.domain.host_state import Answer, HostState
from intop.domain.parameter import PARTNERS, zeroed
from intop.domain.persistent import Effect, Fate, Persistent, Setting, effect_of

Wins = Literal["at boot", "on reload", "never"]
Outcome = Literal["changes", "is so", "impossible"]


@dataclass(frozen=True, kw_only=True)
class Rival:
    """A setting by others of a key that a deployment sets, to another value.

    Or of the key's partner, which the kernel zeroes with it, and which takes it back.
    """

    setting: Setting
    wins: Wins
    """The time at which it prevails over our file: at every boot, or only at a `sysctl --system`.
    Never, where ours comes after it."""
    effect: Effect = "sets"
    """Its effect on the key."""
    value: str | None = None
    """The value of the key after it, None where that is not known."""


@dataclass(frozen=True, kw_only=True)
class PlannedKey:
    """One key on one host."""

    ALSO_IN_JSON: ClassVar = ("outcome",)

    change: Change
    now: str | None
    """Its value, None where none can be read."""
    obstacle: str = ""
    """The reason why the value can't be set there, "" where it can."""
    rivals: tuple[Rival, ...] = ()
    """Others that set it to something else."""
    agreeing: tuple[Setting, ...] = ()
    """Others that set it to the same."""
    filed: Setting | None = None
    """The line of our own file of an earlier deployment, None where there is none."""
    before: str | None = None
    """Its value from before an earlier apply, None where no apply has left it a value."""

    @property
    def outcome(self) -> Outcome:
        """The outcome of setting it."""
        if self.now == self.change.value:
            return "is so"
        return "impossible" if self.obstacle else "changes"

    @property
    def own(self) -> str | None:
        """The host's own value, which the new one is measured against."""
        return self.now if self.before is None else self.before

    @property
    def is_as_measured(self) -> bool:
        """Whether the gain was measured against what the host has by itself."""
        return self.own in (self.change.value, self.change.default)


@dataclass(frozen=True, kw_only=True)
class FileEdit:
    """A change in a file of nginx."""

    path: str
    diff: str
    """The lines that go and those that come, as `diff -U0`."""


@dataclass(frozen=True, kw_only=True)
class HostPlan:
    """A host's part of a plan."""

    file: str
    """The file where a persistent plan keeps sysctls, "" for none."""
    keys: tuple[PlannedKey, ...]
    machine: str = ""
    kernel: str = ""
    applied: Applied | None = None
    """The record of an earlier apply."""
    has_it: bool = False
    """Whether that is exactly what is planned. Then the host is left alone."""
    lacks_file: bool = False
    """Whether it lacks only the file of a persistent plan. Then nothing is measured again."""
    edits: tuple[FileEdit, ...] = ()
    """Changes in nginx's files."""
    kept: tuple[str, ...] = ()
    """A line for each place there that keeps what it has."""
    problems: tuple[str, ...] = ()
    """Obstacles to any apply."""
    notes: tuple[str, ...] = ()
    """Further facts of the host, a sentence each."""

    @property
    def obstacles(self) -> tuple[PlannedKey, ...]:
        """The keys that can't be given the values that they need."""
        has_values = self.has_it or self.lacks_file
        return () if has_values else tuple(key for key in self.keys if key.obstacle)

    def of(self, outcome: Outcome) -> tuple[PlannedKey, ...]:
        """Return the keys of this outcome."""
        return tuple(key for key in self.keys if key.outcome == outcome)

    @property
    def conflicts(self) -> int:
        """The number of keys that others set so that ours would not last."""
        return sum(any(rival.wins != "never" for rival in key.rivals) for key in self.keys)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A deployment on each host of an architecture, one after the other.

    On each it is measured against the host's own values. What stays, lasts until a reboot.
    """

    ALSO_IN_JSON: ClassVar = ("problems",)

    deployment: Deployment
    hosts: tuple[Answer[HostPlan], ...]
    rounds: int
    """Rounds of the measurement on a host, at most."""
    persist: bool = False
    """Whether it lasts for good."""
    for_review: bool = False
    """Whether it is of hosts that the study doesn't have. Nothing can be measured there, so it
    can't be applied."""
    accept_costs: bool = False
    """Whether a broken guardrail keeps nothing from being applied."""

    @property
    def problems(self) -> tuple[str, ...]:
        """All obstacles on any host, a line each that names it."""
        problems: list[str] = []
        for answer in self.hosts:
            if answer.result is None:
                problems.append(answer.error)
                continue
            problems += [f"{answer.name}: {why}" for why in answer.result.problems]
            problems += [
                f"{answer.name}: {key.change.key} can't be set to {key.change.value}: "
                f"{key.obstacle}"
                for key in answer.result.obstacles
            ]
        return tuple(problems)

    @property
    def is_done(self) -> bool:
        """Whether every host has it already."""
        return all(answer.result is not None and answer.result.has_it for answer in self.hosts)


@dataclass(frozen=True, kw_only=True)
class SavedPlan:
    """The plans of a study's architectures, as a file has them."""

    study: str
    campaign: int
    """Its number in the store."""
    started_at: str
    """UTC, ISO 8601."""
    made_at: str
    """UTC, ISO 8601."""
    whole: bool
    """Whether the whole winner was asked for."""
    plans: tuple[Plan, ...]
    configuration: str = ""
    """The name of the configuration that was asked for, "" for the verdict's."""


def planned_key(
    change: Change,
    now: str | None,
    obstacle: str,
    persistent: Persistent,
    file: str,
    before: str | None = None,
    known: Sequence[str] = (),
) -> PlannedKey:
    """Return the key with all that sets it persistently, beside a file of ours at `file`.

    `known` are values that the key is known to take, such as the lowest and the highest.
    """
    own = [s for s in persistent.settings if s.key == change.key and s.file == file]
    known = [v for v in (change.value, change.default, now, before, *known) if v]
    foreign_settings = persistent.without(file)
    rivals: list[Rival] = []
    agreeing: list[Setting] = []
    for rival in _rivals(change.key, change.value, foreign_settings, file, known):
        if rival.effect == "sets" and rival.value == change.value:
            agreeing.append(rival.setting)
        else:
            rivals.append(rival)
    for partner, zero in zeroed({change.key: change.value}).items():
        rivals += [
            rival
            for rival in _rivals(partner, zero, foreign_settings, file, (zero,))
            if rival.wins != "never" and rival.effect not in ("drops", "refused")
        ]
    return PlannedKey(
        change=change,
        now=now,
        obstacle=obstacle,
        rivals=tuple(rivals),
        agreeing=tuple(agreeing),
        filed=own[-1] if own else None,
        before=before,
    )


def has_applied(state: HostState, values: Mapping[str, str], file: str) -> bool:
    """Whether a host has exactly these values applied; a key's partner has one by itself.

    `file` is the persistent file that is wanted, "" for none.
    """
    if state.applied is None or state.applied.file != file:
        return False
    applied = state.applied.values
    unwanted_keys = {
        key for key in applied if key not in values and PARTNERS.get(key) not in values
    }
    as_applied = all(drift.kind in ("overridden", "not known") for drift in state.drift)
    return as_applied and not unwanted_keys and all(applied.get(k) == v for k, v in values.items())


def problems_of(state: HostState, persistent: Persistent, file: str) -> tuple[str, ...]:
    """Return why nothing may be applied to a host as it is, each with the next step.

    `file` as in `has_applied`.
    """
    if state.holder:
        return (f"is held by {state.holder} since {state.since}: end that session first",)
    problems = [
        f"{drift.where} was changed by somebody else since it was applied ({drift.detail}). Give "
        "the host back first, then apply again: intop rollback (--force overwrites what was "
        "changed)"
        for drift in state.drift
        if drift.kind in ("changed", "edited")
    ]
    ours = state.applied.file if state.applied else ""
    if ours and state.applied and state.applied.file_is == "ours" and not file:
        problems.append(
            f"has {ours} from an earlier apply, which would undo this one at the next boot. Say "
            "--persist to replace it, or remove it first by intop rollback"
        )
    if file and file != ours and file in persistent.files:
        problems.append(f"{file} is there already, and no apply wrote it: move it away first")
    return tuple(problems)


def _rivals(
    key: str, value: str, persistent: Persistent, file: str, known: Sequence[str]
) -> list[Rival]:
    """Return what gives the key another value than ours at boot, or at a `sysctl --system`.

    Where nothing does, the last line that sets the key.
    """
    rivals: list[Rival] = []
    at_boot = persistent.fate(key, value, file, known)
    last = persistent.winner(key)
    later = persistent.after(key, file)
    if at_boot is not None:
        rivals.append(_rival(at_boot, "at boot"))
    elif last is not None:
        effect, after = effect_of(last, known)
        # A later line that leaves our value as it is, is no rival.
        if not later or (effect == "sets" and after == value):
            rivals.append(Rival(setting=last, wins="never", effect=effect, value=after))
    again = persistent.reloaded(key, value, known)
    # What wins at boot as well says so already.
    if again is not None and not (at_boot and at_boot.setting.place == again.setting.place):
        rivals.append(_rival(again, "on reload"))
    return rivals


def _rival(fate: Fate, wins: Wins) -> Rival:
    return Rival(setting=fate.setting, wins=wins, effect=fate.effect, value=fate.value)
