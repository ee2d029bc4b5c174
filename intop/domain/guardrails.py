"""Guardrails: quantities that a lower latency must not be paid with."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from annotated_types import Ge, Interval

from intop.domain.stats import geometric_mean

if TYPE_CHECKING:
    from intop.domain.trial import Trial

Quantity = Literal["P50", "P99", "rate", "error share", "slow requests", "CPU", "memory"]
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
    """P50, as a multiple of the default's, unless it is the objective."""
    p99_times: Times | None = 1.25
    """P99, as a multiple of the default's, unless it is the objective."""
    rate_times: Annotated[float, Interval(gt=0, le=1)] | None = 0.99
    """The achieved rate, as a part of the default's."""
    error_points: Points | None = 0.1
    """Percentage points more of failed requests."""
    slow_points: Points | None = 0.1
    """Percentage points more of slow requests: those beyond the limit that follows."""
    slow_times: Times | None = 4.0
    """The limit of slow requests, as a multiple of the default's P99."""
    slow_ms: Annotated[float, Interval(gt=0)] | None = None
    """The limit of slow requests in ms, in place of the multiple."""
    cpu_points: Points | None = 5.0
    """Percentage points more of the load balancer's CPU time."""
    cpu_times: Times | None = 1.1
    """The load balancer's CPU time, as a multiple of the default's."""
    memory_mib: Annotated[float, Ge(0)] | None = 64.0
    """MiB that its memory may grow by more over a trial."""
    memory_times: Times | None = 1.1
    """Memory, as a multiple of the memory in use."""

    def slow_limit_ms(self, default: "Sequence[Trial]") -> float | None:
        """Return the limit of slow requests by trials of the default; None for no guardrail."""
        if self.slow_ms is not None or self.slow_times is None or not default:
            return self.slow_ms
        return self.slow_times * geometric_mean([t.statistic_ms("P99") for t in default])


NO_GUARDRAILS = Guardrails(
    p50_times=None,
    p99_times=None,
    rate_times=None,
    error_points=None,
    slow_points=None,
    slow_times=None,
    slow_ms=None,
    cpu_points=None,
    cpu_times=None,
    memory_mib=None,
    memory_times=None,
)
"""A verdict on latency alone."""


@dataclass(frozen=True, kw_only=True)
class Guardrail:
    """The result of a verdict's pairs for one guardrail."""

    ALSO_IN_JSON: ClassVar = ("state",)

    quantity: Quantity
    unit: Unit
    worse: Literal["higher", "lower"]
    """The direction in which it is worse."""
    default: float
    tuned: float
    """Means over the trials, geometric for times."""
    effect: float
    """Tuned / default where the unit is times, else tuned - default (points or MiB)."""
    low: float
    high: float
    """The ends of the effect's interval."""
    margin: float
    """Beyond this effect it is worse than what is accepted."""
    limit_ms: float | None = None
    """The limit beyond which requests are slow; None for all other quantities."""

    @property
    def state(self) -> State:
        """Whether the interval is within the margin, beyond it, or includes it.

        Trials of seconds have too few requests to exclude some slow ones. So slow requests are
        unclear only where more than are accepted were seen.
        """
        least, most = self._harms
        margin = self._harm(self.margin)
        if most <= margin:
            return "kept"
        if least > margin:
            return "broken"
        is_few = self.limit_ms is not None and self._harm(self.effect) <= margin
        return "kept" if is_few else "unclear"

    @property
    def distance(self) -> float:
        """The distance of the effect from the margin, in half widths of its interval.

        ZeroDivisionError: the interval has no width.
        """
        least, most = self._harms
        return abs(self._harm(self.margin) - self._harm(self.effect)) / ((most - least) / 2)

    @property
    def summary(self) -> str:
        """The result in words.

        Such as: CPU may be higher by up to 8 points; CPU is higher by 12 points (9 to 15; accepted:
        5); P50 is higher by 10 % at most.
        """
        least, most = self._harms
        if self.state == "kept":
            margin = _number(self._harm(self.margin) if self.limit_ms is None else most)
            return f"{self.name} is {self.worse} by {margin} {self._unit} at most"
        if self.state == "unclear":
            return f"{self.name} may be {self.worse} by up to {_number(most)} {self._unit}"
        return (
            f"{self.name} is {self.worse} by {_number(self._harm(self.effect))} {self._unit} "
            f"({_number(least)} to {_number(most)}; accepted: {_number(self._harm(self.margin))})"
        )

    @property
    def name(self) -> str:
        """The quantity, with its limit, such as: share of requests above 120 ms."""
        if self.limit_ms is None:
            return self.quantity
        return f"share of requests above {self.limit_ms:.3g} ms"

    @property
    def _unit(self) -> str:
        return "%" if self.unit == "times" else self.unit

    @property
    def _harms(self) -> tuple[float, float]:
        """The ends of the interval as how much worse it is, the least first."""
        least, most = sorted((self._harm(self.low), self._harm(self.high)))
        return least, most

    def _harm(self, value: float) -> float:
        """Return how much worse an effect is: in percent of the default, or in its own unit."""
        change = 100 * (value - 1) if self.unit == "times" else value
        return change if self.worse == "higher" else -change


def _number(value: float) -> str:
    return f"{value:z.0f}" if abs(value) >= 10 else f"{value:z.2g}"
