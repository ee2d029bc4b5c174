"""compare: two sides of a store, workload by workload."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace

from intop.domain.comparison import Compared, Comparison, Provenance, Side, compared, side
from intop.domain.probing import Probed
from intop.domain.ranking import Ranking
from intop.domain.search import Search
from intop.domain.selector import selector
from intop.domain.training import Training
from intop.domain.trial import Outline, latest
from intop.domain.verdict import Verdict
from intop.domain.workload import Workload
from intop.errors import IncomparableError, ResultMissingError, UsageError
from intop.inspect.chosen_sides import ChosenSide, chosen_side
from intop.run import prerequisites, registry
from intop.run.available_space import stored_probed
from intop.run.context import Context, Task
from intop.stages.blocks import judged_pairs
from intop.store import Campaign, Subject
from intop.version import __version__


def compare(
    context: Context,
    first_name: str,
    second_name: str,
    *,
    force: bool = False,
    attempts: Mapping[Subject, Sequence[Outline]] | None = None,
) -> Compared:
    """All workloads that were asked for and that both sides have measured.

    The names are selectors (`domain.selector`). `attempts` at their trials are read from
    the store where they are not given. Raises UsageError for what means no side, or the same one
    twice, ResultMissingError when no workload was measured on both, and IncomparableError when what
    must be equal is not, unless by `force`.
    """
    selectors = selector(first_name), selector(second_name)
    apart = set(selectors[0].wanted) ^ set(selectors[1].wanted)
    chosen_by = tuple(sorted({name for name, _ in apart}))
    here, there = (chosen_side(context, text) for text in selectors)
    if (here.campaign.id, here.arch) == (there.campaign.id, there.arch):
        raise UsageError(
            f"{first_name} and {second_name} are the same: {here.arch} in campaign "
            f"{here.campaign.id}. Name two sides, such as: intop compare x86 arm"
        )
    comparisons: list[Comparison] = []
    missing: list[ResultMissingError] = []
    level = context.study.budget.level
    for workload in context.workloads:
        measured: list[tuple[Side, Probed]] = []
        for chosen in (here, there):
            try:
                measured.append(_side(context, chosen, workload, attempts or {}))
            except ResultMissingError as error:
                missing.append(error)
        if len(measured) == 2:
            (first, offer), (second, other_offer) = measured
            sides, offers = (first, second), (offer, other_offer)
            comparisons.append(
                compared(workload.name, sides, offers, level=level, chosen_by=chosen_by)
            )
    command = shlex.join(["compare", first_name, second_name])
    lacking = prerequisites.lines(context.study, missing, command)
    if not comparisons:
        raise ResultMissingError("\n".join(lacking))
    if not force:
        _check_comparable(context, first_name, second_name, comparisons)
    return Compared(
        comparisons=tuple(comparisons),
        missing=tuple(lacking),
        provenance=(_provenance(here.campaign), _provenance(there.campaign)),
        chosen_by=chosen_by,
    )


def _check_comparable(
    context: Context, first_name: str, second_name: str, comparisons: Sequence[Comparison]
) -> None:
    """Raises IncomparableError with all that must be equal and is not."""
    differences = [f"{c.workload}: {line}" for c in comparisons for line in c.differences]
    if differences:
        lines = "\n  ".join(differences)
        raise IncomparableError(
            f"{first_name} and {second_name} were not measured under the same conditions "
            f"({first_name} against {second_name}):\n  {lines}\n"
            "Measure both anew under the same ones, in a campaign of their own (--new), or see "
            "the comparison all the same with --force" + _about_pilots(context, comparisons)
        )


def _provenance(campaign: Campaign) -> Provenance:
    return Provenance(
        study=campaign.study,
        campaign=campaign.id,
        seed=campaign.seed,
        started_at=campaign.started_at,
        finished_at=campaign.finished_at,
        tool_version=__version__,
    )


def _about_pilots(context: Context, comparisons: Sequence[Comparison]) -> str:
    """Return the remedy where the pilots of the two sides chose different durations."""
    longest = {
        c.workload: max(side.conditions.duration_s for side in c.sides)
        for c in comparisons
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
    chosen: ChosenSide,
    workload: Workload,
    known: Mapping[Subject, Sequence[Outline]],
) -> tuple[Side, Probed]:
    subject = Subject(campaign=chosen.campaign, arch=chosen.arch, workload=workload.name)
    task = Task(
        context=replace(context, campaign=chosen.campaign), subject=subject, workload=workload
    )
    if workload.name not in chosen.workloads:
        raise ResultMissingError(
            f"{chosen.name} {workload.name}: not measured so in campaign {chosen.campaign.id}"
        )
    attempts = known[subject] if subject in known else task.store.outlines(subject)
    trials = [t for t in latest(attempts) if not registry.stage(t.stage).is_apart]
    verdict = task.store.get(subject, Verdict)
    try:
        result = side(
            chosen.arch,
            [t for t in trials if t.usable],
            name=chosen.name,
            level=context.study.budget.level,
            verdict=verdict,
            judged=_judged(trials, verdict) if verdict else None,
            ranking=task.store.get(subject, Ranking),
            training=task.store.get(subject, Training),
            search=task.store.get(subject, Search),
            attempts=attempts,
        )
    except ValueError as error:
        raise _missing(context, chosen, task, str(error)) from error
    offer = stored_probed(task)
    if offer is None:
        raise _missing(context, chosen, task, "what its host offers is not stored")
    return result, offer


def _judged(trials: Sequence[Outline], verdict: Verdict) -> tuple[list[float], list[float]]:
    """P99 (ms) of the default and of the tuned side of a verdict."""
    default, tuned = judged_pairs(trials, verdict)
    return [t.p99_ms for t in default], [t.p99_ms for t in tuned]


def _missing(context: Context, chosen: ChosenSide, task: Task, why: str) -> ResultMissingError:
    """Return the error, with the commands that help where the campaign can go on."""
    reason = f"nothing to compare ({why})"
    if chosen.campaign.id == context.campaign.id:
        return prerequisites.missing(task, reason, "collect")
    return ResultMissingError(f"{chosen.name} {task.workload.name}: {reason}")
