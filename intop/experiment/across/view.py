"""A configuration under several workloads as a document: a row for each, and where it is worse."""

from collections.abc import Iterator

from intop.document.columns import Column, texts
from intop.document.model import Notes, Section, Table
from intop.domain.across import Across, UnderWorkload
from intop.domain.stats import Interval
from intop.domain.verdict import Pairwise, PairwiseLatency, Verdict
from intop.sentences import across_sentence, worse_here
from intop.words import counted, percent, shared


def across_section(title: str, across: Across) -> Section:
    """Return both tables, and a plain line that says where it is worse."""
    notes = Notes((worse_here(across), *across_notes(across)))
    return Section(
        title=f"{title}: {across_sentence(across)}", blocks=(*across_tables(across), notes)
    )


def across_tables(across: Across) -> tuple[Table, Table]:
    """Return what it is worth under each workload, and what both sides did there."""
    level = percent(across.each_level)
    judged_by = _judged_by(across)
    worth = Table(
        name="across",
        title=f"{across.name} under all workloads: verdicts",
        origin="measured",
        columns=(
            *texts("workload", "verdict"),
            Column(f"{judged_by}: {across.reference} / tuned ({level})", "span"),
            Column("load", "text"),
        ),
        rows=tuple((u.workload, _outcome(u), _ratio(u.verdict), u.load) for u in across.workloads),
    )
    sides = Table(
        name="across-sides",
        title=f"{across.name} under all workloads: both sides",
        origin="measured",
        columns=(
            *texts("workload", "side"),
            Column("requests/s"),
            Column("MB/s"),
            Column("mean", unit="ms"),
            *([] if judged_by == "P50" else [Column("P50", unit="ms")]),
            Column(judged_by, unit="ms"),
            Column("failed", unit="%"),
            Column("timeouts", "count"),
            Column("CPU", unit="%"),
            Column("memory", unit="MiB"),
        ),
        rows=tuple(
            (under.workload, name, *_side(under, under.verdict, is_tuned=is_tuned))
            for under in across.workloads
            if under.verdict is not None
            for name, is_tuned in ((across.reference, False), ("tuned", True))
        ),
    )
    return worth, sides


def across_notes(across: Across) -> Iterator[str]:
    """Yield how it was measured, and what could not be."""
    level = percent(across.each_level)
    yield (
        f"{counted(across.rounds, 'round')}, each with {across.reference} and {across.name} once "
        f"under every workload. Intervals have {level}, so that the ratios of "
        f"{_judged_by(across)} in all workloads hold together at {percent(across.level)}. It is "
        "worse where all of an interval says so, of that or beyond [guardrails] of the study."
    )
    for under in across.workloads:
        if under.verdict is not None and under.verdict.outcome == "gain, but":
            yield f"{under.workload}: gain, but {under.verdict.doubts}"
        if under.problem:
            yield f"{under.workload}: {under.problem}"


def _judged_by(across: Across) -> str:
    names = (under.verdict.judged_by for under in across.workloads if under.verdict is not None)
    return shared(names, "latency")


def _outcome(under: UnderWorkload) -> str:
    """Return the outcome in short, with a guardrail that is broken without a gain."""
    verdict = under.verdict
    if verdict is None:
        return under.outcome
    if verdict.broken and verdict.latency_outcome == "no significant gain":
        names = ", ".join(guard.quantity for guard in verdict.broken)
        return f"{verdict.short}; it costs {names}"
    return verdict.short


def _ratio(verdict: Verdict | None) -> Interval | None:
    if verdict is None:
        return None
    return Interval(verdict.ratio, verdict.ratio_low, verdict.ratio_high)


def _side(under: UnderWorkload, verdict: Verdict, *, is_tuned: bool) -> tuple[float | None, ...]:
    """Return a row: the judged latency is a geometric mean, others are means over trials."""

    def of(both: Pairwise | PairwiseLatency | None) -> float | None:
        return None if both is None else both.tuned if is_tuned else both.default

    sides = verdict.sides
    return (
        of(sides.achieved_rps),
        of(sides.received_mb_s),
        of(sides.mean_ms),
        *([] if verdict.judged_by == "P50" else [of(sides.latencies_ms["P50"])]),
        verdict.tuned_ms if is_tuned else verdict.default_ms,
        100 * (of(sides.error_share) or 0.0),
        of(under.timeouts),
        100 * (of(sides.balancer_cpu) or 0.0),
        of(sides.memory_mib),
    )
