"""compare: two architectures of one campaign, workload by workload."""

from collections.abc import Mapping, Sequence

from intop.domain.comparison import Compared, Comparison, Provenance, Side, compared, side
from intop.domain.probing import Probed
from intop.domain.ranking import Ranking
from intop.domain.search import Search
from intop.domain.training import Training
from intop.domain.trial import Outline, latest
from intop.domain.verdict import Verdict
from intop.domain.workload import Workload
from intop.errors import IncomparableError, ResultMissingError
from intop.run import prerequisites, registry
from intop.run.available_space import stored_probed
from intop.run.context import Context, Task
from intop.stages.blocks import judged_pairs
from intop.store import Subject
from intop.version import __version__


def compare(
    context: Context,
    one: str,
    other: str,
    *,
    force: bool = False,
    attempts: Mapping[Subject, Sequence[Outline]] | None = None,
) -> Compared:
    """All workloads that were asked for and that both sides have measured.

    `attempts` at their trials are read from the store where they are not given.
    Raises ResultMissingError when that is none of them, IncomparableError when what must be
    equal is not, unless by `force`.
    """
    found: list[Comparison] = []
    missing: list[ResultMissingError] = []
    level = context.study.budget.level
    for workload in context.workloads:
        measured: list[tuple[Side, Probed]] = []
        for arch in (one, other):
            try:
                measured.append(_side(context, arch, workload, attempts or {}))
            except ResultMissingError as error:
                missing.append(error)
        if len(measured) == 2:
            (here, offer), (there, other_offer) = measured
            found.append(compared(workload.name, (here, there), (offer, other_offer), level=level))
    lacking = prerequisites.lines(context.study, missing, f"compare {one} {other}")
    if not found:
        raise ResultMissingError("\n".join(lacking))
    differences = [f"{c.workload}: {line}" for c in found for line in c.differences]
    if differences and not force:
        raise IncomparableError(
            f"{one} and {other} were not measured under the same conditions ({one} against "
            f"{other}):\n  " + "\n  ".join(differences) + "\n"
            "Measure both anew under the same ones, in a campaign of their own (--new), or see "
            "the comparison all the same with --force" + _about_pilots(context, found)
        )
    campaign = context.campaign
    return Compared(
        comparisons=tuple(found),
        missing=tuple(lacking),
        provenance=Provenance(
            study=campaign.study,
            campaign=campaign.id,
            seed=campaign.seed,
            started_at=campaign.started_at,
            finished_at=campaign.finished_at,
            tool_version=__version__,
        ),
    )


def _about_pilots(context: Context, found: Sequence[Comparison]) -> str:
    """What to do where the pilots of the two sides chose different durations."""
    longest = {
        c.workload: max(side.conditions.duration_s for side in c.sides)
        for c in found
        if any(line.startswith("duration_s:") for line in c.differences)
        and any(w.name == c.workload and w.duration_s is None for w in context.workloads)
    }
    settings = " and ".join(f"duration_s = {s} in [workload.{name}]" for name, s in longest.items())
    return (
        f"\nEach side's pilot chose a duration of its own; the longer one serves both: set "
        f"{settings} of {context.study.path}, then measure anew"
        if settings
        else ""
    )


def _side(
    context: Context,
    arch: str,
    workload: Workload,
    known: Mapping[Subject, Sequence[Outline]],
) -> tuple[Side, Probed]:
    subject = Subject(campaign=context.campaign, arch=arch, workload=workload.name)
    task = Task(context=context, subject=subject, workload=workload)
    attempts = known[subject] if subject in known else task.store.outlines(subject)
    trials = [t for t in latest(attempts) if not registry.stage(t.stage).is_apart]
    verdict = task.store.get(subject, Verdict)
    try:
        found = side(
            arch,
            [t for t in trials if t.usable],
            level=context.study.budget.level,
            verdict=verdict,
            judged=_judged(trials, verdict) if verdict else None,
            ranking=task.store.get(subject, Ranking),
            training=task.store.get(subject, Training),
            search=task.store.get(subject, Search),
            attempts=attempts,
        )
    except ValueError as error:
        raise _missing(task, str(error)) from error
    offer = stored_probed(task)
    if offer is None:
        raise _missing(task, "what its host offers is not stored")
    return found, offer


def _judged(trials: Sequence[Outline], verdict: Verdict) -> tuple[list[float], list[float]]:
    """P99 (ms) of the default and of the tuned side of a verdict."""
    default, tuned = judged_pairs(trials, verdict)
    return [t.p99_ms for t in default], [t.p99_ms for t in tuned]


def _missing(task: Task, why: str) -> ResultMissingError:
    return prerequisites.missing(task, f"nothing to compare ({why})", "collect")
