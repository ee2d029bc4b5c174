"""verify: what the candidates are worth, measured against the default."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from intop.domain.baseline import HOST
from intop.domain.configuration import DEFAULT, Configuration
from intop.domain.looks import Look, looks
from intop.domain.results import Search, Verdict
from intop.domain.sides import Latencies, latencies, side_by_side
from intop.domain.speedups import SpeedUps, speed_ups
from intop.domain.stats import geometric_mean, paired_ratio
from intop.domain.trial import PlannedTrial, Stage, Trial
from intop.errors import IntopError, UsageError
from intop.pipeline import steps
from intop.pipeline.baselines import chosen_baselines, fit, try_out
from intop.pipeline.bench import Bench
from intop.pipeline.blocks import (
    Arms,
    blocks,
    first_problem,
    judged_pairs,
    p99_by_round,
    paired,
    planned_arms,
    planned_rounds,
    usable_by_round,
)
from intop.pipeline.context import Task
from intop.pipeline.measuring import measure_plan
from intop.pipeline.pilot import timed
from intop.pipeline.sampling import best_measured, collected_trials

MEASURED_BEST = "best measured"


def verify(task: Task, against: str = HOST) -> Verdict:
    """Pick the best finalist in interleaved rounds, then judge it against the default.

    The judging pairs are fresh: a finalist that was only lucky when it was picked has to be
    lucky again. The rounds of picking also say what each tree model's own winner is worth.
    `against` names the baseline that stands for the default, if not the host's own values do.
    Raises UsageError for one that is unknown, or not the one that the campaign's judgement was
    planned with.
    """
    budget = task.context.study.budget
    _check_against(task, against)
    finalists = _finalists(task, budget.finalists)
    task = timed(task)

    def picking(_: object) -> list[PlannedTrial]:
        return blocks(task, "pick", {**finalists, HOST: DEFAULT}, budget.pick_rounds)

    picked = measure_plan(task, "pick", picking)
    origin, configuration = _best(task, picked)
    verdict = judge(task, origin, configuration, against)
    verdict = replace(verdict, models=_speed_ups(task, picked))
    task.store.put(task.subject, verdict)
    return verdict


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where a judgement stands: its stage and series, and the first place of that in the plan.

    `rounds` are measured, looked at up to `looks` times. In each of them the arms `beside` the
    two that are judged are measured, too. All of it `on` one bench that is open already, if any.
    """

    stage: Stage
    rounds: int
    looks: int
    series: int = 1
    start: int = 0
    beside: Arms = field(default_factory=dict)
    on: Bench | None = None


def judge(
    task: Task,
    origin: str,
    configuration: Configuration,
    against: str = HOST,
    place: Place | None = None,
) -> Verdict:
    """Measure a configuration against the default in fresh pairs, until it is clear.

    Whether it is, is asked at the looks that the budget allows; `origin` names the configuration.
    It is the campaign's judgement unless there is another `place`.
    Raises IntopError when fewer than two pairs could be measured.
    """
    budget = task.context.study.budget
    place = place or Place(stage="judge", rounds=budget.judge_pairs, looks=budget.judge_looks)
    planned = [p for p in task.store.plan(task.subject, place.stage) if p.index >= place.start]
    rounds = planned_rounds(planned) or place.rounds
    schedule = looks(rounds, place.looks, level=budget.level)

    def plan(ready: Bench) -> list[PlannedTrial]:
        arms = {origin: configuration, **place.beside, against: _default(ready, against)}
        return blocks(task, place.stage, arms, rounds, series=place.series, start=place.start)

    def clear(trials: Sequence[Trial]) -> bool:
        default, _ = _pairs(trials, origin, against)
        if len(default) < 2:
            return False
        found = _verdict(task, origin, configuration, trials, against, schedule)
        return found.outcome in ("gain", "worse")

    # Right at the looks only: what is measured beyond one, is never left out again.
    asked = [(2 + len(place.beside)) * look.rounds for look in schedule]
    judged = measure_plan(
        task,
        place.stage,
        plan,
        start=place.start,
        on=place.on,
        looks=lambda _: asked,
        enough=clear,
    )
    verdict = _verdict(task, origin, configuration, judged, against, schedule)
    if verdict.stopped_early:
        task.context.progress.say(
            f"{task.title}: {place.stage}: clear after {verdict.rounds} of {rounds} rounds"
        )
    return verdict


def judged_latencies(task: Task) -> Latencies | None:
    """Those of the pairs that the campaign's verdict rests on, None before there is one."""
    verdict = task.store.get(task.subject, Verdict)
    if verdict is None:
        return None
    return latencies(*judged_pairs(task.trials("judge"), verdict), against=verdict.against)


def _check_against(task: Task, against: str) -> None:
    """Raises UsageError for a baseline that there is none of, or that comes too late."""
    if against != HOST:
        chosen_baselines(task.context.study, (against,))
    planned = planned_arms(task.store.plan(task.subject, "judge"))
    if planned and against not in planned:
        known = (HOST, *task.context.study.baselines)
        before = next((name for name in planned if name in known), "another default")
        again = "intop verify" if before == HOST else f"intop verify --default {before}"
        beside = "" if against == HOST else f" {against} --default {against}"
        raise UsageError(
            f"{task.title}: this campaign's verdict was planned against {before}, not {against}. "
            f"Go on with: {again}\n"
            f"Or lay the tuned configuration beside {against} with: intop contest{beside}"
        )


def _default(ready: Bench, against: str) -> Configuration:
    """What the default's arm applies."""
    if against == HOST:
        return DEFAULT
    task = ready.task
    (baseline,) = chosen_baselines(task.context.study, (against,))
    try_out(ready, (baseline,))
    found = fit(task, baseline)
    if found.configuration.is_default:
        task.context.progress.say(
            f"{task.title}: {against} changes nothing on this host, so the verdict is against "
            f"the host's own values"
        )
    return found.configuration


def _finalists(task: Task, count: int) -> dict[str, Configuration]:
    """By arm: promising candidates, the best measured one, and each tree model's own winner.

    `count` is how many there are without the winners. The lowest of single trials would be the
    luckiest, so the best is what is believed to be, given how noisy trials are, among those that
    never failed. A configuration has one arm only, the first that it would have.
    """
    search = task.store.get(task.subject, Search)
    if search is None or not search.candidates:
        raise steps.missing(task, "no candidates yet", "search")
    best = best_measured(task, collected_trials(task))
    predicted = [c.configuration for c in search.candidates]
    room = count if best is None or count == 1 else count - 1
    named = [(f"candidate {n}", c) for n, c in enumerate(predicted[:room], start=1)]
    if best is not None and room < count:
        named.append((MEASURED_BEST, best.configuration))
    named += [(winner.model, winner.configuration) for winner in search.winners]
    finalists: dict[str, Configuration] = {}
    for name, configuration in named:
        if configuration not in finalists.values():
            finalists[name] = configuration
    return finalists


def _speed_ups(task: Task, picked: Sequence[Trial]) -> SpeedUps | None:
    """What the models' own winners are worth; None where none of them was measured."""
    search = task.store.get(task.subject, Search)
    planned = planned_arms([t.planned for t in picked]).items()
    measured = {configuration.digest: arm for arm, configuration in planned}
    arms = {
        winner.model: measured[winner.configuration.digest]
        for winner in (search.winners if search else ())
        if winner.configuration.digest in measured
    }
    if not arms:
        return None
    return speed_ups(
        arms,
        p99_by_round(picked),
        Counter(t.planned.arm for t in picked if t.status == "failed"),
        default=HOST,
        level=task.context.study.budget.level,
    )


def _best(task: Task, picked: list[Trial]) -> tuple[str, Configuration]:
    """The finalist with the lowest geometric mean of P99, among those that never failed.

    A disturbed trial says nothing about its finalist; one that is left with none is out, too.
    """
    trials: dict[str, list[Trial]] = defaultdict(list)
    for trial in picked:
        if not trial.configuration.is_default:
            trials[trial.planned.arm].append(trial)
    sound = {
        name: usable
        for name, made in trials.items()
        if (usable := [t for t in made if t.usable]) and all(t.status != "failed" for t in made)
    }
    if not sound:
        raise IntopError(
            f"{task.title}: every finalist failed, or was disturbed in all its trials: "
            f"{first_problem(picked)}"
        )
    name = min(sound, key=lambda n: geometric_mean([t.p99_ms for t in sound[n]]))
    return name, sound[name][0].configuration


def _verdict(
    task: Task,
    origin: str,
    configuration: Configuration,
    judged: Sequence[Trial],
    against: str,
    schedule: Sequence[Look],
) -> Verdict:
    """What the trials of the rounds so far say, at the level of the look that they belong to."""
    default, tuned = _pairs(judged, origin, against)
    if len(default) < 2:
        raise IntopError(
            f"{task.title}: only {len(default)} pairs could be measured, a verdict needs two: "
            f"{first_problem(judged)}"
        )
    rounds = planned_rounds([t.planned for t in judged])
    look = next(look for look in schedule if rounds <= look.rounds)
    before, after = ([t.p99_ms for t in arm] for arm in (default, tuned))
    interval = paired_ratio(before, after, level=look.level)
    return Verdict(
        configuration=configuration,
        origin=origin,
        default_p99_ms=geometric_mean(before),
        tuned_p99_ms=geometric_mean(after),
        ratio=interval.ratio,
        ratio_low=interval.low,
        ratio_high=interval.high,
        level=task.context.study.budget.level,
        pairs=len(default),
        failures=sum(t.status == "failed" and t.planned.arm == origin for t in judged),
        against="" if against == HOST else against,
        rounds=rounds,
        planned_rounds=schedule[-1].rounds,
        looks=len(schedule),
        sides=side_by_side(default, tuned, level=look.level),
    )


def _pairs(judged: Sequence[Trial], origin: str, against: str) -> tuple[list[Trial], list[Trial]]:
    """The usable trials of the default and of the tuned arm, in the rounds that both have."""
    arms = usable_by_round(judged)
    return paired(arms.get(against, {}), arms.get(origin, {}))
