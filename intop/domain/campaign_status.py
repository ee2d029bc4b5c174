"""How far a campaign is, by its store: trials by stage, what they take, the best so far."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from statistics import median
from typing import Literal

from intop.domain.ablation import FEWEST_CANDIDATES, NESTED, NESTED_ROUNDS, ablate
from intop.domain.configuration import DEFAULT, Configuration
from intop.domain.looks import looks
from intop.domain.results import Verdict
from intop.domain.stats import geometric_mean
from intop.domain.trial import Stage, Status, TrialRole
from intop.domain.workload import Budget

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

    stage: Stage
    index: int
    role: TrialRole
    configuration: Configuration
    attempts: int = 0
    disturbed: int = 0
    status: Status | None = None
    started_at: str = ""
    seconds: float = 0.0
    p99_ms: float | None = None

    @property
    def usable(self) -> bool:
        """Whether what was measured says something about the configuration."""
        return self.status in ("ok", "overloaded") and self.p99_ms is not None

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
    durations and the constants of `domain/effort.py`. `verdict` stands once there is one.
    """

    arch: str
    workload: str
    stages: tuple[StageStatus, ...]
    trial_s: float | None
    measured_in: int | None
    best: Best | None
    verdict: Verdict | None

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


# What a stage has and will have -------------------------------------------------------------------


def designed(configurations: int, every: int, replicas: int) -> int:
    """Trials of a plan of so many configurations, with the default before and after every few."""
    return replicas + configurations + replicas * (configurations // (every * replicas))


def expected(
    stage: Stage, places: Sequence[Place], budget: Budget, *, replicas: int, winner: int = 0
) -> tuple[int, Bound]:
    """How many trials a stage has in all: those of its plan, and what the budget lets it add.

    `winner` is how many keys the configuration changes that is to be explained, 0 where that is not
    known yet: the budget keeps `keep` at most.
    """
    planned = len(places)
    match stage:
        case "pilot":
            return max(planned, budget.pilot_trials), "at least"
        case "replicas":
            return planned or budget.agree_rounds * replicas, ""
        case "screen":
            trials = planned or designed(budget.screen_trials, budget.sentinel_every, replicas)
            return trials, "at most" if budget.screen_stable else ""
        case "collect":
            return _collected(places, budget, replicas), ""
        case "refine":
            return _refined(places, budget, replicas), "at most"
        case "pick":
            # A winner of a model may be a finalist already.
            return planned or budget.pick_arms * budget.pick_rounds, "" if planned else "at most"
        case "judge":
            return planned or 2 * budget.judge_pairs, "at most" if budget.judge_looks > 1 else ""
        case "explain":
            return max(planned, _explained(budget, winner or budget.keep)), "about"
        case _:
            return planned, ""


def likely_and_most(
    stage: Stage, places: Sequence[Place], budget: Budget, trials: int, winner: int = 0
) -> tuple[int, int]:
    """Of a stage that is expected to have so many `trials`: how many likely, and how many at most.

    A judgement ends at a look where it is clear, which a gain worth having mostly is at the first.
    How many trials an explanation takes depends on what it finds.
    """
    if stage == "judge" and not places:
        first = looks(budget.judge_pairs, budget.judge_looks, level=budget.level)[0]
        return min(trials, 2 * first.rounds), trials
    if stage == "explain":
        return trials, max(trials, _explained(budget, winner or budget.keep, rest=REST_AT_MOST))
    return trials, trials


def _collected(places: Sequence[Place], budget: Budget, replicas: int) -> int:
    """With the replicates that are to follow, and the default among them."""
    roles = [place.role for place in places]
    design = roles.count("design") or budget.collect_trials
    wanted = budget.replicate_trials
    if wanted is None:
        wanted = 0 if budget.refine_trials else design // 4
    more = max(0, wanted - roles.count("replicate"))
    planned = len(places) or designed(design, budget.sentinel_every, replicas)
    return planned + more + more // budget.sentinel_every


def _refined(places: Sequence[Place], budget: Budget, replicas: int) -> int:
    """With the steps that are to follow, and the default among them."""
    spent = sum(place.role in ("proposal", "replicate") for place in places)
    more = designed(max(0, budget.refine_trials - spent), budget.sentinel_every, replicas)
    return len(places) + more - replicas if places else more


REST, REST_AT_MOST = 1, 4
"""Of what an explanation asks for once the changes are in order: half of the searches that
`tests/domain/test_campaign_status.py` simulates take about REST times what `_explained` says, and
nineteen of twenty no more than REST_AT_MOST times that."""


def _explained(budget: Budget, keys: int, rest: int = REST) -> int:
    """All phases for so many changes: by evidence, nested sets, elimination, giving back and
    interactions, and the rounds that judge the smallest set.
    """
    count = max(2, keys)
    rounds = max(2, budget.explain_rounds)
    names = [str(n) for n in range(count)]
    first = next(ablate(names, rounds=rounds, level=budget.level))
    better = min(count, max(FEWEST_CANDIDATES, -(-count // 2)))
    ranked = len(first.sets) * first.rounds + (2 + 2 * better) * (rounds - first.rounds)
    sizes = sum(size < count for size in NESTED)
    nested = (1 + sizes) * NESTED_ROUNDS if sizes else 0
    # Few changes have little to be eliminated; of many, the nested sets leave a few.
    further = rest * min(85, 25 * (count - 1) - 15)
    return ranked + nested + further + 3 * budget.explain_pairs


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
