"""What a configuration is worth against the default, by measurement."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from intop.domain.causes import Causes
from intop.domain.configuration import Configuration
from intop.domain.guardrails import Guardrail
from intop.domain.halves import Halves
from intop.domain.percentiles import PERCENTS, requests_for
from intop.domain.speedups import SpeedUps
from intop.domain.stats import Interval

P99Outcome = Literal["gain", "worse", "no significant gain"]
Outcome = Literal["gain", "gain, but", "no gain: it costs", "worse", "no significant gain"]
"""What P99 and the guardrails come to together."""


@dataclass(frozen=True, kw_only=True)
class Pairwise:
    """A quantity on both sides of a verdict.

    `ratio` is default / tuned, the geometric mean over the pairs, with an interval. It is None
    where there is no such mean: of a maximum, or where a value is zero.
    """

    default: float
    tuned: float
    ratio: Interval | None = None


@dataclass(frozen=True, kw_only=True)
class PairwiseLatency:
    """A latency on both sides of a verdict, in ms, and the ratio of single trials as in `Pairwise`.

    None is what too few requests of a side are behind (`domain.percentiles`).
    """

    default: float | None
    tuned: float | None
    ratio: Interval | None = None


@dataclass(frozen=True, kw_only=True)
class SideBySide:
    """What the pairs of a verdict say apart from the P99 that it is judged by.

    `latencies_ms` by percentile ("P50" to "max"): of all requests of a side's trials,
    put together. Their ratios are of single trials; that of P99 has what is certain of pruned ones
    in it, as the verdict has. `requests` were due; `achieved_rps` and `balancer_cpu`
    (the load balancer's, 0 to 1) are means over trials; `error_share` is of all requests.
    `fewest_requests` were answered in a single trial, None where an earlier intop did not count.

    The others are the reference metrics, means over trials: `mean_ms` of the latencies,
    `received_mb_s` by the load generators (10^6 bytes/s), and of the load balancer `memory_mib` in
    use at the end, `context_switches_per_s` and `power_w` (RAPL). Each is None where some trial
    doesn't have it.
    """

    latencies_ms: dict[str, PairwiseLatency]
    requests: Pairwise
    achieved_rps: Pairwise
    error_share: Pairwise
    balancer_cpu: Pairwise
    fewest_requests: int | None = None
    mean_ms: Pairwise | None = None
    received_mb_s: Pairwise | None = None
    memory_mib: Pairwise | None = None
    context_switches_per_s: Pairwise | None = None
    power_w: Pairwise | None = None

    @property
    def untold(self) -> Mapping[str, str]:
        """Why a percentile is not told, by its name."""
        return {
            name: f"takes {requests_for(PERCENTS[name]):,} requests of a side"
            for name, both in self.latencies_ms.items()
            if name in PERCENTS and (both.default is None or both.tuned is None)
        }


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The outcome of an A/B measurement of a configuration against the default.

    `ratio` is default P99 / tuned P99 (above 1: a gain), the geometric mean over `pairs`
    interleaved pairs, with a confidence interval at `level`. `failures` are trials of the tuned
    side that gave no latencies at all. `against` names the baseline that stood for the default,
    and is empty for the host's own values. `rounds` of `planned_rounds` were measured, looked at
    up to `looks` times; the interval is so wide that those of all looks hold together at `level`.
    `models` is what the tree models' own winners were worth in the rounds before, in which the
    configuration was picked; None where they were not measured. `guardrails` have
    intervals as wide as that of the ratio; those that are switched off are not there. `causes` is
    what the kernel counted, None where the trials have no counters. `halves` is what sysctls and
    directives are worth alone, None where the configuration changes one kind only.
    """

    configuration: Configuration
    origin: str
    default_p99_ms: float
    tuned_p99_ms: float
    ratio: float
    ratio_low: float
    ratio_high: float
    level: float
    pairs: int
    rounds: int
    planned_rounds: int
    looks: int
    sides: SideBySide
    failures: int = 0
    against: str = ""
    models: SpeedUps | None = None
    guardrails: tuple[Guardrail, ...] = ()
    causes: Causes | None = None
    halves: Halves | None = None

    @property
    def reference(self) -> str:
        """What the tuned side is held against: `default`, or the baseline that stood for it."""
        return self.against or "default"

    @property
    def stopped_early(self) -> bool:
        """Whether it was clear before all rounds were measured."""
        return self.rounds < self.planned_rounds

    @property
    def p99_outcome(self) -> P99Outcome:
        """What P99 alone says."""
        return outcome_of(self.ratio_low, self.ratio_high, self.failures)

    @property
    def outcome(self) -> Outcome:
        """A gain of P99 is none where a guardrail is broken, and in doubt where one is unclear."""
        if self.p99_outcome != "gain":
            return self.p99_outcome
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
        return self.outcome not in ("gain, but", "no significant gain")

    @property
    def broken(self) -> tuple[Guardrail, ...]:
        """The guardrails beyond which the tuned side is."""
        return tuple(guard for guard in self.guardrails if guard.state == "broken")

    @property
    def unclear(self) -> tuple[Guardrail, ...]:
        """The guardrails beyond which the tuned side may be."""
        return tuple(guard for guard in self.guardrails if guard.state == "unclear")

    @property
    def costs(self) -> str:
        """What the broken guardrails say: CPU is higher by 12 points (9 to 15; accepted: 5)."""
        return "; ".join(guard.told for guard in self.broken)

    @property
    def doubts(self) -> str:
        """What the unclear guardrails say: CPU may be higher by up to 8 points."""
        return "; ".join(guard.told for guard in self.unclear)

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
        """In words, where it is one: P99 is 3.10 times lower (95% interval 2.20 to 4.40)."""
        than = f" than with {self.against}" if self.against else ""
        interval = f"{self.level:.0%} interval {self.ratio_low:.2f} to {self.ratio_high:.2f}"
        return f"P99 is {self.ratio:.2f} times lower{than} ({interval})"


def outcome_of(ratio_low: float, ratio_high: float, failures: int) -> P99Outcome:
    """What an interval of default P99 / other P99 says; a side that fails is worse."""
    if ratio_low > 1 and failures == 0:
        return "gain"
    return "worse" if failures or ratio_high < 1 else "no significant gain"


def _names(guards: tuple[Guardrail, ...]) -> str:
    *others, last = (guard.quantity for guard in guards)
    return f"{', '.join(others)} and {last}" if others else last
