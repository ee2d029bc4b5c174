"""Guardrails: in what a configuration with a lower P99 must not be worse than the default."""

from dataclasses import dataclass
from typing import Annotated, Literal

from annotated_types import Ge, Interval

Quantity = Literal["P50", "rate", "error share", "CPU", "memory"]
Unit = Literal["times", "points", "MiB"]
State = Literal["kept", "unclear", "broken"]


Times = Annotated[float, Interval(ge=1, le=100)]
Points = Annotated[float, Interval(ge=0, le=100)]


@dataclass(frozen=True, kw_only=True)
class Guardrails:
    """The margins: up to these, being worse than the default is accepted. None switches one off.

    CPU and memory have two margins each, of which the larger one counts.
    """

    p50_times: Times | None = 1.1
    """P50, as a multiple of the default's."""
    rate_times: Annotated[float, Interval(gt=0, le=1)] | None = 0.99
    """The achieved rate, as a part of the default's."""
    error_points: Points | None = 0.1
    """Percentage points more of failed requests."""
    cpu_points: Points | None = 5.0
    """Percentage points more of the load balancer's CPU time."""
    cpu_times: Times | None = 1.1
    """The load balancer's CPU time, as a multiple of the default's."""
    memory_mib: Annotated[float, Ge(0)] | None = 64.0
    """MiB that its memory may grow by more over a trial."""
    memory_times: Times | None = 1.1
    """Memory, as a multiple of the memory in use."""


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
