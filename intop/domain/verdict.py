"""What a configuration is worth against the default, by measurement."""

from dataclasses import dataclass

from intop.domain.configuration import Configuration
from intop.domain.speedups import SpeedUps
from intop.domain.stats import RatioInterval


@dataclass(frozen=True, kw_only=True)
class Pairwise:
    """A quantity on both sides of a verdict.

    `ratio` is default / tuned, the geometric mean over the pairs, with an interval. It is None
    where there is no such mean: of a maximum, or where a value is zero.
    """

    default: float
    tuned: float
    ratio: RatioInterval | None = None


@dataclass(frozen=True, kw_only=True)
class SideBySide:
    """What the pairs of a verdict say apart from the P99 that it is judged by.

    `latencies_ms` by percentile ("P50" to "max"): of all requests of a side's trials,
    put together. Their ratios are of single trials; that of P99 has what is certain of pruned ones
    in it, as the verdict has. `requests` were due; `achieved_rps` and `balancer_cpu`
    (the load balancer's, 0 to 1) are means over trials; `error_share` is of all requests.
    """

    latencies_ms: dict[str, Pairwise]
    requests: Pairwise
    achieved_rps: Pairwise
    error_share: Pairwise
    balancer_cpu: Pairwise


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The outcome of an A/B measurement of a configuration against the default.

    `ratio` is default P99 / tuned P99 (above 1: a gain), the geometric mean over `pairs`
    interleaved pairs, with a confidence interval at `level`. `failures` are trials of the tuned
    side that gave no latencies at all. `against` names the baseline that stood for the default,
    and is empty for the host's own values. `rounds` of `planned_rounds` were measured, looked at
    up to `looks` times; the interval is so wide that those of all looks hold together at `level`.
    `models` is what the tree models' own winners were worth in the rounds before, in which the
    configuration was picked; None where they were not measured.
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

    @property
    def reference(self) -> str:
        """What the tuned side is held against: `default`, or the baseline that stood for it."""
        return self.against or "default"

    @property
    def stopped_early(self) -> bool:
        """Whether it was clear before all rounds were measured."""
        return self.rounds < self.planned_rounds

    @property
    def outcome(self) -> str:
        """`gain`, `worse` or `no significant gain`."""
        return _outcome(self.ratio_low, self.ratio_high, self.failures)

    @property
    def gain(self) -> str:
        """In words, where it is one: P99 is 3.10 times lower (95% interval 2.20 to 4.40)."""
        than = f" than with {self.against}" if self.against else ""
        interval = f"{self.level:.0%} interval {self.ratio_low:.2f} to {self.ratio_high:.2f}"
        return f"P99 is {self.ratio:.2f} times lower{than} ({interval})"


def _outcome(ratio_low: float, ratio_high: float, failures: int) -> str:
    """What an interval of default P99 / other P99 says; a side that fails is worse."""
    if ratio_low > 1 and failures == 0:
        return "gain"
    return "worse" if failures or ratio_high < 1 else "no significant gain"
