"""Guardrails: in what a configuration with a lower P99 must not be worse than the default."""

from dataclasses import dataclass
from typing import Literal

Quantity = Literal["P50", "rate", "error share", "CPU", "memory"]
Unit = Literal["times", "points", "MiB"]
State = Literal["kept", "unclear", "broken"]


@dataclass(frozen=True, kw_only=True)
class Guardrails:
    """The margins: up to these, being worse than the default is accepted. None switches one off.

    P50 may be `p50_times` as long, the achieved rate `rate_times` as high, and the share of failed
    requests `error_points` (percentage points) higher. The load balancer's CPU may be `cpu_points`
    (of the host's time) or `cpu_times` higher, and its memory may grow over a trial by
    `memory_mib` more, or by the share of the memory in use that `memory_times` leaves: whichever
    of the two is more.
    """

    p50_times: float | None = 1.1
    rate_times: float | None = 0.99
    error_points: float | None = 0.1
    cpu_points: float | None = 5.0
    cpu_times: float | None = 1.1
    memory_mib: float | None = 64.0
    memory_times: float | None = 1.1


NO_GUARDRAILS = Guardrails(
    p50_times=None,
    rate_times=None,
    error_points=None,
    cpu_points=None,
    cpu_times=None,
    memory_mib=None,
    memory_times=None,
)
"""A verdict on P99 alone."""


@dataclass(frozen=True, kw_only=True)
class Guardrail:
    """What the pairs of a verdict say of one guardrail.

    `effect` is tuned / default where the `unit` is times, else tuned - default (percentage points
    or MiB), with the limits `low` and `high` of its interval. `default` and `tuned` are means over
    the trials (geometric for times). Beyond the `margin`, in the direction that is `worse`, it is
    worse than what is accepted.
    """

    quantity: Quantity
    unit: Unit
    worse: Literal["higher", "lower"]
    default: float
    tuned: float
    effect: float
    low: float
    high: float
    margin: float

    @property
    def state(self) -> State:
        """`kept` where the interval excludes being worse than the margin.

        `broken` where all of it is beyond the margin, and `unclear` where it includes the margin.
        """
        least, most = self._harms
        if most <= self._harm(self.margin):
            return "kept"
        return "broken" if least > self._harm(self.margin) else "unclear"

    @property
    def told(self) -> str:
        """In words.

        Such as: CPU may be higher by up to 8 points; CPU is higher by 12 points (9 to 15; accepted:
        5); P50 is higher by 10 % at most.
        """
        least, most = self._harms
        if self.state == "kept":
            margin = _number(self._harm(self.margin))
            return f"{self.quantity} is {self.worse} by {margin} {self._unit} at most"
        if self.state == "unclear":
            return f"{self.quantity} may be {self.worse} by up to {_number(most)} {self._unit}"
        return (
            f"{self.quantity} is {self.worse} by {_number(self._harm(self.effect))} {self._unit} "
            f"({_number(least)} to {_number(most)}; accepted: {_number(self._harm(self.margin))})"
        )

    @property
    def _unit(self) -> str:
        return "%" if self.unit == "times" else self.unit

    @property
    def _harms(self) -> tuple[float, float]:
        """The interval as how much worse it is, the least first."""
        one, other = self._harm(self.low), self._harm(self.high)
        return min(one, other), max(one, other)

    def _harm(self, value: float) -> float:
        """An effect as how much worse it is: in percent of the default, or in its own unit."""
        change = 100 * (value - 1) if self.unit == "times" else value
        return change if self.worse == "higher" else -change


def _number(value: float) -> str:
    return f"{value:z.0f}" if abs(value) >= 10 else f"{value:z.2g}"
