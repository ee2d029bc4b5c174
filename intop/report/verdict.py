"""A verdict as text: a sentence, and the two sides beside each other."""

import math
from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from intop.domain.results import Pairwise, SideBySide, Verdict
from intop.domain.speedups import ModelSpeedUp, SpeedUps
from intop.report.numbers import counted, interval
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
    parts: list[RenderableType] = [Text("\n".join(lines)), ""]
    if found.sides is not None:
        parts += [_sides(found, found.sides), Text(_notes(found.sides)), ""]
    if found.models is not None:
        parts += [_models(found.models), Text(f"{models_sentence(found.models)} {LUCK}"), ""]
    return Group(*parts)


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


LUCK = (
    "The best of several is flattered by luck; the verdict is a fresh measurement of one "
    "configuration."
)
"""How far to believe the best of the models."""


def models_sentence(found: SpeedUps) -> str:
    """Mean and best speed-up over the models.

    Such as: mean over 4 models 2.10 (1.50 to 2.90), best XGBoost 3.10 (2.20 to 4.40).
    """
    models = counted(found.counted, "model")
    best = found.best
    if best is None or best.ratio is None:
        return "No model's winner was measured in two rounds or more without a failure."
    mean = (
        f"mean over {models} {found.mean}"
        if found.mean is not None
        else f"no mean over {models}, since they have less than two rounds in common"
    )
    return (
        f"Speed-up of the models' own winners ({found.level:.0%} intervals): {mean}, "
        f"best {best.model} {best.ratio}."
    )


def measured_as(one: ModelSpeedUp) -> str:
    """The arm that a model's winner was measured on, where it is another's, and its failures."""
    words = [f"same as {one.arm}"] if one.arm != one.model else []
    words += [f"failed in {counted(one.failures, 'round')}"] if one.failures else []
    return ", ".join(words)


def _models(found: SpeedUps) -> Table:
    table = new_table(
        ("model's own winner", "left"),
        ("P99", "right"),
        (f"speed-up ({found.level:.0%} interval)", "right"),
        ("rounds", "right"),
        ("", "left"),
    )
    for one in found.models:
        ratio = one.ratio
        table.add_row(
            one.model,
            "-" if one.p99_ms is None else _ms(one.p99_ms),
            "-" if ratio is None else interval(ratio.ratio, ratio.low, ratio.high),
            str(one.rounds),
            measured_as(one),
        )
    return table


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
