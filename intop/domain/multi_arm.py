"""Several configurations against one of them, by measurement: on one machine, and on two."""

from dataclasses import dataclass
from typing import ClassVar

from intop.domain.configuration import Configuration
from intop.domain.histogram import Statistic
from intop.domain.stats import Interval
from intop.domain.verdict import outcome_of

COMPROMISE = "compromise"
"""The arm that is to be good on both machines."""


@dataclass(frozen=True, kw_only=True)
class Contestant:
    """One arm of a contest: the host's own values, a baseline, or the tuned configuration."""

    ALSO_IN_JSON: ClassVar = ("outcome",)

    name: str
    title: str
    configuration: Configuration
    keys: int
    """The number of keys that its source names."""
    already: int
    """The number of these keys that the host has anyway."""
    left_out: dict[str, str]
    """The reason for each of the others that `configuration` doesn't have."""
    same_as: str = ""
    """The contestant that it equals on this host, and that was measured in its place."""
    is_reference: bool = False
    judged_ms: Interval | None = None
    """The geometric mean over its rounds, with an interval for it alone.

    None where fewer than two rounds could be measured, as the ratio.
    """
    ratio: Interval | None = None
    """The reference's latency / its own (above 1: a gain) over the rounds that both have."""
    failures: int = 0
    """Trials without latencies."""
    detail: str = ""
    """The reason of the first one."""

    @property
    def outcome(self) -> str:
        """`gain`, `worse`, `no significant gain`, or why there is none of them."""
        if self.is_reference:
            return "reference"
        if self.same_as:
            return f"same as {self.same_as}"
        if self.ratio is None:
            return "failed" if self.failures else "not measured"
        return outcome_of(self.ratio, self.failures)


@dataclass(frozen=True, kw_only=True)
class Contest:
    """Several sets of values against each other, all of them in each round."""

    contestants: tuple[Contestant, ...]
    reference: str
    rounds: int
    level: float
    """The level of the intervals of latencies."""
    ratio_level: float
    """The level of the ratios, so high (Bonferroni) that all of them hold together at `level`."""
    judged_by: Statistic = "P99"


@dataclass(frozen=True, kw_only=True)
class Compromise:
    """A configuration that is to be good on both machines. Predicted, not measured."""

    configuration: Configuration
    ratios: dict[str, float]
    """The predicted latency of the default / its own by architecture."""
    left_out: dict[str, str]
    """Keys that the models of one machine know, with the reason why not both offer them."""


@dataclass(frozen=True, kw_only=True)
class Crosswise:
    """One machine's measurements of its own winner, the other's, and the compromise."""

    arch: str
    emulation: str
    """The emulator of a machine that is no hardware, else empty."""
    contest: Contest
