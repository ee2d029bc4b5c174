"""compare --over-time: the campaigns of a study, one after the other."""

from dataclasses import replace

from intop.domain.comparison import latency
from intop.domain.selector import selector
from intop.domain.trend import Moment, Trend, trend
from intop.domain.trial import Conditions
from intop.domain.verdict import Verdict
from intop.errors import ResultMissingError
from intop.inspect.chosen_sides import campaigns_of, measured
from intop.run import registry
from intop.run.context import Context, Task
from intop.stages.blocks import judged_pairs


def trends(context: Context, side: str) -> tuple[Trend, ...]:
    """A trend of each architecture and workload that the selector `side` means; "" means all.

    A campaign in which the default was measured less than twice is left out. Raises UsageError for
    what is no selector, ResultMissingError where no campaign has measured it.
    """
    wanted = selector(side) if side else None
    found: dict[tuple[str, str, str], list[Moment]] = {}
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
                found.setdefault(about, []).append(moment)
    if not found:
        raise ResultMissingError(
            f"no campaign of {context.study.name} has measured the default of "
            f"{side or 'anything'} twice: intop status --campaign"
        )
    return tuple(
        trend(study, arch, workload, moments, level=level)
        for (study, arch, workload), moments in found.items()
    )


def _moment(task: Task, conditions: Conditions, level: float) -> Moment | None:
    """What a campaign has of the default and of its winner, None where that is no interval.

    Only the trials of the verdict are decoded: a store may have very many.
    """
    campaign, store = task.subject.campaign, task.store
    verdict = store.get(task.subject, Verdict)
    default, tuned = judged_pairs(task.trials("judge"), verdict) if verdict else ([], [])
    if len(default) >= 2:
        defaults_ms, tuned_ms = ([t.p99_ms for t in side] for side in (default, tuned))
    else:
        places = (p for p in store.places(task.subject) if p.configuration.is_default and p.usable)
        defaults_ms = [
            p.p99_ms for p in places if p.p99_ms and not registry.stage(p.stage).is_apart
        ]
        verdict, tuned_ms = None, []
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
