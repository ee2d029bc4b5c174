"""Comparisons of two sides of a store, from measured trials only."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import ClassVar

from intop.domain.ranking import Importance, RankAgreement, Ranking
from intop.domain.search import Search
from intop.domain.stats import Interval, difference, geometric_interval, unpaired_ratio
from intop.domain.training import ModelError, Training
from intop.domain.trial import Conditions
from intop.domain.verdict import Verdict

EXPECTED_DIFFERENCES = ("arch", "machine", "cpu", "cpus")
"""Conditions that may differ where architectures are compared."""

WARNED_DIFFERENCES = (
    *("kernel", "emulation", "nginx", "nginx_conf", "generator", "backends", "server_cpus"),
)
"""Conditions that should be equal, and often can't be; such differences are named."""

MUST_BE_EQUAL = tuple(
    f.name for f in fields(Conditions) if f.name not in (*EXPECTED_DIFFERENCES, *WARNED_DIFFERENCES)
)
"""Conditions without which a comparison means nothing: every condition that isn't listed above."""

LOAD = (
    *("load_tool", "workload", "script", "rate_rps", "connections", "threads"),
    *("duration_s", "timeout_s", "link", "paths", "traffic", "judged_by"),
)
"""Conditions that must be equal even where the sides were chosen by them."""

AT_FULL_SPEED = ("", "KVM")
"""Emulators under which a load balancer has the speed of the hardware."""


@dataclass(frozen=True, kw_only=True)
class Latency:
    """The latency of one configuration."""

    mean_ms: Interval
    """The geometric mean of its trials."""
    trials_ms: tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class Converged:
    """The time that the search of one model took."""

    model: str
    generations: int
    """Generations until the best improved no more."""
    seconds: float


@dataclass(frozen=True, kw_only=True)
class Measured:
    """The trials of a side: how many, when, and by which intop."""

    attempts: int
    """Retries included."""
    first_at: str
    """UTC, ISO 8601."""
    last_at: str
    tool_versions: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Side:
    """The measurements of one campaign on one architecture under one workload."""

    name: str
    """The selector that was typed."""
    arch: str
    conditions: Conditions
    trials: int
    """Usable trials."""
    measured: Measured
    """The numbers of all trials."""
    default: Latency
    """The latency of the trials that the verdict rests on. Before there is a verdict, that of all
    trials of the default."""
    tuned: Latency | None
    """The latency of the trials that the verdict rests on, None before there is one."""
    verdict: Verdict | None
    ranking: Ranking | None
    training: Training | None
    convergences: tuple[Converged, ...]

    @property
    def emulated(self) -> bool:
        """Whether its speed is that of an emulator, which says nothing about the hardware."""
        return self.conditions.emulation not in AT_FULL_SPEED

    @property
    def errors(self) -> tuple[ModelError, ...]:
        """The held-out errors by family; none before training."""
        return self.training.errors if self.training else ()


@dataclass(frozen=True, kw_only=True)
class Contrast:
    """The second side's latency against the first's, by geometric means."""

    ALSO_IN_JSON: ClassVar = ("outcome",)

    difference_ms: Interval
    """The difference with MOVER's interval."""
    ratio: Interval
    """The ratio with Welch's interval on the logarithms."""

    @property
    def outcome(self) -> str:
        """`higher`, `lower`, or `not separated` where the ratio's interval holds 1."""
        if self.ratio.low > 1:
            return "higher"
        return "lower" if self.ratio.high < 1 else "not separated"


@dataclass(frozen=True, kw_only=True)
class ComparedParameter:
    """A parameter that one side or both have chosen (SRP or DRP), in the sides' order."""

    key: str
    importances: tuple[Importance | None, Importance | None]
    """None where it wasn't ranked."""
    chosen: tuple[bool, bool]
    refused: tuple[str, str]
    """The reason why the host doesn't offer it, "" where it does."""


@dataclass(frozen=True, kw_only=True)
class ComparedValue:
    """A parameter that a judged configuration of either side changes, in the sides' order."""

    key: str
    defaults: tuple[str | None, str | None]
    """The host's default, None where it can't be read."""
    tuned: tuple[str | None, str | None]
    """The value that was judged, None where it is the default."""


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """One workload on two sides, with intervals at `level`."""

    workload: str
    level: float
    sides: tuple[Side, Side]
    default: Contrast
    """The second side against the first. So is `tuned`."""
    tuned: Contrast | None
    rank_agreement: RankAgreement | None
    """The agreement of the parameters' importances, None where a side is not screened."""
    parameters: tuple[ComparedParameter, ...]
    values: tuple[ComparedValue, ...]
    differences: tuple[str, ...]
    """Differences that make the sides incomparable."""
    warnings: tuple[str, ...]
    """Differences beside those that the sides were chosen by."""


@dataclass(frozen=True, kw_only=True)
class Provenance:
    """The campaign of a side, and the intop that compares it. Times are as in `Measured`."""

    study: str
    campaign: int
    seed: int
    started_at: str
    finished_at: str | None
    tool_version: str


@dataclass(frozen=True, kw_only=True)
class Compared:
    """All workloads that were asked for."""

    comparisons: tuple[Comparison, ...]
    missing: tuple[str, ...]
    """Workloads that could not be compared, and why."""
    provenance: tuple[Provenance, Provenance]
    """Provenances in the order of the sides."""
    chosen_by: tuple[str, ...] = ("arch",)
    """The properties by which the sides were chosen: conditions, `study` or `campaign`."""

    @property
    def is_of_architectures(self) -> bool:
        """Whether the sides are two architectures of one campaign."""
        first, second = self.provenance
        return self.chosen_by == ("arch",) and first.campaign == second.campaign


def converged(search: Search | None) -> tuple[Converged, ...]:
    """Return how long each model's search took; nothing before there was one."""
    return tuple(
        Converged(model=run.model, generations=run.converged_at, seconds=run.seconds)
        for run in (search.convergences if search else ())
    )


def latency(trials_ms: Sequence[float], level: float) -> Latency:
    """Return the latency of trials of one configuration. Raises ValueError for fewer than two."""
    return Latency(mean_ms=geometric_interval(trials_ms, level=level), trials_ms=tuple(trials_ms))


def contrast(first: Latency, second: Latency, level: float) -> Contrast:
    """Return the contrast of the `second` against the `first`."""
    return Contrast(
        difference_ms=difference(second.mean_ms, first.mean_ms),
        ratio=unpaired_ratio(second.trials_ms, first.trials_ms, level=level),
    )
