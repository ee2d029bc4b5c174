"""compare --over-time: the campaigns of a study, one after the other."""

from collections.abc import Sequence
from dataclasses import fields, replace
from itertools import pairwise

from intop.domain.baseline import HOST
from intop.domain.comparison import LOAD, contrast, latency
from intop.domain.rounds import paired
from intop.domain.trial import Conditions, SeriesRound
from intop.domain.verdict import Verdict
from intop.errors import ResultMissingError
from intop.report.chosen_sides import campaigns_of, measured, selector
from intop.report.history_result import History, Moment, Step
from intop.run import registry
from intop.run.context import Context, Task


def histories(context: Context, side: str) -> tuple[History, ...]:
    """A history of each architecture and workload that the selector `side` means; "" means all.

    A campaign in which the default was measured less than twice is left out. Raises UsageError for
    what is no selector, ResultMissingError where no campaign has measured it.
    """
    wanted = selector(side) if side else None
    moments: dict[tuple[str, str, str], list[Moment]] = {}
    workloads = {workload.name: workload for workload in context.workloads}
    level = context.study.budget.level
    for campaign in campaigns_of(context, wanted):
        for subject, conditions in measured(context.store, campaign):
            if subject.workload not in workloads or (wanted and not wanted.fits(conditions)):
                continue
            task = Task(
                context=replace(context, campaign=campaign),
                subject=subject,
                workload=workloads[subject.workload],
            )
            if moment := _moment(task, conditions, level):
                about = campaign.study, subject.arch, subject.workload
                moments.setdefault(about, []).append(moment)
    if not moments:
        raise ResultMissingError(
            f"no campaign of {context.study.name} has measured the default of "
            f"{side or 'anything'} twice. Run: intop progress"
        )
    return tuple(
        history(study, arch, workload, moments, level=level)
        for (study, arch, workload), moments in moments.items()
    )


def _moment(task: Task, conditions: Conditions, level: float) -> Moment | None:
    """Return a campaign's default and winner; None where its trials give no interval.

    No trial is decoded, since a store may have very many.
    """
    campaign = task.subject.campaign
    verdict = task.store.get(task.subject, Verdict)
    defaults_ms, tuned_ms = _judged(task, verdict) if verdict else ([], [])
    if len(defaults_ms) < 2:
        verdict, tuned_ms, defaults_ms = None, [], _defaults(task)
    if len(defaults_ms) < 2:
        return None
    return Moment(
        campaign=campaign.id,
        started_at=campaign.started_at,
        conditions=conditions,
        default=latency(defaults_ms, level),
        tuned=latency(tuned_ms, level) if tuned_ms else None,
        verdict=verdict,
    )


def _judged(task: Task, verdict: Verdict) -> tuple[list[float], ...]:
    """The judged latency (ms) of the pairs of a verdict: of the default and of the tuned side."""
    places = {p.index: p for p in task.store.places(task.subject, "judge") if p.usable}
    by_arm: dict[str, dict[SeriesRound, float]] = {}
    for planned in task.store.plan(task.subject, "judge"):
        place = places.get(planned.index)
        is_judged = 0 < (planned.round or 0) <= verdict.rounds
        if place and place.judged_ms and planned.series_round and is_judged:
            by_arm.setdefault(planned.arm, {})[planned.series_round] = place.judged_ms
    return paired(by_arm.get(verdict.against or HOST, {}), by_arm.get(verdict.origin, {}))


def _defaults(task: Task) -> list[float]:
    """The judged latency (ms) of all usable trials of the default."""
    places = (
        place
        for place in task.store.places(task.subject)
        if place.configuration.is_default and place.usable
    )
    return [p.judged_ms for p in places if p.judged_ms and not registry.stage(p.stage).is_apart]


def history(
    study: str, arch: str, workload: str, moments: Sequence[Moment], *, level: float
) -> History:
    """Return the steps between some moments, which are in the order of their campaigns."""
    return History(
        study=study,
        arch=arch,
        workload=workload,
        level=level,
        moments=tuple(moments),
        steps=tuple(_step(earlier, later, level) for earlier, later in pairwise(moments)),
    )


def _step(earlier: Moment, later: Moment, level: float) -> Step:
    incomparable = earlier.conditions.differences(later.conditions, LOAD)
    if earlier.reference != later.reference:
        incomparable.append(f"default: {earlier.reference} against {later.reference}")
    names = [f.name for f in fields(Conditions) if f.name not in LOAD]
    is_comparable = not incomparable
    return Step(
        incomparable=tuple(incomparable),
        changed=tuple(earlier.conditions.differences(later.conditions, names)),
        default=contrast(earlier.default, later.default, level) if is_comparable else None,
        tuned=(
            contrast(earlier.tuned, later.tuned, level)
            if is_comparable and earlier.tuned and later.tuned
            else None
        ),
    )
