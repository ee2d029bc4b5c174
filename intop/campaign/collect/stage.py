"""collect: trials that fill the space of the chosen parameters (SDS, DDS)."""

import random
from collections.abc import Sequence

from intop.campaign.collected import check_samples
from intop.campaign.hints import hints
from intop.campaign.pilot.stage import timed
from intop.campaign.sentinels import followed_by_sentinels, with_sentinels
from intop.domain.agreement import Agreement
from intop.domain.configuration import Configuration
from intop.domain.drift import drift
from intop.domain.ranking import Ranking
from intop.domain.replicates import Collected, by_configuration, noise, variances
from intop.domain.space import Space
from intop.domain.training import Training
from intop.domain.trial import PlannedTrial, Trial
from intop.domain.workload import Budget
from intop.run.context import Task
from intop.run.executor import execute
from intop.run.prospect import Prospect, designed, roles
from intop.run.replicas import replicas_in_use
from intop.run.stage import Batch, Expected, SoFar, Stage
from intop.words import few

BATCH = 4
"""Replicates that are decided on together. Fewer find the best one hardly more often."""

OPEN_SHARE = 4
"""Parameters that may vary at once, for each that stays open even if more act than may vary."""


class Collect(Stage[Collected]):
    """Configurations that fill the space, then replicates of those that promise or scatter much.

    Without a screening that is the whole space. `samples` overrides the budget's number of
    configurations. When all of them are measured, replicates follow in batches, each allotted by
    all trials before it and added to the plan. Raises UsageError for another number than planned.
    """

    name = "collect"
    description = "configurations that fill the space of these"
    command = "collect"
    finds = "configurations"
    hands_on = ("SDS", "DDS")
    result_type = Collected
    explores = True

    def __init__(self, task: Task, samples: int | None = None) -> None:
        check_samples(task, self.name, samples)
        super().__init__(timed(task))
        self.samples = samples

    def ask(self, so_far: SoFar) -> Batch | None:
        if not so_far.plan:
            return Batch(self._design(so_far))
        if so_far.unfinished:
            return so_far.unfinished
        further = self._replicates(so_far.plan, so_far.trials)
        return Batch(further) if further else None

    def result(self, trials: Sequence[Trial]) -> Collected:
        level = self.budget.level
        measured = by_configuration(trials)
        return Collected(
            trials=tuple(trials),
            replicates=sum(t.planned.role == "replicate" for t in trials),
            drift=drift(trials, level=level),
            noise=noise([m for m in measured if not m.configuration.is_default], level=level),
            default_noise=noise([m for m in measured if m.configuration.is_default], level=level),
            replicas=self.task.store.get(self.task.subject, Agreement),
        )

    def _design(self, so_far: SoFar) -> list[PlannedTrial]:
        from intop.learn.design import latin_hypercube, sparse

        task, space = self.task, so_far.testbed().probed.space
        ranking = task.store.get(task.subject, Ranking)
        if ranking is None:
            task.context.progress.say(
                f"{task.title}: no screening yet, so all {len(space.parameters)} parameters are "
                f"varied (intop screen finds the ones that matter)"
            )
        else:
            space = space.restricted(ranking.space)
        count = self.samples or self.budget.collect_trials
        first = hints(task, space, count)
        design = latin_hypercube(space, count, seed=task.seed("collect"))[len(first) :]
        if ranking is not None:
            # What acts is always varied, and what can't be told in turns.
            most = max(ranking.keep - len(ranking.chosen), ranking.keep // OPEN_SHARE, 1)
            design = sparse(space, design, ranking.priors, most, seed=task.seed("open"))
        design = [*first, *design]
        self._say_left_out(space, design)
        return with_sentinels(design, self.budget.sentinel_every, replicas_in_use(task))

    def _say_left_out(self, space: Space, design: Sequence[Configuration]) -> None:
        """Warn of parameters that the design does not vary: later stages leave them out."""
        varied = {key for configuration in design for key in configuration.values}
        left_out = [p.key for p in space.parameters if p.key not in varied]
        if left_out:
            self.task.context.progress.say(
                f"{self.task.title}: none of the {len(design)} configurations varies "
                f"{few(left_out)}, so later stages leave them out (more: collect_trials in "
                f"[budget])"
            )

    def _replicates(
        self, plan: Sequence[PlannedTrial], trials: Sequence[Trial]
    ) -> list[PlannedTrial]:
        """Return the next batch of replicates with its sentinels, none when the budget is spent.

        A configuration that failed is no finalist, so it gets none. The default has its sentinels,
        and they say nothing of the others' noise: where it always meets time-outs, it scatters
        less. Within a batch each configuration stands once, in random order: its replicates are
        spread over time.
        """
        from intop.learn.allocation import next_batch

        planned = roles(plan)
        done = planned.count("replicate")
        wanted = _wanted(self.budget, planned.count("design"))
        measured = [m for m in by_configuration(trials) if not m.configuration.is_default]
        sound = [
            (m, variance)
            for m, variance in zip(measured, variances(measured), strict=True)
            if not m.failures
        ]
        if done >= wanted or not sound:
            return []
        chosen = next_batch(
            [m.mean_log for m, _ in sound],
            [variance for _, variance in sound],
            [len(m.judged_ms) for m, _ in sound],
            min(BATCH, wanted - done),
        )
        random.Random(self.task.seed("replicates", len(plan))).shuffle(chosen)
        replicates = (
            PlannedTrial(index=0, role="replicate", configuration=sound[which][0].configuration)
            for which in chosen
        )
        return followed_by_sentinels(
            replicates, start=len(plan), every=self.budget.sentinel_every, before=done
        )

    @classmethod
    def is_done(cls, prospect: Prospect) -> bool:
        """Whether it has ended, by what is measured and begun after it: it stores no result."""
        places = prospect.places(cls.name)
        if not places:
            return False
        if not prospect.is_measured(places, ends_by_overload=cls.ends_by_overload):
            return False
        after = prospect.has(Training) or bool(prospect.places("refine"))
        return after or len(places) >= cls.expected(prospect).trials

    @classmethod
    def is_idle(cls, prospect: Prospect) -> bool:
        """Whether the models have learned from what there is."""
        return prospect.has(Training)

    @classmethod
    def expected(cls, prospect: Prospect) -> Expected:
        """Return its trials with the replicates that are to follow, and the default among them."""
        budget, places = prospect.budget, prospect.places(cls.name)
        planned = roles(places)
        design = planned.count("design") or budget.collect_trials
        more = max(0, _wanted(budget, design) - planned.count("replicate"))
        trials = len(places) or designed(design, budget.sentinel_every, prospect.replicas)
        return Expected(trials=trials + more + more // budget.sentinel_every)


def collect(task: Task, samples: int | None = None) -> Collected:
    """Measure configurations that fill the space. Raises what `Collect` and `execute` do."""
    return execute(Collect(task, samples))


def _wanted(budget: Budget, design: int) -> int:
    """Return how many replicates there are to be in all."""
    if budget.replicate_trials is not None:
        return budget.replicate_trials
    # A refinement has replicates of its own, and knows more when it allots them.
    return 0 if budget.refine_trials else design // 4
