"""causes: what is left of a winner's gain once a mechanism is taken away on both sides."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from intop.campaign.baselines import base_of, both_sides
from intop.campaign.collected import required_space
from intop.campaign.pilot.stage import timed
from intop.campaign.verify.judge import required_verdict
from intop.campaign.verify.winner import Winner
from intop.config.counters import load_counters
from intop.domain.baseline import HOST, TUNED
from intop.domain.causes import Cause
from intop.domain.configuration import Configuration
from intop.domain.mediation import BlockedMechanism, Mediated, Mediation
from intop.domain.rounds import Cells, cell, first_problem, judged_by_round, paired
from intop.domain.space import Space
from intop.domain.stats import Interval, paired_ratio, student_quantile
from intop.domain.trial import Trial
from intop.domain.verdict import Verdict
from intop.errors import UsageError
from intop.resources import shipped
from intop.run.context import Task
from intop.run.executor import execute
from intop.run.experiment import Experiment
from intop.run.prospect import Prospect
from intop.run.stage import Batch, Expected, SoFar

FEWEST_ROUNDS = 4


@dataclass(frozen=True, kw_only=True)
class MediationRequest:
    """The mechanisms to take away, and the number of rounds."""

    blocks: tuple[BlockedMechanism, ...] = ()
    """Values that take mechanisms away, in place of those of the catalogue of counters."""
    rounds: int | None = None
    """None is the budget's number."""


class Mediate(Experiment[Mediation]):
    """The verdict's winner and default, with and without each mechanism that the verdict names.

    A mechanism is taken away by values of the catalogue of counters, or of `blocks`, on both sides.
    Other blocks or rounds than before are a new series of rounds. Raises UsageError for a block
    that can't be set.
    """

    name = "causes"
    description = "what is left of the gain without each mechanism"
    command = "causes"
    result_type = Mediation
    needs = ("judge",)
    measures_all = "causes: other blocks or rounds than before are measured anew"

    def __init__(self, task: Task, verdict: Verdict, request: MediationRequest) -> None:
        super().__init__(timed(task))
        self.verdict = verdict
        self.rounds = request.rounds or max(FEWEST_ROUNDS, self.budget.explain_pairs)
        self._base = base_of(task, verdict.against)
        self._default = verdict.against or HOST
        self._space = required_space(task)
        # It may also name keys that it leaves at their defaults.
        winner = Winner.of(self._space, verdict.configuration, self._base)
        self._changed = winner.values.keys()
        self._chosen, self._untold = self._choose({b.mechanism: b for b in request.blocks})
        self.go_on()

    def ask(self, so_far: SoFar) -> Batch | None:
        return super().ask(so_far) if self._chosen else None

    def cells(self) -> Cells:
        sides = both_sides(self.task, self.verdict)
        blocked = {
            _without(block, name): Configuration({**side.values, **block.values})
            for _, block in self._chosen
            for name, side in sides.items()
        }
        return [cell(name, configuration) for name, configuration in {**sides, **blocked}.items()]

    @classmethod
    def unplanned(cls, prospect: Prospect) -> Expected:
        """Return the trials for two mechanisms of two arms each: most verdicts name one or two."""
        request = prospect.requested(MediationRequest) or MediationRequest()
        rounds = request.rounds or max(FEWEST_ROUNDS, prospect.budget.explain_pairs)
        return Expected(trials=6 * rounds)

    def result(self, trials: Sequence[Trial]) -> Mediation:
        return Mediation(
            winner=self.verdict.configuration,
            against=self.verdict.against,
            mechanisms=tuple(self._mediated(cause, b, trials) for cause, b in self._chosen),
            untold=self._untold,
            rounds=self.rounds,
            level=self.budget.level,
        )

    # -- blocks ----------------------------------------------------------------------------------

    def _choose(
        self, asked: Mapping[str, BlockedMechanism]
    ) -> tuple[list[tuple[Cause, BlockedMechanism]], dict[str, str]]:
        """Return a block for each mechanism that the tuned side has less of, or why it has none.

        Raises UsageError for a block that is asked for in vain.
        """
        causes = self.verdict.causes.eased if self.verdict.causes else ()
        self._check(asked, [cause.mechanism for cause in causes])
        catalogue = load_counters(shipped("configs") / "counters.toml")
        chosen: list[tuple[Cause, BlockedMechanism]] = []
        untold: dict[str, str] = {}
        for cause in causes:
            name = cause.mechanism
            known = [asked[name].values] if name in asked else catalogue.blocks.get(name, ())
            values = self._best(known)
            if values is not None:
                chosen.append((cause, BlockedMechanism(mechanism=name, values=values)))
            elif known:
                untold[name] = (
                    "what takes it away is not offered here, is the default's already, or is what "
                    "the winner does"
                )
            else:
                untold[name] = "no value is known that takes it away"
        return chosen, untold

    def _check(self, asked: Mapping[str, BlockedMechanism], named: Sequence[str]) -> None:
        """Raises UsageError for a block that can't be set, or that no cause is named for."""
        for name, block in asked.items():
            if reason := _obstacle(self._space, block.values):
                raise UsageError(f"{self.task.title}: --block {name}: {reason}")
        if unknown := sorted(asked.keys() - set(named)):
            raise UsageError(
                f"{self.task.title}: --block {unknown[0]}: the verdict does not name it; it names "
                f"{', '.join(named) or 'none'}"
            )

    def _best(self, known: Sequence[Mapping[str, str]]) -> Mapping[str, str] | None:
        """Return values that can be set and leave two sides, of few keys that the winner changes.

        None where there are none.
        """
        fit = [values for values in known if not _obstacle(self._space, values)]
        fit = [values for values in fit if not self._is_pointless(values)]
        return min(fit, key=lambda values: len(values.keys() & self._changed), default=None)

    def _is_pointless(self, values: Mapping[str, str]) -> bool:
        """Return whether the default has them, or both sides are the same with them."""
        default, winner = (
            {**self._space.defaults, **c.values} for c in (self._base, self.verdict.configuration)
        )
        return {**default, **values} in (default, {**winner, **values})

    # -- result ----------------------------------------------------------------------------------

    def _mediated(self, cause: Cause, block: BlockedMechanism, trials: Sequence[Trial]) -> Mediated:
        judged_ms, level = judged_by_round(trials), self.budget.level
        names = [self._default, TUNED, _without(block, self._default), _without(block, TUNED)]
        default, tuned, *left = paired(*(judged_ms.get(name, {}) for name in names))
        mediated = Mediated(
            block=block,
            about=cause.about,
            rounds=len(default),
            own=tuple(sorted(block.values.keys() & self._changed)),
        )
        if len(default) < 2:
            mine = [trial for trial in trials if trial.planned.arm in names]
            return replace(mediated, detail=first_problem(mine))
        return replace(
            mediated,
            gain=paired_ratio(default, tuned, level=level),
            left=paired_ratio(*left, level=level),
            share=share_of(_log_ratios(default, tuned), _log_ratios(*left), level=level),
        )


def mediate(task: Task, request: MediationRequest) -> Mediation | Verdict:
    """Measure what each mechanism brings.

    A verdict that is no gain is returned as it is, and nothing is measured. Raises
    ResultMissingError before there is a verdict, and what `Mediate` and `execute` do.
    """
    verdict = required_verdict(task)
    return execute(Mediate(task, verdict, request)) if verdict.is_gain else verdict


def share_of(gains: Sequence[float], left: Sequence[float], *, level: float) -> Interval | None:
    """Return 1 - mean of what is left / mean of the gain, both log ratios of the same rounds.

    The interval is Fieller's (Journal of the Royal Statistical Society B 16, 1954, 175-185). None
    where the mean gain is not clearly above 0, since then no interval is bounded. Raises ValueError
    for fewer than two rounds or sequences of different lengths.
    """
    count = len(gains)
    if count < 2 or count != len(left):
        raise ValueError(f"{count} rounds against {len(left)}")
    gain, rest = fmean(gains), fmean(left)
    t = student_quantile(level, count - 1)

    def covariance(a: Sequence[float], b: Sequence[float]) -> float:
        """Return that of the two means."""
        centres = fmean(a), fmean(b)
        products = ((x - centres[0]) * (y - centres[1]) for x, y in zip(a, b, strict=True))
        return sum(products) / (count - 1) / count

    # The ratios r whose rest - r gain is not clearly other than 0: a r^2 - 2 b r + c <= 0.
    a = gain**2 - t**2 * covariance(gains, gains)
    if gain <= 0 or a <= 0:
        return None
    b = gain * rest - t**2 * covariance(gains, left)
    c = rest**2 - t**2 * covariance(left, left)
    root = math.sqrt(max(0.0, b**2 - a * c))
    return Interval(1 - rest / gain, 1 - (b + root) / a, 1 - (b - root) / a)


def _log_ratios(numerators: Sequence[float], denominators: Sequence[float]) -> list[float]:
    return [math.log(a / b) for a, b in zip(numerators, denominators, strict=True)]


def _without(block: BlockedMechanism, side: str) -> str:
    return f"{side} without {block.mechanism}"


def _obstacle(space: Space, values: Mapping[str, str]) -> str:
    """Return why values can't be set in a space, "" where they can."""
    parameters = {p.key: p for p in space.parameters}
    for key, value in values.items():
        parameter = parameters.get(key)
        if parameter is None:
            return f"{key} can't be tuned here: intop doctor says why"
        if unfit := parameter.unfit(value):
            return f"{key} is {unfit}"
    if space.broken(Configuration(dict(values))):
        return f"{', '.join(values)} would break a constraint of the catalogue"
    return ""
