"""A sample of values, in memory that does not grow with them."""

from dataclasses import dataclass, field
from random import Random
from statistics import median

MOST = 10_000
"""Values that a sample keeps."""


@dataclass
class Sample:
    """At most MOST of the values that were added, each kept with the same chance.

    That is algorithm R (Vitter, ACM Transactions on Mathematical Software 11, 1985).
    """

    values: list[float] = field(default_factory=list)
    seen: int = 0
    """All values that were added."""
    _random: Random = field(default_factory=lambda: Random(1))

    def add(self, value: float) -> None:
        """Add a value."""
        self.seen += 1
        if len(self.values) < MOST:
            self.values.append(value)
        elif (place := self._random.randrange(self.seen)) < MOST:
            self.values[place] = value

    def joined(self, other: "Sample") -> "Sample":
        """Return a sample of all that both have seen, in which each value seen weighs alike."""
        seen = self.seen + other.seen
        if seen <= MOST:
            return Sample([*self.values, *other.values], seen)
        parts = [part for part in (self, other) if part.seen]
        drawn = self._random.choices(parts, weights=[part.seen for part in parts], k=MOST)
        return Sample([self._random.choice(part.values) for part in drawn], seen)

    @property
    def median(self) -> float | None:
        """The median of the sample; None without any value."""
        return median(self.values) if self.values else None
