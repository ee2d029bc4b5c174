"""A configuration under several workloads: what it is worth in each, and where it is worse."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from intop.domain.configuration import Configuration
from intop.domain.guardrails import Guardrails
from intop.domain.sides import judged
from intop.domain.trial import Trial
from intop.domain.verdict import Outcome, Pairwise, Verdict

TIMEOUT = "timeout"
"""What load tools call a request without an answer in time, among a trial's errors."""


@dataclass(frozen=True, kw_only=True)
class UnderWorkload:
    """What a configuration is worth under one workload.

    `load` says rate and connections in words. `verdict` rests on the rounds in which both sides are
    usable; it is None with fewer than two of them, and `problem` says why. `timeouts` are requests
    of these rounds that had no answer in time, on both sides. So many `trials` of each side were
    measured, of which `default_failed` and `tuned_failed` gave no latencies.
    """

    workload: str
    load: str
    verdict: Verdict | None
    timeouts: Pairwise
    trials: int
    default_failed: int
    tuned_failed: int
    problem: str = ""

    @property
    def outcome(self) -> Outcome | Literal["not measured"]:
        """The verdict's. One that fails more often than the default is worse."""
        if self.verdict is not None:
            return self.verdict.outcome
        return "worse" if self.tuned_failed > self.default_failed else "not measured"

    @property
    def is_worse(self) -> bool:
        """Whether P99 or anything with a guardrail is worse than what is accepted."""
        return bool(self.harms)

    @property
    def harms(self) -> tuple[str, ...]:
        """What is worse, in words: P99 is 1.30 times higher (1.10 to 1.54); CPU is higher by ..."""
        return tuple(self._harms())

    def _harms(self) -> Iterator[str]:
        if self.tuned_failed > self.default_failed:
            yield f"{self.tuned_failed} of {self.trials} trials fail"
        if (found := self.verdict) is None:
            return
        if found.ratio_high < 1:
            times, low, high = (1 / r for r in (found.ratio, found.ratio_high, found.ratio_low))
            yield f"P99 is {times:.2f} times higher ({low:.2f} to {high:.2f})"
        yield from (guard.told for guard in found.broken)


@dataclass(frozen=True, kw_only=True)
class Across:
    """A configuration against the default under several workloads, in the same rounds.

    `name` is what the configuration is called, `against` the baseline that stood for the default,
    and "" for the host's own values. Each workload's intervals have `each_level`, which is so high
    (Bonferroni) that those of P99 hold together at `level`.
    """

    name: str
    configuration: Configuration
    against: str
    rounds: int
    level: float
    each_level: float
    workloads: tuple[UnderWorkload, ...]

    @property
    def reference(self) -> str:
        """What the configuration is held against."""
        return self.against or "default"

    @property
    def worse(self) -> tuple[UnderWorkload, ...]:
        """Where it is worse than what is accepted."""
        return tuple(one for one in self.workloads if one.is_worse)

    @property
    def gains(self) -> tuple[UnderWorkload, ...]:
        """Where it is a gain, with no guardrail broken."""
        return tuple(one for one in self.workloads if one.verdict and one.verdict.is_gain)

    @property
    def is_gain(self) -> bool:
        """Whether it is a gain somewhere, and worse nowhere."""
        return bool(self.gains) and not self.worse


def under_workload(
    name: str,
    default: Sequence[Trial],
    tuned: Sequence[Trial],
    configuration: Configuration,
    *,
    origin: str,
    against: str,
    rounds: int,
    margins: Guardrails,
    level: float,
    each_level: float,
) -> UnderWorkload:
    """What the trials of one workload come to: those of both sides, each with a round."""
    sides = [{t.planned.block: t for t in side if t.usable} for side in (default, tuned)]
    common = [block for block in sides[0] if block in sides[1]]
    before, after = ([side[block] for block in common] for side in sides)
    failed = [sum(t.status == "failed" for t in side) for side in (default, tuned)]
    verdict, problem = None, ""
    if len(common) < 2:
        why = next((t.detail for t in (*default, *tuned) if not t.usable), "")
        problem = f"{len(common)} pairs could be measured, and it takes two: {why}"
    else:
        verdict = judged(
            before,
            after,
            configuration,
            origin=origin,
            against=against,
            failures=max(0, failed[1] - failed[0]),
            rounds=rounds,
            margins=margins,
            level=level,
            each_level=each_level,
        )
    conditions = next((t.conditions for t in (*default, *tuned)), None)
    return UnderWorkload(
        workload=name,
        load=f"{conditions.rate_rps:g} requests/s on {conditions.connections} connections"
        if conditions
        else "",
        verdict=verdict,
        timeouts=Pairwise(default=_timeouts(before), tuned=_timeouts(after)),
        trials=len(tuned),
        default_failed=failed[0],
        tuned_failed=failed[1],
        problem=problem,
    )


def _timeouts(trials: Sequence[Trial]) -> int:
    return sum(t.errors.get(TIMEOUT, 0) for t in trials)


def about(found: Across | None, verdict: Verdict | None) -> Across | None:
    """The result, if it is about the configuration of this verdict."""
    if found is None or verdict is None or found.configuration != verdict.configuration:
        return None
    return found
