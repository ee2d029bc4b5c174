"""The first screen: each decision with its figure, its keys and the next command."""

from collections.abc import Iterator

from intop.document.columns import Column, Value, columns
from intop.document.model import Block, Paragraph, Section, Table, without_empty
from intop.domain.deployment import Change, Deployment
from intop.domain.verdict import Verdict
from intop.report.findings import Findings, Report
from intop.report.page.common import as_sentence, of_subject
from intop.report.page.latency import percentile_figure
from intop.sentences import percent_below, verdict_sentence
from intop.words import LOADS, capital

TO_SET, MEASURED = "Keys to set on the load balancer", "Keys that were measured"


def cells(report: Report) -> Iterator[Section]:
    """Yield a section for each architecture and workload."""
    for findings in report.findings:
        load = LOADS.get(findings.workload)
        title = f"{findings.arch}, {load} ({findings.workload})" if load else findings.title
        blocks = of_subject(findings, _cell(findings))
        yield Section(title=title, blocks=blocks, beside=findings.judged is not None)


def _cell(findings: Findings) -> Iterator[Block]:
    verdict, deployment = findings.verdict, findings.deployment
    if verdict is None:
        state = "No verdict yet." if findings.stages else "Nothing measured yet."
        command = f"intop tune --resume {_options(findings)}"
        yield Paragraph(f"{state} Make it with", command=command)
        return
    yield Paragraph(" ".join(_decision(verdict)))
    if findings.judged is not None:
        yield percentile_figure(findings.title, verdict, findings.judged.latencies)
    if deployment is not None:
        yield _keys_to_set(deployment)
    elif verdict.is_gain or verdict.outcome in ("undecided", "no gain: it costs"):
        yield _measured_keys(verdict)
    yield _next(findings, verdict)


def _decision(verdict: Verdict) -> Iterator[str]:
    """Yield the decision with its interval, and both sides of a gain."""
    yield as_sentence(verdict_sentence(verdict))
    if verdict.latency_outcome == "gain":
        yield (
            f"{verdict.against or 'The default'} has {verdict.default_ms:.1f} ms, the winner "
            f"{verdict.tuned_ms:.1f} ms, over {verdict.pairs} interleaved pairs of fresh "
            "trials."
        )


def _keys_to_set(deployment: Deployment) -> Table:
    kept = deployment.kept
    has_share = kept is not None and kept.full.value > 1
    share = f": {percent_below(kept.share)} of the gain" if kept is not None and has_share else ""
    return without_empty(
        Table(
            name="keys",
            title=f"{TO_SET}{share}",
            origin="measured",
            columns=(
                *columns("key", "key", "default", "set to"),
                Column("without it: times higher", "span"),
            ),
            rows=tuple(map(_key_cells, deployment.changes)),
        )
    )


def _key_cells(change: Change) -> tuple[Value, ...]:
    part = change.contribution
    missed = None if part is None else part.missed or part.left_out
    return change.key, change.default or "unset", change.value, missed


def _measured_keys(verdict: Verdict) -> Table:
    return Table(
        name="keys",
        title=MEASURED,
        origin="measured",
        columns=columns("key", "key", "value"),
        rows=tuple(verdict.configuration.values.items()),
    )


def _next(findings: Findings, verdict: Verdict) -> Paragraph:
    """Return the next command, or the reason why there is none."""
    options = _options(findings)
    if findings.deployment is not None:
        text = "Look at what it would change on your hosts, with"
        return Paragraph(text, command=f"intop plan {options}")
    if verdict.is_gain:
        return Paragraph(findings.undeployable)
    if verdict.outcome == "no gain: it costs":
        return Paragraph(
            f"Nothing: keep the defaults. {capital(verdict.judged_by)} was shown to be lower, at "
            f"more than was accepted: {verdict.costs}. Whoever accepts that, deploys it with",
            command=f"intop plan --accept-costs {options}",
        )
    if verdict.outcome == "undecided":
        pairs = verdict.further.pairs if verdict.further else verdict.pairs
        text = "Nothing yet: the verdict is undecided. Go on with"
        return Paragraph(text, command=f"intop verify --more {pairs} {options}")
    return Paragraph("Nothing: keep the defaults. No configuration was shown to be better.")


def _options(findings: Findings) -> str:
    return f"--arch {findings.arch} --workload {findings.workload}"
