"""Advice: the measured results of each change in the verdicts of a store, by situation.

A *change* is a key (or several that only go together) with the direction in which a winner moved
it. A *situation* is what trials were measured under: workload, link, load, machine and kernel.
"""

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import ClassVar

from intop.domain.stats import Interval
from intop.domain.trial import Conditions
from intop.domain.verdict import Verdict
from intop.report.evidence import (
    Evidence,
    Outcome,
    Source,
    TrialRow,
)

ASIDE = (
    *("machine", "load_tool", "script", "threads", "duration_s", "timeout_s"),
    *("nginx_conf", "generator", "backends"),
)
"""Conditions in which the trials of one situation may differ: how it is measured, fingerprints."""
SITUATION = tuple(f.name for f in fields(Conditions) if f.name not in ASIDE)


@dataclass(frozen=True, kw_only=True)
class Tally:
    """The number of measurements by outcome."""

    helped: int
    hurt: int
    not_shown: int
    not_measured: int


@dataclass(frozen=True, kw_only=True)
class Change:
    """A change in one situation, with all that was measured of it."""

    ALSO_IN_JSON: ClassVar = ("winners", "gains", "by_itself", "beside_others")

    keys: tuple[str, ...]
    direction: str
    situation: int
    evidence: tuple[Evidence, ...]

    @property
    def name(self) -> str:
        """The name, such as `net.ipv4.tcp_sack lowered`."""
        return f"{' + '.join(self.keys)} {self.direction}"

    @property
    def winners(self) -> int:
        """The number of winners that had it."""
        return sum(evidence.is_gain is not None for evidence in self.evidence)

    @property
    def gains(self) -> int:
        """The number of winners that had it and were judged a gain."""
        return sum(evidence.is_gain is True for evidence in self.evidence)

    @property
    def by_itself(self) -> Tally:
        """The outcomes where nothing else was changed."""
        return _tally(evidence.outcome_by_itself for evidence in self.evidence)

    @property
    def beside_others(self) -> Tally:
        """The outcomes where other keys were changed, too."""
        return _tally(evidence.outcome_beside_others for evidence in self.evidence)


@dataclass(frozen=True, kw_only=True)
class Situation:
    """The situation of some cases."""

    number: int
    """The number of the situation, from 1 on."""
    conditions: Conditions
    """The conditions of the latest case."""
    studies: tuple[str, ...]
    campaigns: int


@dataclass(frozen=True, kw_only=True)
class JudgedWinner:
    """A verdict in its situation."""

    source: Source
    situation: int
    verdict: Verdict
    is_explained: bool
    """Whether there is an explanation of its gain."""


@dataclass(frozen=True, kw_only=True)
class JudgedSet:
    """A set of values in a contest, against its `reference`."""

    source: Source
    situation: int
    name: str
    title: str
    keys: int
    reference: str
    ratio: Interval | None
    outcome: str
    """The outcome, as in `Contestant`."""


@dataclass(frozen=True, kw_only=True)
class Advice:
    """All situations, with their verdicts, changes and sets."""

    situations: tuple[Situation, ...]
    verdicts: tuple[JudgedWinner, ...]
    changes: tuple[Change, ...]
    sets: tuple[JudgedSet, ...]
    trials: tuple[tuple[Source, tuple[TrialRow, ...]], ...]
    intervals: int
    """Intervals of single changes."""
    called: int
    """Intervals that do not hold 1."""
    by_chance: float
    """The number that would not hold 1 if no change did anything."""

    def changes_in(self, situation: Situation) -> tuple[Change, ...]:
        """Return the changes that were measured in a situation, in order."""
        return tuple(change for change in self.changes if change.situation == situation.number)


def _tally(outcomes: Iterable[Outcome]) -> Tally:
    listed = list(outcomes)
    return Tally(
        helped=listed.count("helped"),
        hurt=listed.count("hurt"),
        not_shown=listed.count("not shown"),
        not_measured=listed.count("not measured"),
    )
