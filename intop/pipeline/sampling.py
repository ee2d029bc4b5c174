"""screen and collect: where trials come from before there is a model."""

from collections.abc import Sequence
from dataclasses import replace

from intop.domain.agreement import Agreement
from intop.domain.drift import drift
from intop.domain.results import Collected, Ranking
from intop.domain.space import Space
from intop.domain.trial import PlannedTrial, Stage, Trial
from intop.errors import ResultMissingError, UsageError
from intop.learn.design import latin_hypercube
from intop.learn.screening import rank
from intop.pipeline.bench import Bench, stored_probed
from intop.pipeline.context import Task
from intop.pipeline.measuring import measure_plan, with_sentinels
from intop.pipeline.pilot import timed
from intop.pipeline.replicas import replicas_in_use


def screen(task: Task, samples: int | None = None) -> Ranking:
    """Rank all parameters that the cluster offers, and choose the SRP or DRP.

    The ranking rests on trials of configurations that fill the whole space. `samples` overrides
    the budget's number of them.
    """
    budget = task.context.study.budget

    def plan(ready: Bench) -> list[PlannedTrial]:
        count = samples or budget.screen_trials
        design = latin_hypercube(ready.probed.space, count, seed=task.seed("screen"))
        return with_sentinels(design, budget.sentinel_every, replicas_in_use(task))

    _check_samples(task, "screen", samples)
    task = timed(task)
    trials = usable(measure_plan(task, "screen", plan), task)
    space = required_space(task)
    ranking = rank(
        space,
        [t.configuration for t in trials],
        [t.p99_ms for t in trials],
        keep=min(budget.keep, len(space.parameters)),
        seed=task.seed("ranking"),
    )
    ranking = replace(ranking, drift=drift(trials, level=budget.level))
    task.store.put(task.subject, ranking)
    return ranking


def collect(task: Task, samples: int | None = None) -> Collected:
    """Measure configurations that fill the space of the chosen parameters (SDS or DDS).

    Without a screening that is the whole space. `samples` overrides the budget's number.
    """
    budget = task.context.study.budget

    def plan(ready: Bench) -> list[PlannedTrial]:
        ranking = task.store.get(task.subject, Ranking)
        if ranking is None:
            task.context.progress.say(
                f"{task.title}: no screening yet, so all {len(ready.probed.space.parameters)} "
                f"parameters are varied (intop screen finds the ones that matter)"
            )
        space = ready.probed.space.restricted(ranking.chosen) if ranking else ready.probed.space
        count = samples or budget.collect_trials
        design = latin_hypercube(space, count, seed=task.seed("collect"))
        return with_sentinels(design, budget.sentinel_every, replicas_in_use(task))

    _check_samples(task, "collect", samples)
    task = timed(task)
    trials = measure_plan(task, "collect", plan)
    return Collected(
        trials=tuple(trials),
        drift=drift(trials, level=budget.level),
        replicas=task.store.get(task.subject, Agreement),
    )


def collected_space(task: Task) -> Space:
    """The space that the collected configurations fill. Raises ResultMissingError."""
    plan = task.store.plan(task.subject, "collect")
    varied = {key for planned in plan for key in planned.configuration.values}
    if not varied:
        raise ResultMissingError(
            f"{task.title}: nothing is collected yet: {_next(task, 'collect')}"
        )
    return required_space(task).restricted(varied)


def collected(task: Task) -> list[Trial]:
    """The usable collected trials. Raises ResultMissingError while the plan is not carried out."""
    plan = task.store.plan(task.subject, "collect")
    trials = task.trials("collect")
    if not plan or len(trials) < len(plan):
        raise ResultMissingError(
            f"{task.title}: {len(trials)} of {len(plan)} trials are collected: "
            f"{_next(task, 'collect')}"
        )
    return usable(trials, task)


def required_space(task: Task) -> Space:
    """The space that was probed. Raises ResultMissingError before any stage has measured."""
    probed = stored_probed(task)
    if probed is None:
        raise ResultMissingError(f"{task.title}: nothing is measured yet: {_next(task, 'screen')}")
    return probed.space


def usable(trials: Sequence[Trial], task: Task) -> list[Trial]:
    """The trials that say something. Raises ResultMissingError when there is none."""
    good = [t for t in trials if t.usable]
    if not good:
        raise ResultMissingError(f"{task.title}: none of {len(trials)} trials could be measured")
    return good


def _check_samples(task: Task, stage: Stage, samples: int | None) -> None:
    """A plan is made once. Raises UsageError when another size is asked for later."""
    planned = sum(p.role == "design" for p in task.store.plan(task.subject, stage))
    if planned and samples not in (None, planned):
        raise UsageError(
            f"{task.title}: this campaign's {stage} has {planned} configurations already. "
            f"Go on without --samples, or begin another campaign with --new"
        )


def _next(task: Task, stage: str) -> str:
    return f"intop {stage} --arch {task.subject.arch} --workload {task.workload.name}"
