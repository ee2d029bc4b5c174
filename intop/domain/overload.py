"""Overload: overloaded defaults that show too high a load, and not one unlucky trial.

Two in a row do. One among good ones is a bad result as any other, and counts as such. The first of
a stage has none before it, so it is doubted until it was measured once more.
"""

from collections.abc import Mapping

from intop.domain.trial import Status

PENDING = "pending"
"""The kind of error of a request that is unanswered at the end of a load."""

RATE_TOLERANCE = 0.95
"""The share of the offered rate that must be reached for a trial to count as on rate."""

Defaults = Mapping[int, Status]
"""Statuses of a stage's usable trials of the default on one replica, by place of the plan."""


def default_before(index: int, defaults: Defaults) -> int | None:
    """Return the place of the default before this one, None for the first."""
    return max((place for place in defaults if place < index), default=None)


def is_doubted(index: int, defaults: Defaults) -> bool:
    """Whether the default at this place was overloaded, and no good one stands right before it."""
    if defaults.get(index) != "overloaded":
        return False
    before = default_before(index, defaults)
    return before is None or defaults[before] == "overloaded"
