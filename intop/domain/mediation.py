"""How much of a gain a mechanism brings: what is left of the gain where it is taken away."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean

from intop.domain.configuration import Configuration
from intop.domain.stats import Interval, student_quantile


@dataclass(frozen=True, kw_only=True)
class Block:
    """Values (by key) with which requests no longer wait by a mechanism."""

    mechanism: str
    values: Mapping[str, str]

    @property
    def told(self) -> str:
        """Such as `net.ipv4.tcp_syncookies=1`."""
        return ", ".join(f"{key}={value}" for key, value in self.values.items())


@dataclass(frozen=True, kw_only=True)
class Mediated:
    """A mechanism that was taken away on both sides by the values of its block.

    `gain` and `left` are P99 of the default / P99 of the winner without and with the block, in the
    same `rounds`; `left` is None where fewer than two rounds had all four, and `detail` says why.
    `share` is None where these rounds show no clear gain. `own` lists the block's keys that the
    winner changes, too.
    """

    block: Block
    about: str
    rounds: int
    gain: Interval | None = None
    left: Interval | None = None
    share: Interval | None = None
    own: tuple[str, ...] = ()
    detail: str = ""


@dataclass(frozen=True, kw_only=True)
class Mediation:
    """What each mechanism that a verdict names brings of the gain.

    `untold` has for each mechanism that was not taken away the reason. Intervals have `level`, each
    for itself.
    """

    winner: Configuration
    against: str
    mechanisms: tuple[Mediated, ...]
    untold: Mapping[str, str] = field(default_factory=dict)
    rounds: int = 0
    level: float = 0.95


def share_of(gains: Sequence[float], left: Sequence[float], *, level: float) -> Interval | None:
    """1 - mean of what is left / mean of the gain, both log ratios of the same rounds.

    The interval is Fieller's (Journal of the Royal Statistical Society B 16, 1954, 175-185). None
    where the mean gain is not clearly above 0, since then no interval is bounded. Raises ValueError
    for fewer than two rounds or sequences of different lengths.
    """
    count = len(gains)
    if count < 2 or count != len(left):
        raise ValueError(f"{count} rounds against {len(left)}")
    gain, rest = fmean(gains), fmean(left)
    t = student_quantile(level, count - 1)

    def covariance(one: Sequence[float], other: Sequence[float]) -> float:
        centres = fmean(one), fmean(other)
        products = ((a - centres[0]) * (b - centres[1]) for a, b in zip(one, other, strict=True))
        return sum(products) / (count - 1) / count

    # The ratios r whose rest - r gain is not clearly other than 0: a r^2 - 2 b r + c <= 0.
    a = gain**2 - t**2 * covariance(gains, gains)
    if gain <= 0 or a <= 0:
        return None
    b = gain * rest - t**2 * covariance(gains, left)
    c = rest**2 - t**2 * covariance(left, left)
    root = math.sqrt(max(0.0, b**2 - a * c))
    return Interval(1 - rest / gain, 1 - (b + root) / a, 1 - (b - root) / a)
