"""The few changes of a picked candidate that are worth their place, and the trials behind that."""

from dataclasses import dataclass

from intop.domain.configuration import Configuration
from intop.domain.histogram import Statistic
from intop.domain.stats import Interval


@dataclass(frozen=True, kw_only=True)
class TrimOrder:
    """The order in which the changes are tried, by name. It stays where models change."""

    names: tuple[str, ...]


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
    judged_by: Statistic = "P99"
    level: float
    """The confidence of each interval by itself."""
