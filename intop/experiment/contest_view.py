"""A contest as a document."""

from collections import defaultdict
from collections.abc import Iterator, Mapping

from intop.domain.multi_arm import Contest, Contestant
from intop.report.document.columns import Column, numbers
from intop.report.document.model import Section, tabled
from intop.report.numbers import counted
from intop.report.text import few


def contest_section(title: str, contest: Contest) -> Section:
    """Return all contestants as a table, with what of each baseline the host can't have."""
    together = (
        f" The intervals of the ratios hold all together at {_percent(contest.level)} "
        "(Bonferroni); those of P99 each for itself."
    )
    are_several = sum(c.ratio is not None for c in contest.contestants) > 1
    ratio_level = _percent(contest.ratio_level)
    return tabled(
        f"{title}: contest, {contest.rounds} interleaved rounds",
        (
            Column("contestant", "text"),
            *numbers(
                "keys changed",
                f"P99 ({_percent(contest.level)} interval)",
                f"P99 of {contest.reference} / its own ({ratio_level} interval)",
            ),
            Column("outcome", "text"),
        ),
        ((c.name, _keys(c), _p99(c), str(c.ratio or "-"), c.outcome) for c in contest.contestants),
        [
            f"Above 1 is better than {contest.reference}.{together if are_several else ''}",
            *(line for contestant in contest.contestants for line in _notes(contestant)),
        ],
    )


def _notes(contestant: Contestant) -> Iterator[str]:
    name, left_out, already = contestant.name, contestant.left_out, contestant.already
    if contestant.failures:
        yield f"{name}: {counted(contestant.failures, 'trial')} failed: {contestant.detail}"
    if left_out or already:
        parts = [f"{already} of {contestant.keys} so already", *_reasons(left_out)]
        yield f"{name} ({contestant.title}): {'; '.join(parts)}"


def _reasons(left_out: Mapping[str, str]) -> list[str]:
    """Return what is left out, by kind of reason; some keys stand for all of them."""
    keys: dict[str, list[str]] = defaultdict(list)
    for key, reason in left_out.items():
        keys[reason.partition(": ")[0]].append(key)
    return [f"left out {len(k)} ({reason}): {few(k, 2)}" for reason, k in keys.items()]


def _keys(contestant: Contestant) -> str:
    changed = len(contestant.configuration.values)
    return f"{changed} of {contestant.keys}" if contestant.keys else "-"


def _p99(contestant: Contestant) -> str:
    p99 = contestant.p99_ms
    return "-" if p99 is None else f"{p99.value:.1f} ms ({p99.low:.1f} to {p99.high:.1f})"


def _percent(level: float) -> str:
    """Return such as 95%, 98.75%."""
    return f"{100 * level:.4g}%"
