"""A verdict as a document: a sentence, and the two sides beside each other."""

import math
from dataclasses import dataclass
from itertools import chain, repeat

from intop.domain.speedups import ModelSpeedUp, SpeedUps
from intop.domain.verdict import Pairwise, SideBySide, Verdict
from intop.report.document.columns import Column, numbers, span
from intop.report.document.model import Block, Notes, Section, Table, widened
from intop.report.numbers import counted

WIDTH = 32
"""Characters of the scale that latencies are drawn on."""

DEFAULT_MARK, TUNED_MARK, BOTH_MARK = "○", "●", "◉"


def verdict(title: str, found: Verdict) -> Section:
    """The verdict in a sentence, the configuration it is about, and the sides in full."""
    means = f"geometric means of P99 over {found.pairs} interleaved pairs; {found.origin}"
    default, tuned = _ms(found.default_p99_ms), _ms(found.tuned_p99_ms)
    lines = [f"{found.reference} {default}, tuned {tuned} ({means})"]
    if found.stopped_early:
        lines.append(
            f"clear after {found.rounds} of {found.planned_rounds} rounds, so the rest was not "
            f"measured; the intervals of all {found.looks} looks hold together at {found.level:.0%}"
        )
    lines += [f"{key} = {value}" for key, value in found.configuration.values.items()]
    written = Notes(tuple(f"  {line}" for line in lines))
    blocks: list[Block] = [written, _drawn(found), _notes(found.sides)]
    if found.models is not None:
        notes = (models_sentence(found.models), LUCK)
        blocks += [model_table(found.models), Notes(notes)]
    return Section(title=f"{title}: {sentence(found)}", blocks=tuple(blocks))


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


def model_table(found: SpeedUps) -> Table:
    """A row for each model's own winner."""
    return Table(
        columns=(
            Column("model", "text"),
            Column("P99", unit="ms"),
            Column("times lower", "span"),
            Column("rounds", "count"),
            Column("remark", "text"),
        ),
        rows=tuple(
            (one.model, one.p99_ms, span(one.ratio), one.rounds, measured_as(one) or None)
            for one in found.models
        ),
    )


def side_table(found: Verdict) -> Table:
    """What both sides did: latencies by percentile and other quantities."""
    sides = found.sides
    lines: list[tuple[str, Pairwise, float]] = [
        *((f"{name} in ms", both, 1.0) for name, both in sides.latencies_ms.items()),
        ("requests/s achieved", sides.achieved_rps, 1.0),
        ("failed requests in %", sides.error_share, 100.0),
        ("balancer's CPU in %", sides.balancer_cpu, 100.0),
    ]
    return Table(
        name="sides",
        title="Both sides of the verdict",
        origin="measured",
        columns=(
            Column("quantity", "text"),
            *numbers(found.reference, "tuned"),
            Column(f"ratio ({found.level:.0%} interval)", "span"),
        ),
        rows=tuple(
            (name, scale * both.default, scale * both.tuned, span(both.ratio))
            for name, both, scale in lines
        ),
    )


def _drawn(found: Verdict) -> Table:
    """With the latencies drawn over each other."""
    table, latencies = side_table(found), found.sides.latencies_ms.values()
    marks = f"logarithmic ({DEFAULT_MARK} {found.reference}, {TUNED_MARK} tuned)"
    drawn = map(_Scale.of(found.sides).drawn, latencies)
    rest = repeat("", len(table.rows) - len(latencies))
    return widened(table, Column(marks, "text"), chain(drawn, rest))


def _notes(sides: SideBySide) -> Notes:
    counts = sides.requests
    latencies = f"Latencies of all requests ({counts.default:.0f} and {counts.tuned:.0f})"
    ratios = "Ratios above 1 are higher values of the default: geometric means over the pairs"
    return Notes(
        (
            f"{latencies}, drawn from {_Scale.of(sides)}.",
            f"{ratios}, each interval for itself.",
            "The verdict is on P99 alone.",
        )
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
