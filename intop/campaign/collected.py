"""The collected trials, as models learn from them."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from intop.domain.parameter import barred
from intop.domain.performance import performance
from intop.domain.probing import Probed
from intop.domain.replicates import Measured, by_configuration
from intop.domain.space import Space
from intop.domain.training import Training
from intop.domain.trial import Conditions, Trial
from intop.errors import IncomparableError, IntopError, ResultMissingError, UsageError
from intop.run import prerequisites
from intop.run.available_space import stored_probed
from intop.run.comparability import COMMON
from intop.run.context import Task

if TYPE_CHECKING:
    from intop.learn.samples import Samples


def samples_of(
    space: Space, measured: Sequence[Measured], *, lent: Sequence[Measured] = ()
) -> "Samples":
    """Return measured configurations as models learn from them, followed by lent ones."""
    from intop.learn.samples import Samples

    rows = [*measured, *lent]
    return Samples(
        variables=space.variables,
        values=space.values([m.configuration for m in rows]),
        measured=tuple(m.judged_ms for m in rows),
        lent=len(lent),
    )


def collected_space(task: Task) -> Space:
    """Return the space that the collected configurations fill.

    Raises ResultMissingError, and UsageError where this intop leaves one of their keys out.
    """
    plan = task.store.plan(task.subject, "collect")
    varied = {key for planned in plan for key in planned.configuration.values}
    if not varied:
        raise prerequisites.missing(task, "nothing is collected yet", "collect")
    probed = required_probed(task)
    if gone := sorted(varied - {p.key for p in probed.space.parameters}):
        raise UsageError(
            f"{task.title}: this campaign has collected what is not tuned any more "
            f"({why_gone(task, gone)}). Put parameters, catalogue and max_risk in [study] back as "
            "they were, or begin anew: intop tune --new"
        )
    return probed.space.restricted(varied)


def collected_trials(task: Task) -> list[Trial]:
    """Return the last attempt at each trial of `collect` and of `refine`, if that has begun.

    Some of them are usable. Raises ResultMissingError while a plan of these is not carried out.
    """
    refined = task.store.plan(task.subject, "refine")
    return stage_trials(task, "collect") + (stage_trials(task, "refine") if refined else [])


def stage_trials(task: Task, stage: str) -> list[Trial]:
    """Return the last attempt at each trial of a stage; some of them are usable.

    Raises ResultMissingError while the plan is not carried out. What is added to a plan later
    belongs to it once it is planned: what is measured so far will do without it.
    """
    plan = task.store.plan(task.subject, stage)
    trials = task.trials(stage)
    if not plan or len(trials) < len(plan):
        progress = f"{len(trials)} of {len(plan)} trials of {stage} are measured"
        raise prerequisites.missing(task, progress if plan else "nothing is collected yet", stage)
    usable(trials, task)
    return trials


def best_measured(task: Task, trials: Sequence[Trial]) -> Measured | None:
    """Return the configuration that is believed to be best, without the default.

    Of those that never failed. The lowest of many that were measured once would be the luckiest.
    None where there is none.
    """
    from intop.learn.active import best_known

    measured = [
        (candidate, tail)
        for candidate, tail in zip(by_configuration(trials), tails_of(trials), strict=True)
        if not candidate.configuration.is_default and not candidate.failures
    ]
    if not measured:
        return None
    space, screened = collected_space(task), screened_trials(task, trials[-1].conditions)
    tails = samples_of(space, [tail for _, tail in measured], lent=tails_of(screened))
    best, _ = measured[best_known(tails, seed=task.seed("best"))]
    return best


def tails_of(trials: Sequence[Trial]) -> list[Measured]:
    """Return the trials by configuration, with what a search goes by in place of the latency."""
    return by_configuration(trials, lambda trial: trial.guide_ms)


def required_space(task: Task) -> Space:
    """Return the space that was probed. Raises ResultMissingError before any stage has measured."""
    return required_probed(task).space


def required_probed(task: Task) -> Probed:
    """Return the space with what is left out of it. Raises as `required_space` does."""
    probed = stored_probed(task)
    if probed is None:
        raise prerequisites.missing(task, "nothing is measured yet", "screen")
    return probed


def why_gone(task: Task, keys: Iterable[str]) -> str:
    """Return why keys of a campaign are not in its space by now, in words."""
    reasons = {**task.context.study.catalogue.former, **required_probed(task).refused}
    return "; ".join(
        f"{key}: {reasons.get(key) or barred(key) or 'not in the catalogue'}"
        for key in sorted(keys)
    )


def usable(trials: Sequence[Trial], task: Task) -> list[Trial]:
    """Return the trials that say something.

    Raises ResultMissingError when there is none, and IncomparableError where the campaign was
    begun with another objective.
    """
    good = [t for t in trials if t.usable]
    if not good:
        raise ResultMissingError(f"{task.title}: none of {len(trials)} trials could be measured")
    then, now = good[0].conditions.judged_by, task.workload.judged_by
    if then != now:
        raise IncomparableError(
            f"{task.title}: this campaign's trials are judged by {then}, and the objective of "
            f"{task.context.study.path} is {now} by now. Put it back, or begin another campaign: "
            "intop tune --new"
        )
    return good


def check_samples(task: Task, stage: str, samples: int | None) -> None:
    """Raises UsageError for another size than planned: a plan is made once."""
    planned = sum(p.role == "design" for p in task.store.plan(task.subject, stage))
    if planned and samples not in (None, planned):
        raise UsageError(
            f"{task.title}: this campaign's {stage} has {planned} configurations already. "
            f"Go on without --samples, or begin another campaign with --new"
        )


def collected_samples(task: Task) -> "tuple[Space, Samples, list[Trial]]":
    """Return what was collected and refined, as models are trained on it, and the trials.

    Raises ResultMissingError, or IntopError where the study's objective is a component, and there
    is none that could be one.
    """
    space, trials = collected_space(task), collected_trials(task)
    measured = by_configuration(trials)
    if task.context.study.objective == "component":
        values = equivalents(task)
        measured = by_configuration(trials, lambda t: values[t.stage, t.planned.index])
    return space, samples_of(space, measured), trials


def learned_samples(
    task: Task, training: Training | None = None
) -> "tuple[Space, Samples, list[Trial]]":
    """Return what models learn from: collected and refined trials, and as lent rows the screening.

    Models are fitted again to what their `training` had, which may be without the screening.

    A screening's trials show what each parameter does on average over all others, of which those
    that were not chosen vary besides. They are left out where they were made under other
    conditions, and where the objective is a component. Raises what `collected_samples` does.
    """
    space, samples, trials = collected_samples(task)
    if task.context.study.objective != "component" and (training is None or training.lent):
        screened = screened_trials(task, trials[-1].conditions)
        samples = samples.lending(samples_of(space, by_configuration(screened)))
    return space, samples, trials


def screened_trials(task: Task, now: Conditions) -> list[Trial]:
    """Return the screening's trials that later models learn from, under the conditions of now.

    Those of the default are left out: later stages have their own.
    """
    return [
        t
        for t in task.trials("screen")
        if t.usable and t.planned.role == "design" and not t.conditions.differences(now, COMMON)
    ]


def equivalents(task: Task) -> dict[tuple[str, int], float]:
    """Return the P99 equivalent of the first component of each usable trial, by its place.

    Raises ResultMissingError, and IntopError where there is no such component.
    """
    from intop.learn.components import p99_equivalent

    trials = usable(collected_trials(task), task)
    try:
        values = p99_equivalent(performance(trials))
    except ValueError as error:
        raise IntopError(
            f'{task.title}: objective = "component" is no objective here: {error}. '
            f'Set objective = "p99" in [study] of {task.context.study.path}'
        ) from error
    return {(t.stage, t.planned.index): v for t, v in zip(trials, values, strict=True)}
