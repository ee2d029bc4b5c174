"""A contest as a document."""

from collections import defaultdict
from collections.abc import Mapping

from intop.domain.multi_arm import Contest, Contestant
from intop.report.document.columns import Column, numbers
from intop.report.document.model import Section, tabled
from intop.report.words import counted, few


def contest(title: str, found: Contest) -> Section:
    """All contestants in a table, and below it what of each baseline the host can't have."""
    others = sum(c.ratio is not None for c in found.contestants)
    together = (
        f" The intervals of the ratios hold all together at {_percent(found.level)} (Bonferroni); "
        "those of P99 each for itself."
    )
    return tabled(
        f"{title}: contest, {found.rounds} interleaved rounds",
        (
            Column("contestant", "text"),
            *numbers(
                "keys changed",
                f"P99 ({_percent(found.level)} interval)",
                f"P99 of {found.reference} / its own ({_percent(found.ratio_level)} interval)",
            ),
            Column("outcome", "text"),
        ),
        (
            (one.name, _keys(one), _p99(one), str(one.ratio or "-"), one.outcome)
            for one in found.contestants
        ),
        [
            f"Above 1 is better than {found.reference}.{together if others > 1 else ''}",
            *(line for one in found.contestants for line in _about(one)),
        ],
    )


def _about(one: Contestant) -> list[str]:
    notes: list[str] = []
    if one.failures:
        notes.append(f"{one.name}: {counted(one.failures, 'trial')} failed: {one.detail}")
    if one.left_out or one.already:
        parts = [f"{one.already} of {one.keys} so already"]
        parts += _reasons(one.left_out)
        notes.append(f"{one.name} ({one.title}): {'; '.join(parts)}")
    return notes


def _reasons(left_out: Mapping[str, str]) -> list[str]:
    """What is left out, by kind of reason; some keys stand for all of them."""
    keys: dict[str, list[str]] = defaultdict(list)
    for key, reason in left_out.items():
        keys[reason.partition(": ")[0]].append(key)
    return [f"left out {len(k)} ({reason}): {few(k, 2)}" for reason, k in keys.items()]


def _keys(one: Contestant) -> str:
    return f"{len(one.configuration.values)} of {one.keys}" if one.keys else "-"


def _p99(one: Contestant) -> str:
    if one.p99_ms is None:
        return "-"
    return f"{one.p99_ms.value:.1f} ms ({one.p99_ms.low:.1f} to {one.p99_ms.high:.1f})"


def _percent(level: float) -> str:
    """95 %, 98.75 %."""
    return f"{100 * level:.4g}%"
