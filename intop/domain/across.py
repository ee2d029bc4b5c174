"""A configuration under several workloads: its worth in each, and where it is worse."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal

from intop.domain.configuration import Configuration
from intop.domain.verdict import Outcome, Pairwise, Verdict, differs

WINNER = "winner"
"""The name of the configuration that a verdict is about."""


@dataclass(frozen=True, kw_only=True)
class UnderWorkload:
    """The worth of a configuration under one workload."""

    ALSO_IN_JSON: ClassVar = ("outcome", "harms")

    workload: str
    load: str
    """Rate and connections in words."""
    verdict: Verdict | None
    """The verdict by the rounds in which both sides are usable; None with fewer than two."""
    timeouts: Pairwise
    """Requests of these rounds that had no answer in time."""
    trials: int
    """Trials of each side."""
    default_failed: int
    """Trials of the default without latencies."""
    tuned_failed: int
    problem: str = ""
    """The reason why there is no verdict."""

    @property
    def outcome(self) -> Outcome | Literal["not measured"]:
        """The verdict's. One that fails more often than the default is worse."""
        if self.verdict is not None:
            return self.verdict.outcome
        return "worse" if self.tuned_failed > self.default_failed else "not measured"

    @property
    def is_worse(self) -> bool:
        """Whether latency or anything with a guardrail is worse than what is accepted."""
        return bool(self.harms)

    @property
    def harms(self) -> tuple[str, ...]:
        """The worse quantities, such as: P99 is 1.30 times higher (1.10 to 1.54); CPU is ..."""
        return tuple(self._harms())

    def _harms(self) -> Iterator[str]:
        if self.tuned_failed > self.default_failed:
            yield f"{self.tuned_failed} of {self.trials} trials fail"
        if (verdict := self.verdict) is None:
            return
        if verdict.ratio < 1 and differs(verdict.interval):
            harm = verdict.interval.inverse
            yield f"{verdict.judged_by} is {harm.value:.2f} times higher ({harm.limits})"
        yield from (guard.summary for guard in verdict.broken)


@dataclass(frozen=True, kw_only=True)
class Across:
    """A configuration against the default under several workloads, in the same rounds."""

    ALSO_IN_JSON: ClassVar = ("reference", "is_gain")

    name: str
    """The name of the configuration."""
    configuration: Configuration
    against: str
    """The baseline that stood for the default, "" for the host's own values."""
    rounds: int
    level: float
    each_level: float
    """The level in each workload, so high (Bonferroni) that all ratios together have `level`."""
    workloads: tuple[UnderWorkload, ...]

    @property
    def reference(self) -> str:
        """The name of the other side."""
        return self.against or "default"

    @property
    def worse(self) -> tuple[UnderWorkload, ...]:
        """The workloads in which it is worse than what is accepted."""
        return tuple(under for under in self.workloads if under.is_worse)

    @property
    def gains(self) -> tuple[UnderWorkload, ...]:
        """The workloads in which it is a gain, with no guardrail broken."""
        return tuple(u for u in self.workloads if u.verdict and u.verdict.is_gain)

    @property
    def is_gain(self) -> bool:
        """Whether it is a gain somewhere, and worse nowhere."""
        return bool(self.gains) and not self.worse

    def verdict_under(self, workload: str) -> Verdict | None:
        """Return the verdict under a workload; None where there is none."""
        return next((u.verdict for u in self.workloads if u.workload == workload), None)


@dataclass(frozen=True)
class AcrossByName:
    """A campaign's configurations under several workloads, the latest result of each name."""

    results: tuple[Across, ...] = ()

    def named(self, name: str) -> Across | None:
        """Return the result of a name; None where there is none."""
        return next((across for across in self.results if across.name == name), None)

    def with_one(self, across: Across) -> "AcrossByName":
        """Return these with a result in place of an earlier one of its name."""
        kept_results = (result for result in self.results if result.name != across.name)
        return AcrossByName((*kept_results, across))


def about(across: Across | None, verdict: Verdict | None) -> Across | None:
    """Return the result, if it is about the configuration of this verdict."""
    if across is None or verdict is None or across.configuration != verdict.configuration:
        return None
    return across
