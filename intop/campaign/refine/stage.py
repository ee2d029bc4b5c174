"""refine: trials that are chosen a few at a time, each few by all trials before them."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from intop.campaign.collected import (
    best_measured,
    collected_space,
    samples_of,
    screened_trials,
    stage_trials,
    tails_of,
)
from intop.campaign.pilot.stage import timed
from intop.campaign.sentinels import followed_by_sentinels
from intop.domain.configuration import DEFAULT
from intop.domain.refined import (
    BestKnown,
    Decision,
    Decisions,
    End,
    Refined,
    RefineStep,
)
from intop.domain.replicates import by_configuration
from intop.domain.stats import geometric_mean
from intop.domain.training import Training
from intop.domain.trial import PlannedTrial, Trial
from intop.errors import ResultMissingError, UsageError
from intop.run.context import Task
from intop.run.executor import execute
from intop.run.prospect import Prospect, designed, roles
from intop.run.replicas import replicas_in_use
from intop.run.stage import Batch, Expected, SoFar, Stage

if TYPE_CHECKING:
    from intop.campaign.refine.warm_start import WarmStart
    from intop.learn.active import Proposal, Step

LEAST_OF_NOISE, LEAST_OF_GAIN = 0.1, 0.005
"""A step is not worth its trials where it is expected to lower the log tail by less than so much of
one trial's standard deviation, or of what all steps have gained. A verdict of some ten pairs tells
half a standard deviation from nothing, rarely a tenth."""

PATIENCE = 6
"""Such steps in a row that end a refinement, if none of them has changed what is best. One says
little: what models of a few dozen trials expect goes up and down from step to step."""

SLOW_SHARE = 0.05
"""A step is slow that brought at most so much of what it and all before it have gained."""


class Refine(Stage[Refined]):
    """The most telling configurations by all trials so far, a few at a time, until it is enough.

    It goes on from what `collect` has measured, and ends when the budget's trials are spent or
    PATIENCE steps in a row are expected to bring too little, and bring nothing. Every step is a
    function of the trials before it and the seed, so that a killed refinement goes on as it would
    have. Raises ResultMissingError while nothing is collected, UsageError where there are no trials
    for it.
    """

    name = "refine"
    description = "the configurations that tell most"
    command = "refine"
    finds = "refinement"
    hands_on = ("SDS", "DDS")
    is_of_the_paper = False
    result_type = Refined
    needs = ("collect",)
    explores = True
    ends_early: ClassVar[bool] = True
    """Whether it ends where nothing better is expected."""

    def __init__(self, task: Task) -> None:
        budget = task.context.study.budget
        if not budget.refine_trials:
            raise UsageError(
                f"{task.title}: refine_trials is 0, so there is nothing to refine with: set it in "
                f"[budget] of {task.context.study.path}"
            )
        self.design = stage_trials(task, "collect")
        super().__init__(timed(task))
        self.space = collected_space(task)
        self._known: dict[int, BestKnown] = {}
        self._steps: dict[int, list[PlannedTrial]] = {}

    def ask(self, so_far: SoFar) -> Batch | None:
        """Return the default on each replica and the first step, then a step after the other."""
        if so_far.unfinished:
            return so_far.unfinished
        defaults = [
            PlannedTrial(index=n, role="baseline", configuration=DEFAULT)
            for n in range(0 if so_far.plan else replicas_in_use(self.task))
        ]
        plan = so_far.plan or defaults
        number = _last_step(plan) + 1
        if number not in self._steps:
            replicas = sum(p.role == "baseline" for p in plan)
            self._steps[number] = followed_by_sentinels(
                self._chosen(number, plan, so_far.trials),
                start=len(plan),
                every=self.budget.sentinel_every * replicas,
                sentinels=replicas,
                before=sum(_reasons(plan).values()),
            )
        places = [*defaults, *self._steps[number]]
        return Batch(places) if places else None

    def result(self, trials: Sequence[Trial]) -> Refined:
        """Return what all steps came to."""
        decisions, steps = self._decisions(), self._taken(trials)
        ended: End = "nothing left"
        if steps and steps[-1].spent >= self.budget.refine_trials:
            ended = "budget"
        elif self._is_enough(decisions):
            ended = "nothing better expected"
        measured = by_configuration(self.design)
        defaults = [
            t.judged_ms for t in (*self.design, *trials) if t.usable and t.configuration.is_default
        ]
        refined = Refined(
            before=self._best(0, trials),
            collected=sum(not m.configuration.is_default for m in measured),
            steps=tuple(steps),
            ended=ended,
            budget=self.budget.refine_trials,
            earlier=len(self._warm_start.usable),
            default_ms=geometric_mean(defaults),
            judged_by=self.task.workload.judged_by,
            improvement=decisions[-1].improvement if ended == "nothing better expected" else None,
            least=decisions[-1].least if ended == "nothing better expected" else None,
        )
        if refined != self.task.store.get(self.task.subject, Refined):
            self.task.context.progress.say(
                f"{self.task.title}: refine: ended after {refined.spent} trials ({refined.ended}), "
                f"{_described(refined.best, refined.judged_by)}"
            )
        return refined

    def _taken(self, trials: Sequence[Trial]) -> list[RefineStep]:
        """Return the steps that were planned, each with its trials."""
        plan = self.task.store.plan(self.task.subject, self.name)
        decisions = self._decisions()
        steps: list[RefineStep] = []
        for number in range(1, _last_step(plan) + 1):
            counts = _reasons(p for p in plan if p.step == number)
            steps.append(
                RefineStep(
                    number=number,
                    reasons=counts,
                    improvement=decisions[number - 1].improvement,
                    spent=sum(counts.values()) + (steps[-1].spent if steps else 0),
                    failures=sum(t.status == "failed" and t.planned.step == number for t in trials),
                    best=self._best(number, trials),
                )
            )
        return steps

    @classmethod
    def is_wanted(cls, prospect: Prospect) -> bool:
        return prospect.budget.refine_trials > 0

    @classmethod
    def is_idle(cls, prospect: Prospect) -> bool:
        """Whether the models have learned without it."""
        return prospect.has(Training)

    @classmethod
    def expected(cls, prospect: Prospect) -> Expected:
        """Return its trials with the steps that are to follow, and the default among them."""
        budget, places = prospect.budget, prospect.places(cls.name)
        spent = sum(role in ("proposal", "replicate") for role in roles(places))
        left = max(0, budget.refine_trials - spent)
        more = designed(left, budget.sentinel_every, prospect.replicas)
        trials = len(places) + more - prospect.replicas if places else more
        return Expected(trials=trials, bound="at most")

    @cached_property
    def _warm_start(self) -> "WarmStart":
        from intop.campaign.refine.warm_start import warm_start

        return warm_start(self.task, self.space, self.design[-1])

    @cached_property
    def _screened(self) -> list[Trial]:
        return screened_trials(self.task, self.design[-1].conditions)

    def _chosen(
        self, number: int, plan: Sequence[PlannedTrial], trials: Sequence[Trial]
    ) -> list[PlannedTrial]:
        """Return what is measured in a step, in order; nothing when it is enough."""
        spent = sum(_reasons(plan).values())
        before = self._decisions()
        enough = len(before) >= number and self._is_enough(before)
        if enough or spent >= self.budget.refine_trials:
            return []
        if not self._steps:
            for line in self._warm_start.remarks:
                self.task.context.progress.say(f"{self.task.title}: refine: {line}")
        best = self._best(number - 1, trials)
        step, proposed = self._proposed(
            number, trials, min(self.budget.refine_batch, self.budget.refine_trials - spent)
        )
        gained = math.log(self._best(0, trials).judged_ms / best.judged_ms)
        decision = Decision(
            best=best,
            improvement=step.improvement,
            least=max(LEAST_OF_NOISE * step.noise, LEAST_OF_GAIN * gained),
        )
        so_far = (*before[: number - 1], decision)
        self.task.store.put(self.task.subject, Decisions(made=so_far))
        if self._is_enough(so_far):
            return []
        described = _described(best, self.task.workload.judged_by)
        self.task.context.progress.say(
            f"{self.task.title}: refine: {described} after {spent} of "
            f"{self.budget.refine_trials} trials; {len(proposed)} follow, expected to gain "
            f"{_share(step.improvement)}"
        )
        return proposed

    def _proposed(
        self, number: int, trials: Sequence[Trial], count: int
    ) -> "tuple[Step, list[PlannedTrial]]":
        """Return a step by the models, and its places, which have no index yet.

        What has failed is proposed neither again nor for the first time, here or earlier.
        """
        from intop.learn.active import learned, pool, propose

        everything = [*self._warm_start.trials, *self.design, *trials]
        sound, theirs = (
            [m for m in measured if m.configuration.is_default or not m.failures]
            for measured in (by_configuration(everything), tails_of(everything))
        )
        samples = samples_of(self.space, sound, lent=by_configuration(self._screened))
        tails = samples_of(self.space, theirs, lent=tails_of(self._screened))
        failed = [t.configuration for t in everything if t.status == "failed"]
        models = learned(samples, tails=tails, seed=self.task.seed("refine", number))
        left = pool(self.space, models).without(self.space.values(failed))
        fruitless, slow = self._fruitless(number, trials), self._slow(number, trials)
        step = propose(models, left, count=count, fruitless=fruitless, slow=slow)
        names = {
            row.tobytes(): m.configuration
            for row, m in zip(samples.own.values + 0.0, sound, strict=True)
        }

        def place(proposal: "Proposal") -> PlannedTrial:
            row = proposal.values + 0.0
            known = names.get(row.tobytes())
            return PlannedTrial(
                index=0,
                role="proposal" if known is None else "replicate",
                configuration=self.space.configurations(row[None])[0] if known is None else known,
                step=number,
                reason=proposal.reason,
            )

        return step, [place(proposal) for proposal in step.proposals]

    def _is_enough(self, decisions: Sequence[Decision]) -> bool:
        """Whether the last steps were expected to bring next to nothing, and brought nothing."""
        last = decisions[-PATIENCE:]
        return (
            self.ends_early
            and len(last) == PATIENCE
            and all(decision.improvement < decision.least for decision in last)
            and len({decision.best.configuration.digest for decision in last}) == 1
        )

    def _fruitless(self, number: int, trials: Sequence[Trial]) -> int:
        """Return how many of the last steps before this one have not changed what is best."""
        best = [self._best(n, trials).configuration for n in range(number)]
        changes = [n for n in range(1, number) if best[n] != best[n - 1]]
        return number - 1 - (changes[-1] if changes else 0)

    def _slow(self, number: int, trials: Sequence[Trial]) -> int:
        """Return how many of the last steps before this one were slow."""
        best = [math.log(self._best(n, trials).judged_ms) for n in range(number)]
        quick = [
            n
            for n in range(1, number)
            if best[n - 1] - best[n] > max(0.0, SLOW_SHARE * (best[0] - best[n]))
        ]
        return number - 1 - (quick[-1] if quick else 0)

    def _decisions(self) -> tuple[Decision, ...]:
        decisions = self.task.store.get(self.task.subject, Decisions)
        return decisions.made if decisions else ()

    def _best(self, number: int, trials: Sequence[Trial]) -> BestKnown:
        """Return the best known after a step. Raises ResultMissingError where nothing is known."""
        decisions = self._decisions()
        if number < len(decisions):
            return decisions[number].best
        if number not in self._known:
            so_far = [*self.design, *(t for t in trials if 0 < (t.planned.step or 0) <= number)]
            best = best_measured(self.task, so_far)
            if best is None:
                raise ResultMissingError(
                    f"{self.task.title}: no configuration could be measured but the default, so "
                    f"there is nothing to refine"
                )
            self._known[number] = BestKnown(
                configuration=best.configuration, judged_ms=best.mean_ms, trials=len(best.judged_ms)
            )
        return self._known[number]


def refine(task: Task) -> Refined:
    """Refine what was collected. Raises what `Refine` and `execute` do."""
    return execute(Refine(task))


def _reasons(places: Iterable[PlannedTrial]) -> dict[str, int]:
    """Return how many of the places were planned for which reason; the default's have none."""
    return dict(sorted(Counter(p.reason for p in places if p.reason).items()))


def _last_step(plan: Sequence[PlannedTrial]) -> int:
    """Return how many steps a plan has."""
    return max((p.step or 0 for p in plan), default=0)


def _described(best: BestKnown, judged_by: str) -> str:
    """Return such as: best so far P99 16.1 ms (3 trials)."""
    counted = "1 trial" if best.trials == 1 else f"{best.trials} trials"
    return f"best so far {judged_by} {best.judged_ms:.1f} ms ({counted})"


def _share(improvement: float) -> str:
    """Return by how many percent a latency falls with its logarithm."""
    return f"{-100 * math.expm1(-improvement):.0f} %"
