"""screen and collect: where trials come from before there is a model."""

import random
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations

from intop.domain.agreement import Agreement
from intop.domain.configuration import DEFAULT
from intop.domain.drift import drift
from intop.domain.ranks import RankAgreement, is_stable, rank_agreement
from intop.domain.replicates import Measured, by_configuration, noise, variances
from intop.domain.results import Collected, Ranking
from intop.domain.space import Space
from intop.domain.trial import PlannedTrial, Stage, Trial
from intop.domain.workload import WORKLOADS
from intop.errors import ResultMissingError, UsageError
from intop.learn.active import best_known
from intop.learn.allocation import next_batch
from intop.learn.design import latin_hypercube
from intop.learn.samples import Samples
from intop.learn.screening import rank
from intop.pipeline import steps
from intop.pipeline.bench import Bench
from intop.pipeline.context import Context, Task
from intop.pipeline.measuring import measure_plan, with_sentinels
from intop.pipeline.offer import stored_probed
from intop.pipeline.pilot import timed
from intop.pipeline.replicas import replicas_in_use
from intop.store import Subject

LOOKS = 10
"""Parts of a screening, each of which fills the space; at the end of one it may be looked at."""

FIRST_LOOK = 30
"""Configurations before a first look at a screening. Fewer show next to nothing of a hundred
parameters, and what they show changes."""

BATCH = 4
"""Replicates that are decided on together. Fewer find the best one hardly more often."""


def screen(task: Task, samples: int | None = None) -> Ranking:
    """Rank all parameters that the cluster offers, and choose the SRP or DRP.

    The ranking rests on trials of configurations that fill the whole space, and so do those
    before each look. `samples` overrides the budget's number of them. Raises ResultMissingError
    when too few could be measured.
    """
    budget = task.context.study.budget
    rankings: dict[int, Ranking] = {}

    def plan(ready: Bench) -> list[PlannedTrial]:
        count = samples or budget.screen_trials
        space, batch = ready.probed.space, -(-count // LOOKS)
        design = latin_hypercube(space, count, seed=task.seed("screen"), batch=batch)
        return with_sentinels(design, budget.sentinel_every, replicas_in_use(task))

    def ranked(trials: Sequence[Trial]) -> Ranking:
        # By their number: what was measured before a look, is not measured again.
        if len(trials) not in rankings:
            rankings[len(trials)] = _ranking(task, trials)
        return rankings[len(trials)]

    def stable(trials: Sequence[Trial]) -> bool:
        ranked(trials)
        so_far = [rankings[count] for count in sorted(rankings) if count <= len(trials)]
        return is_stable(so_far, budget.screen_stable)

    _check_samples(task, "screen", samples)
    task = timed(task)
    trials = measure_plan(
        task, "screen", plan, looks=_looks if budget.screen_stable else lambda _: (), enough=stable
    )
    saved = len(task.store.plan(task.subject, "screen")) - len(trials)
    if saved:
        task.context.progress.say(
            f"{task.title}: screen: the choice is stable, so {saved} trials need not be measured"
        )
    ranking = replace(ranked(trials), drift=drift(trials, level=budget.level), saved=saved)
    task.store.put(task.subject, ranking)
    return ranking


def _looks(plan: Sequence[PlannedTrial]) -> list[int]:
    """After how many places of a screening's plan it is looked at."""
    ends = [place for place, p in enumerate(plan, start=1) if p.role == "design"]
    batch = max(1, -(-len(ends) // LOOKS))
    return [ends[n - 1] for n in range(batch, len(ends), batch) if n >= FIRST_LOOK]


def _ranking(task: Task, trials: Sequence[Trial]) -> Ranking:
    """What the trials so far say of all parameters. Raises ResultMissingError for too few."""
    space = required_space(task)
    samples = samples_of(space, by_configuration(usable(trials, task)))
    keep = min(task.context.study.budget.keep, len(space.parameters))
    try:
        return rank(samples, keep=keep, seed=task.seed("ranking"))
    except ValueError as error:
        raise ResultMissingError(
            f"{task.title}: {len(trials)} trials are no screening: {error}. Measure more of them: "
            f"intop screen --new --samples 100 --arch {task.subject.arch} "
            f"--workload {task.workload.name}"
        ) from error


def workloads_agree(context: Context) -> dict[str, RankAgreement]:
    """The rankings of two workloads held against each other, for each architecture with both."""
    found: dict[str, RankAgreement] = {}
    for arch in context.archs:
        rankings: dict[str, Ranking] = {}
        for workload in WORKLOADS:
            subject = Subject(campaign=context.campaign, arch=arch, workload=workload)
            if ranking := context.store.get(subject, Ranking):
                rankings[workload] = ranking
        for one, other in combinations(rankings, 2):
            names = (f"{arch} {one}", f"{arch} {other}")
            found[" and ".join(names)] = rank_agreement(names, rankings[one], rankings[other])
    return found


def collect(task: Task, samples: int | None = None) -> Collected:
    """Measure configurations that fill the space of the chosen parameters (SDS or DDS).

    Without a screening that is the whole space. `samples` overrides the budget's number. When all
    of them are measured, replicates follow in batches, each allotted by all trials before it and
    added to the plan.
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
    trials = measure_plan(task, "collect", plan, more=partial(_replicates, task))
    measured = by_configuration(trials)
    return Collected(
        trials=tuple(trials),
        replicates=sum(t.planned.role == "replicate" for t in trials),
        drift=drift(trials, level=budget.level),
        noise=noise([m for m in measured if not m.configuration.is_default], level=budget.level),
        default_noise=noise(
            [m for m in measured if m.configuration.is_default], level=budget.level
        ),
        replicas=task.store.get(task.subject, Agreement),
    )


def _replicates(task: Task, trials: Sequence[Trial]) -> list[PlannedTrial]:
    """The next batch of replicates, with its sentinels; none when the budget is spent.

    It goes by these trials alone, so that a stage that was killed goes on as it would have. One
    that failed is no finalist, so it gets none. The default has its sentinels, and they say
    nothing of the others' noise: where it always meets time-outs, it scatters less. Within a
    batch each configuration stands once, in random order: its replicates are spread over time.
    """
    budget = task.context.study.budget
    plan = task.store.plan(task.subject, "collect")
    roles = [p.role for p in plan]
    done, wanted = roles.count("replicate"), budget.replicate_trials
    if wanted is None:
        # A refinement has replicates of its own, and knows more when it allots them.
        wanted = 0 if budget.refine_trials else roles.count("design") // 4
    measured = [m for m in by_configuration(trials) if not m.configuration.is_default]
    sound = [
        (m, variance)
        for m, variance in zip(measured, variances(measured), strict=True)
        if not m.failures
    ]
    if done >= wanted or not sound:
        return []
    chosen = next_batch(
        [m.mean_log for m, _ in sound],
        [variance for _, variance in sound],
        [len(m.p99_ms) for m, _ in sound],
        min(BATCH, wanted - done),
    )
    random.Random(task.seed("replicates", len(plan))).shuffle(chosen)
    batch: list[PlannedTrial] = []
    for number, which in enumerate(chosen, start=done + 1):
        configuration = sound[which][0].configuration
        place = len(plan) + len(batch)
        batch.append(PlannedTrial(index=place, role="replicate", configuration=configuration))
        if number % budget.sentinel_every == 0:
            batch.append(PlannedTrial(index=place + 1, role="sentinel", configuration=DEFAULT))
    return batch


def samples_of(space: Space, measured: Sequence[Measured]) -> Samples:
    """Measured configurations as models learn from them."""
    return Samples(
        variables=space.variables,
        values=space.values([m.configuration for m in measured]),
        measured=tuple(m.p99_ms for m in measured),
    )


def collected_space(task: Task) -> Space:
    """The space that the collected configurations fill. Raises ResultMissingError."""
    plan = task.store.plan(task.subject, "collect")
    varied = {key for planned in plan for key in planned.configuration.values}
    if not varied:
        raise steps.missing(task, "nothing is collected yet", "collect")
    return required_space(task).restricted(varied)


def collected_trials(task: Task) -> list[Trial]:
    """The last attempt at each trial of `collect` and of `refine`, if that has begun.

    Some of them are usable. Raises ResultMissingError while a plan of these is not carried out.
    """
    refined = task.store.plan(task.subject, "refine")
    return stage_trials(task, "collect") + (stage_trials(task, "refine") if refined else [])


def stage_trials(task: Task, stage: Stage) -> list[Trial]:
    """The last attempt at each trial of a stage; some of them are usable.

    Raises ResultMissingError while the plan is not carried out. What is added to a plan later
    belongs to it once it is planned: what is measured so far will do without it.
    """
    plan = task.store.plan(task.subject, stage)
    trials = task.trials(stage)
    if not plan or len(trials) < len(plan):
        made = f"{len(trials)} of {len(plan)} trials of {stage} are measured"
        raise steps.missing(task, made if plan else "nothing is collected yet", stage)
    usable(trials, task)
    return trials


def best_measured(task: Task, trials: Sequence[Trial]) -> Measured | None:
    """The configuration that is believed to have the shortest tail, without the default.

    Of those that never failed. The lowest of many that were measured once would be the luckiest.
    None where there is none.
    """
    measured = [
        (one, tail)
        for one, tail in zip(by_configuration(trials), tails_of(trials), strict=True)
        if not one.configuration.is_default and not one.failures
    ]
    if not measured:
        return None
    tails = samples_of(collected_space(task), [tail for _, tail in measured])
    best, _ = measured[best_known(tails, seed=task.seed("best"))]
    return best


def tails_of(trials: Sequence[Trial]) -> list[Measured]:
    """The trials by configuration, as `by_configuration` has them, with tails in place of P99."""
    return by_configuration(trials, lambda trial: trial.tail_ms)


def required_space(task: Task) -> Space:
    """The space that was probed. Raises ResultMissingError before any stage has measured."""
    probed = stored_probed(task)
    if probed is None:
        raise steps.missing(task, "nothing is measured yet", "screen")
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
