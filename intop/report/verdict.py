"""A verdict as text: a sentence, and the two sides beside each other."""

import math
from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from intop.domain.results import Pairwise, SideBySide, Verdict
from intop.report.text import new_table

WIDTH = 32
"""Characters of the scale that latencies are drawn on."""

DEFAULT_MARK, TUNED_MARK, BOTH_MARK = "○", "●", "◉"


def verdict(title: str, found: Verdict) -> RenderableType:
    """The verdict in a sentence, the configuration it is about, and the sides in full."""
    lines = [
        f"{title}: {sentence(found)}",
        (
            f"  {found.reference} {found.default_p99_ms:.1f} ms, "
            f"tuned {found.tuned_p99_ms:.1f} ms (geometric means of P99 over {found.pairs} "
            f"interleaved pairs; {found.origin})"
        ),
    ]
    if found.stopped_early:
        lines.append(
            f"  clear after {found.rounds} of {found.planned_rounds} rounds, so the rest was not "
            f"measured; the intervals of all {found.looks} looks hold together at {found.level:.0%}"
        )
    lines += [f"  {key} = {value}" for key, value in found.configuration.values.items()]
    if found.sides is None:
        return Group(Text("\n".join(lines)), "")
    return Group(
        Text("\n".join(lines)), "", _sides(found, found.sides), Text(_notes(found.sides)), ""
    )


def sentence(found: Verdict) -> str:
    """Such as: gain: P99 is 3.1 times lower (95 % interval 2.2 to 4.4).

    Against a baseline it names that one.
    """
    than = f" than with {found.against}" if found.against else ""
    interval = f"{found.level:.0%} interval {found.ratio_low:.2f} to {found.ratio_high:.2f}"
    if found.failures:
        return f"worse: trials of the tuned side that failed: {found.failures}"
    if found.outcome == "gain":
        return f"gain: {found.gain}"
    if found.outcome == "worse":
        return f"worse: P99 is {1 / found.ratio:.2f} times higher{than} (ratio's {interval})"
    if found.against:
        return f"no significant gain over {found.against} (ratio {found.ratio:.2f}, {interval})"
    return f"no significant gain, keep the defaults (ratio {found.ratio:.2f}, {interval})"


def _sides(found: Verdict, sides: SideBySide) -> Table:
    """Latencies by percentile, drawn over each other, and what else the sides did."""
    scale = _Scale.of(sides)
    table = new_table(
        ("", "left"),
        (f"{DEFAULT_MARK} {found.reference}", "right"),
        (f"{TUNED_MARK} tuned", "right"),
        (f"ratio ({found.level:.0%} interval)", "right"),
        ("logarithmic", "left"),
    )
    for percentile, latency in sides.latencies_ms.items():
        table.add_row(
            percentile,
            _ms(latency.default),
            _ms(latency.tuned),
            str(latency.ratio or "-"),
            scale.drawn(latency),
        )
    rate, errors, cpu = sides.achieved_rps, sides.error_share, sides.balancer_cpu
    table.add_row(
        "requests/s", f"{rate.default:.0f}", f"{rate.tuned:.0f}", str(rate.ratio or "-"), ""
    )
    table.add_row("failed", f"{errors.default:.2%}", f"{errors.tuned:.2%}", "-", "")
    if cpu is not None:
        table.add_row(
            "balancer's CPU", f"{cpu.default:.0%}", f"{cpu.tuned:.0%}", str(cpu.ratio or "-"), ""
        )
    return table


def _notes(sides: SideBySide) -> str:
    counts = sides.requests
    return (
        f"Latencies of all answered requests ({counts.default:.0f} and {counts.tuned:.0f}), drawn "
        f"from {_Scale.of(sides)}.\nRatios above 1 are higher values of the default: geometric "
        "means over the pairs, each interval for itself.\nThe verdict is on P99 alone."
    )


def _ms(value: float) -> str:
    return f"{value:.1f} ms"


@dataclass(frozen=True)
class _Scale:
    """A logarithmic scale of ms, on which equal ratios are equally long."""

    lowest: float
    highest: float

    @classmethod
    def of(cls, sides: SideBySide) -> "_Scale":
        """From the lowest to the highest latency that is drawn."""
        drawn = [value for one in sides.latencies_ms.values() for value in (one.default, one.tuned)]
        # A latency is whole µs, and may be none at all.
        return cls(max(0.001, min(drawn)), max(0.001, *drawn))

    def __str__(self) -> str:
        return f"{self.lowest:.1f} to {self.highest:.1f} ms"

    def drawn(self, latency: Pairwise) -> str:
        """Both marks, and the way between them."""
        default, tuned = self._place(latency.default), self._place(latency.tuned)
        if default == tuned:
            return " " * default + BOTH_MARK
        first, last = sorted((default, tuned))
        marks = (DEFAULT_MARK, TUNED_MARK) if default < tuned else (TUNED_MARK, DEFAULT_MARK)
        return " " * first + marks[0] + "─" * (last - first - 1) + marks[1]

    def _place(self, value: float) -> int:
        if self.highest == self.lowest:
            return 0
        share = math.log(max(value, self.lowest) / self.lowest)
        return round((WIDTH - 1) * share / math.log(self.highest / self.lowest))
