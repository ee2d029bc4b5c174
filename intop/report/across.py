"""A configuration under several workloads as a document: a row for each, and where it is worse."""

from collections.abc import Iterator

from intop.domain.across import Across, UnderWorkload
from intop.domain.stats import Interval
from intop.domain.verdict import Pairwise, PairwiseLatency, Verdict
from intop.report.document.columns import Column, texts
from intop.report.document.model import Notes, Section, Table
from intop.report.words import counted, percent


def across(title: str, found: Across) -> Section:
    """Both tables, and one plain line that says where it is worse."""
    return Section(
        title=f"{title}: {sentence(found)}",
        blocks=(*across_tables(found), Notes((worse_here(found), *across_notes(found)))),
    )


def sentence(found: Across) -> str:
    """Such as: winner under 11 workloads: gain in 4, worse in 2."""
    parts = [f"gain in {len(found.gains)}"] if found.gains else ["no significant gain"]
    parts += [f"worse in {len(found.worse)}"] if found.worse else []
    told = counted(len(found.workloads), "workload")
    return f"{found.name} under {told}: {', '.join(parts)}"


def worse_here(found: Across) -> str:
    """Such as: worse here: large (P99 is 1.30 times higher (1.10 to 1.54)), api (...)."""
    told = [f"{one.workload} ({'; '.join(one.harms)})" for one in found.worse]
    return f"worse here: {', '.join(told) if told else 'in none of these workloads'}"


def across_tables(found: Across) -> tuple[Table, Table]:
    """What it is worth under each workload, and what both sides did there."""
    worth = Table(
        name="across",
        title=f"{found.name} under all workloads: verdicts",
        origin="measured",
        columns=(
            *texts("workload", "verdict"),
            Column(f"P99: {found.reference} / tuned ({percent(found.each_level)})", "span"),
            Column("load", "text"),
        ),
        rows=tuple((one.workload, _verdict(one), _ratio(one), one.load) for one in found.workloads),
    )
    sides = Table(
        name="across-sides",
        title=f"{found.name} under all workloads: both sides",
        origin="measured",
        columns=(
            *texts("workload", "side"),
            Column("requests/s"),
            Column("MB/s"),
            Column("mean", unit="ms"),
            Column("P50", unit="ms"),
            Column("P99", unit="ms"),
            Column("failed", unit="%"),
            Column("timeouts", "count"),
            Column("CPU", unit="%"),
            Column("memory", unit="MiB"),
        ),
        rows=tuple(
            (one.workload, name, *_side(one, one.verdict, is_tuned=is_tuned))
            for one in found.workloads
            if one.verdict is not None
            for name, is_tuned in ((found.reference, False), ("tuned", True))
        ),
    )
    return worth, sides


def across_notes(found: Across) -> Iterator[str]:
    """How it was measured, and what could not be."""
    yield (
        f"{counted(found.rounds, 'round')}, each with {found.reference} and {found.name} once "
        f"under every workload. Intervals have {percent(found.each_level)}, so that the ratios of "
        f"P99 in all workloads hold together at {percent(found.level)}. It is worse where "
        "all of an interval says so, of P99 or beyond [guardrails] of the study."
    )
    for one in found.workloads:
        if one.verdict is not None and one.verdict.outcome == "gain, but":
            yield f"{one.workload}: gain, but {one.verdict.doubts}"
        if one.problem:
            yield f"{one.workload}: {one.problem}"


def _verdict(one: UnderWorkload) -> str:
    """The outcome in short. A guardrail that is broken without a gain is said, too."""
    found = one.verdict
    if found is None:
        return one.outcome
    if found.broken and found.p99_outcome == "no significant gain":
        names = ", ".join(guard.quantity for guard in found.broken)
        return f"{found.short}; it costs {names}"
    return found.short


def _ratio(one: UnderWorkload) -> Interval | None:
    found = one.verdict
    return None if found is None else Interval(found.ratio, found.ratio_low, found.ratio_high)


def _side(one: UnderWorkload, found: Verdict, *, is_tuned: bool) -> tuple[float | None, ...]:
    """A row: its P99 is a geometric mean, as the ratio's; all others are means over trials."""

    def of(both: Pairwise | PairwiseLatency | None) -> float | None:
        return None if both is None else both.tuned if is_tuned else both.default

    sides = found.sides
    return (
        of(sides.achieved_rps),
        of(sides.received_mb_s),
        of(sides.mean_ms),
        of(sides.latencies_ms["P50"]),
        found.tuned_p99_ms if is_tuned else found.default_p99_ms,
        100 * (of(sides.error_share) or 0.0),
        of(one.timeouts),
        100 * (of(sides.balancer_cpu) or 0.0),
        of(sides.memory_mib),
    )
