"""A verdict as a document: a sentence, and the two sides beside each other."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, repeat

from intop.document.columns import Column, numbers, texts
from intop.document.model import Block, Notes, Section, Table, widened
from intop.domain.causes import LEVEL, Causes
from intop.domain.guardrails import Guardrail, Quantity
from intop.domain.halves import Halves
from intop.domain.histogram import BEHIND, PERCENTS, requests_for
from intop.domain.sides import beside_judged
from intop.domain.speedups import ModelSpeedUp, SpeedUps
from intop.domain.verdict import Pairwise, PairwiseLatency, SideBySide, Verdict
from intop.sentences import verdict_sentence
from intop.words import counted, interval, number, percent

NEXT = "Next: intop plan shows what would change on each host."
WIDTH = 32
"""Characters of the scale that latencies are drawn on."""

DEFAULT_MARK, TUNED_MARK, BOTH_MARK = "○", "●", "◉"


def verdict(title: str, verdict: Verdict) -> Section:
    """The verdict in a sentence, the configuration it is about, and the sides in full."""
    pairs = f"{verdict.pairs} interleaved pairs; {verdict.origin}"
    means = f"geometric means of {verdict.judged_by} over {pairs}"
    default, tuned = _ms(verdict.default_ms), _ms(verdict.tuned_ms)
    lines = [f"{verdict.reference} {default}, tuned {tuned} ({means})"]
    if verdict.stopped_early:
        lines.append(
            f"clear after {verdict.rounds} of {verdict.planned_rounds} rounds, so the rest was not "
            f"measured; the intervals of all {verdict.looks} looks hold together at "
            f"{percent(verdict.level)}"
        )
    if verdict.earlier:
        looks = ", ".join(f"{look.ratio} after {look.pairs} pairs" for look in verdict.earlier)
        lines.append(
            f"ratios at earlier looks: {looks}; the intervals of all looks hold together at "
            f"{percent(verdict.level)}"
        )
    lines += [f"{key} = {value}" for key, value in verdict.configuration.values.items()]
    written = Notes(tuple(f"  {line}" for line in lines))
    blocks: list[Block] = [written, _drawn(verdict)]
    blocks += [guardrail_table(verdict)] if verdict.guardrails else []
    blocks.append(Notes(tuple(_notes(verdict))))
    if verdict.halves is not None:
        blocks.append(Notes((halves_sentence(verdict.halves, verdict.judged_by),)))
    if verdict.causes is not None:
        blocks.append(Notes(tuple(cause_notes(verdict.causes))))
        blocks += [cause_table(verdict, verdict.causes)] if verdict.causes.mechanisms else []
    if verdict.models is not None:
        notes = (models_sentence(verdict.models), LUCK)
        blocks += [model_table(verdict.models, verdict.judged_by), Notes(notes)]
    if verdict.is_gain:
        blocks.append(Notes((NEXT,)))
    return Section(title=f"{title}: {verdict_sentence(verdict)}", blocks=tuple(blocks))


def halves_sentence(halves: Halves, judged_by: str) -> str:
    """Return the worth of each kind of the winner's parameters."""
    return f"Its halves, as times that {judged_by} is lower: {halves.summary}."


LUCK = (
    "The best of several is flattered by luck; the verdict is a fresh measurement of one "
    "configuration."
)
"""Limit of the best of the models."""


def models_sentence(speed_ups: SpeedUps) -> str:
    """Mean and best speed-up over the models.

    Such as: mean over 4 models 2.10 (1.50 to 2.90), best XGBoost 3.10 (2.20 to 4.40).
    """
    models = counted(speed_ups.counted, "model")
    best = speed_ups.best
    if best is None or best.ratio is None:
        return "No model's winner was measured in two rounds or more without a failure."
    mean = (
        f"mean over {models} {speed_ups.mean}"
        if speed_ups.mean is not None
        else f"no mean over {models}, since they have less than two rounds in common"
    )
    return (
        f"Speed-up of the models' own winners ({percent(speed_ups.level)} intervals): {mean}, "
        f"best {best.model} {best.ratio}."
    )


def measured_as(model: ModelSpeedUp) -> str:
    """The arm that a model's winner was measured on, where it is another's, and its failures."""
    words = [f"same as {model.arm}"] if model.arm != model.model else []
    words += [f"failed in {counted(model.failures, 'round')}"] if model.failures else []
    return ", ".join(words)


def model_table(speed_ups: SpeedUps, judged_by: str) -> Table:
    """A row for each model's own winner."""
    return Table(
        columns=(
            Column("model", "text"),
            Column(judged_by, unit="ms"),
            Column("times lower", "span"),
            Column("rounds", "count"),
            Column("remark", "text"),
        ),
        rows=tuple(
            (model.model, model.judged_ms, model.ratio, model.rounds, measured_as(model) or None)
            for model in speed_ups.models
        ),
    )


def side_table(verdict: Verdict) -> Table:
    """Return latencies by percentile and other quantities of both sides."""
    sides = verdict.sides
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
            *numbers(verdict.reference, "tuned"),
            Column(f"ratio ({percent(verdict.level)} interval)", "span"),
        ),
        rows=tuple(
            (name, _scaled(both.default, scale), _scaled(both.tuned, scale), both.ratio)
            for name, both, scale in lines
        ),
    )


def reference_metrics(sides: SideBySide) -> Iterator[tuple[str, Pairwise]]:
    """Return the metrics that no verdict is judged by, with names and units."""
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
    "P99": "P99 in ms",
    "rate": "requests/s achieved",
    "error share": "failed requests in %",
    "slow requests": "slow requests in %",
    "CPU": "balancer's CPU in %",
    "memory": "growth of the balancer's memory in MiB",
}
"""Names of the guardrails with units."""


def guardrail_table(verdict: Verdict) -> Table:
    """A row for each guardrail: its effect, what is accepted, and whether it is kept."""
    return Table(
        name="guardrails",
        title="Guardrails of the verdict",
        origin="measured",
        columns=(
            Column("guardrail", "text"),
            *numbers(verdict.reference, "tuned"),
            Column(
                f"tuned against {verdict.reference} ({percent(verdict.level)} interval)", "text"
            ),
            *texts("accepted", "state"),
        ),
        rows=tuple(
            (_meaning(g), g.default, g.tuned, _effect(g), _accepted(g), g.state)
            for g in verdict.guardrails
        ),
    )


def _meaning(guardrail: Guardrail) -> str:
    """Return the quantity with its unit, such as: requests above 120 ms in %."""
    if guardrail.limit_ms is None:
        return MEANT[guardrail.quantity]
    return f"requests above {guardrail.limit_ms:.3g} ms in %"


def cause_notes(causes: Causes) -> Iterator[str]:
    """Return the mechanisms behind a difference, by the kernel's counters."""
    yield f"Why, by what the kernel counted: {causes.summary}."
    for cause in causes.mechanisms:
        yield f"{cause.mechanism}: {cause.about}"


def cause_table(verdict: Verdict, causes: Causes) -> Table:
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
            (cause.mechanism, c.name, c.default, c.tuned, c.times, c.meaning)
            for cause in causes.mechanisms
            for c in cause.counters
        ),
    )


def _effect(guardrail: Guardrail) -> str:
    """Return such as: 1.04 (0.98 to 1.10) times, +2.10 (-0.30 to +4.50) points."""
    sign = "" if guardrail.unit == "times" else "+"
    return f"{interval(guardrail.effect, guardrail.low, guardrail.high, sign)} {guardrail.unit}"


def _accepted(guardrail: Guardrail) -> str:
    bound = "at most" if guardrail.worse == "higher" else "at least"
    sign = "" if guardrail.unit == "times" else "+"
    return f"{bound} {number(guardrail.margin, sign)} {guardrail.unit}"


def _drawn(verdict: Verdict) -> Table:
    """Return the sides with a drawing of their latencies."""
    table, latencies = side_table(verdict), verdict.sides.latencies_ms.values()
    marks = f"logarithmic ({DEFAULT_MARK} {verdict.reference}, {TUNED_MARK} tuned)"
    drawn = map(_Scale.of(verdict.sides).drawn, latencies)
    rest = repeat("", len(table.rows) - len(latencies))
    return widened(table, Column(marks, "text"), chain(drawn, rest))


def _notes(verdict: Verdict) -> Iterator[str]:
    counts = verdict.sides.requests
    latencies = f"Latencies of all requests ({counts.default:.0f} and {counts.tuned:.0f})"
    ratios = "Ratios above 1 are higher values of the default: geometric means over the pairs"
    yield f"{latencies}, drawn from {_Scale.of(verdict.sides)}."
    together = ", ".join(beside_judged(verdict.judged_by))
    yield f"{ratios}. The intervals of {together} hold all at once, each other one by itself."
    yield from latency_notes(verdict)
    yield basis(verdict)


def latency_notes(verdict: Verdict) -> Iterator[str]:
    """Return the percentiles that are not told, and the requests behind a single trial."""
    sides, name = verdict.sides, verdict.judged_by
    if sides.untold:
        why = "; ".join(f"{name} {takes}" for name, takes in sides.untold.items())
        yield f"A percentile with fewer than {BEHIND} slower requests is not told (-): {why}."
    fewest = sides.fewest_requests
    if fewest is None or name not in PERCENTS:
        return
    if fewest < (enough := requests_for(PERCENTS[name])):
        yield (
            f"A single trial has as few as {counted(fewest, 'request')}. Its {name} would need "
            f"{enough:,}, so that {BEHIND} are slower. The interval over the rounds includes what "
            "it scatters by for that."
        )


def basis(verdict: Verdict) -> str:
    """Return the basis of the verdict."""
    if not verdict.guardrails:
        return f"The verdict is on {verdict.judged_by} alone, without guardrails."
    words = (
        f"The verdict is on {verdict.judged_by}, within the guardrails. A guardrail is kept if its "
        "interval has no loss larger than accepted, broken if it has only such losses, and else "
        "unclear."
    )
    if any(guardrail.limit_ms is not None for guardrail in verdict.guardrails):
        words += " The one of slow requests, which are rare, is kept if no more of them were seen."
    return words


def _ms(value: float) -> str:
    return f"{value:.1f} ms"


@dataclass(frozen=True)
class _Scale:
    """A logarithmic scale of ms, on which equal ratios are equally long."""

    lowest: float
    highest: float

    @classmethod
    def of(cls, sides: SideBySide) -> "_Scale":
        """The range of latencies that is drawn."""
        both = (
            value
            for latency in sides.latencies_ms.values()
            for value in (latency.default, latency.tuned)
        )
        drawn = [value for value in both if value is not None]
        # A latency is whole µs, and may be none at all.
        return cls(max(0.001, min(drawn)), max(0.001, *drawn))

    def __str__(self) -> str:
        return f"{self.lowest:.1f} to {self.highest:.1f} ms"

    def drawn(self, latency: PairwiseLatency) -> str:
        """Return both marks and the line between them; nothing where a latency is missing."""
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
