"""A plan: what deploying changes on hosts, key by key, and what stands in its way.

`intop plan` makes it, `intop apply` carries it out.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from intop.domain.answer import Answer
from intop.domain.applied import Applied
from intop.domain.deployment import Change, Deployment
from intop.domain.host_state import HostState
from intop.domain.parameter import PARTNERS, zeroed
from intop.domain.persistent import Effect, Fate, Persistent, Setting, effect_of

Wins = Literal["at boot", "on reload", "never"]
Outcome = Literal["changes", "is so", "impossible"]


@dataclass(frozen=True, kw_only=True)
class Rival:
    """A setting of somebody else of a key that a deployment sets, to another value.

    Or of the key's partner, which the kernel zeroes with it, and which takes it back. `wins` says
    when it prevails over our file: at every boot, only at a `sysctl --system`, or never since ours
    comes after it. `effect` says what it does to the key, and `value` what the key has then, None
    where that is not known.
    """

    setting: Setting
    wins: Wins
    effect: Effect = "sets"
    value: str | None = None


@dataclass(frozen=True, kw_only=True)
class PlannedKey:
    """One key on one host: `now` is its value, None where it has none that can be read.

    `before` is its value from before an earlier apply, None where no apply has left it a value.
    `obstacle` says why the value can't be set there, and is empty where it can. `rivals` are others
    that set it to something else, `agreeing` those that set it to the same. `filed` is what our own
    file of an earlier deployment has, None where there is none.
    """

    change: Change
    now: str | None
    obstacle: str = ""
    rivals: tuple[Rival, ...] = ()
    agreeing: tuple[Setting, ...] = ()
    filed: Setting | None = None
    before: str | None = None

    @property
    def outcome(self) -> Outcome:
        """What setting it would do."""
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
    """What changes in a file of nginx: the lines that go and those that come, as `diff -U0`."""

    path: str
    diff: str


@dataclass(frozen=True, kw_only=True)
class HostPlan:
    """A host's part of a plan. `file` is where a persistent plan keeps sysctls, "" for nowhere.

    `edits` are what changes in nginx's files, and `kept` has a line for each place there that
    keeps what it has.
    `machine` and `kernel` are what the host is, `applied` what an earlier apply has left there.
    The host `has_it` where that is exactly what is planned, and then it is left alone.
    `problems` keep anything from being applied, `notes` are what else is to be known of the host,
    a sentence each.
    """

    file: str
    keys: tuple[PlannedKey, ...]
    machine: str = ""
    kernel: str = ""
    applied: Applied | None = None
    has_it: bool = False
    edits: tuple[FileEdit, ...] = ()
    kept: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def obstacles(self) -> tuple[PlannedKey, ...]:
        """The keys that can't be given their values, where they have to be given them."""
        return () if self.has_it else tuple(key for key in self.keys if key.obstacle)

    def of(self, outcome: Outcome) -> tuple[PlannedKey, ...]:
        """The keys of this outcome."""
        return tuple(key for key in self.keys if key.outcome == outcome)

    @property
    def conflicts(self) -> int:
        """How many keys somebody else sets so that ours would not last."""
        return sum(any(rival.wins != "never" for rival in key.rivals) for key in self.keys)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What deploying does on each host of an architecture, the first one being the canary.

    On each it is measured against the host's own values in up to `rounds` rounds; what stays,
    lasts until a reboot, or for good where it is to `persist`. A plan `for_review` is of hosts that
    the study doesn't have: nothing can be measured there, so it can't be applied. Who made it may
    `accept_costs`: then a broken guardrail keeps nothing from being applied.
    """

    deployment: Deployment
    hosts: tuple[Answer[HostPlan], ...]
    rounds: int
    persist: bool = False
    for_review: bool = False
    accept_costs: bool = False

    @property
    def problems(self) -> tuple[str, ...]:
        """All that is in the way on any host, a line each that names it."""
        found: list[str] = []
        for answer in self.hosts:
            if answer.said is None:
                found.append(answer.error)
                continue
            found += [f"{answer.name}: {why}" for why in answer.said.problems]
            found += [
                f"{answer.name}: {key.change.key} can't be set to {key.change.value}: "
                f"{key.obstacle}"
                for key in answer.said.obstacles
            ]
        return tuple(found)

    @property
    def is_done(self) -> bool:
        """Whether every host has it already."""
        return all(answer.said is not None and answer.said.has_it for answer in self.hosts)


@dataclass(frozen=True, kw_only=True)
class SavedPlan:
    """The plans of a study's architectures, as a file has them.

    `campaign` is its number in the store, `started_at` and `made_at` UTC in ISO 8601. `whole` says
    that the whole winner was asked for.
    """

    study: str
    campaign: int
    started_at: str
    made_at: str
    whole: bool
    plans: tuple[Plan, ...]


def planned_key(
    change: Change,
    now: str | None,
    obstacle: str,
    persistent: Persistent,
    file: str,
    before: str | None = None,
    known: Sequence[str] = (),
) -> PlannedKey:
    """The key with all that sets it persistently, beside a file of ours at `file`.

    `known` are values that the key is known to take, such as the lowest and the highest.
    """
    own = [s for s in persistent.settings if s.key == change.key and s.file == file]
    known = [v for v in (change.value, change.default, now, before, *known) if v]
    others = persistent.without(file)
    rivals: list[Rival] = []
    agreeing: list[Setting] = []
    for rival in _others(change.key, change.value, others, file, known):
        if rival.effect == "sets" and rival.value == change.value:
            agreeing.append(rival.setting)
        else:
            rivals.append(rival)
    for partner, zero in zeroed({change.key: change.value}).items():
        rivals += [
            rival
            for rival in _others(partner, zero, others, file, (zero,))
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
    found = state.applied.values
    others = {key for key in found if key not in values and PARTNERS.get(key) not in values}
    as_applied = all(drift.kind in ("overridden", "not known") for drift in state.drift)
    return as_applied and not others and all(found.get(k) == v for k, v in values.items())


def problems_of(state: HostState, persistent: Persistent, file: str) -> tuple[str, ...]:
    """Why nothing may be applied to a host as it is, each with the next step.

    `file` as in `has_applied`.
    """
    if state.holder:
        return (f"is held by {state.holder} since {state.since}: end that session first",)
    found = [
        f"{drift.where} was changed by somebody else since it was applied ({drift.detail}). Give "
        "the host back first, then apply again: intop rollback (--force overwrites what was "
        "changed)"
        for drift in state.drift
        if drift.kind in ("changed", "edited")
    ]
    ours = state.applied.file if state.applied else ""
    if ours and state.applied and state.applied.file_is == "ours" and not file:
        found.append(
            f"has {ours} from an earlier apply, which would undo this one at the next boot. Say "
            "--persist to replace it, or remove it first by intop rollback"
        )
    if file and file != ours and file in persistent.files:
        found.append(f"{file} is there already, and no apply wrote it: move it away first")
    return tuple(found)


def _others(
    key: str, value: str, persistent: Persistent, file: str, known: Sequence[str]
) -> list[Rival]:
    """What makes our value of the key another one at boot, and what a `sysctl --system` makes then.

    Where nothing does, the last line that sets the key.
    """
    found: list[Rival] = []
    at_boot = persistent.fate(key, value, file, known)
    last = persistent.winner(key)
    later = persistent.after(key, file)
    if at_boot is not None:
        found.append(_rival(at_boot, "at boot"))
    elif last is not None:
        effect, after = effect_of(last, known)
        # A later line that leaves our value as it is, is no rival.
        if not later or (effect == "sets" and after == value):
            found.append(Rival(setting=last, wins="never", effect=effect, value=after))
    again = persistent.reloaded(key, value, known)
    # What wins at boot as well says so already.
    if again is not None and not (at_boot and at_boot.setting.place == again.setting.place):
        found.append(_rival(again, "on reload"))
    return found


def _rival(fate: Fate, wins: Wins) -> Rival:
    return Rival(setting=fate.setting, wins=wins, effect=fate.effect, value=fate.value)
