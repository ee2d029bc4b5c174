"""Latency before and after: the verdict's sides, their causes, other loads, and hours of load."""

from collections.abc import Iterator

from intop.campaign.verify.view import (
    basis,
    cause_notes,
    cause_table,
    guardrail_table,
    halves_sentence,
    latency_notes,
    side_table,
)
from intop.causes.view import mediation_notes, mediation_table
from intop.causes.view import sentence as mediation_sentence
from intop.document.columns import Column, numbers
from intop.document.model import Block, Figure, Paragraph, Section, Table
from intop.domain.histogram import Histogram, reliable_ms
from intop.domain.mediation import Mediation
from intop.domain.sides import Latencies, merged
from intop.domain.soak import Soak
from intop.domain.sweep import Sweep
from intop.domain.verdict import Verdict
from intop.experiment.sweep.view import sweep_notes, sweep_tables
from intop.report.findings import Findings, Judged
from intop.report.page.common import as_sentence, drawing
from intop.sentences import soak_sentence, sweep_sentence
from intop.soak.view import soak_notes, soak_tables
from intop.words import capital

PERCENTS = (50.0, 75.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.99, 100.0)
"""Percentiles of the table of latencies; 100 is the slowest request."""


def percentile_figure(title: str, verdict: Verdict, latencies: Latencies) -> Figure:
    """Return the latencies of both sides of a verdict. Their tables are in `latency`."""
    both = _both(verdict)
    return Figure(
        title="Latency by percentile",
        draw=drawing("intop.campaign.verify.percentiles_figure:percentiles", title, latencies),
        label=f"Latency by percentile for {title}, {verdict.reference} and the winner{both}",
        caption=(
            "To the right are rarer, slower requests. Where the lines lie apart, users feel it; "
            "where they meet, nothing changed."
        ),
    )


def latency(findings: Findings) -> Iterator[Block]:
    """Yield all percentiles of both sides of the verdict, and its pairs one by one."""
    if findings.judged is None or findings.verdict is None:
        return
    verdict, latencies = findings.verdict, findings.judged.latencies
    default, tuned = merged(latencies.default), merged(latencies.tuned)
    yield side_table(verdict)
    tables = (_percentile_table(verdict, default, tuned), _pairs(verdict, findings.judged))
    yield Section(title="More percentiles, and the pairs one by one", blocks=tables, folded=True)
    yield Paragraph(
        f"Latencies are of all requests put together, so {verdict.judged_by} is not quite the mean "
        f"over trials that the verdict has. Ratios are {verdict.reference} / tuned, over "
        f"the pairs, each interval for itself. In the {verdict.judged_by} of the verdict a request "
        "that failed counts as one that took the whole time-out."
    )
    yield from map(Paragraph, latency_notes(verdict))
    if verdict.guardrails:
        yield guardrail_table(verdict)
    yield Paragraph(basis(verdict))
    if verdict.halves is not None:
        yield Paragraph(halves_sentence(verdict.halves, verdict.judged_by))
    if verdict.causes is not None:
        yield from map(Paragraph, cause_notes(verdict.causes))
        if verdict.causes.mechanisms:
            yield cause_table(verdict, verdict.causes)
    if findings.mediation is not None:
        yield from _mediation(findings.mediation)
    for sweep in findings.sweeps:
        yield from _sweep(findings, sweep)


def _sweep(findings: Findings, sweep: Sweep) -> Iterator[Block]:
    yield Paragraph(as_sentence(sweep_sentence(sweep)))
    tables = sweep_tables(sweep)
    if not sweep.has_latencies:
        yield from tables
        return
    yield Figure(
        title="Along the " + sweep.axis,
        draw=drawing("intop.experiment.sweep.figure:curves", findings.title, sweep),
        label=f"{findings.title}: {sweep_sentence(sweep)}",
        caption=(
            f"{capital(sweep.judged_by)} with its intervals, the rate that was reached, processor "
            "and memory of the load balancer. The dotted lines are what was asked, and the "
            "limit of the latency."
        ),
        tables=tables,
    )
    yield from map(Paragraph, sweep_notes(sweep))


def _mediation(mediation: Mediation) -> Iterator[Block]:
    yield Paragraph(as_sentence(mediation_sentence(mediation)))
    if mediation.mechanisms:
        yield mediation_table(mediation)
    yield from map(Paragraph, mediation_notes(mediation))


def _both(verdict: Verdict) -> str:
    both = verdict.sides.latencies_ms.get(verdict.judged_by)
    if both is None or both.default is None or both.tuned is None:
        return ""
    return f": {verdict.judged_by} {both.default:.1f} ms against {both.tuned:.1f} ms"


def _percentile_table(verdict: Verdict, default: Histogram, tuned: Histogram) -> Table:
    return Table(
        name="percentiles",
        title=f"Latency by percentile, of {default.total} and {tuned.total} requests",
        origin="measured",
        columns=(
            Column("percentile", "text"),
            *numbers(f"{verdict.reference} in ms", "tuned in ms"),
        ),
        rows=tuple(
            (
                "slowest" if q == 100 else f"P{q:g}",
                _percentile_ms(default, q),
                _percentile_ms(tuned, q),
            )
            for q in PERCENTS
        ),
    )


def _percentile_ms(side: Histogram, percent: float) -> float | None:
    """Return a percentile, None with too few requests behind it. 100 is the slowest request."""
    return side.max_ms if percent == 100 else reliable_ms(side, percent)


def _pairs(verdict: Verdict, judged: Judged) -> Table:
    name = verdict.judged_by
    return Table(
        name="pairs",
        title="The verdict's pairs, one by one: their ratios' geometric mean is the verdict",
        origin="measured",
        columns=(
            Column("round", "text"),
            *numbers(f"{verdict.reference}: {name} in ms", f"tuned: {name} in ms", "ratio"),
        ),
        rows=tuple(
            (str(p.round), p.default_ms, p.tuned_ms, p.default_ms / p.tuned_ms)
            for p in judged.pairs
        ),
    )


def soaked(title: str, soak: Soak) -> Iterator[Block]:
    """The last soak: its verdict, and each block over time."""
    yield Paragraph(as_sentence(soak_sentence(soak)))
    tables = soak_tables(soak)
    if any(block.p99_ms for block in soak.blocks):
        yield Figure(
            title="Load over time",
            draw=drawing("intop.soak.figure:soak", title, soak),
            label=f"{title}: {soak_sentence(soak)}",
            caption=(
                "P50 and P99 of each block, the rate that was reached, nginx's memory, its open "
                "files and the load balancer's sockets. The dotted lines are limits, and the rate "
                "that was asked."
            ),
            tables=tables,
        )
    else:
        yield from tables
    yield from map(Paragraph, soak_notes(soak))
