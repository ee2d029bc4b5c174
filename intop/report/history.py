"""Histories over campaigns as documents. Formats, and computes nothing."""

from collections.abc import Iterator, Sequence

from intop.domain.comparison import Contrast, Latency
from intop.domain.history import History, Moment, Step
from intop.domain.stats import Interval
from intop.report.comparison import speed_up
from intop.report.document.columns import Column, Value, columns, texts
from intop.report.document.model import Section, tabled
from intop.report.numbers import percent


def sections(found: Sequence[History]) -> list[Section]:
    """A table of the campaigns of each history, and what changed between them."""
    return [_section(one) for one in found]


def _section(one: History) -> Section:
    steps = (None, *one.steps)
    rows = [_row(moment, step, one.level) for moment, step in zip(one.moments, steps, strict=True)]
    return tabled(
        f"{one.title} over time: P99 in ms by campaign of {one.study}, with {percent(one.level)} "
        f"intervals",
        (
            Column("campaign", "count"),
            *texts("begun (UTC)"),
            *columns("span", "default", "default / before", "tuned", "tuned / before", "speed-up"),
            *texts("verdict"),
        ),
        rows,
        _notes(one),
    )


def _row(moment: Moment, step: Step | None, level: float) -> tuple[Value, ...]:
    verdict = moment.verdict
    return (
        moment.campaign,
        moment.started_at[:16].replace("T", " "),
        _latency(moment.default),
        _ratio(step.default if step else None),
        _latency(moment.tuned),
        _ratio(step.tuned if step else None),
        speed_up(verdict, level),
        verdict.short if verdict else "not verified",
    )


def _latency(found: Latency | None) -> Interval | None:
    return found.mean_ms if found else None


def _ratio(found: Contrast | None) -> Interval | None:
    return found.ratio if found else None


def _notes(one: History) -> Iterator[str]:
    if not one.steps:
        yield "Only this campaign has measured it, so there is nothing to compare it with."
    for before, moment, step in zip(one.moments, one.moments[1:], one.steps, strict=False):
        about = f"Campaign {before.campaign} to {moment.campaign}"
        for line in step.incomparable:
            yield f"{about}: not comparable, {line}"
        for line in step.changed:
            yield f"{about}: {line}"
        if step.default is not None:
            yield f"{about}: P99 of the {moment.reference} {_in_words(step.default)}"
    if one.steps:
        yield (
            "The campaigns were measured one after the other: what changed meanwhile, and is no "
            "condition, is in no interval"
        )


def _in_words(found: Contrast) -> str:
    ratio = found.ratio
    if found.outcome == "not separated":
        return f"is not separated: {100 * (ratio.value - 1):+z.0f} %"
    return f"is {100 * abs(ratio.value - 1):.0f} % {found.outcome}"
