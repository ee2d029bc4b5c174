"""The few changes of a picked candidate that are worth their place, and the trials behind that."""

from dataclasses import dataclass

from intop.domain.configuration import Configuration
from intop.domain.histogram import Statistic
from intop.domain.stats import Interval


@dataclass(frozen=True, kw_only=True)
class SlowChange:
    """A change that is left out, since trials with it have slow requests."""

    keys: tuple[str, ...]
    limit_ms: float
    """Requests that take longer are slow."""
    slow: int
    """Trials with the change that have a slow request."""
    trials: int
    """Trials with the change."""
    slow_others: int
    """Trials without it that have a slow request."""
    others: int
    """Trials without it, and without the slow changes before it."""


@dataclass(frozen=True, kw_only=True)
class TrimOrder:
    """The order in which the changes are tried, by name. It stays where models change."""

    names: tuple[str, ...]
    slow: tuple[SlowChange, ...] = ()
    """The changes that are not tried."""


@dataclass(frozen=True, kw_only=True)
class MeasuredSet:
    """A set of changes beside the set that it was compared with."""

    keys: tuple[str, ...]
    """Its keys, or those that were left out."""
    ratio: Interval
    """The judged latency with it, or without them, over that of the other set: above 1 is worse."""
    tail: Interval
    """The slowest tenth in the same way, where P99 or P99.9 is judged. It decides, as it scatters
    less."""


@dataclass(frozen=True, kw_only=True)
class Trimmed:
    """A candidate with those of its changes that are worth their place."""

    origin: str
    """The name of the candidate."""
    candidate: Configuration
    configuration: Configuration
    """The changes that stay, which are all where nothing was dropped."""
    sets: tuple[MeasuredSet, ...]
    """The first few changes, each beside all of them."""
    left_out: tuple[MeasuredSet, ...]
    """The changes of the set that stays, each left out of it, or those of the set before it."""
    trials: int
    slow: tuple[SlowChange, ...] = ()
    """The changes that were left out before any set was tried."""
    judged_by: Statistic = "P99"
    level: float
    """The confidence of each interval by itself."""
