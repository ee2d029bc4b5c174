"""The sets that trim tried, and the changes that it left out, with their measured ratios."""

from collections.abc import Iterator

from intop.document.columns import Column
from intop.document.model import Table
from intop.domain.histogram import COARSE
from intop.domain.trimmed import MeasuredSet, SlowChange, Trimmed
from intop.words import counted, percent


def trim_sentence(trimmed: Trimmed) -> str:
    """Return such as: 3 of 12 keys stay, by 47 trials."""
    count, of = len(trimmed.configuration.values), len(trimmed.candidate.values)
    return f"{count} of {of} keys stay, by {counted(trimmed.trials, 'trial')}"


def slow_sentence(change: SlowChange) -> str:
    """Return such as: KEY goes: 8 of 33 trials with it have requests above 620 ms, ..."""
    return (
        f"{', '.join(change.keys)} goes: {change.slow} of {counted(change.trials, 'trial')} with "
        f"it have requests above {change.limit_ms:.3g} ms, and {change.slow_others} of "
        f"{change.others} without it"
    )


def trim_tables(trimmed: Trimmed) -> Iterator[Table]:
    """Yield tables of slow changes, of the sets and of the changes, as far as there are any."""
    level = percent(trimmed.level)
    if trimmed.slow:
        yield Table(
            name="trim-slow",
            title=f"Changes that go for requests above {trimmed.slow[0].limit_ms:.3g} ms",
            origin="measured",
            columns=(
                Column("keys", "text"),
                Column("slow trials with it", "text"),
                Column("slow trials without it", "text"),
            ),
            rows=tuple(
                (
                    ", ".join(change.keys),
                    f"{change.slow} of {change.trials}",
                    f"{change.slow_others} of {change.others}",
                )
                for change in trimmed.slow
            ),
        )
    if trimmed.sets:
        tried = len(trimmed.candidate.values) - sum(len(change.keys) for change in trimmed.slow)
        yield _table(
            "trim-sets",
            f"The first changes beside all {tried} ({level} intervals)",
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
