"""A verdict as a document: a sentence, and the two sides beside each other."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, repeat

from intop.domain.causes import LEVEL, Causes
from intop.domain.guardrails import Guardrail, Quantity
from intop.domain.halves import Halves
from intop.domain.percentiles import BEHIND, PERCENTS, requests_for
from intop.domain.speedups import ModelSpeedUp, SpeedUps
from intop.domain.verdict import Pairwise, PairwiseLatency, SideBySide, Verdict
from intop.report.document.columns import Column, numbers, texts
from intop.report.document.model import Block, Notes, Section, Table, widened
from intop.report.words import counted, interval, number, percent

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
    blocks: list[Block] = [written, _drawn(found)]
    blocks += [guardrail_table(found)] if found.guardrails else []
    blocks.append(Notes(tuple(_notes(found))))
    if found.halves is not None:
        blocks.append(Notes((halves_sentence(found.halves),)))
    if found.causes is not None:
        blocks.append(Notes(tuple(cause_notes(found.causes))))
        blocks += [cause_table(found, found.causes)] if found.causes.found else []
    if found.models is not None:
        notes = (models_sentence(found.models), LUCK)
        blocks += [model_table(found.models), Notes(notes)]
    return Section(title=f"{title}: {sentence(found)}", blocks=tuple(blocks))


def sentence(found: Verdict) -> str:
    """Such as: gain: P99 is 3.1 times lower (95 % interval 2.2 to 4.4).

    Against a baseline it names that one. It says which guardrails are unclear or broken.
    """
    than = f" than with {found.against}" if found.against else ""
    within = f"{found.level:.0%} interval {found.ratio_low:.2f} to {found.ratio_high:.2f}"
    if found.failures:
        return f"worse: trials of the tuned side that failed: {found.failures}"
    match found.outcome:
        case "gain":
            return f"gain: {found.gain}"
        case "gain, but":
            return f"gain, but {found.doubts}: {found.gain}"
        case "no gain: it costs":
            return f"{found.short}: {found.costs}, though {found.gain}"
        case "worse":
            return f"worse: P99 is {1 / found.ratio:.2f} times higher{than} (ratio's {within})"
    besides = f"; besides, {found.costs}" if found.broken else ""
    told = "no significant gain, keep the defaults"
    if found.against:
        told = f"no significant gain over {found.against}"
    return f"{told} (ratio {found.ratio:.2f}, {within}){besides}"


def halves_sentence(found: Halves) -> str:
    """What each kind of the winner's parameters is worth."""
    return f"Its halves, as times that P99 is lower: {found.told}."


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
            (one.model, one.p99_ms, one.ratio, one.rounds, measured_as(one) or None)
            for one in found.models
        ),
    )


def side_table(found: Verdict) -> Table:
    """What both sides did: latencies by percentile and other quantities."""
    sides = found.sides
    lines: list[tuple[str, Pairwise | PairwiseLatency, float]] = [
        *((f"{name} in ms", both, 1.0) for name, both in sides.latencies_ms.items()),
        ("requests/s achieved", sides.achieved_rps, 1.0),
        ("failed requests in %", sides.error_share, 100.0),
        ("balancer's CPU in %", sides.balancer_cpu, 100.0),
        *((name, both, 1.0) for name, both in reference_metrics(sides)),
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
            (name, _scaled(both.default, scale), _scaled(both.tuned, scale), both.ratio)
            for name, both, scale in lines
        ),
    )


def reference_metrics(sides: SideBySide) -> Iterator[tuple[str, Pairwise]]:
    """What a verdict is not judged by, as far as its trials have it, by name and unit."""
    for name, both in (
        ("mean latency in ms", sides.mean_ms),
        ("received MB/s", sides.received_mb_s),
        ("balancer's memory in MiB", sides.memory_mib),
        ("balancer's context switches/s", sides.context_switches_per_s),
        ("balancer's power in W", sides.power_w),
    ):
        if both is not None:
            yield name, both


def _scaled(value: float | None, scale: float) -> float | None:
    return None if value is None else scale * value


MEANT: dict[Quantity, str] = {
    "P50": "P50 in ms",
    "rate": "requests/s achieved",
    "error share": "failed requests in %",
    "CPU": "balancer's CPU in %",
    "memory": "growth of the balancer's memory in MiB",
}
"""What the guardrails are about, with units."""


def guardrail_table(found: Verdict) -> Table:
    """A row for each guardrail: its effect, what is accepted, and whether it is kept."""
    return Table(
        name="guardrails",
        title="Guardrails of the verdict",
        origin="measured",
        columns=(
            Column("guardrail", "text"),
            *numbers(found.reference, "tuned"),
            Column(f"tuned against {found.reference} ({percent(found.level)} interval)", "text"),
            *texts("accepted", "state"),
        ),
        rows=tuple(
            (MEANT[one.quantity], one.default, one.tuned, _effect(one), _accepted(one), one.state)
            for one in found.guardrails
        ),
    )


def cause_notes(found: Causes) -> Iterator[str]:
    """Why there is a difference, by what the kernel counted; or that no known mechanism says so."""
    yield f"Why, by what the kernel counted: {found.told}."
    for cause in found.found:
        yield f"{cause.mechanism}: {cause.about}"


def cause_table(verdict: Verdict, found: Causes) -> Table:
    """A row for each counter that moved, by mechanism."""
    return Table(
        name="causes",
        title="What the kernel counted",
        origin="measured",
        columns=(
            *texts("mechanism", "counter"),
            *numbers(verdict.reference, "tuned"),
            Column(f"{verdict.reference} / tuned ({percent(LEVEL)} interval)", "span"),
            Column("meaning", "remark"),
        ),
        rows=tuple(
            (cause.mechanism, one.name, one.default, one.tuned, one.times, one.meaning)
            for cause in found.found
            for one in cause.counters
        ),
    )


def _effect(one: Guardrail) -> str:
    """Such as: 1.04 (0.98 to 1.10) times, +2.10 (-0.30 to +4.50) points."""
    sign = "" if one.unit == "times" else "+"
    return f"{interval(one.effect, one.low, one.high, sign)} {one.unit}"


def _accepted(one: Guardrail) -> str:
    bound = "at most" if one.worse == "higher" else "at least"
    sign = "" if one.unit == "times" else "+"
    return f"{bound} {number(one.margin, sign)} {one.unit}"


def _drawn(found: Verdict) -> Table:
    """With the latencies drawn over each other."""
    table, latencies = side_table(found), found.sides.latencies_ms.values()
    marks = f"logarithmic ({DEFAULT_MARK} {found.reference}, {TUNED_MARK} tuned)"
    drawn = map(_Scale.of(found.sides).drawn, latencies)
    rest = repeat("", len(table.rows) - len(latencies))
    return widened(table, Column(marks, "text"), chain(drawn, rest))


def _notes(found: Verdict) -> Iterator[str]:
    counts = found.sides.requests
    latencies = f"Latencies of all requests ({counts.default:.0f} and {counts.tuned:.0f})"
    ratios = "Ratios above 1 are higher values of the default: geometric means over the pairs"
    yield f"{latencies}, drawn from {_Scale.of(found.sides)}."
    yield f"{ratios}, each interval for itself."
    yield from latency_notes(found.sides)
    yield judged_by(found)


def latency_notes(sides: SideBySide) -> Iterator[str]:
    """Which percentiles are not told, and how few requests a single trial's P99 rests on."""
    if sides.untold:
        why = "; ".join(f"{name} {takes}" for name, takes in sides.untold.items())
        yield f"A percentile with fewer than {BEHIND} slower requests is not told (-): {why}."
    fewest = sides.fewest_requests
    if fewest is not None and fewest < (enough := requests_for(PERCENTS["P99"])):
        yield (
            f"A single trial has as few as {counted(fewest, 'request')}, and {enough:,} would put "
            f"{BEHIND} behind its P99: how much it scatters for that, the interval over the rounds "
            f"says."
        )


def judged_by(found: Verdict) -> str:
    """What the verdict rests on."""
    if not found.guardrails:
        return "The verdict is on P99 alone, without guardrails."
    return (
        "The verdict is on P99, within the guardrails: kept is what the interval excludes being "
        "worse than is accepted, broken what is all beyond that, unclear what is neither."
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
        both = (value for one in sides.latencies_ms.values() for value in (one.default, one.tuned))
        drawn = [value for value in both if value is not None]
        # A latency is whole µs, and may be none at all.
        return cls(max(0.001, min(drawn)), max(0.001, *drawn))

    def __str__(self) -> str:
        return f"{self.lowest:.1f} to {self.highest:.1f} ms"

    def drawn(self, latency: PairwiseLatency) -> str:
        """Both marks, and the way between them; nothing where one is not told."""
        if latency.default is None or latency.tuned is None:
            return ""
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
