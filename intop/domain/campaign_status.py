"""The progress of a campaign by its store: trials by stage, their time, the best so far."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import pairwise
from statistics import median
from typing import ClassVar, Literal

from intop.domain.across import Across
from intop.domain.activity import Activity
from intop.domain.configuration import DEFAULT, Configuration
from intop.domain.histogram import Statistic
from intop.domain.soak import Soak
from intop.domain.stats import geometric_mean
from intop.domain.sweep import Sweep
from intop.domain.trial import USABLE, Status, TrialRole
from intop.domain.verdict import Verdict

State = Literal["done", "begun", "to come", "left out"]
Bound = Literal["", "about", "at least", "at most"]
"""The relation of a number to the final one, which is unknown before the measurement."""

PAUSE = 10.0
"""A gap between trials of more times their usual length is no part of the pace: models were
fitted, or nobody was at work."""


@dataclass(frozen=True, kw_only=True)
class Place:
    """One place of a stage's plan, with what is stored of its last attempt."""

    stage: str
    index: int
    role: TrialRole
    configuration: Configuration
    attempts: int = 0
    """All attempts."""
    disturbed: int = 0
    """Disturbed attempts."""
    status: Status | None = None
    """None before there is an attempt, as are the empty values of all below."""
    started_at: str = ""
    """UTC in ISO 8601."""
    seconds: float = 0.0
    judged_ms: float | None = None
    replica: str = ""
    series: int = 1
    """The series of the plan: a stage that is measured again has a further one."""

    @property
    def usable(self) -> bool:
        """Whether the measurement says something about the configuration."""
        return self.status in USABLE and self.judged_ms is not None

    @property
    def ended(self) -> datetime | None:
        """The end of the last attempt; None before there is one."""
        if not self.started_at:
            return None
        return datetime.fromisoformat(self.started_at) + timedelta(seconds=self.seconds)

    def is_done(self, retries: int) -> bool:
        """Whether it has its trial, which is not measured again."""
        if self.status is None:
            return False
        return self.status != "disturbed" or self.attempts > retries


@dataclass(frozen=True, kw_only=True)
class StageStatus:
    """One stage. `train` and `search` only compute, and have no trials."""

    ALSO_IN_JSON: ClassVar = ("left",)

    name: str
    state: State
    trials: int = 0
    """The planned trials, and those that the budget adds to the plan."""
    bound: Bound = ""
    """The relation of `trials` to the final number."""
    done: int = 0
    disturbed: int = 0
    """Disturbed attempts."""
    failed: int = 0
    """Failed trials."""
    left_s: float | None = None
    """The likely seconds of what is left; None where they are unknown."""
    most_s: float | None = None
    """The seconds that it hardly exceeds; None where they are unknown."""

    @property
    def is_ahead(self) -> bool:
        """Whether anything of it is still to be done."""
        return self.state in ("begun", "to come")

    @property
    def left(self) -> int:
        """The trials that are still to be measured."""
        return max(0, self.trials - self.done) if self.is_ahead else 0


def total_s(stages: Iterable[StageStatus]) -> tuple[float | None, float | None]:
    """Return the likely seconds of all that is left, and the most; None where unknown."""
    ahead = [stage for stage in stages if stage.is_ahead]
    return _sum([s.left_s for s in ahead]), _sum([s.most_s for s in ahead])


def _sum(parts: Sequence[float | None]) -> float | None:
    known = [part for part in parts if part is not None]
    return sum(known) if len(known) == len(parts) else None


@dataclass(frozen=True, kw_only=True)
class Best:
    """The best configuration so far, by geometric means of the judged latency."""

    configuration: Configuration
    judged_ms: float
    trials: int
    configurations: int
    """The number of measured configurations beside the default."""
    by_models: bool
    """Whether models predict it by all trials so far. Else it is the lowest of all, which flatters
    itself."""
    default_ms: float | None
    default_trials: int
    judged_by: Statistic = "P99"


@dataclass(frozen=True, kw_only=True)
class SubjectStatus:
    """One architecture under one workload."""

    ALSO_IN_JSON: ClassVar = ("left_s",)

    arch: str
    workload: str
    stages: tuple[StageStatus, ...]
    trial_s: float | None
    """The seconds of a trial, all replicas together."""
    measured_in: int | None
    """The campaign whose trials say so. None: the file's durations and `run/effort.py` do."""
    best: Best | None
    verdict: Verdict | None
    awaits_pilot: bool = False
    """Whether `trial_s` is a guess at what a pilot will choose."""
    sweeps: tuple[Sweep, ...] = ()
    """The sweeps with the verdict's winner."""
    soak: Soak | None = None
    """The last soak that has ended."""
    across: Across | None = None
    """The winner under all workloads."""

    @property
    def title(self) -> str:
        """The title, such as `x86 slt`."""
        return f"{self.arch} {self.workload}"

    @property
    def left_s(self) -> float | None:
        """The likely seconds of all that is left; None where they are unknown."""
        return total_s(self.stages)[0]

    @property
    def most_s(self) -> float | None:
        """The seconds that it hardly exceeds; None where they are unknown."""
        return total_s(self.stages)[1]

    @property
    def current(self) -> StageStatus | None:
        """The stage that is under way, or the next one; None where all are done."""
        return next((s for s in self.stages if s.state in ("begun", "to come")), None)


@dataclass(frozen=True, kw_only=True)
class CampaignStatus:
    """A campaign of a study. Times are UTC in ISO 8601."""

    ALSO_IN_JSON: ClassVar = ("is_at_work", "left_s")

    study: str
    store: str
    campaign: int | None
    """None before there is one."""
    started_at: str = ""
    finished_at: str | None = None
    subjects: tuple[SubjectStatus, ...] = ()
    stored_at: str = ""
    """The time at which the last trial ended, or the last result was stored."""
    silent_s: float | None = None
    """Seconds since then."""
    trials: int = 0
    """All measured trials, with every attempt."""
    activities: Mapping[str, Activity] = field(default_factory=dict)
    """The processes that work on it, or ended without a word, by such as `x86 slt`."""

    @property
    def is_at_work(self) -> bool:
        """Whether a process works on it."""
        return any(activity.is_alive for activity in self.activities.values())

    @property
    def left_s(self) -> float | None:
        """The likely seconds of all that is left; None where they are unknown."""
        return _sum([subject.left_s for subject in self.subjects])


# Time ---------------------------------------------------------------------------------------------


def pace_s(places: Iterable[Place]) -> float | None:
    """Return the seconds from one trial to the next, on all replicas together, without pauses.

    It is the mean over the last trials, which are of the present duration; None for fewer than
    four.
    """
    last = sorted((p.started_at, p.seconds) for p in places if p.started_at)[-60:]
    if len(last) < 4:
        return None
    pause = PAUSE * max(1.0, median(seconds for _, seconds in last))
    starts = [datetime.fromisoformat(started) for started, _ in last]
    gaps = [(after - before).total_seconds() for before, after in pairwise(starts)]
    sound = [gap for gap in gaps if gap <= pause]
    return sum(sound) / len(sound) if len(sound) >= 3 else None


# The best so far ----------------------------------------------------------------------------------


def lowest(places: Iterable[Place]) -> Best | None:
    """Return the configuration with the lowest geometric mean, if any is measured."""
    latencies: dict[str, list[float]] = defaultdict(list)
    configurations: dict[str, Configuration] = {}
    for place in places:
        if place.usable and place.judged_ms is not None:
            latencies[place.configuration.digest].append(place.judged_ms)
            configurations[place.configuration.digest] = place.configuration
    defaults = latencies.pop(DEFAULT.digest, [])
    if not latencies:
        return None
    means = {digest: geometric_mean(judged_ms) for digest, judged_ms in latencies.items()}
    best = min(means, key=means.__getitem__)
    return Best(
        configuration=configurations[best],
        judged_ms=means[best],
        trials=len(latencies[best]),
        configurations=len(means),
        by_models=False,
        default_ms=geometric_mean(defaults) if defaults else None,
        default_trials=len(defaults),
    )
