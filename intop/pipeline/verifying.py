"""verify: what the candidates are worth, measured against the default."""

import random
from collections import defaultdict

from intop.domain.configuration import DEFAULT, Configuration
from intop.domain.results import Search, Verdict
from intop.domain.stats import geometric_mean, paired_ratio
from intop.domain.trial import PlannedTrial, Trial
from intop.errors import IntopError, ResultMissingError
from intop.pipeline.context import Task
from intop.pipeline.measuring import measure_plan
from intop.pipeline.sampling import collected

MEASURED_BEST = "best measured"


def verify(task: Task) -> Verdict:
    """Pick the best finalist in interleaved rounds, then judge it against the default.

    The judging pairs are fresh: a finalist that was only lucky when it was picked has to be
    lucky again. Within a block the order is random, so that drift hits both sides alike.
    """
    budget = task.context.study.budget
    finalists = _finalists(task, budget.finalists)

    def picking(_: object) -> list[PlannedTrial]:
        return _blocks(task, "pick", [*finalists, ("default", DEFAULT)], budget.pick_rounds)

    picked = measure_plan(task, "pick", picking)
    origin, configuration = _best(task, picked)

    def judging(_: object) -> list[PlannedTrial]:
        sides = [(origin, configuration), ("default", DEFAULT)]
        return _blocks(task, "judge", sides, budget.judge_pairs)

    verdict = _verdict(task, origin, configuration, measure_plan(task, "judge", judging))
    task.store.put(task.subject, verdict)
    return verdict


def _finalists(task: Task, count: int) -> list[tuple[str, Configuration]]:
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
    finalists = [(f"candidate {n}", c) for n, c in enumerate(predicted[:room], start=1)]
    if best is not None and room < count and best.configuration not in predicted[:room]:
        finalists.append((MEASURED_BEST, best.configuration))
    return finalists


def _blocks(
    task: Task, stage: str, sides: list[tuple[str, Configuration]], rounds: int
) -> list[PlannedTrial]:
    """Every side once a round, in an order of its own; a round's sides get the same load."""
    rng = random.Random(task.seed(stage, "order"))
    plan: list[PlannedTrial] = []
    for number in range(1, rounds + 1):
        for origin, configuration in rng.sample(sides, len(sides)):
            plan.append(
                PlannedTrial(
                    index=len(plan),
                    role="sentinel" if configuration.is_default else "finalist",
                    configuration=configuration,
                    label=f"{number}: {origin}",
                )
            )
    return plan


def _round(trial: Trial) -> str:
    return trial.planned.label.partition(": ")[0]


def _best(task: Task, picked: list[Trial]) -> tuple[str, Configuration]:
    """The finalist with the lowest geometric mean of P99, among those that never failed."""
    trials: dict[str, list[Trial]] = defaultdict(list)
    for trial in picked:
        if not trial.configuration.is_default:
            trials[trial.planned.label.partition(": ")[2]].append(trial)
    sound = {name: made for name, made in trials.items() if all(t.usable for t in made)}
    if not sound:
        raise IntopError(f"{task.title}: every finalist failed: {_first_problem(picked)}")
    name = min(sound, key=lambda n: geometric_mean([t.p99_ms for t in sound[n]]))
    return name, sound[name][0].configuration


def _first_problem(trials: list[Trial]) -> str:
    return next((t.detail for t in trials if not t.usable), "")


def judged_pairs(judged: list[Trial]) -> tuple[list[float], list[float]]:
    """P99 (ms) of the default and of the tuned side, round by round, where both are usable."""
    default: dict[str, float] = {}
    tuned: dict[str, float] = {}
    for trial in judged:
        if trial.usable:
            side = default if trial.configuration.is_default else tuned
            side[_round(trial)] = trial.p99_ms
    pairs = [number for number in default if number in tuned]
    return [default[n] for n in pairs], [tuned[n] for n in pairs]


def _verdict(task: Task, origin: str, configuration: Configuration, judged: list[Trial]) -> Verdict:
    before, after = judged_pairs(judged)
    if len(before) < 2:
        raise IntopError(
            f"{task.title}: only {len(before)} pairs could be measured, a verdict needs two: "
            f"{_first_problem(judged)}"
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
        failures=sum(t.status == "failed" and not t.configuration.is_default for t in judged),
    )
