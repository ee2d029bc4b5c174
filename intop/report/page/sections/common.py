"""What all sections do alike."""

from dataclasses import replace
from datetime import datetime

from intop.domain.report import Findings
from intop.report.document.model import Paragraph, Table


def lacking(one: Findings, stage: str) -> tuple[Paragraph, ...]:
    """What a stage would have made, if it could still be run."""
    return tuple(
        Paragraph(
            as_sentence(f"{missing.what}: not there yet") + " Make it with", command=missing.command
        )
        for missing in one.missing
        if missing.stage == stage
    )


def clock(time: str) -> str | None:
    """A time in ISO 8601 as people write it; None for none."""
    return datetime.fromisoformat(time).strftime("%Y-%m-%d %H:%M:%S") if time else None


def as_sentence(words: str) -> str:
    """With a capital letter and a full stop."""
    return f"{words[:1].upper()}{words[1:]}."


def table_name(one: Findings, kind: str) -> str:
    """Such as `x86-slt-importance`."""
    return f"{one.arch}-{one.workload}-{kind}"


def named(one: Findings, table: Table) -> Table:
    """The table with the subject in its name."""
    return replace(table, name=table_name(one, table.name))


def without_empty(table: Table) -> Table:
    """The table without columns in which no row has anything; the first stays."""
    kept = [
        place
        for place in range(len(table.columns))
        if place == 0 or any(row[place] is not None for row in table.rows)
    ]
    return replace(
        table,
        columns=tuple(table.columns[place] for place in kept),
        rows=tuple(tuple(row[place] for place in kept) for row in table.rows),
    )
