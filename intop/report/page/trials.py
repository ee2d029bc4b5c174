"""The trials: drift over the campaign, refusals, the pipeline and provenance."""

from collections.abc import Iterator
from dataclasses import fields
from datetime import datetime

from intop.campaign.collect.view import drift_sentence, replica_sentences
from intop.document.columns import Column, Value, columns, numbers, texts
from intop.document.model import (
    Block,
    Figure,
    Paragraph,
    Section,
    Table,
    Verbatim,
    without_empty,
)
from intop.domain.trial import Conditions, Status
from intop.report.findings import Findings, Reason, Report, StageRecord
from intop.report.page.common import as_sentence, clock, drawing
from intop.words import capital, counted, percent

NOUNS = {
    "arch": "architecture",
    "cpu": "CPU",
    "cpus": "CPUs of the load balancer",
    "nginx": "version of the server",
    "load_tool": "load tool",
    "rate_rps": "requests/s asked",
    "duration_s": "duration of a trial in s",
    "timeout_s": "time-out in s",
    "script": "load script (fingerprint)",
    "paths": "paths asked for",
    "emulation": "emulated by",
    "nginx_conf": "configuration of the server (fingerprint)",
    "generator": "load generator",
    "judged_by": "judged by",
}
"""Conditions whose names don't speak for themselves."""

WHAT_THEN: dict[Reason, str] = {
    "refused value": "kept as a failure: the kernel does not take that value",
    "failed": "kept as a failure",
    "disturbed": "measured again, as often as the study allows",
    "pruned": "stopped early, kept as a bad result",
    "overloaded": "kept as a bad result",
}
STATUSES: tuple[Status, ...] = ("ok", "overloaded", "pruned", "disturbed", "failed")
MIB, GIB = 2**20, 2**30


# Drift --------------------------------------------------------------------------------------------


def drift(findings: Findings) -> Iterator[Block]:
    """The default's latency over the campaign."""
    sentinels = findings.sentinels
    if not sentinels.sentinels:
        yield Paragraph("No trial of the default could be used yet.")
        return
    name, count = sentinels.judged_by, counted(len(sentinels.sentinels), "trial")
    yield Figure(
        title=f"{capital(name)} of the default over the campaign ({count})",
        draw=drawing("intop.campaign.collect.figure:default_drift", findings.title, sentinels),
        label=f"{capital(name)} of the default over the time of the campaign for {findings.title}",
        caption=(
            f"The default was measured again and again between all else. If its {name} stays, the "
            "machine was the same all along; where it moves, only what was measured in turn, as "
            "the verdict's pairs were, can be held against each other."
        ),
        tables=(
            Table(
                name="default",
                title="All usable trials of the default",
                origin="measured",
                columns=(
                    Column("minutes after the first"),
                    Column("replica", "text"),
                    Column(f"{name} in ms"),
                ),
                rows=tuple((60 * s.hours, s.replica, s.judged_ms) for s in sentinels.sentinels),
            ),
            Table(
                name="default-trend",
                title=(
                    f"The line through their logarithms, with its {percent(sentinels.drift.level)} "
                    "interval"
                ),
                columns=(Column("minutes after the first"), Column(f"{name} in ms", "span")),
                rows=tuple((60 * t.hours, t.judged_ms) for t in sentinels.trend),
            ),
        ),
    )
    sentences = [as_sentence(drift_sentence(sentinels.drift))]
    if findings.agreement is not None:
        sentences += [as_sentence(sentence) for sentence in replica_sentences(findings.agreement)]
    yield Paragraph(" ".join(sentences))


# Refused ------------------------------------------------------------------------------------------


def refused(findings: Findings) -> Iterator[Block]:
    """Trials that came to nothing or to a bad end, and keys that could not be tuned."""
    attempts = sum(record.measured + record.repeated for record in findings.stages)
    if findings.refused_trials:
        count = sum(r.attempts for r in findings.refused_trials)
        yield Paragraph(f"{count} of {attempts} attempts at a trial were no ordinary results.")
        yield Table(
            name="refused-trials",
            title="Attempts by reason",
            origin="measured",
            columns=(
                *texts("stage", "outcome"),
                *columns("count", "attempts", "configurations"),
                *columns("prose", "what was said of the first", "what then"),
            ),
            rows=tuple(
                (r.stage, r.reason, r.attempts, r.configurations, r.detail, WHAT_THEN[r.reason])
                for r in findings.refused_trials
            ),
        )
    else:
        yield Paragraph(
            f"None of {attempts} attempts at a trial failed, was disturbed or was stopped."
        )
    if findings.refused_keys:
        count = sum(len(r.keys) for r in findings.refused_keys)
        yield Paragraph(
            f"Of the catalogue's keys {findings.offered} could be tuned on these hosts, and "
            f"{count} could not. Keys that protect the machine are in no catalogue."
        )
        yield Table(
            name="refused-reasons",
            title="Keys that could not be tuned, by reason",
            columns=(Column("reason", "prose"), Column("keys", "count")),
            rows=tuple((r.reason, len(r.keys)) for r in findings.refused_keys),
        )
        table = Table(
            name="refused-keys",
            title="Each key that could not be tuned",
            columns=(Column("key", "key"), *columns("prose", "reason", "in detail")),
            rows=tuple(
                (key, r.reason, r.details.get(key)) for r in findings.refused_keys for key in r.keys
            ),
        )
        title = "Which keys could not be tuned"
        yield Section(title=title, blocks=(without_empty(table),), folded=True)


# Provenance ---------------------------------------------------------------------------------------


def provenance(report: Report) -> Iterator[Block]:
    """Return the campaign: its place in the store, its times and versions."""
    yield Table(
        name="campaign",
        title="Campaign",
        columns=texts("quantity", "value"),
        rows=(
            ("study", report.study),
            ("campaign, its number in the store", str(report.campaign)),
            ("started (UTC)", clock(report.started_at)),
            ("finished (UTC)", clock(report.finished_at or "") or "not finished"),
            ("report made (UTC)", clock(report.made_at)),
            ("seed", str(report.seed)),
            ("measured by intop", ", ".join(report.tool_versions)),
            ("report made by intop", report.tool_version),
            ("level of intervals", f"{report.level:g}"),
        ),
    )


def measured(findings: Findings) -> Iterator[Block]:
    """Return the trials of each stage, and their conditions."""
    yield without_empty(
        Table(
            name="pipeline",
            title="Trials by stage",
            origin="measured",
            columns=(
                Column("stage", "text"),
                Column("what is measured", "prose"),
                *columns("count", "planned", "measured", *STATUSES, "further attempts"),
                Column("first trial (UTC)", "time"),
                *numbers("minutes to the last", "minutes of trials"),
            ),
            rows=tuple(_record_cells(record) for record in findings.stages),
        )
    )
    if findings.conditions:
        yield _conditions(findings)
    if findings.facts is not None:
        facts = findings.facts
        yield Paragraph(
            f"The load balancer has {facts.cpus} processors and {facts.memory_bytes / GIB:.1f} GiB "
            "of memory."
            + (
                " It is a network namespace: it shares its kernel with the rest of the machine."
                if facts.in_namespace
                else ""
            )
        )


def _record_cells(record: StageRecord) -> tuple[Value, ...]:
    return (
        record.stage,
        record.description,
        record.planned,
        record.measured,
        *(record.by_status.get(status) for status in STATUSES),
        record.repeated or None,
        clock(record.started_at),
        _minutes(record.started_at, record.ended_at),
        record.seconds / 60,
    )


def _minutes(start: str, end: str) -> float | None:
    if not start:
        return None
    return (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds() / 60


def _conditions(findings: Findings) -> Table:
    """Return the conditions of all comparable trials, a column for each set."""
    several = len(findings.conditions) > 1
    names = [f.name for f in fields(Conditions)]
    return Table(
        name="conditions",
        title="Conditions, the same in all trials"
        if not several
        else "Conditions, which were not the same in all trials",
        columns=(
            Column("condition", "text"),
            *(
                Column(f"value {number}" if several else "value", "text")
                for number in range(1, len(findings.conditions) + 1)
            ),
        ),
        rows=tuple(
            (
                NOUNS.get(name, name),
                *(condition_cell(getattr(conditions, name)) for conditions in findings.conditions),
            )
            for name in names
        ),
    )


def condition_cell(value: object) -> str | None:
    """Return a condition as a cell."""
    if value is None:
        return None
    return f"{value:g}" if isinstance(value, float) else str(value) or None


def checking(report: Report) -> Iterator[Block]:
    """Return the commands by which a sceptic checks this."""
    first = next((subject for subject in report.findings if subject.verdict), report.findings[0])
    yield Paragraph(
        "Every number here comes from the store of the campaign, and every figure has its numbers "
        "in a table below it. What says predicted was not measured; no table mixes the two. With "
        "the study's file and its store at hand:"
    )
    tune = f"intop tune --new --arch {first.arch} --workload {first.workload}"
    yield Verbatim(
        (
            "intop report --csv tables       # all tables as files",
            "intop report --json             # all that is in this page, in full precision",
            f"{tune}      # measure it all again",
        )
    )
    yield Paragraph(
        "Another campaign will not find the same figures, since machines and their load vary; its "
        "interval should overlap with this one's."
    )
