"""The part of a gain that a mechanism brings: the gain with it, and without it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from intop.domain.configuration import Configuration
from intop.domain.stats import Interval


@dataclass(frozen=True, kw_only=True)
class BlockedMechanism:
    """A mechanism by which requests no longer wait, and the values (by key) that see to it."""

    mechanism: str
    values: Mapping[str, str]

    @property
    def summary(self) -> str:
        """The values in words, such as `net.ipv4.tcp_syncookies=1`."""
        return ", ".join(f"{key}={value}" for key, value in self.values.items())


@dataclass(frozen=True, kw_only=True)
class Mediated:
    """A mechanism that was taken away on both sides by the values of its block."""

    block: BlockedMechanism
    about: str
    rounds: int
    """The rounds that have both sides with and without the block."""
    gain: Interval | None = None
    """Latency of the default / latency of the winner without the block."""
    left: Interval | None = None
    """The gain with the block; None with fewer than two rounds."""
    share: Interval | None = None
    """The part of the gain (of log latency) that the mechanism brings: 1 is all of it, 0 nothing.

    It is beyond these where what is left is worse, or more. None where these rounds show no clear
    gain.
    """
    own: tuple[str, ...] = ()
    """The block's keys that the winner changes, too."""
    detail: str = ""
    """The reason why nothing is left that could be compared."""


@dataclass(frozen=True, kw_only=True)
class Mediation:
    """The part of the gain that each mechanism brings, of those that a verdict names."""

    winner: Configuration
    against: str
    mechanisms: tuple[Mediated, ...]
    untold: Mapping[str, str] = field(default_factory=dict)
    """The reason why each other mechanism was not taken away."""
    rounds: int = 0
    level: float = 0.95
    """The level of the intervals, each for itself."""
