"""The verdicts, the keys to change, architectures and the paper: measured, all of it."""

from collections.abc import Iterator

from intop.document.columns import Column, Value, columns, numbers, texts
from intop.document.model import Block, Paragraph, Table, Verbatim, without_empty
from intop.domain.comparison import AT_FULL_SPEED, converged
from intop.domain.deployment import Change, Deployment
from intop.domain.explanation import Explanation
from intop.domain.histogram import PERCENTS
from intop.domain.stats import Interval
from intop.domain.verdict import Verdict
from intop.report import paper
from intop.report.compare_view import matrix
from intop.report.findings import Findings, Report
from intop.report.page.common import lacking
from intop.sentences import kept_sentence
from intop.words import counted, percent, shared

# The verdicts -------------------------------------------------------------------------------------


def summary(report: Report) -> Iterator[Block]:
    """All verdicts in a table, and how to read them."""
    if any(subject.verdict for subject in report.findings):
        yield _verdicts(report)
        yield from map(Paragraph, _scope(report))


def _whole_and_smallest(report: Report) -> Iterator[tuple[Findings, str, Verdict]]:
    """Return the verdicts of each subject's winner and of its smallest set."""
    for subject in report.findings:
        if subject.verdict is not None:
            yield subject, "whole winner", subject.verdict
        if subject.explanation is not None:
            yield subject, "smallest set", subject.explanation.verdict


def _verdicts(report: Report) -> Table:
    name = _judged_by(report)
    table = Table(
        name="verdicts",
        title="Verdicts",
        origin="measured",
        columns=(
            *texts("architecture", "workload", "configuration"),
            Column("keys", "count"),
            Column("in place of the default", "text"),
            *numbers(f"default {name} in ms", f"tuned {name} in ms"),
            Column("times lower", "span"),
            Column("pairs", "count"),
            Column("verdict", "text"),
        ),
        rows=tuple(
            (subject.arch, subject.workload, configuration, *_verdict_cells(verdict))
            for subject, configuration, verdict in _whole_and_smallest(report)
        ),
    )
    return without_empty(table)


def _judged_by(report: Report) -> str:
    names = (verdict.judged_by for _, _, verdict in _whole_and_smallest(report))
    return shared(names, "latency")


def _meaning(judged_by: str) -> str:
    if judged_by == "mean latency":
        return "The mean latency is that of all requests"
    if judged_by not in PERCENTS:
        return "Latency is the time until a request is answered"
    share = judged_by.removeprefix("P")
    return f"{judged_by} is the time within which {share} of 100 requests are answered"


def _verdict_cells(verdict: Verdict) -> tuple[Value, ...]:
    failed = f", {counted(verdict.failures, 'trial')} failed" if verdict.failures else ""
    return (
        len(verdict.configuration.values),
        verdict.against or None,
        verdict.default_ms,
        verdict.tuned_ms,
        Interval(verdict.ratio, verdict.ratio_low, verdict.ratio_high),
        verdict.pairs,
        f"{verdict.short}{failed}",
    )


def _scope(report: Report) -> Iterator[str]:
    """Return the scope and the limits of the figures."""
    name = _judged_by(report)
    levels = sorted({percent(f.verdict.level) for f in report.findings if f.verdict})
    yield (
        f"{_meaning(name)}, counted from when each was due. The default and the tuned "
        "configuration were measured in turn, in random order, so that whatever else went on hit "
        "both alike. An interval says how far a ratio may be off by chance, at "
        f"{' and '.join(levels)}. Above 1 {name} is lower; one with 1 in it shows no "
        "difference."
    )
    for subject in report.findings:
        if subject.judged is not None:
            load = subject.judged.conditions
            yield (
                f"{subject.title} holds for what was measured: {load.rate_rps:g} requests/s over "
                f"{load.connections} connections ({load.paths}), over this "
                f"link: {load.link}. Under another load or link it may be more, less or nothing."
            )
    emulated = dict.fromkeys(
        f"{subject.arch} ({load.emulation})"
        for subject in report.findings
        for load in subject.conditions
        if load.emulation not in AT_FULL_SPEED
    )
    if emulated:
        yield (
            f"Emulated: {', '.join(emulated)}. How fast an emulated machine is says nothing about "
            "the hardware; what queues, loss and timers do to it is real."
        )


# What to change -----------------------------------------------------------------------------------


def changes(findings: Findings) -> Iterator[Block]:
    """The worth of each key to set, where the set comes from, and the commands that set it."""
    verdict, deployment = findings.verdict, findings.deployment
    if verdict is None or deployment is None:
        return
    subject = f"--arch {findings.arch} --workload {findings.workload}"
    yield from _origin(findings, verdict, deployment)
    yield _changes(deployment)
    yield Verbatim(
        (
            f"intop plan {subject}",
            f"intop apply {subject}",
            f"intop export {subject} --format sysctl",
        )
    )


def _origin(findings: Findings, verdict: Verdict, deployment: Deployment) -> Iterator[Block]:
    """Return the source of the keys that are set."""
    explanation, count = findings.explanation, len(deployment.changes)
    whole = "The only key" if count == 1 else f"All {count} keys"
    if deployment.origin == "smallest set" and deployment.kept is not None:
        yield Paragraph(
            f"{_of_the_winner(verdict, explanation, count)} The smallest set "
            f"{kept_sentence(deployment.kept, verdict.judged_by)}."
        )
    elif explanation is not None:
        yield Paragraph(f"{whole} of the winner, not fewer: {explanation.obstacle}.")
    elif count == 1:
        yield Paragraph(f"{whole} of the winner.")
    else:
        yield Paragraph(f"{whole} of the winner. Which of them matter is not known yet.")
        yield from lacking(findings, "explain")


def _of_the_winner(verdict: Verdict, explanation: Explanation | None, count: int) -> str:
    """Return how many of its keys are set, and whether values of its baseline stand beside them."""
    whole, kept = len(verdict.configuration.values), len(explanation.keys) if explanation else count
    if not verdict.against:
        return f"{kept} of the winner's {whole} keys."
    return f"{kept} of the winner's {whole} keys, beside values of {verdict.against}: {count} keys."


def _changes(deployment: Deployment) -> Table:
    return without_empty(
        Table(
            name="changes",
            title="What each key does",
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
            rows=tuple(map(_change_cells, deployment.changes)),
        )
    )


def _change_cells(change: Change) -> tuple[Value, ...]:
    ratios: tuple[Value, ...] = (None, None, None)
    companions: list[str] = []
    if part := change.contribution:
        ratios = (part.alone, part.left_out, part.missed)
        companions = [key for key in part.keys if key != change.key]
    return (
        change.key,
        change.default or "unset",
        change.value,
        *ratios,
        ", ".join(companions) or None,
        change.risk,
        change.mechanism,
    )


# Architectures ------------------------------------------------------------------------------------


def compared(report: Report) -> Iterator[Block]:
    """The architectures side by side, by workload."""
    if report.compared is None:
        yield from map(Paragraph, report.not_compared.splitlines())
        return
    yield matrix(report.compared)
    yield Paragraph(
        "The sides were measured one after the other, so what changed in between is in no interval."
    )


# The paper ----------------------------------------------------------------------------------------


def paper_and_here(report: Report) -> Iterator[Block]:
    """The paper's figures beside those of this campaign."""
    outcomes = [
        paper.Outcome(
            arch=subject.arch,
            workload=subject.workload,
            training=subject.training,
            convergences=converged(subject.search),
            verdict=subject.verdict,
            emulated=any(load.emulation not in AT_FULL_SPEED for load in subject.conditions),
        )
        for subject in report.findings
    ]
    yield Paragraph(paper.NOTE)
    yield paper.table(outcomes, report.compared)
