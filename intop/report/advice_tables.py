"""The tables of advice: changes by campaign, sets, verdicts, and the trials behind them."""

from collections.abc import Iterator

from intop.document.columns import Column, Link, Value, columns, texts
from intop.document.model import Block, Paragraph, Section, Table, without_empty
from intop.domain.stats import Interval
from intop.report.advice import Advice
from intop.report.evidence import Source, TrialRow
from intop.report.page.common import clock
from intop.words import counted

UNKNOWN = "unknown"
"""Cell of an earlier value that is not stored."""

RATIOS = (
    "Ratios of latency without the change / with it: above 1 it helps. By itself: beside the "
    "host's own values. Left out: of the winner. Missed: in the smallest set."
)


def evidence(advice: Advice) -> Iterator[Block]:
    """Yield the evidence for each change in each campaign."""
    rows = [(change, measured) for change in advice.changes for measured in change.evidence]
    if not rows:
        return
    places = _trial_tables(advice)
    yield without_empty(
        Table(
            name="evidence",
            title="Each change in each campaign, with the trials behind it",
            origin="measured",
            columns=(
                Column("key", "key"),
                *texts("change"),
                Column("situation", "count"),
                *texts("campaign"),
                *columns("key", "before", "after"),
                Column("winner's verdict", "text"),
                *columns("span", "judged by itself", "alone, in the explanation"),
                *columns("span", "left out", "missed"),
            ),
            rows=tuple(
                (
                    " + ".join(change.keys),
                    change.direction,
                    change.situation,
                    _linked(measured.source, places),
                    ", ".join(value or UNKNOWN for value in measured.before),
                    ", ".join(measured.after),
                    measured.verdict or "not of a winner",
                    *(measured.judged, measured.alone, measured.left_out, measured.missed),
                )
                for change, measured in rows
            ),
        )
    )
    yield Paragraph(f"{RATIOS} A campaign's name leads to its trials.")


def _linked(source: Source, places: dict[Source, str]) -> Value:
    return Link(source.title, places[source]) if source in places else source.title


def sets(advice: Advice) -> Iterator[Block]:
    """Whole sets of values, which contests have compared."""
    if not advice.sets:
        return
    places = _trial_tables(advice)
    yield Table(
        name="sets",
        title="Sets of values in contests",
        origin="measured",
        columns=(
            *texts("set", "what it is"),
            Column("situation", "count"),
            *texts("campaign"),
            Column("keys", "count"),
            Column("against", "text"),
            Column("times lower", "span"),
            *texts("outcome"),
        ),
        rows=tuple(
            (
                compared.name,
                compared.title,
                compared.situation,
                _linked(compared.source, places),
                compared.keys,
                compared.reference,
                compared.ratio,
                compared.outcome,
            )
            for compared in advice.sets
        ),
    )
    yield Paragraph("Which of its keys a set's effect comes from, a contest does not show.")


def verdicts(advice: Advice) -> Iterator[Block]:
    """Yield all verdicts, or the command that makes one."""
    if not advice.verdicts:
        yield Paragraph("There is no verdict yet. Make one with", command="intop tune")
        return
    places = _trial_tables(advice)
    yield without_empty(
        Table(
            name="verdicts",
            title="Verdicts",
            origin="measured",
            columns=(
                *texts("campaign"),
                Column("situation", "count"),
                Column("begun (UTC)", "time"),
                Column("in place of the default", "text"),
                Column("keys", "count"),
                *columns("number", "default in ms", "tuned in ms"),
                Column("times lower", "span"),
                *texts("verdict", "explained"),
            ),
            rows=tuple(
                (
                    _linked(judged.source, places),
                    judged.situation,
                    clock(judged.source.started_at),
                    judged.verdict.against or None,
                    len(judged.verdict.configuration.values),
                    judged.verdict.default_ms,
                    judged.verdict.tuned_ms,
                    Interval(
                        judged.verdict.ratio, judged.verdict.ratio_low, judged.verdict.ratio_high
                    ),
                    judged.verdict.short,
                    "yes" if judged.is_explained else "no",
                )
                for judged in advice.verdicts
            ),
        )
    )


def trials(advice: Advice) -> Iterator[Block]:
    """The trials that all this rests on, a folded table for each campaign."""
    if not advice.trials:
        return
    yield Paragraph(
        "The last attempt at each trial. In intop.trials() and in exports the same trial has the "
        "same study, campaign, architecture, workload, stage and index."
    )
    places = _trial_tables(advice)
    for source, rows in advice.trials:
        table = Table(
            name=places[source],
            title=source.title,
            origin="measured",
            columns=(
                *texts("stage"),
                Column("index", "count"),
                *texts("arm"),
                *columns("count", "round"),
                *texts("status"),
                Column("latency in ms"),
                Column("started (UTC)", "time"),
            ),
            rows=tuple(map(_trial, rows)),
        )
        yield Section(
            title=f"{source.title} ({counted(len(rows), 'trial')})", blocks=(table,), folded=True
        )


def _trial(row: TrialRow) -> tuple[Value, ...]:
    started = clock(row.started_at)
    return row.stage, row.index, row.arm, row.round, row.status, row.judged_ms, started


def _trial_tables(advice: Advice) -> dict[Source, str]:
    """The names of the tables of trials."""
    return {source: f"trials-{number}" for number, (source, _) in enumerate(advice.trials, start=1)}
