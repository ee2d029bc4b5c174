"""mediation: what is left of a winner's gain once a mechanism is taken away on both sides."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from intop.config.counters import load_counters
from intop.domain.baseline import HOST, TUNED
from intop.domain.causes import Cause
from intop.domain.configuration import Configuration
from intop.domain.mediation import Block, Mediated, Mediation, share_of
from intop.domain.space import Space
from intop.domain.stats import paired_ratio
from intop.domain.trial import Block as Round
from intop.domain.trial import Trial
from intop.domain.verdict import Verdict
from intop.errors import UsageError
from intop.resources import shipped
from intop.run.context import Task
from intop.run.executor import execute
from intop.run.stage import Batch, SoFar
from intop.run.testbed import Testbed
from intop.stages.baselines import base_of
from intop.stages.blocks import (
    Arms,
    InRounds,
    first_problem,
    latest_series,
    p99_by_round,
    planned_arms,
    planned_rounds,
)
from intop.stages.collected import required_space
from intop.stages.explain.stage import required_verdict
from intop.stages.explain.winner import Winner
from intop.stages.pilot import timed

FEWEST_ROUNDS = 4


class Mediate(InRounds[Mediation]):
    """The verdict's winner and default, with and without each mechanism that the verdict names.

    A mechanism is taken away by values of the catalogue of counters, or of `blocks`, on both sides.
    Other blocks or rounds than before are a new series of rounds. What fails is a result. Raises
    UsageError for a block that can't be set.
    """

    name = "mediation"
    description = "what is left of the gain without each mechanism"
    command = "explain"
    result_type = Mediation
    needs = ("judge",)
    of_its_own = True
    ends_by_failures = False
    ends_by_overload = False

    def __init__(
        self,
        task: Task,
        verdict: Verdict,
        blocks: Sequence[Block] = (),
        rounds: int | None = None,
    ) -> None:
        super().__init__(timed(task))
        self.verdict = verdict
        self.rounds = rounds or max(FEWEST_ROUNDS, self.budget.explain_pairs)
        self._base = base_of(task, verdict.against)
        self._default = verdict.against or HOST
        space = required_space(task)
        # It may also name keys that it leaves at their defaults.
        self._changed = Winner.of(space, verdict.configuration, self._base).values.keys()
        for block in blocks:
            if reason := _obstacle(space, block.values):
                raise UsageError(f"{task.title}: --block {block.mechanism}: {reason}")
        self._chosen, self._untold = self._choose(space, blocks)
        before = task.store.plan(task.subject, self.name)
        self.series, planned = latest_series(before)
        is_same = planned_arms(planned) == self._arms() and planned_rounds(planned) == self.rounds
        if planned and not is_same:
            task.context.progress.say(
                f"{task.title}: {self.name}: other blocks or rounds than before are measured anew"
            )
            self.series, planned = self.series + 1, []
        self.start = planned[0].index if planned else len(before)

    def ask(self, so_far: SoFar) -> Batch | None:
        return super().ask(so_far) if self._chosen else None

    def arms(self, testbed: Testbed) -> Arms:
        del testbed
        return self._arms()

    def result(self, trials: Sequence[Trial]) -> Mediation:
        return Mediation(
            winner=self.verdict.configuration,
            against=self.verdict.against,
            mechanisms=tuple(self._mediated(cause, b, trials) for cause, b in self._chosen),
            untold=self._untold,
            rounds=self.rounds,
            level=self.budget.level,
        )

    def _choose(
        self, space: Space, given: Sequence[Block]
    ) -> tuple[list[tuple[Cause, Block]], dict[str, str]]:
        """A block for each mechanism that the tuned side has less of, or why there is none."""
        catalogue = load_counters(shipped("configs") / "counters.toml")
        asked = {block.mechanism: block for block in given}
        causes = self.verdict.causes.eased if self.verdict.causes else ()
        if unknown := sorted(asked.keys() - {cause.mechanism for cause in causes}):
            raise UsageError(
                f"{self.task.title}: --block {unknown[0]}: the verdict does not name it; it names "
                f"{', '.join(cause.mechanism for cause in causes) or 'none'}"
            )
        chosen: list[tuple[Cause, Block]] = []
        untold: dict[str, str] = {}
        for cause in causes:
            name = cause.mechanism
            known = [asked[name].values] if name in asked else catalogue.blocks.get(name, ())
            found = self._tellable(space, known)
            if found is not None:
                chosen.append((cause, Block(mechanism=name, values=found)))
            elif known:
                untold[name] = (
                    "what takes it away is not offered here, is the default's already, or is what "
                    "the winner does"
                )
            else:
                untold[name] = "no value is known that takes it away"
        return chosen, untold

    def _tellable(
        self, space: Space, known: Sequence[Mapping[str, str]]
    ) -> Mapping[str, str] | None:
        """Values that can be set and that leave two sides; those of keys of their own first."""
        fit = [values for values in known if not _obstacle(space, values)]
        fit = [values for values in fit if not self._is_pointless(space, values)]
        return min(fit, key=lambda values: len(values.keys() & self._changed), default=None)

    def _is_pointless(self, space: Space, values: Mapping[str, str]) -> bool:
        """Whether the default has them, or the winner is no other than the default with them."""
        default, winner = (
            {**space.defaults, **c.values} for c in (self._base, self.verdict.configuration)
        )
        return {**default, **values} in (default, {**winner, **values})

    def _arms(self) -> Arms:
        sides = {self._default: self._base, TUNED: self.verdict.configuration}
        blocked = {
            _blocked(name, block): Configuration({**side.values, **block.values})
            for _, block in self._chosen
            for name, side in sides.items()
        }
        return {**sides, **blocked}

    def _mediated(self, cause: Cause, block: Block, trials: Sequence[Trial]) -> Mediated:
        p99 = p99_by_round(trials)
        names = [self._default, TUNED, _blocked(self._default, block), _blocked(TUNED, block)]
        four = [p99.get(name, {}) for name in names]
        rounds: list[Round] = [n for n in four[0] if all(n in one for one in four)]
        own = tuple(sorted(block.values.keys() & self._changed))
        found = Mediated(block=block, about=cause.about, rounds=len(rounds), own=own)
        if len(rounds) < 2:
            mine = [t for t in trials if t.planned.arm in names]
            return replace(found, detail=first_problem(mine))
        default, tuned, default_left, tuned_left = ([one[n] for n in rounds] for one in four)
        level = self.budget.level
        gains, left = (
            [math.log(d / t) for d, t in zip(*pair, strict=True)]
            for pair in ((default, tuned), (default_left, tuned_left))
        )
        return replace(
            found,
            gain=paired_ratio(default, tuned, level=level),
            left=paired_ratio(default_left, tuned_left, level=level),
            share=share_of(gains, left, level=level),
        )


def mediate(
    task: Task, blocks: Sequence[Block] = (), rounds: int | None = None
) -> Mediation | Verdict:
    """Measure what each mechanism brings.

    A verdict that is no gain is returned as it is, and nothing is measured. Raises
    ResultMissingError before there is a verdict, and what `Mediate` and `execute` do.
    """
    verdict = required_verdict(task)
    return execute(Mediate(task, verdict, blocks, rounds)) if verdict.is_gain else verdict


def _blocked(side: str, block: Block) -> str:
    return f"{side} without {block.mechanism}"


def _obstacle(space: Space, values: Mapping[str, str]) -> str:
    """Why values can't be set in a space; "" where they can."""
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
