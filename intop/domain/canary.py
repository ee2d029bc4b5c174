"""A canary: the default and a configuration in turn, on a host with real traffic.

Terms. A *block* is a time with one of the two, after a wash-out that is not counted. Two blocks in
random order are a *pair*. The *lead-in* is a first block with the default, which only gives limits.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

from intop.domain.configuration import Configuration

Quantity = Literal["P50", "P90", "P99", "slow requests", "failed requests"]
QUANTITIES: tuple[Quantity, ...] = ("P50", "P90", "P99", "slow requests", "failed requests")

ALL_CONNECTIONS = "requests of all connections"
"""The traffic of blocks whose requests may belong to connections from before."""

MOVES_THE_END = {
    "net.ipv4.tcp_congestion_control": "it decides how soon an answer leaves the buffer",
    "net.ipv4.tcp_limit_output_bytes": "it decides how soon an answer leaves the buffer",
    "net.ipv4.tcp_notsent_lowat": "nginx waits until less than that is left in the buffer",
}
"""Keys that move the moment at which nginx has written an answer, with the reason: its time changes
although no client may notice. A client's P99 fell to 1/1.6 where nginx's fell to 1/25."""

Outcome = Literal["gain", "harm", "no difference", "undecided"]


@dataclass(frozen=True, kw_only=True)
class SideRatio:
    """A quantity of both sides, with its ratio: canary / default."""

    quantity: Quantity
    default: float
    """In ms, the geometric mean of the blocks; or a share (0 to 1) of all requests."""
    canary: float
    ratio: float
    low: float | None
    """The ratio is above this, whenever one looks; None with too few pairs."""
    high: float | None
    fixed_low: float | None
    """The same by Student's t, as if one looked only now; None with one pair."""
    fixed_high: float | None


@dataclass(frozen=True, kw_only=True)
class Canary:
    """A canary so far."""

    ALSO_IN_JSON: ClassVar = ("is_gain",)

    hosts: tuple[str, ...]
    title: str
    """The name of the configuration."""
    configuration: Configuration
    outcome: Outcome
    stopped: str
    """The limit that a block was beyond; "" where none was."""
    sides: tuple[SideRatio, ...]
    """One for each of QUANTITIES; none before the first pair."""
    pairs: int
    """Pairs that count."""
    planned: int
    left_out: tuple[str, ...]
    """A line for each block that does not count, with the reason."""
    block_s: int
    washout_s: int
    requests: int
    """Counted requests of blocks with the default."""
    canary_requests: int
    """Counted requests of blocks with the configuration."""
    blurred: tuple[str, ...]
    """The keys among MOVES_THE_END: their effect on $request_time is not the clients'."""
    only_new: bool
    """Whether only requests of connections count that began in the block."""
    slow_ms: float
    """The limit above which a request is slow."""
    margin: float
    """A ratio that matters, above 1."""
    level: float

    @property
    def is_gain(self) -> bool:
        """Whether P99 is certainly lower, and nothing certainly worse by the margin."""
        return self.outcome == "gain"
