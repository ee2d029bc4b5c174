"""rates: what the winner is worth at other rates than the one that it was tuned at."""

import random
from collections.abc import Sequence

from intop.domain.baseline import HOST, TUNED
from intop.domain.rate_sweep import RateSweep, at_rate
from intop.domain.trial import PlannedTrial, Trial
from intop.domain.verdict import Verdict
from intop.errors import UsageError
from intop.run.context import Task
from intop.run.executor import execute
from intop.run.stage import Batch, SoFar, Stage
from intop.stages.baselines import base_of
from intop.stages.blocks import (
    latest_series,
    paired,
    planned_rounds,
    usable_by_round,
)
from intop.stages.pilot import timed

FEWEST_ROUNDS = 4


class AtRates(Stage[RateSweep]):
    """The verdict's winner and default at multiples of the workload's rate, in interleaved rounds.

    Each round has every rate once on both sides. What fails is a result. Other rates than before,
    or another number of rounds, are a new series of rounds; earlier ones stay in the store. Raises
    UsageError for a rate at which the load can't be sent.
    """

    name = "rates"
    description = "the winner against the default at other rates"
    command = "verify"
    result_type = RateSweep
    needs = ("judge",)
    of_its_own = True
    is_apart = True
    ends_by_failures = False
    ends_by_overload = False

    def __init__(
        self, task: Task, verdict: Verdict, times: Sequence[float], rounds: int | None = None
    ) -> None:
        super().__init__(timed(task))
        self.verdict = verdict
        self.rounds = rounds or rounds_of(self.budget.judge_pairs)
        load = task.workload
        # Load tools take whole requests a second.
        self.rates = {float(max(1, round(one * load.rate_rps))): one for one in times}
        for rate in self.rates:
            if load.connections / rate >= load.timeout_s:
                raise UsageError(
                    f"{task.title}: at {rate:g} requests/s {load.connections} connections are idle "
                    f"for longer than timeout_s ({load.timeout_s}): leave that rate out of --rates"
                )
        self._default = verdict.against or HOST
        self._arms = {
            TUNED: verdict.configuration,
            self._default: base_of(task, verdict.against),
        }
        before = task.store.plan(task.subject, self.name)
        self.series, planned = latest_series(before)
        if planned and not self._is_planned_so(planned):
            task.context.progress.say(
                f"{task.title}: {self.name}: other rates or rounds than before are measured anew"
            )
            self.series, planned = self.series + 1, []
        self.start = planned[0].index if planned else len(before)

    def ask(self, so_far: SoFar) -> Batch | None:
        return so_far.unfinished if so_far.plan else Batch(self._plan())

    def result(self, trials: Sequence[Trial]) -> RateSweep:
        level = self.budget.level
        found = []
        for rate, times in self.rates.items():
            own = [t for t in trials if t.planned.rate_rps == rate]
            usable = usable_by_round(own)
            default, tuned = (
                [t for t in own if t.planned.arm == arm] for arm in (self._default, TUNED)
            )
            pairs = paired(usable.get(self._default, {}), usable.get(TUNED, {}))
            found.append(at_rate(rate, times, (default, tuned), pairs, level=level))
        return RateSweep(
            configuration=self.verdict.configuration,
            against=self.verdict.against,
            rates=tuple(found),
            rounds=self.rounds,
            level=level,
        )

    def _plan(self) -> list[PlannedTrial]:
        """Every rate with both sides once a round, in an order of the round's own."""
        rng = random.Random(self.task.seed(self.name, "order", self.series))
        cells = [(rate, arm) for rate in self.rates for arm in self._arms]
        return [
            PlannedTrial(
                index=self.start + number * len(cells) + place,
                role="sentinel" if self._arms[arm].is_default else "finalist",
                configuration=self._arms[arm],
                arm=arm,
                round=number + 1,
                series=self.series,
                rate_rps=rate,
            )
            for number in range(self.rounds)
            for place, (rate, arm) in enumerate(rng.sample(cells, len(cells)))
        ]

    def _is_planned_so(self, planned: Sequence[PlannedTrial]) -> bool:
        then = {(p.rate_rps, p.arm): p.configuration for p in planned}
        now = {(rate, arm): c for rate in self.rates for arm, c in self._arms.items()}
        return then == now and planned_rounds(planned) == self.rounds


def at_rates(
    task: Task, verdict: Verdict, times: Sequence[float], rounds: int | None = None
) -> RateSweep:
    """Measure a verdict's winner at these multiples of the workload's rate.

    `rounds` is half of `judge_pairs` where it is None, but four at least. Raises what `AtRates` and
    `execute` do.
    """
    return execute(AtRates(task, verdict, times, rounds))


def rounds_of(judge_pairs: int) -> int:
    """How often each rate is measured where nobody says it."""
    return max(FEWEST_ROUNDS, -(-judge_pairs // 2))
