"""Several configurations against one of them, by measurement."""

from dataclasses import dataclass

from intop.domain.configuration import Configuration
from intop.domain.stats import Interval
from intop.domain.verdict import outcome_of


@dataclass(frozen=True, kw_only=True)
class Contestant:
    """One arm of a contest: the host's own values, a baseline, or the tuned configuration.

    `keys` is how many its source names, `already` how many of them the host has anyway;
    `left_out` has the reason for each of the others that `configuration` doesn't have.
    `p99_ms` is the geometric mean over its rounds with an interval for it alone; `ratio` is the
    reference's P99 / its own (above 1: a gain) over the rounds that both have. Both are None
    where fewer than two rounds could be measured. `failures` are trials without latencies,
    `detail` the first one's reason. `same_as` names the contestant that it equals on this host and
    that was measured in its place.
    """

    name: str
    title: str
    configuration: Configuration
    keys: int
    already: int
    left_out: dict[str, str]
    same_as: str = ""
    is_reference: bool = False
    p99_ms: Interval | None = None
    ratio: Interval | None = None
    failures: int = 0
    detail: str = ""

    @property
    def outcome(self) -> str:
        """`gain`, `worse`, `no significant gain`, or why there is none of them."""
        if self.is_reference:
            return "reference"
        if self.same_as:
            return f"same as {self.same_as}"
        if self.ratio is None:
            return "failed" if self.failures else "not measured"
        return outcome_of(self.ratio.low, self.ratio.high, self.failures)


@dataclass(frozen=True, kw_only=True)
class Contest:
    """Several sets of values against each other, all of them in each of `rounds` rounds.

    `level` is that of the intervals of P99. Those of the ratios have `ratio_level`, which is so
    high (Bonferroni) that all of them hold together at `level`.
    """

    contestants: tuple[Contestant, ...]
    reference: str
    rounds: int
    level: float
    ratio_level: float
