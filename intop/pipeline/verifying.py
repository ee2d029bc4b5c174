"""verify: what the candidates are worth, measured against the default."""

from collections import defaultdict

from intop.domain.baseline import HOST
from intop.domain.configuration import DEFAULT, Configuration
from intop.domain.results import Search, Verdict
from intop.domain.stats import geometric_mean, paired_ratio
from intop.domain.trial import PlannedTrial, Trial
from intop.errors import IntopError, ResultMissingError, UsageError
from intop.pipeline.baselines import chosen_baselines, fit, try_out
from intop.pipeline.bench import Bench
from intop.pipeline.blocks import (
    blocks,
    first_problem,
    p99_by_round,
    paired,
    planned_sides,
)
from intop.pipeline.context import Task
from intop.pipeline.measuring import measure_plan
from intop.pipeline.sampling import collected

MEASURED_BEST = "best measured"


def verify(task: Task, against: str = HOST) -> Verdict:
    """Pick the best finalist in interleaved rounds, then judge it against the default.

    The judging pairs are fresh: a finalist that was only lucky when it was picked has to be
    lucky again. `against` names the baseline that stands for the default, if not the host's own
    values do. Raises UsageError for one that is unknown, or not the one that the campaign's
    judgement was planned with.
    """
    budget = task.context.study.budget
    _check_against(task, against)
    finalists = _finalists(task, budget.finalists)

    def picking(_: object) -> list[PlannedTrial]:
        return blocks(task, "pick", {**finalists, HOST: DEFAULT}, budget.pick_rounds)

    picked = measure_plan(task, "pick", picking)
    origin, configuration = _best(task, picked)

    def judging(ready: Bench) -> list[PlannedTrial]:
        sides = {origin: configuration, against: _default(ready, against)}
        return blocks(task, "judge", sides, budget.judge_pairs)

    judged = measure_plan(task, "judge", judging)
    verdict = _verdict(task, origin, configuration, judged, against)
    task.store.put(task.subject, verdict)
    return verdict


def _check_against(task: Task, against: str) -> None:
    """Raises UsageError for a baseline that there is none of, or that comes too late."""
    if against != HOST:
        chosen_baselines(task.context.study, (against,))
    planned = planned_sides(task.store.plan(task.subject, "judge"))
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
    """What the default's side applies."""
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
    """The most promising candidates, and the best configuration that was measured already."""
    search = task.store.get(task.subject, Search)
    if search is None or not search.candidates:
        raise ResultMissingError(
            f"{task.title}: no candidates yet: intop search --arch {task.subject.arch} "
            f"--workload {task.workload.name}"
        )
    designs = [t for t in collected(task) if not t.configuration.is_default]
    best = min(designs, key=lambda t: t.p99_ms, default=None)
    predicted = [c.configuration for c in search.candidates]
    room = count if best is None or count == 1 else count - 1
    finalists = {f"candidate {n}": c for n, c in enumerate(predicted[:room], start=1)}
    if best is not None and room < count and best.configuration not in predicted[:room]:
        finalists[MEASURED_BEST] = best.configuration
    return finalists


def _best(task: Task, picked: list[Trial]) -> tuple[str, Configuration]:
    """The finalist with the lowest geometric mean of P99, among those that never failed."""
    trials: dict[str, list[Trial]] = defaultdict(list)
    for trial in picked:
        if not trial.configuration.is_default:
            trials[trial.planned.side].append(trial)
    sound = {name: made for name, made in trials.items() if all(t.usable for t in made)}
    if not sound:
        raise IntopError(f"{task.title}: every finalist failed: {first_problem(picked)}")
    name = min(sound, key=lambda n: geometric_mean([t.p99_ms for t in sound[n]]))
    return name, sound[name][0].configuration


def _verdict(
    task: Task, origin: str, configuration: Configuration, judged: list[Trial], against: str = HOST
) -> Verdict:
    p99 = p99_by_round(judged)
    before, after = paired(p99.get(against, {}), p99.get(origin, {}))
    if len(before) < 2:
        raise IntopError(
            f"{task.title}: only {len(before)} pairs could be measured, a verdict needs two: "
            f"{first_problem(judged)}"
        )
    level = task.context.study.budget.level
    interval = paired_ratio(before, after, level=level)
    return Verdict(
        configuration=configuration,
        origin=origin,
        default_p99_ms=geometric_mean(before),
        tuned_p99_ms=geometric_mean(after),
        ratio=interval.ratio,
        ratio_low=interval.low,
        ratio_high=interval.high,
        level=level,
        pairs=len(before),
        failures=sum(t.status == "failed" and t.planned.side == origin for t in judged),
        against="" if against == HOST else against,
    )
