"""What was found, what to change, and what shows it: measured, all of it."""

from collections.abc import Iterator
from functools import partial

from intop.domain.comparison import AT_FULL_SPEED, converged
from intop.domain.deployment import Change
from intop.domain.explanation import Dependence, Explanation
from intop.domain.histogram import Histogram
from intop.domain.mediation import Mediation
from intop.domain.percentiles import told_ms
from intop.domain.report import Findings, Judged, Report
from intop.domain.sides import merged
from intop.domain.stats import Interval
from intop.domain.sweep import Sweep
from intop.domain.verdict import Verdict
from intop.report import paper
from intop.report.comparison import matrix
from intop.report.document.columns import Column, Value, columns, numbers, texts
from intop.report.document.model import Block, Figure, Paragraph, Table, Verbatim, widened
from intop.report.explain import contribution_table, kept_sentence, smallest
from intop.report.figures.partial_dependence import contributions, dependence
from intop.report.figures.percentiles import percentiles
from intop.report.figures.speedup import architectures, speedup
from intop.report.figures.sweep import curves
from intop.report.mediation import mediation_notes, mediation_table
from intop.report.mediation import sentence as mediation_sentence
from intop.report.page.sections.common import as_sentence, lacking, named, table_name, without_empty
from intop.report.sweep import sentence as sweep_sentence
from intop.report.sweep import sweep_notes, sweep_tables
from intop.report.verdict import (
    LUCK,
    cause_notes,
    cause_table,
    guardrail_table,
    halves_sentence,
    judged_by,
    latency_notes,
    model_table,
    models_sentence,
    sentence,
    side_table,
)
from intop.report.words import LOADS, counted, percent

PERCENTS = (50.0, 75.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.99, 100.0)
"""Of the table of latencies; 100 is the slowest request."""


# What was found -----------------------------------------------------------------------------------


def found(report: Report) -> Iterator[Block]:
    """A sentence for each architecture and workload, and all verdicts in a table."""
    yield from map(_finding, report.findings)
    if any(one.verdict for one in report.findings):
        yield _verdicts(report)
        yield _speedup(report)
        yield from _models(report)
        yield from map(Paragraph, _scope(report))


def _finding(one: Findings) -> Block:
    load = LOADS.get(one.workload)
    lead = f"{one.arch}, {load} ({one.workload})" if load else one.title
    if one.verdict is None:
        state = "no verdict yet" if one.stages else "nothing measured yet"
        command = f"intop tune --resume --arch {one.arch} --workload {one.workload}"
        return Paragraph(f"{lead}: {state}. Make it with", command=command)
    told = [as_sentence(sentence(one.verdict))]
    if one.verdict.p99_outcome == "gain":
        told.append(
            f"{_default(one.verdict)} has {one.verdict.default_p99_ms:.1f} ms, the winner "
            f"{one.verdict.tuned_p99_ms:.1f} ms, over {one.verdict.pairs} interleaved pairs of "
            f"fresh trials."
        )
    if one.explanation is not None:
        told.append(as_sentence(smallest(one.explanation)))
    return Paragraph(" ".join(told), lead=f"{lead}:")


def _default(verdict: Verdict) -> str:
    return verdict.against or "The default"


def _verdicts(report: Report) -> Table:
    rows: list[tuple[Value, ...]] = []
    for one in report.findings:
        if one.verdict is not None:
            rows.append((one.arch, one.workload, "whole winner", *_verdict_cells(one.verdict)))
        if one.explanation is not None:
            smaller = _verdict_cells(one.explanation.verdict)
            rows.append((one.arch, one.workload, "smallest set", *smaller))
    table = Table(
        name="verdicts",
        title="Verdicts",
        origin="measured",
        columns=(
            *texts("architecture", "workload", "configuration"),
            Column("keys", "count"),
            Column("in place of the default", "text"),
            *numbers("default P99 in ms", "tuned P99 in ms"),
            Column("times lower", "span"),
            Column("pairs", "count"),
            Column("verdict", "text"),
        ),
        rows=tuple(rows),
    )
    return without_empty(table)


def _verdict_cells(verdict: Verdict) -> tuple[Value, ...]:
    failed = f", {counted(verdict.failures, 'trial')} failed" if verdict.failures else ""
    return (
        len(verdict.configuration.values),
        verdict.against or None,
        verdict.default_p99_ms,
        verdict.tuned_p99_ms,
        Interval(verdict.ratio, verdict.ratio_low, verdict.ratio_high),
        verdict.pairs,
        f"{verdict.short}{failed}",
    )


def _speedup(report: Report) -> Figure:
    verdicts: dict[str, Verdict] = {}
    for one in report.findings:
        if one.verdict is not None:
            verdicts[one.title] = one.verdict
        if one.explanation is not None:
            verdicts[f"{one.title}, smallest set"] = one.explanation.verdict
    return Figure(
        title="Speed-up over the default",
        draw=partial(speedup, report.study, verdicts),
        label="Speed-up over the default with intervals, by architecture and workload",
        caption=(
            "How many times lower P99 is than with the default, or the set of values that stood "
            "for it: the geometric mean over the pairs, with its interval. Above 1 it is a gain "
            "of P99, which guardrails may put in doubt or undo; "
            "an interval that holds 1 shows no difference. Mean and best of the models' own "
            "winners are from the rounds in which the winner was picked."
        ),
    )


def _models(report: Report) -> Iterator[Block]:
    """What each tree model's own winner was worth, where that was measured."""
    measured = [
        (one, one.verdict.models)
        for one in report.findings
        if one.verdict is not None and one.verdict.models is not None
    ]
    if not measured:
        return
    rows: list[tuple[Value, ...]] = []
    for one, found in measured:
        mean = (f"mean over {found.counted}", None, found.mean, found.rounds, None)
        rows += [(one.arch, one.workload, *row) for row in (*model_table(found).rows, mean)]
    yield Table(
        name="model-speed-ups",
        title="Speed-up of each model's own winner over the default",
        origin="measured",
        columns=(*texts("architecture", "workload"), *model_table(measured[0][1]).columns),
        rows=tuple(rows),
    )
    for one, found in measured:
        yield Paragraph(models_sentence(found), lead=f"{one.title}:")
    yield Paragraph(LUCK)


def _scope(report: Report) -> Iterator[str]:
    """What the figures hold for, and what they can't tell."""
    levels = sorted({percent(one.verdict.level) for one in report.findings if one.verdict})
    yield (
        "P99 is the time within which 99 of 100 requests are answered, counted from when each was "
        "due. The default and the tuned configuration were measured in turn, in random order, so "
        "that whatever else went on hit both alike. An interval says how far a ratio may be off by "
        f"chance, at {' and '.join(levels)}."
    )
    for one in report.findings:
        if one.judged is not None:
            load = one.judged.conditions
            yield (
                f"{one.title} holds for what was measured: {load.rate_rps:g} requests/s over "
                f"{load.connections} connections ({load.paths}), over this "
                f"link: {load.link}. Under another load or link it may be more, less or nothing."
            )
    emulated = dict.fromkeys(
        f"{one.arch} ({load.emulation})"
        for one in report.findings
        for load in one.conditions
        if load.emulation not in AT_FULL_SPEED
    )
    if emulated:
        yield (
            f"Emulated: {', '.join(emulated)}. How fast an emulated machine is says nothing about "
            "the hardware; what queues, loss and timers do to it is real."
        )


# What to change -----------------------------------------------------------------------------------


def changes(one: Findings) -> Iterator[Block]:
    """The keys to set, the fewest that keep the gain, and how to set them."""
    if one.verdict is None:
        return
    if one.verdict.outcome == "no gain: it costs":
        yield Paragraph(
            f"Nothing: keep the defaults. P99 was shown to be lower, at more than was accepted: "
            f"{one.verdict.costs}. Whoever accepts that, deploys it with",
            command=f"intop plan --accept-costs --arch {one.arch} --workload {one.workload}",
        )
        return
    if not one.verdict.is_gain:
        yield Paragraph("Nothing: keep the defaults. No configuration was shown to be better.")
        return
    if one.deployment is None:
        yield Paragraph(one.undeployable)
        yield _configuration(one, one.verdict)
        return
    count = len(one.deployment.changes)
    if one.deployment.origin == "smallest set" and one.deployment.kept is not None:
        yield Paragraph(
            f"{_of_the_winner(one.verdict, one.explanation, count)} The smallest set "
            f"{kept_sentence(one.deployment.kept)}."
        )
    elif one.explanation is not None:
        yield Paragraph(
            f"All {count} keys of the winner, not the smallest set that was found: "
            f"{one.explanation.obstacle}."
        )
    else:
        yield Paragraph(f"All {count} keys of the winner. Which of them matter is not known yet.")
        yield from lacking(one, "explain")
    table = Table(
        name=table_name(one, "changes"),
        title="Keys to set on the load balancer",
        origin="measured",
        columns=(
            *columns("key", "key", "default", "set to"),
            *columns(
                "span",
                "alone: times lower",
                "left out of the winner: times higher",
                "left out of the smallest set: times higher",
            ),
            Column("measured together with", "key"),
            Column("risk", "text"),
            Column("what it does", "prose"),
        ),
        rows=tuple(_change_cells(c) for c in one.deployment.changes),
    )
    yield without_empty(table)
    subject = f"--arch {one.arch} --workload {one.workload}"
    yield Verbatim(
        (
            f"intop plan {subject}",
            f"intop apply {subject}",
            f"intop export {subject} --format sysctl",
        )
    )


def _of_the_winner(verdict: Verdict, found: Explanation | None, count: int) -> str:
    """How many of its keys are set; beside them, the values of what the winner was held against."""
    whole, kept = len(verdict.configuration.values), len(found.keys) if found else count
    if not verdict.against:
        return f"{kept} of the winner's {whole} keys."
    return f"{kept} of the winner's {whole} keys, beside values of {verdict.against}: {count} keys."


def _change_cells(one: Change) -> tuple[Value, ...]:
    found = one.contribution
    ratios = (found.alone, found.left_out, found.missed) if found else (None, None, None)
    others = [key for key in found.keys if key != one.key] if found else []
    return (
        one.key,
        one.default or "unset",
        one.value,
        *ratios,
        ", ".join(others) or None,
        one.risk,
        one.mechanism,
    )


def _configuration(one: Findings, verdict: Verdict) -> Table:
    return Table(
        name=table_name(one, "changes"),
        title="Keys to set on the load balancer",
        origin="measured",
        columns=(Column("key", "key"), Column("set to", "key")),
        rows=tuple(verdict.configuration.values.items()),
    )


# Latency ------------------------------------------------------------------------------------------


def latency(one: Findings) -> Iterator[Block]:
    """All percentiles of both sides of the verdict, and its pairs one by one."""
    if one.judged is None or one.verdict is None:
        return
    told = one.judged.latencies
    default, tuned = merged(told.default), merged(told.tuned)
    yield Figure(
        title="Latency by percentile",
        draw=partial(percentiles, one.title, told),
        label=(
            f"Latency by percentile for {one.title}, {one.verdict.reference} and the winner"
            f"{_p99s(default, tuned)}"
        ),
        caption=(
            "Latency of all requests of the judging trials, put together. Both axes are "
            "logarithmic: to the right are rarer, slower requests, and equal steps upwards are "
            "equal ratios. Where the lines lie apart, users feel it; where they meet, nothing "
            "changed. Lines end where fewer than ten requests are slower; the slowest one is a "
            "mark."
        ),
        tables=(
            _percentile_table(one, one.verdict, default, tuned),
            _pairs(one, one.verdict, one.judged),
        ),
    )
    yield named(one, side_table(one.verdict))
    yield Paragraph(
        "Latencies are of all requests put together, so P99 is not quite the mean "
        f"over trials that the verdict has. Ratios are {one.verdict.reference} / tuned, over "
        "the pairs, each interval for itself. In the P99 of the verdict a request that failed "
        "counts as one that took the whole time-out."
    )
    yield from map(Paragraph, latency_notes(one.verdict.sides))
    if one.verdict.guardrails:
        yield named(one, guardrail_table(one.verdict))
    yield Paragraph(judged_by(one.verdict))
    if one.verdict.halves is not None:
        yield Paragraph(halves_sentence(one.verdict.halves))
    if one.verdict.causes is not None:
        yield from map(Paragraph, cause_notes(one.verdict.causes))
        if one.verdict.causes.found:
            yield named(one, cause_table(one.verdict, one.verdict.causes))
    if one.mediation is not None:
        yield from _mediation(one, one.mediation)
    for sweep in one.sweeps:
        yield from _sweep(one, sweep)


def _sweep(one: Findings, found: Sweep) -> Iterator[Block]:
    """What the winner is worth under other loads."""
    yield Paragraph(as_sentence(sweep_sentence(found)))
    tables = tuple(named(one, table) for table in sweep_tables(found))
    if not found.has_latencies:
        yield from tables
        return
    yield Figure(
        title="Along the " + found.axis,
        draw=partial(curves, one.title, found),
        label=f"{one.title}: {sweep_sentence(found)}",
        caption=(
            "P99 with its intervals, the rate that was reached, processor and memory of the load "
            "balancer. The dotted lines are what was asked, and the limit of P99."
        ),
        tables=tables,
    )
    yield from map(Paragraph, sweep_notes(found))


def _mediation(one: Findings, found: Mediation) -> Iterator[Block]:
    """What each mechanism brings of the gain."""
    yield Paragraph(as_sentence(mediation_sentence(found)))
    if found.mechanisms:
        yield named(one, mediation_table(found))
    yield from map(Paragraph, mediation_notes(found))


def _p99s(default: Histogram, tuned: Histogram) -> str:
    """Those that the figure shows, in words."""
    before, after = told_ms(default, 99), told_ms(tuned, 99)
    if before is None or after is None:
        return ""
    return f": P99 {before:.1f} ms against {after:.1f} ms"


def _percentile_table(
    one: Findings, verdict: Verdict, default: Histogram, tuned: Histogram
) -> Table:
    told = [("slowest" if q == 100 else f"P{q:g}", q) for q in PERCENTS]
    return Table(
        name=table_name(one, "percentiles"),
        title=f"Latency by percentile, of {default.total} and {tuned.total} requests",
        origin="measured",
        columns=(
            Column("percentile", "text"),
            *numbers(f"{verdict.reference} in ms", "tuned in ms"),
        ),
        rows=tuple((name, *(_told_ms(side, q) for side in (default, tuned))) for name, q in told),
    )


def _told_ms(side: Histogram, percent: float) -> float | None:
    """None where too few requests are behind it; the slowest request is no percentile."""
    return side.max_ms if percent == 100 else told_ms(side, percent)


def _pairs(one: Findings, verdict: Verdict, judged: Judged) -> Table:
    return Table(
        name=table_name(one, "pairs"),
        title="The verdict's pairs, one by one: their ratios' geometric mean is the verdict",
        origin="measured",
        columns=(
            Column("round", "text"),
            *numbers(f"{verdict.reference}: P99 in ms", "tuned: P99 in ms", "ratio"),
        ),
        rows=tuple(
            (str(p.round), p.default_p99_ms, p.tuned_p99_ms, p.default_p99_ms / p.tuned_p99_ms)
            for p in judged.pairs
        ),
    )


# Architectures ------------------------------------------------------------------------------------


def compared(report: Report) -> Iterator[Block]:
    """The architectures side by side, by workload."""
    if report.compared is None:
        yield from map(Paragraph, report.not_compared.splitlines())
        return
    yield Figure(
        title="P99 by architecture",
        draw=partial(architectures, report.study, report.compared),
        label="P99 of the default and of the tuned configuration by architecture",
        caption=(
            "P99 of the default and of the winner on each architecture, with intervals. The sides "
            "were measured one after the other, so what changed in between is in no interval."
        ),
    )
    yield matrix(report.compared)


# The paper ----------------------------------------------------------------------------------------


def paper_and_here(report: Report) -> Iterator[Block]:
    """The paper's figures beside those of this campaign."""
    outcomes = [
        paper.Outcome(
            arch=one.arch,
            workload=one.workload,
            training=one.training,
            convergences=converged(one.search),
            verdict=one.verdict,
            emulated=any(load.emulation not in AT_FULL_SPEED for load in one.conditions),
        )
        for one in report.findings
    ]
    yield Paragraph(paper.NOTE)
    yield paper.table(outcomes, report.compared)


# Ablation -----------------------------------------------------------------------------------------


def ablation(one: Findings) -> Iterator[Block]:
    """What each of the winner's changes does."""
    if one.verdict is None:
        return
    explanation = one.explanation
    if explanation is None:
        told = lacking(one, "explain")
        yield from told or (Paragraph("There is no gain, so there is nothing to take apart."),)
        return
    yield Paragraph(
        f"Smaller sets of the winner's changes were measured, in {explanation.trials} trials with "
        f"those of the smallest set's verdict. Smallest set: {', '.join(explanation.keys)}. It "
        f"{kept_sentence(explanation.kept)}."
    )
    yield Figure(
        title="What each change does",
        draw=partial(contributions, one.title, explanation),
        label=f"What each change of the winner for {one.title} does to P99",
        caption=(
            "Ratios of P99 with intervals. Left out: the winner without the change / the winner. "
            "Alone: the default / the default with it. Right of 1 the change helps. A change that "
            "helps alone and is not missed when it is left out does what another one does, too. "
            "Missed: the smallest set without it / the smallest set. Dropped changes that were "
            "not measured one by one are in the table only."
        ),
        tables=(_contribution_table(one, explanation), *_interactions(one, explanation)),
    )
    if explanation.curves:
        yield Figure(
            title="P99 about the winner",
            draw=partial(dependence, one.title, explanation),
            label=f"How P99 depends on the kept parameters about the winner for {one.title}",
            caption=(
                "Lines are what the models predict when one value moves and the winner's others "
                "stay. Marks are measured: the winner, with and without the change where both "
                "were, and, faint, configurations in which all else differs, too."
            ),
            tables=(_curves(one, explanation, "predicted"), _curves(one, explanation, "measured")),
        )
    elif explanation.without_curves:
        yield Paragraph(as_sentence(explanation.without_curves))


def _contribution_table(one: Findings, found: Explanation) -> Table:
    kept = ("kept" if c.is_kept else f"dropped: {c.dropped}" for c in found.contributions)
    return named(one, widened(contribution_table(found), Column("kept", "prose"), kept))


def _interactions(one: Findings, found: Explanation) -> tuple[Table, ...]:
    if not found.interactions:
        return ()
    return (
        Table(
            name=table_name(one, "interactions"),
            title="Two changes together / the product of what each does alone",
            origin="measured",
            columns=(Column("one", "key"), Column("other", "key"), Column("ratio", "span")),
            rows=tuple((i.one, i.other, i.ratio) for i in found.interactions),
        ),
    )


def _curves(one: Findings, found: Explanation, origin: str) -> Table:
    """The points of all curves that are of this origin."""

    def rows(curve: Dependence) -> Iterator[tuple[Value, ...]]:
        for point in curve.predicted if origin == "predicted" else ():
            yield curve.name, str(point.value), point.p99_ms, "line"
        for name, points in (("winner", curve.measured), ("elsewhere", curve.elsewhere)):
            for point in points if origin == "measured" else ():
                yield curve.name, str(point.value), point.p99_ms, name

    return Table(
        name=table_name(one, f"dependence-{origin}"),
        title=f"P99 by the value of one parameter, {origin}",
        origin="predicted" if origin == "predicted" else "measured",
        columns=(
            *columns("key", "parameter", "value"),
            Column("P99 in ms"),
            Column("where", "text"),
        ),
        rows=tuple(row for curve in found.curves for row in rows(curve)),
    )
