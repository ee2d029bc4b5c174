"""The sets that trim tried, and the changes that it left out, with their measured ratios."""

from collections.abc import Iterator

from intop.document.columns import Column
from intop.document.model import Table
from intop.domain.histogram import COARSE
from intop.domain.trimmed import MeasuredSet, Trimmed
from intop.words import counted, percent


def trim_sentence(trimmed: Trimmed) -> str:
    """Return such as: 3 of 12 keys stay, by 47 trials."""
    count, of = len(trimmed.configuration.values), len(trimmed.candidate.values)
    return f"{count} of {of} keys stay, by {counted(trimmed.trials, 'trial')}"


def trim_tables(trimmed: Trimmed) -> Iterator[Table]:
    """Yield a table of the sets, and one of the changes, as far as they were measured."""
    level = percent(trimmed.level)
    if trimmed.sets:
        yield _table(
            "trim-sets",
            f"The first changes beside all {len(trimmed.candidate.values)} ({level} intervals)",
            "with these / with all",
            trimmed.sets,
            trimmed,
        )
    if trimmed.left_out:
        yield _table(
            "trim-changes",
            f"Each change left out of the smallest sufficient set ({level} intervals)",
            "without it / with it",
            trimmed.left_out,
            trimmed,
        )


def _table(
    name: str, title: str, what: str, sets: tuple[MeasuredSet, ...], trimmed: Trimmed
) -> Table:
    stay, has_tail = trimmed.configuration.values.keys(), trimmed.judged_by in COARSE
    return Table(
        name=name,
        title=title,
        origin="measured",
        columns=(
            Column("keys", "text"),
            *([Column(f"slowest tenth {what}", "span")] if has_tail else []),
            Column(f"{trimmed.judged_by} {what}", "span"),
            Column("", "text"),
        ),
        rows=tuple(
            (
                ", ".join(each.keys),
                *([each.tail] if has_tail else []),
                each.ratio,
                "stays" if stay >= {*each.keys} else "dropped" if len(each.keys) == 1 else "",
            )
            for each in sets
        ),
    )
