"""compare: two sides of a store, workload by workload."""

import shlex
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from intop.domain.comparison import (
    EXPECTED_DIFFERENCES,
    LOAD,
    MUST_BE_EQUAL,
    WARNED_DIFFERENCES,
    Compared,
    ComparedParameter,
    ComparedValue,
    Comparison,
    Latency,
    Measured,
    Provenance,
    Side,
    contrast,
    converged,
    latency,
)
from intop.domain.probing import Probed
from intop.domain.ranking import Ranking, rank_agreement
from intop.domain.search import Search
from intop.domain.sides import judged_pairs
from intop.domain.training import Training
from intop.domain.trial import AnyTrial, Outline, latest
from intop.domain.verdict import Verdict
from intop.domain.workload import Workload
from intop.errors import IncomparableError, ResultMissingError, UsageError
from intop.report.chosen_sides import ChosenSide, chosen_side, selector
from intop.run import prerequisites, registry
from intop.run.available_space import stored_probed
from intop.run.context import Context, Task
from intop.store import Campaign, Subject
from intop.version import __version__

T = TypeVar("T")
U = TypeVar("U")


def compare(
    context: Context,
    first_name: str,
    second_name: str,
    *,
    force: bool = False,
    attempts: Mapping[Subject, Sequence[Outline]] | None = None,
) -> Compared:
    """Return the comparison of all requested workloads that both sides have measured.

    The names are selectors (`chosen_sides`). `attempts` at their trials are read from
    the store where they are not given.

    Raises UsageError for what means no side, or the same one twice. Raises ResultMissingError when
    no workload was measured on both. Raises IncomparableError, unless by `force`, when what must be
    equal is not.
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
    """Latency (ms) of the default and of the tuned side of a verdict."""
    default, tuned = judged_pairs(trials, verdict)
    return [t.judged_ms for t in default], [t.judged_ms for t in tuned]


def _missing(context: Context, chosen: ChosenSide, task: Task, why: str) -> ResultMissingError:
    """Return the error, with the commands that help where the campaign can go on."""
    reason = f"nothing to compare ({why})"
    if chosen.campaign.id == context.campaign.id:
        return prerequisites.missing(task, reason, "collect")
    return ResultMissingError(f"{chosen.name} {task.workload.name}: {reason}")


def side(
    arch: str,
    trials: Sequence[AnyTrial],
    *,
    level: float,
    name: str = "",
    verdict: Verdict | None = None,
    judged: tuple[Sequence[float], Sequence[float]] | None = None,
    ranking: Ranking | None = None,
    training: Training | None = None,
    search: Search | None = None,
    attempts: Sequence[AnyTrial] = (),
) -> Side:
    """Return one side from its usable trials, and from all `attempts` where there are others.

    Without a `name` it is called by its architecture. `judged` are the latencies (ms) of both sides
    that the verdict rests on; they go with it. Raises ValueError with fewer than two trials of the
    default.
    """
    defaults = [t.judged_ms for t in trials if t.configuration.is_default]
    if len(defaults) < 2:
        raise ValueError(f"{len(defaults)} usable trials of the default, an interval needs two")
    tuned: Latency | None = None
    if judged is not None:
        defaults, tuned = list(judged[0]), latency(judged[1], level)
    return Side(
        name=name or arch,
        arch=arch,
        conditions=trials[-1].conditions,
        trials=len(trials),
        measured=_measured(attempts or trials),
        default=latency(defaults, level),
        tuned=tuned,
        verdict=verdict,
        ranking=ranking,
        training=training,
        convergences=converged(search),
    )


def compared(
    workload: str,
    sides: tuple[Side, Side],
    offers: tuple[Probed, Probed],
    *,
    level: float,
    chosen_by: Collection[str] = ("arch",),
) -> Comparison:
    """Return the two sides with what sets them apart; `offers` are the spaces of their hosts.

    What they were `chosen_by` may differ, unless it belongs to the load.
    """
    first, second = sides
    tuned = contrast(first.tuned, second.tuned, level) if first.tuned and second.tuned else None
    here, there = first.conditions, second.conditions
    are_architectures = "arch" in chosen_by or "machine" in chosen_by
    expected = {*chosen_by, *(EXPECTED_DIFFERENCES if are_architectures else ())}
    refused = [n for n in MUST_BE_EQUAL if n in LOAD or n not in expected]
    warned = {*EXPECTED_DIFFERENCES, *WARNED_DIFFERENCES} - expected
    warnings = here.differences(there, warned)
    if are_architectures and here.machine == there.machine:
        warnings.append(f"machine: both are {here.machine}")
    return Comparison(
        workload=workload,
        level=level,
        sides=sides,
        default=contrast(first.default, second.default, level),
        tuned=tuned,
        rank_agreement=(
            rank_agreement((first.name, second.name), first.ranking, second.ranking)
            if first.ranking and second.ranking
            else None
        ),
        parameters=_parameters(sides, offers),
        values=_values(sides, offers),
        differences=(*here.differences(there, refused), *_defaults_differ(sides)),
        warnings=tuple(warnings),
    )


def _measured(attempts: Sequence[AnyTrial]) -> Measured:
    times = sorted(t.started_at for t in attempts)
    return Measured(
        attempts=len(attempts),
        first_at=times[0],
        last_at=times[-1],
        tool_versions=tuple(dict.fromkeys(t.tool_version for t in attempts)),
    )


def _defaults_differ(sides: tuple[Side, Side]) -> list[str]:
    """Return a line where the verdicts are against different baselines."""
    against = [s.verdict.against or "the host's own" for s in sides if s.verdict]
    return [f"default: {' against '.join(against)}"] if len(set(against)) > 1 else []


def _parameters(
    sides: tuple[Side, Side], offers: tuple[Probed, Probed]
) -> tuple[ComparedParameter, ...]:
    """Return those chosen on both sides, the first only, the second only; by importance."""
    ranked = _each(sides, lambda s: {i.key: i for i in s.ranking.importances} if s.ranking else {})
    chosen = _each(sides, lambda s: set(s.ranking.chosen) if s.ranking else set())
    offered = _each(offers, lambda o: {p.key for p in o.space.parameters})

    def parameter(key: str) -> ComparedParameter:
        refused = [
            "" if key in known else offer.refused.get(key, "the catalogue doesn't have it")
            for known, offer in zip(offered, offers, strict=True)
        ]
        return ComparedParameter(
            key=key,
            importances=_each(ranked, lambda by_key: by_key.get(key)),
            chosen=_each(chosen, lambda keys: key in keys),
            refused=(refused[0], refused[1]),
        )

    def order(p: ComparedParameter) -> tuple[int, float, str]:
        place = [(True, True), (True, False), (False, True)].index(p.chosen)
        shares = [i.mean for i, c in zip(p.importances, p.chosen, strict=True) if c and i]
        return place, -max(shares, default=0.0), p.key

    return tuple(sorted((parameter(key) for key in chosen[0] | chosen[1]), key=order))


def _values(sides: tuple[Side, Side], offers: tuple[Probed, Probed]) -> tuple[ComparedValue, ...]:
    """Return what the judged configurations change, by key."""
    defaults = _each(offers, lambda o: o.space.defaults)
    judged = _each(sides, lambda s: s.verdict.configuration.values if s.verdict else {})
    changed = tuple(
        {key: value for key, value in values.items() if value != before.get(key)}
        for values, before in zip(judged, defaults, strict=True)
    )
    return tuple(
        ComparedValue(
            key=key,
            defaults=(defaults[0].get(key), defaults[1].get(key)),
            tuned=(changed[0].get(key), changed[1].get(key)),
        )
        for key in sorted(changed[0].keys() | changed[1].keys())
    )


def _each(pair: tuple[T, T], what: Callable[[T], U]) -> tuple[U, U]:
    return what(pair[0]), what(pair[1])
