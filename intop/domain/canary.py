"""A canary: the default and a configuration in turn, on a host with real traffic.

Terms. A *block* is a time with one of the two, after a wash-out that is not counted. Two blocks in
random order are a *pair*. The *lead-in* is a first block with the default, which only gives limits.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Literal

from annotated_types import Interval, Len, MinLen, Predicate

from intop.domain.cluster import is_base_url, is_command
from intop.domain.configuration import Configuration
from intop.domain.matching import matching

P99 = "P99"
DELIVERY = "delivery time"
"""The time in which nginx's connections had data that the clients had not acknowledged, for each
MB (10^6 bytes) that they acknowledged. It has the way to the client in it."""
RETRANSMITTED = "retransmitted segments"
LOGGED = ("P50", "P90", P99, "slow requests", "failed requests")
"""The quantities that nginx's access log tells."""

MOVES_THE_END = {
    "net.ipv4.tcp_congestion_control": "it decides how soon an answer leaves the buffer",
    "net.ipv4.tcp_limit_output_bytes": "it decides how soon an answer leaves the buffer",
    "net.ipv4.tcp_notsent_lowat": "nginx waits until less than that is left in the buffer",
}
"""Keys that move the moment at which nginx has written an answer, with the reason: its time changes
although no client may notice. A client's P99 fell to 1/1.6 where nginx's fell to 1/25."""

ON_THE_WAY = frozenset(
    {
        *MOVES_THE_END,
        *(f"net.ipv4.tcp_{name}" for name in ("slow_start_after_idle", "ecn", "ecn_fallback")),
        *(f"net.ipv4.tcp_{name}" for name in ("pacing_ss_ratio", "pacing_ca_ratio")),
        *(f"net.ipv4.tcp_{name}" for name in ("min_tso_segs", "tso_win_divisor", "tso_rtt_log")),
        *(f"net.ipv4.tcp_{name}" for name in ("no_metrics_save", "no_ssthresh_metrics_save")),
        *(f"net.ipv4.tcp_{name}" for name in ("recovery", "early_retrans", "frto", "rto_min_us")),
        *(f"net.ipv4.tcp_{name}" for name in ("reordering", "max_reordering", "min_rtt_wlen")),
        *(f"net.ipv4.tcp_{name}" for name in ("thin_linear_timeouts", "retrans_collapse")),
    }
)
"""Keys that act on what is sent, after nginx has written it. Delivery time judges them."""

Outcome = Literal["gain", "harm", "no difference", "undecided"]
Better = Literal["lower", "higher"]
Unit = Literal["ms", "%", "ms/MB", ""]
MetricName = Annotated[
    str,
    matching(
        r"(?!P(50|90|99)$)[A-Za-z][A-Za-z0-9_-]{0,29}",
        "a name of up to 30 letters, digits, _ and -, a letter first, and none of P50, P90, P99",
    ),
]


@dataclass(frozen=True, kw_only=True)
class OwnMetric:
    """A number of the user's own, which a canary asks for at the end of each block."""

    better: Better
    """The better direction."""
    command: Annotated[str, Predicate(is_command)] | None = None
    """The command that prints the number, run as root on each tuned host within 30 s. The variable
    `INTOP_BLOCK_SECONDS` has the seconds of the block."""
    prometheus: Annotated[str, Predicate(is_base_url)] | None = None
    """The URL of the Prometheus server that is asked in place of a command, by the controller."""
    query: Annotated[str, MinLen(1)] | None = None
    """The query for Prometheus, whose result is one number. `$block` stands for the block's
    duration, such as 60s, and `$host` for the host's name."""
    limit_times: Annotated[float, Interval(gt=1, le=100)] | None = None
    """A harm is a number that is certainly so many times worse; by default `--margin`."""

    def __post_init__(self) -> None:
        """Raises ValueError for a metric without a source, or with two."""
        if (self.command is None) == (self.prometheus is None):
            raise ValueError("needs a command, or prometheus with a query, and not both")
        if (self.prometheus is None) != (self.query is None):
            raise ValueError("prometheus and query belong together")


@dataclass(frozen=True, kw_only=True)
class CanarySettings:
    """The settings of canaries in a study."""

    metrics: Annotated[dict[MetricName, OwnMetric], Len(0, 10)] = field(default_factory=dict)
    """Numbers of the user's own by name."""


def judged_by(configuration: Configuration, *, sees_delivery: bool) -> str:
    """Return the quantity whose fall is a gain.

    `sees_delivery` says whether the kernel's TCP_INFO can be read.
    """
    keys = configuration.values.keys()
    return DELIVERY if sees_delivery and keys and keys <= ON_THE_WAY else P99


def moving_keys(configuration: Configuration) -> tuple[str, ...]:
    """Return the keys among MOVES_THE_END that a configuration changes."""
    return tuple(sorted(MOVES_THE_END.keys() & configuration.values.keys()))


@dataclass(frozen=True, kw_only=True)
class SideRatio:
    """A quantity of both sides, with its ratio: canary / default."""

    quantity: str
    unit: Unit = ""
    default: float
    """The geometric mean of the blocks; of requests and segments a share (0 to 1) of all."""
    canary: float
    ratio: float
    low: float | None
    """The ratio is above this, whenever one looks; None where nothing shows it."""
    high: float | None
    fixed_low: float | None
    """The same by Student's t, as if one looked only now; None with one pair."""
    fixed_high: float | None
    better: Better = "lower"
    limit: float | None = None
    """A harm is certainly so many times worse; None for what is only shown."""

    @property
    def is_harm(self) -> bool:
        """Whether it is certainly worse by more than the limit."""
        if self.limit is None:
            return False
        if self.better == "lower":
            return self.low is not None and self.low > self.limit
        return self.high is not None and self.high < 1 / self.limit


@dataclass(frozen=True, kw_only=True)
class Canary:
    """A canary so far."""

    ALSO_IN_JSON: ClassVar = ("is_gain", "may_stay")

    hosts: tuple[str, ...]
    title: str
    """The name of the configuration."""
    configuration: Configuration
    outcome: Outcome
    stopped: str
    """The limit that a block was beyond; "" where none was."""
    judged_by: str = P99
    """The quantity whose fall is a gain: P99 by nginx's log, or delivery time by TCP_INFO."""
    sides: tuple[SideRatio, ...]
    """One for each quantity that both sides of a pair have."""
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
        """Whether what judges is certainly lower, and nothing certainly worse by its limit."""
        return self.outcome == "gain"

    @property
    def is_blurred(self) -> bool:
        """Whether the verdict uses nginx's times although the configuration moves them."""
        return bool(self.blurred) and self.judged_by != DELIVERY

    @property
    def may_stay(self) -> bool:
        """Whether the configuration may stay on the hosts: a gain that clients notice."""
        return self.is_gain and not self.is_blurred

    def side(self, quantity: str) -> SideRatio | None:
        """Return a quantity's sides; None where no pair has it."""
        return next((side for side in self.sides if side.quantity == quantity), None)


Metrics = Mapping[str, OwnMetric]
"""The user's own metrics by name."""
