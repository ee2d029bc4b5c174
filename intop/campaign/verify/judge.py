"""verify: the best candidate, measured against the default."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

from intop.campaign.baselines import chosen_baselines, fit, try_out
from intop.campaign.collected import required_space
from intop.campaign.pilot.stage import timed
from intop.campaign.verify.causes import causes
from intop.campaign.verify.pick import Pick, Picked, model_speed_ups
from intop.campaign.verify.trim import trimmed
from intop.config.counters import load_counters
from intop.domain.baseline import HOST
from intop.domain.campaign_status import Bound, pace_s
from intop.domain.causes import Causes
from intop.domain.configuration import DEFAULT, Configuration
from intop.domain.counters import HostCounters, with_clients
from intop.domain.further import (
    FEWEST,
    EarlierLook,
    Further,
    further_level,
    looks_with_reserve,
    pairs_to_decide,
    pairs_to_settle,
)
from intop.domain.halves import KERNEL, NGINX, Halves, halves, halves_of
from intop.domain.nginx.permitted import split_by_kind
from intop.domain.rounds import (
    Arms,
    failures,
    first_problem,
    first_rounds,
    judged_by_round,
    latest_series,
    of_series,
    paired,
    planned_arms,
    planned_rounds,
    usable_by_round,
)
from intop.domain.sides import Latencies, judged, judged_pairs, latencies
from intop.domain.stats import Look, looks, paired_ratio
from intop.domain.trial import PlannedTrial, Trial
from intop.domain.verdict import Verdict
from intop.errors import IntopError, UsageError
from intop.resources import shipped
from intop.run import prerequisites
from intop.run.context import Task
from intop.run.executor import execute
from intop.run.prospect import Prospect
from intop.run.rounds import series_plan
from intop.run.stage import Batch, Expected, SoFar, Stage
from intop.run.testbed import Testbed
from intop.words import counted


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """A configuration against the default in the rounds of one series of a stage."""

    task: Task
    stage: str
    origin: str
    """The arm of the configuration."""
    configuration: Configuration
    against: str
    """The arm of the default."""
    rounds: int
    """Rounds that are measured at most."""
    looks: int
    """The number of looks at them, at most."""
    duration_s: int | None = None
    """The duration of a trial's load; None is the workload's."""
    series: int = 1
    start: int = 0
    """The first place of its part of the plan."""
    beside: Mapping[str, Configuration] = field(default_factory=dict)
    """Arms that are measured beside these two."""
    goes_on: bool = False
    """Whether a part of the error rate is kept for further rounds, in series of their own."""

    def ask(self, so_far: SoFar) -> Batch | None:
        """The rounds up to the next look; None when all are measured, or it is clear before."""
        plan = list(so_far.plan) or self._plan(so_far.testbed())
        # Right at the looks only: what is measured beyond one is never left out again.
        for look in self._schedule(plan):
            end = (2 + len(self.beside)) * look.rounds
            trials = so_far.first(end)
            if len(trials) < min(end, len(plan)):
                return Batch(plan[:end], later=plan[end:])
            if self._is_clear(trials):
                return None
        return None

    def verdict(self, trials: Sequence[Trial]) -> Verdict:
        """Return what the rounds so far say, at the level of the look that they belong to.

        Raises IntopError when fewer than two pairs could be measured.
        """
        return replace(
            self._outcome(trials),
            causes=_causes(*self._pairs(trials)),
            halves=self._halves(trials),
            earlier=tuple(self._earlier(trials)),
        )

    def ratios(self, trials: Sequence[Trial]) -> list[float]:
        """Return default latency / tuned latency of each pair."""
        default, tuned = self._pairs(trials)
        return [a.judged_ms / b.judged_ms for a, b in zip(default, tuned, strict=True)]

    def level(self, trials: Sequence[Trial]) -> float:
        """Return the level of the look that these trials belong to."""
        return _level(self._scheduled(), planned_rounds([t.planned for t in trials]))

    def further_rounds(self, rounds: int) -> list[PlannedTrial]:
        """Return the places of further rounds, with the arms and the load of the first ones."""
        plan = self.task.store.plan(self.task.subject, self.stage)
        return series_plan(
            self.task,
            self.stage,
            planned_arms(plan),
            rounds,
            series=latest_series(plan)[0] + 1,
            start=len(plan),
            after=planned_rounds(plan),
            duration_s=plan[0].duration_s,
        )

    def _outcome(self, trials: Sequence[Trial]) -> Verdict:
        """The verdict without its causes and halves, which no look needs."""
        default, tuned = self._pairs(trials)
        if len(default) < 2:
            raise IntopError(
                f"{self.task.title}: only {len(default)} pairs could be measured, a verdict needs "
                f"two: {first_problem(trials)}"
            )
        schedule = self._scheduled()
        rounds = planned_rounds([t.planned for t in trials])
        verdict = judged(
            default,
            tuned,
            self.configuration,
            origin=self.origin,
            against="" if self.against == HOST else self.against,
            failures=failures([t for t in trials if t.planned.arm == self.origin]),
            rounds=rounds,
            margins=self.task.context.study.guardrails,
            level=self.task.context.study.budget.level,
            each_level=_level(schedule, rounds),
        )
        return replace(verdict, planned_rounds=schedule[-1].rounds, looks=len(schedule))

    def say_if_early(self, verdict: Verdict) -> None:
        """Say that it was clear before its last round, if it was."""
        if verdict.stopped_early:
            self.task.context.progress.say(
                f"{self.task.title}: {self.stage}: clear after {verdict.rounds} of "
                f"{verdict.planned_rounds} rounds"
            )

    def _schedule(self, plan: Sequence[PlannedTrial]) -> Sequence[Look]:
        level = self.task.context.study.budget.level
        rounds = planned_rounds(of_series(plan, self.series)) or self.rounds
        if not self.goes_on:
            return looks(rounds, self.looks, level=level)
        later = range(self.series + 1, latest_series(plan)[0] + 1)
        further = [planned_rounds(of_series(plan, number)) for number in later]
        return looks_with_reserve(rounds, self.looks, further, level=level)

    def _scheduled(self) -> Sequence[Look]:
        plan = self.task.store.plan(self.task.subject, self.stage)
        return self._schedule([p for p in plan if p.index >= self.start])

    def _earlier(self, trials: Sequence[Trial]) -> Iterator[EarlierLook]:
        """Yield the looks at fewer rounds than there are."""
        rounds = planned_rounds([t.planned for t in trials])
        for look in self._scheduled():
            sides = self._pairs(first_rounds(trials, look.rounds))
            if look.rounds < rounds and len(sides[0]) > 1:
                latencies_ms = ([t.judged_ms for t in side] for side in sides)
                ratio = paired_ratio(*latencies_ms, level=look.level)
                yield EarlierLook(pairs=len(sides[0]), ratio=ratio, level=look.level)

    def _halves(self, trials: Sequence[Trial]) -> Halves | None:
        """Return them by the rounds that have all four arms; None where these are not measured."""
        if not {KERNEL, NGINX} <= self.beside.keys():
            return None
        judged_ms = judged_by_round(trials)
        names = (self.against, KERNEL, NGINX, self.origin)
        sides = paired(*(judged_ms.get(name, {}) for name in names))
        return halves(*sides, level=self.level(trials))

    def _plan(self, testbed: Testbed) -> list[PlannedTrial]:
        arms = {
            self.origin: self.configuration,
            **self.beside,
            self.against: _default(self.task, testbed, self.against),
        }
        return series_plan(
            self.task,
            self.stage,
            arms,
            self.rounds,
            series=self.series,
            start=self.start,
            duration_s=self.duration_s,
        )

    def _is_clear(self, trials: Sequence[Trial]) -> bool:
        """Return whether the verdict is clear, and which half of the winner a gain comes from."""
        default, _ = self._pairs(trials)
        if len(default) < 2 or not (verdict := self._outcome(trials)).is_clear:
            return False
        halves = self._halves(trials) if verdict.is_gain else None
        return halves is None or halves.is_attributed

    def _pairs(self, trials: Sequence[Trial]) -> tuple[list[Trial], ...]:
        """Return the pairs of the default and of the configuration."""
        arms = usable_by_round(trials)
        return paired(arms.get(self.against, {}), arms.get(self.origin, {}))


def _level(schedule: Sequence[Look], rounds: int) -> float:
    """Return the level of the look that so many rounds belong to."""
    return next(look.level for look in schedule if rounds <= look.rounds)


class Judge(Stage[Verdict]):
    """The best finalist against the default in fresh pairs, until the verdict is clear.

    A gain is clear when all guardrails are kept, or one is broken. The pairs are fresh: a finalist
    that was only lucky when it was picked has to be lucky again. Where the verdict is not clear, up
    to `judge_more` further pairs follow. `against` names the baseline that
    stands for the default, if not the host's own values do. With `more` it goes on with so many
    further pairs, or with those that were begun, if they are not measured yet.
    """

    name = "judge"
    description = "the winner against the default"
    command = "verify"
    finds = "verdict"
    hands_on = ("verdict",)
    is_of_the_paper = False
    result_type = Verdict
    needs = ("pick",)

    def __init__(self, task: Task, picked: Picked, against: str = HOST, *, more: int = 0) -> None:
        super().__init__(timed(task))
        self.picked = picked
        budget = task.context.study.budget
        self._judgement = Judgement(
            task=self.task,
            stage=self.name,
            origin=picked.origin,
            configuration=picked.configuration,
            against=against,
            rounds=budget.judge_pairs,
            looks=budget.judge_looks,
            duration_s=budget.judge_duration_s,
            beside=_halves_beside(task, picked.configuration, against),
            goes_on=True,
        )
        self._further = self._judgement.further_rounds(more) if more else []

    @classmethod
    def begin(cls, task: Task, against: str = HOST, *, more: int = 0) -> Self:
        _check_against(task, against)
        return cls(task, trimmed(task, execute(Pick(task))), against, more=more)

    def ask(self, so_far: SoFar) -> Batch | None:
        if batch := self._judgement.ask(so_far):
            return batch
        further = self._further or self._automatic(so_far.trials)
        planned = {place.index for place in so_far.plan}
        is_new = any(place.index not in planned for place in further)
        return Batch(further) if is_new else None

    def _automatic(self, trials: Sequence[Trial]) -> list[PlannedTrial]:
        """Return the further rounds that the budget has where the verdict is not clear.

        A guardrail that all of them would hardly settle gets none.
        """
        plan = self.task.store.plan(self.task.subject, self.name)
        budget = self.task.context.study.budget
        spent = planned_rounds(plan) - planned_rounds(of_series(plan, 1))
        left = budget.judge_more - spent
        if left < FEWEST:
            return []
        verdict = self._judgement.verdict(trials)
        further = self._further_of(verdict, trials)
        if further is None or (verdict.is_gain and further.pairs > left):
            return []
        return self._judgement.further_rounds(min(further.pairs, left))

    def result(self, trials: Sequence[Trial]) -> Verdict:
        verdict = self._judgement.verdict(trials)
        self._judgement.say_if_early(verdict)
        return replace(
            verdict,
            models=model_speed_ups(self.task, self.picked.trials),
            further=self._further_of(verdict, trials),
        )

    def _further_of(self, verdict: Verdict, trials: Sequence[Trial]) -> Further | None:
        """Return the further pairs that would decide a verdict; None where it is decided."""
        if verdict.is_clear or verdict.outcome == "no significant gain":
            return None
        plan = self.task.store.plan(self.task.subject, self.name)
        level = further_level(verdict.level, latest_series(plan)[0])
        if verdict.outcome == "undecided":
            pairs = pairs_to_decide(self._judgement.ratios(trials), level=level)
        else:
            pairs = pairs_to_settle(
                [guardrail.distance for guardrail in verdict.unclear],
                verdict.pairs,
                level=self._judgement.level(trials),
                next_level=level,
            )
        places = self.task.store.places(self.task.subject)
        pace = pace_s(place for place in places if place.stage == self.name)
        arms = len({trial.planned.arm for trial in trials})
        return Further(pairs=pairs, seconds=None if pace is None else pace * arms * pairs)

    @classmethod
    def expected(cls, prospect: Prospect) -> Expected:
        """Return the trials up to the last look. A gain worth having mostly shows at the first."""
        budget = prospect.budget
        may_end_early = budget.judge_looks > 1 or budget.judge_more > 0
        bound: Bound = "at most" if may_end_early else ""
        places = prospect.places(cls.name)
        # Each half of a winner of both kinds is measured, too.
        arms = 2 * len(prospect.study.tunes)
        trials = len(places) or arms * (budget.judge_pairs + budget.judge_more)
        first = looks(budget.judge_pairs, budget.judge_looks, level=budget.level)[0]
        likely = trials if places else min(trials, arms * first.rounds)
        expected = Expected(trials=trials, bound=bound, likely=None if places else likely)
        if budget.judge_duration_s is None:
            return expected
        done = sum(place.is_done(budget.retries) for place in places)
        once = prospect.trial(budget.judge_duration_s)
        likely_share, most_share = ((n - done) / prospect.replicas for n in (likely, trials))
        return replace(expected, time=once.of(likely_share, most_share))


def verify(task: Task, against: str = HOST) -> Verdict:
    """Pick the best finalist, then judge it against the default, or the baseline `against`.

    Raises UsageError for a baseline that is unknown, or not the one that the campaign's judgement
    was planned with, and what `Pick`, `Judge` and `execute` do.
    """
    return execute(Judge.begin(task, against))


def verify_more(task: Task, pairs: int) -> Verdict:
    """Go on with further pairs of the same winner and the same default, unless it is decided.

    Further pairs that were begun are measured first, however many are asked for. A verdict that is
    clear is returned as it is. Raises ResultMissingError before there is a verdict, and what
    `verify` does.
    """
    verdict = task.store.get(task.subject, Verdict)
    rounds = planned_rounds(task.store.plan(task.subject, Judge.name))
    if verdict is None or not rounds:
        raise prerequisites.missing(task, "no verdict yet", "verify")
    say = task.context.progress.say
    if verdict.is_clear:
        say(f"{task.title}: the verdict is clear, so nothing is measured: {verdict.short}")
        return verdict
    begun = rounds - verdict.rounds
    if begun not in (0, pairs):
        say(f"{task.title}: {counted(begun, 'further pair')} were begun, and are measured first")
    more = 0 if begun else pairs
    return execute(Judge.begin(task, verdict.against or HOST, more=more))


def judged_latencies(task: Task) -> Latencies | None:
    """Return the latencies of the pairs that the verdict rests on, None before there is one."""
    verdict = task.store.get(task.subject, Verdict)
    if verdict is None:
        return None
    return latencies(*judged_pairs(task.trials("judge"), verdict), against=verdict.against)


def _halves_beside(task: Task, configuration: Configuration, against: str) -> Arms:
    """Return the arms with one half of a configuration of both kinds."""
    if against != HOST or not all(split_by_kind(configuration.values)):
        return {}
    return halves_of(configuration, required_space(task).defaults)


def _causes(default: Sequence[Trial], tuned: Sequence[Trial]) -> Causes | None:
    """Return the causes by the pairs whose load balancer has counted on both sides."""
    counted = [
        (_counted(before), _counted(after))
        for before, after in zip(default, tuned, strict=True)
        if before.replica in before.counters and after.replica in after.counters
    ]
    before, after = ([pair[n] for pair in counted] for n in (0, 1))
    return causes(before, after, load_counters(shipped("configs") / "counters.toml"))


def _counted(trial: Trial) -> HostCounters:
    """Return the counters of the load balancer with those of the load generators."""
    # Load generators know a P99 of their own.
    generators = [n for n, host in trial.metrics.items() if host.p99_ms is not None]
    return with_clients(
        trial.counters[trial.replica],
        [trial.counters[name] for name in generators if name in trial.counters],
    )


def _check_against(task: Task, against: str) -> None:
    """Raises UsageError for an unknown baseline, or another one than was planned."""
    if against != HOST:
        chosen_baselines(task.context.study, (against,))
    planned = planned_arms(task.store.plan(task.subject, "judge"))
    if planned and against not in planned:
        known = (HOST, *task.context.study.baselines)
        before = next((name for name in planned if name in known), "another default")
        again = "intop verify" if before == HOST else f"intop verify --default {before}"
        beside = "" if against == HOST else f" {against} --default {against}"
        raise UsageError(
            f"{task.title}: this campaign's verdict was planned against {before}, not {against}. "
            f"Go on with: {again}\n"
            f"Or lay the tuned configuration beside {against} with: intop contest{beside}"
        )


def _default(task: Task, testbed: Testbed, against: str) -> Configuration:
    """Return what the default's arm applies."""
    if against == HOST:
        return DEFAULT
    (baseline,) = chosen_baselines(task.context.study, (against,))
    try_out(task, testbed, (baseline,))
    configuration = fit(task, baseline).configuration
    if configuration.is_default:
        task.context.progress.say(
            f"{task.title}: {against} changes nothing on this host, so the verdict is against "
            f"the host's own values"
        )
    return configuration


def required_verdict(task: Task) -> Verdict:
    """Return the campaign's verdict. Raises ResultMissingError before there is one."""
    verdict = task.store.get(task.subject, Verdict)
    if verdict is None:
        raise prerequisites.missing(task, "no verdict yet, so there is no winner", "verify")
    return verdict
