"""How far a campaign is, by its store: trials by stage, what they take, the best so far."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from statistics import median
from typing import Literal

from intop.domain.across import Across
from intop.domain.configuration import DEFAULT, Configuration
from intop.domain.soak import Soak
from intop.domain.stats import geometric_mean
from intop.domain.sweep import Sweep
from intop.domain.trial import USABLE, Status, TrialRole
from intop.domain.verdict import Verdict

State = Literal["done", "begun", "to come", "left out"]
Bound = Literal["", "about", "at least", "at most"]
"""How a number that is not known before it is measured relates to the one that is told."""

PAUSE = 10.0
"""A gap between trials of more than so many times their usual length is no part of the pace:
models were fitted, or nobody was at work."""

SILENCE_S = 120.0
"""So long may a campaign at work store nothing while its trials are short: models are fitted."""


@dataclass(frozen=True, kw_only=True)
class Place:
    """One place of a stage's plan, with what is stored of it.

    `attempts` are all of them, `disturbed` those that were. All below is the last attempt's; None,
    "" and 0 before there is one. `started_at` is UTC in ISO 8601.
    """

    stage: str
    index: int
    role: TrialRole
    configuration: Configuration
    attempts: int = 0
    disturbed: int = 0
    status: Status | None = None
    started_at: str = ""
    seconds: float = 0.0
    p99_ms: float | None = None
    replica: str = ""

    @property
    def usable(self) -> bool:
        """Whether what was measured says something about the configuration."""
        return self.status in USABLE and self.p99_ms is not None

    @property
    def ended(self) -> datetime | None:
        """When the last attempt did; None before there is one."""
        if not self.started_at:
            return None
        return datetime.fromisoformat(self.started_at) + timedelta(seconds=self.seconds)

    def is_done(self, retries: int) -> bool:
        """Whether it has its trial: none that was disturbed and is measured again."""
        if self.status is None:
            return False
        return self.status != "disturbed" or self.attempts > retries


@dataclass(frozen=True, kw_only=True)
class StageStatus:
    """One stage: of `trials`, so many are `done`. `train` and `search` only compute, and have none.

    `trials` are those planned and those that the budget adds to the plan; `bound` says how they
    relate to what it will be. `disturbed` counts attempts, `failed` trials. `left_s` are the
    seconds that what is left likely takes, and `most_s` hardly exceeds; None where that can't be
    told. Computing takes time, too.
    """

    name: str
    state: State
    trials: int = 0
    bound: Bound = ""
    done: int = 0
    disturbed: int = 0
    failed: int = 0
    left_s: float | None = None
    most_s: float | None = None

    @property
    def is_ahead(self) -> bool:
        """Whether anything of it is still to be done."""
        return self.state in ("begun", "to come")

    @property
    def left(self) -> int:
        """The trials that are still to be measured."""
        return max(0, self.trials - self.done) if self.is_ahead else 0


def total_s(stages: Iterable[StageStatus]) -> tuple[float | None, float | None]:
    """The seconds that all of them likely take from now, and at most; None where unknown."""
    ahead = [stage for stage in stages if stage.is_ahead]
    return _sum([s.left_s for s in ahead]), _sum([s.most_s for s in ahead])


def _sum(parts: Sequence[float | None]) -> float | None:
    known = [part for part in parts if part is not None]
    return sum(known) if len(known) == len(parts) else None


@dataclass(frozen=True, kw_only=True)
class Best:
    """The best so far, of `configurations` beside the default: geometric means of P99 (ms).

    `by_models` says that it is the one that models believe in, by all trials so far. Else it is the
    lowest of all, which is the luckiest: it flatters itself, most of all with one trial.
    """

    configuration: Configuration
    p99_ms: float
    trials: int
    configurations: int
    by_models: bool
    default_p99_ms: float | None
    default_trials: int


@dataclass(frozen=True, kw_only=True)
class SubjectStatus:
    """One architecture under one workload. `trial_s` is what a trial takes, all replicas together.

    `measured_in` is the campaign whose trials say so. Where that is None, it comes from the file's
    durations and the constants of `run/effort.py`. `verdict` stands once there is one. `sweeps` are
    those with its winner, `across` is that one under all workloads, and `soak` the last soak that
    has ended.
    """

    arch: str
    workload: str
    stages: tuple[StageStatus, ...]
    trial_s: float | None
    measured_in: int | None
    best: Best | None
    verdict: Verdict | None
    sweeps: tuple[Sweep, ...] = ()
    soak: Soak | None = None
    across: Across | None = None

    @property
    def title(self) -> str:
        """Such as `x86 slt`."""
        return f"{self.arch} {self.workload}"

    @property
    def left_s(self) -> float | None:
        """Seconds that all that is left likely takes; None where they can't be told."""
        return total_s(self.stages)[0]

    @property
    def most_s(self) -> float | None:
        """Seconds that it hardly exceeds; None where they can't be told."""
        return total_s(self.stages)[1]

    @property
    def current(self) -> StageStatus | None:
        """The stage that is under way, or the next one; None where all are done."""
        return next((s for s in self.stages if s.state in ("begun", "to come")), None)


@dataclass(frozen=True, kw_only=True)
class CampaignStatus:
    """A campaign of a study; `campaign` is None before there is one.

    `stored_at` is when the last trial ended or the last result was stored, `silent_s` how long ago
    that was. Times are UTC in ISO 8601. `trials` are all that were measured, with every attempt.
    """

    study: str
    store: str
    campaign: int | None
    started_at: str = ""
    finished_at: str | None = None
    subjects: tuple[SubjectStatus, ...] = ()
    stored_at: str = ""
    silent_s: float | None = None
    trials: int = 0
    is_at_work: bool = False

    @property
    def left_s(self) -> float | None:
        """Seconds that all that is left likely takes; None where that can't be told."""
        return _sum([one.left_s for one in self.subjects])


# Time ---------------------------------------------------------------------------------------------


def pace_s(places: Iterable[Place]) -> float | None:
    """Seconds from one trial to the next, on all replicas together, without pauses.

    The mean over the last trials, which are of the present duration. None for fewer than four.
    """
    made = sorted((p.started_at, p.seconds) for p in places if p.started_at)[-60:]
    if len(made) < 4:
        return None
    pause = PAUSE * max(1.0, median(seconds for _, seconds in made))
    starts = [datetime.fromisoformat(started) for started, _ in made]
    gaps = [(after - before).total_seconds() for before, after in pairwise(starts)]
    sound = [gap for gap in gaps if gap <= pause]
    return sum(sound) / len(sound) if len(sound) >= 3 else None


def is_at_work(silent_s: float, usual_s: float) -> bool:
    """Whether somebody stores trials: the last one is no longer ago than a few take."""
    return silent_s <= max(SILENCE_S, PAUSE * usual_s)


# The best so far ----------------------------------------------------------------------------------


def lowest(places: Iterable[Place]) -> Best | None:
    """The configuration with the lowest geometric mean of P99; None where none is measured."""
    found: dict[str, list[float]] = defaultdict(list)
    configurations: dict[str, Configuration] = {}
    for place in places:
        if place.usable and place.p99_ms is not None:
            found[place.configuration.digest].append(place.p99_ms)
            configurations[place.configuration.digest] = place.configuration
    defaults = found.pop(DEFAULT.digest, [])
    if not found:
        return None
    means = {digest: geometric_mean(made) for digest, made in found.items()}
    best = min(means, key=means.__getitem__)
    return Best(
        configuration=configurations[best],
        p99_ms=means[best],
        trials=len(found[best]),
        configurations=len(means),
        by_models=False,
        default_p99_ms=geometric_mean(defaults) if defaults else None,
        default_trials=len(defaults),
    )
