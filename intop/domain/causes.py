"""Causes of a gain or loss: what the kernel counted on a verdict's two sides."""

from dataclasses import dataclass

from intop.domain.stats import Interval

LEVEL = 0.95
"""The level of intervals."""


@dataclass(frozen=True, kw_only=True)
class Moved:
    """A counter that differs between the sides of a verdict."""

    name: str
    meaning: str
    mechanism: str
    default: float
    """The mean over the trials: of the growth of a count, or of the highest level. So is `tuned`.
    """
    tuned: float
    times: Interval
    """The factor by which the default has more, with an interval at LEVEL. It is the geometric mean
    over the pairs of (1 + value), since a value may be zero."""
    p_value: float
    """The p-value of Student's t."""

    @property
    def least(self) -> float:
        """The smallest factor by which it changed, up or down."""
        return max(self.times.low, 1 / self.times.high)

    @property
    def summary(self) -> str:
        """The change in words, such as: TcpExt.ListenDrops 51.2 to 0 a trial."""
        return f"{self.name} {_number(self.default)} to {_number(self.tuned)} a trial"


@dataclass(frozen=True, kw_only=True)
class Cause:
    """A mechanism that made requests wait on one side, and less or not on the other."""

    mechanism: str
    about: str
    eased: bool
    """Whether it is the tuned side that has less of it."""
    counters: tuple[Moved, ...]
    """Its signs that moved, the one that changed most first."""


@dataclass(frozen=True, kw_only=True)
class Causes:
    """The mechanisms that differ, those that changed most first; none is an answer, too."""

    pairs: int
    """Pairs with counters on both sides."""
    counters: int
    """Counters that were compared."""
    mechanisms: tuple[Cause, ...]

    @property
    def eased(self) -> tuple[Cause, ...]:
        """Mechanisms that the tuned side has less of."""
        return tuple(cause for cause in self.mechanisms if cause.eased)

    @property
    def worsened(self) -> tuple[Cause, ...]:
        """Mechanisms that the tuned side has more of."""
        return tuple(cause for cause in self.mechanisms if not cause.eased)

    @property
    def summary(self) -> str:
        """The mechanisms in words: less of syn-backlog (TcpExt.ListenDrops 51.2 to 0 a trial)."""
        if not self.mechanisms:
            return (
                f"no known mechanism: none of {self.counters} counters changed clearly in "
                f"{self.pairs} pairs"
            )
        parts = (("less of", self.eased), ("more of", self.worsened))
        return "; ".join(
            f"{words} {', '.join(f'{c.mechanism} ({c.counters[0].summary})' for c in those)}"
            for words, those in parts
            if those
        )


def _number(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"
