"""What deploying would change on hosts, key by key, and what stands in its way. Nothing is done."""

from dataclasses import dataclass
from typing import Literal

from intop.domain.answer import Answer
from intop.domain.deployment import Change, Deployment
from intop.domain.parameter import zeroed
from intop.domain.persistent import Persistent, Setting

Wins = Literal["at boot", "on reload", "never"]
Outcome = Literal["changes", "is so", "impossible"]


@dataclass(frozen=True, kw_only=True)
class Rival:
    """A setting of somebody else of a key that a deployment sets, to another value.

    Or of the key's partner, which the kernel zeroes with it, and which takes it back. `wins` says
    when it prevails over our file: at every boot, only at a `sysctl --system`, or never since ours
    comes after it.
    """

    setting: Setting
    wins: Wins


@dataclass(frozen=True, kw_only=True)
class PlannedKey:
    """One key on one host: `now` is its value, None where it has none that can be read.

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

    @property
    def outcome(self) -> Outcome:
        """What setting it would do."""
        if self.now == self.change.value:
            return "is so"
        return "impossible" if self.obstacle else "changes"

    @property
    def is_as_measured(self) -> bool:
        """Whether the gain was measured against what the host has now."""
        return self.now in (self.change.value, self.change.default)


@dataclass(frozen=True, kw_only=True)
class HostPlan:
    """A host's part of a plan. `file` is where its values would be kept.

    `notes` are what else is to be known of the host, a sentence each.
    """

    file: str
    keys: tuple[PlannedKey, ...]
    notes: tuple[str, ...] = ()

    def of(self, outcome: Outcome) -> tuple[PlannedKey, ...]:
        """The keys of this outcome."""
        return tuple(key for key in self.keys if key.outcome == outcome)

    @property
    def conflicts(self) -> int:
        """How many keys somebody else sets so that ours would not last."""
        return sum(any(rival.wins != "never" for rival in key.rivals) for key in self.keys)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What deploying would do on each host of an architecture."""

    deployment: Deployment
    hosts: tuple[Answer[HostPlan], ...]


def planned_key(
    change: Change, now: str | None, obstacle: str, persistent: Persistent, file: str
) -> PlannedKey:
    """The key with all that sets it persistently, beside a file of ours at `file`."""
    own = [s for s in persistent.settings if s.key == change.key and s.file == file]
    rivals: list[Rival] = []
    agreeing: list[Setting] = []
    for setting, wins in _others(change.key, persistent.without(file), file):
        if setting.value == change.value:
            agreeing.append(setting)
        else:
            rivals.append(Rival(setting=setting, wins=wins))
    for partner, zero in zeroed({change.key: change.value}).items():
        rivals += [
            Rival(setting=setting, wins=wins)
            for setting, wins in _others(partner, persistent.without(file), file)
            if wins != "never" and setting.value != zero
        ]
    return PlannedKey(
        change=change,
        now=now,
        obstacle=obstacle,
        rivals=tuple(rivals),
        agreeing=tuple(agreeing),
        filed=own[-1] if own else None,
    )


def _others(key: str, persistent: Persistent, file: str) -> list[tuple[Setting, Wins]]:
    """The last setting of the key at boot, and what a `sysctl --system` makes after that."""
    found: list[tuple[Setting, Wins]] = []
    after = persistent.after(key, file)
    last, reloaded = persistent.winner(key), persistent.reloaded(key)
    if after:
        found.append((after[-1], "at boot"))
    elif last is not None:
        found.append((last, "never"))
    # What wins at boot as well says so already.
    if reloaded is not None and not (after and after[-1].place == reloaded.place):
        found.append((reloaded, "on reload"))
    return found
