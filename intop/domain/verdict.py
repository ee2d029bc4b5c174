"""The verdict: the worth of a configuration against the default, by measurement."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from intop.domain.causes import Causes
from intop.domain.configuration import Configuration
from intop.domain.further import MATTERS, EarlierLook, Further
from intop.domain.guardrails import Guardrail
from intop.domain.halves import Halves
from intop.domain.histogram import PERCENTS, Statistic, requests_for
from intop.domain.speedups import SpeedUps
from intop.domain.stats import Interval
from intop.words import percent

LatencyOutcome = Literal["gain", "worse", "no significant gain"]
Outcome = Literal[
    "gain", "gain, but", "no gain: it costs", "worse", "undecided", "no significant gain"
]
"""The outcome by latency and guardrails together. It is undecided where the interval has both no
gain and one that matters."""


NOTHING = 1.005
"""Ratios nearer to 1 print as 1.00: no difference, however certain. Where trials hardly scatter, an
interval can be so narrow."""


@dataclass(frozen=True, kw_only=True)
class Pairwise:
    """A quantity on both sides of a verdict."""

    default: float
    tuned: float
    ratio: Interval | None = None
    """The geometric mean of default / tuned over the pairs. None of a maximum, or where a value is
    zero."""


@dataclass(frozen=True, kw_only=True)
class PairwiseLatency:
    """A latency on both sides of a verdict, in ms, and the ratio of single trials as in `Pairwise`.

    None where too few requests of a side are slower (`requests_for`).
    """

    default: float | None
    tuned: float | None
    ratio: Interval | None = None


@dataclass(frozen=True, kw_only=True)
class SideBySide:
    """Both sides of a verdict apart from the latency that it is judged by.

    What is not said to be of all requests is a mean over trials. It is None where some trial
    doesn't have it.
    """

    ALSO_IN_JSON: ClassVar = ("untold",)

    latencies_ms: dict[str, PairwiseLatency]
    """Latencies by percentile ("P50" to "max"), of all requests of a side's trials. Their ratios
    are of single trials; that of the judged one counts pruned trials as the verdict does."""
    requests: Pairwise
    """Requests that were due."""
    achieved_rps: Pairwise
    error_share: Pairwise
    """The share of all requests."""
    balancer_cpu: Pairwise
    """The load balancer's, 0 to 1."""
    fewest_requests: int | None = None
    """The fewest that were answered in a single trial, None where nobody counted."""
    mean_ms: Pairwise | None = None
    """The mean latency."""
    received_mb_s: Pairwise | None = None
    """The bytes that the load generators received (10^6 bytes/s)."""
    memory_mib: Pairwise | None = None
    """The load balancer's memory in use at the end."""
    context_switches_per_s: Pairwise | None = None
    power_w: Pairwise | None = None
    """The load balancer's (RAPL)."""

    @property
    def untold(self) -> Mapping[str, str]:
        """The reason why a percentile is left out, by its name."""
        return {
            name: f"takes {requests_for(PERCENTS[name]):,} requests of a side"
            for name, both in self.latencies_ms.items()
            if name in PERCENTS and (both.default is None or both.tuned is None)
        }


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The outcome of an A/B measurement of a configuration against the default."""

    ALSO_IN_JSON: ClassVar = ("outcome",)

    configuration: Configuration
    origin: str
    """The name of the configuration's arm."""
    default_ms: float
    """The default's geometric mean of the latency that is judged."""
    tuned_ms: float
    ratio: float
    """The geometric mean of default / tuned over the pairs (above 1: a gain)."""
    ratio_low: float
    """The low end of the ratio's interval, which holds at all looks together with `level`."""
    ratio_high: float
    level: float
    pairs: int
    """Interleaved pairs of trials."""
    rounds: int
    """Rounds that were measured."""
    planned_rounds: int
    looks: int
    """The number of looks at the rounds, at most, with those at further ones."""
    sides: SideBySide
    judged_by: Statistic = "P99"
    """The latency that is judged."""
    failures: int = 0
    """Trials of the tuned side that gave no latencies at all."""
    against: str = ""
    """The baseline that stood for the default, "" for the host's own values."""
    models: SpeedUps | None = None
    """The worth of the tree models' own winners in the rounds in which the configuration was
    picked. None where they were not measured."""
    guardrails: tuple[Guardrail, ...] = ()
    """Guardrails without those that are switched off. Intervals are as wide as that of the ratio.
    """
    causes: Causes | None = None
    """The mechanisms that the kernel counted, None where the trials have no counters."""
    halves: Halves | None = None
    """The worth of sysctls and directives alone, None where only one kind is changed."""
    earlier: tuple[EarlierLook, ...] = ()
    """The looks at fewer pairs, the first one first."""
    further: Further | None = None
    """The pairs that would decide it; None where it is decided, or does not go on."""

    @property
    def reference(self) -> str:
        """The other side: `default`, or the baseline that stood for it."""
        return self.against or "default"

    @property
    def interval(self) -> Interval:
        """The ratio with its interval."""
        return Interval(self.ratio, self.ratio_low, self.ratio_high)

    @property
    def stopped_early(self) -> bool:
        """Whether it was clear before all rounds were measured."""
        return self.rounds < self.planned_rounds

    @property
    def latency_outcome(self) -> LatencyOutcome:
        """The outcome by the judged latency alone."""
        return outcome_of(self.interval, self.failures)

    @property
    def outcome(self) -> Outcome:
        """A lower latency is no gain where a guardrail is broken, in doubt where one is unclear."""
        if self.latency_outcome == "no significant gain" and not (
            self.broken or self.excludes_gain
        ):
            return "undecided"
        if self.latency_outcome != "gain":
            return self.latency_outcome
        if self.broken:
            return "no gain: it costs"
        return "gain, but" if self.unclear else "gain"

    @property
    def is_gain(self) -> bool:
        """Whether it is a gain to be deployed: no guardrail is broken, but some may be unclear."""
        return self.outcome in ("gain", "gain, but")

    @property
    def is_clear(self) -> bool:
        """Whether more rounds are not needed. An unclear guardrail needs them."""
        return self.outcome not in ("gain, but", "undecided", "no significant gain")

    @property
    def excludes_gain(self) -> bool:
        """Whether the judged latency is certainly not lower by a factor that matters."""
        return self.ratio_high < MATTERS

    @property
    def certain(self) -> Mapping[str, Interval]:
        """The latencies beside the judged one that certainly differ, with their ratios, by name."""
        mean = self.sides.mean_ms
        ratios = {name: both.ratio for name, both in self.sides.latencies_ms.items()}
        ratios["mean"] = None if mean is None else mean.ratio
        judged_by = self.judged_by.removesuffix(" latency")
        return {
            name: ratio
            for name, ratio in ratios.items()
            if name != judged_by and ratio is not None and differs(ratio)
        }

    @property
    def broken(self) -> tuple[Guardrail, ...]:
        """The guardrails that the tuned side breaks."""
        return tuple(guard for guard in self.guardrails if guard.state == "broken")

    @property
    def unclear(self) -> tuple[Guardrail, ...]:
        """The guardrails that the tuned side may break."""
        return tuple(guard for guard in self.guardrails if guard.state == "unclear")

    @property
    def costs(self) -> str:
        """The broken guardrails, such as: CPU is higher by 12 points (9 to 15; accepted: 5)."""
        return "; ".join(guard.summary for guard in self.broken)

    @property
    def doubts(self) -> str:
        """The unclear guardrails, such as: CPU may be higher by up to 8 points."""
        return "; ".join(guard.summary for guard in self.unclear)

    @property
    def short(self) -> str:
        """The outcome in a few words, such as: no gain: it costs CPU and memory."""
        if self.outcome == "no gain: it costs":
            return f"{self.outcome} {_names(self.broken)}"
        if self.outcome == "gain, but":
            verb = "is" if len(self.unclear) == 1 else "are"
            return f"{self.outcome} {_names(self.unclear)} {verb} unclear"
        return self.outcome

    @property
    def gain(self) -> str:
        """A gain in words, such as: P99 is 3.10 times lower (95 % interval 2.20 to 4.40)."""
        than = f" than with {self.against}" if self.against else ""
        interval = f"{percent(self.level)} interval {self.interval.limits}"
        return f"{self.judged_by} is {self.ratio:.2f} times lower{than} ({interval})"


def outcome_of(ratio: Interval, failures: int) -> LatencyOutcome:
    """Return the outcome by default / other latency; a side that fails is worse."""
    if failures:
        return "worse"
    if not differs(ratio):
        return "no significant gain"
    return "gain" if ratio.value > 1 else "worse"


def differs(ratio: Interval) -> bool:
    """Return whether two sides certainly differ, and by more than NOTHING."""
    is_certain = not ratio.low <= 1 <= ratio.high
    return is_certain and not 1 / NOTHING < ratio.value < NOTHING


def _names(guards: tuple[Guardrail, ...]) -> str:
    *quantities, last = (guard.quantity for guard in guards)
    return f"{', '.join(quantities)} and {last}" if quantities else last
