"""verify: what the candidates are worth, measured against the default."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean, stdev
from typing import Self

from intop.config.counters import load_counters
from intop.domain.baseline import HOST
from intop.domain.campaign_status import Bound
from intop.domain.causes import Causes
from intop.domain.configuration import DEFAULT, Configuration
from intop.domain.counters import HostCounters, with_clients
from intop.domain.halves import KERNEL, NGINX, Halves, halves, halves_of
from intop.domain.nginx.permitted import split_by_kind
from intop.domain.ranking import Ranking
from intop.domain.replicates import by_configuration
from intop.domain.search import Search
from intop.domain.sides import Latencies, judged, latencies
from intop.domain.speedups import SpeedUps, speed_ups
from intop.domain.stats import Look, looks
from intop.domain.trial import Block, PlannedTrial, Trial
from intop.domain.verdict import Verdict
from intop.errors import IntopError, UsageError
from intop.resources import shipped
from intop.run import prerequisites
from intop.run.context import Task
from intop.run.executor import execute
from intop.run.prospect import Prospect
from intop.run.stage import Batch, Expected, SoFar, Stage
from intop.run.testbed import Testbed
from intop.stages.baselines import chosen_baselines, fit, try_out
from intop.stages.blocks import (
    Arms,
    InRounds,
    blocks,
    first_problem,
    judged_pairs,
    p99_by_round,
    paired,
    planned_arms,
    planned_rounds,
    usable_by_round,
)
from intop.stages.causes import causes
from intop.stages.collected import best_measured, collected_trials, required_space
from intop.stages.pilot import timed

MEASURED_BEST = "best measured"
FEW_KEYS = "few keys"
"""The first candidate with nothing changed but what the screening found, or hints say, to act."""


@dataclass(frozen=True, kw_only=True)
class Picked:
    """The best finalist: its name, its configuration, and the trials that say so."""

    origin: str
    configuration: Configuration
    trials: tuple[Trial, ...]


class Pick(InRounds[Picked]):
    """All finalists and the default in interleaved rounds.

    They say which finalist is the best, and what each tree model's own winner is worth. Raises
    IntopError where no finalist could be measured.
    """

    name = "pick"
    description = "which candidate is the best"
    command = "verify"
    finds = "verdict"
    hands_on = ("verdict",)
    is_of_the_paper = False
    result_type = Picked
    needs = ("search",)

    def __init__(self, task: Task) -> None:
        self._finalists = _finalists(task, task.context.study.budget.finalists)
        self.rounds = task.context.study.budget.pick_rounds
        super().__init__(timed(task))

    def arms(self, testbed: Testbed) -> Arms:  # noqa: ARG002
        return {**self._finalists, HOST: DEFAULT}

    def result(self, trials: Sequence[Trial]) -> Picked:
        origin, configuration = _best(self.task, trials)
        return Picked(origin=origin, configuration=configuration, trials=tuple(trials))

    @classmethod
    def is_done(cls, prospect: Prospect) -> bool:
        return bool(prospect.places("judge")) or prospect.has(Verdict)

    @classmethod
    def expected(cls, prospect: Prospect) -> Expected:
        if planned := len(prospect.places(cls.name)):
            return Expected(trials=planned)
        # A winner of a model may be a finalist already.
        budget = prospect.budget
        return Expected(trials=budget.pick_arms * budget.pick_rounds, bound="at most")


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """A configuration against the default in the rounds of one series of a stage.

    `origin` names the configuration, `against` the default. Up to `rounds` are measured, and looked
    at up to `looks` times. In each of them the arms `beside` these two are measured, too. A trial's
    load lasts for `duration_s`, or as the workload says. Its part of the plan begins at `start`.
    """

    task: Task
    stage: str
    origin: str
    configuration: Configuration
    against: str
    rounds: int
    looks: int
    duration_s: int | None = None
    series: int = 1
    start: int = 0
    beside: Mapping[str, Configuration] = field(default_factory=dict)

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
        """What the trials of the rounds so far say, at the level of the look that they belong to.

        Raises IntopError when fewer than two pairs could be measured.
        """
        found = self._outcome(trials)
        return replace(
            found,
            causes=_causes(*self._pairs(trials)),
            halves=self._halves(trials),
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
        look = next(look for look in schedule if rounds <= look.rounds)
        found = judged(
            default,
            tuned,
            self.configuration,
            origin=self.origin,
            against="" if self.against == HOST else self.against,
            failures=sum(t.status == "failed" and t.planned.arm == self.origin for t in trials),
            rounds=rounds,
            margins=self.task.context.study.guardrails,
            level=self.task.context.study.budget.level,
            each_level=look.level,
        )
        return replace(found, planned_rounds=schedule[-1].rounds, looks=len(schedule))

    def say_if_early(self, verdict: Verdict) -> None:
        """Say that it was clear before its last round, if it was."""
        if verdict.stopped_early:
            self.task.context.progress.say(
                f"{self.task.title}: {self.stage}: clear after {verdict.rounds} of "
                f"{verdict.planned_rounds} rounds"
            )

    def _schedule(self, plan: Sequence[PlannedTrial]) -> Sequence[Look]:
        level = self.task.context.study.budget.level
        return looks(planned_rounds(plan) or self.rounds, self.looks, level=level)

    def _scheduled(self) -> Sequence[Look]:
        plan = self.task.store.plan(self.task.subject, self.stage)
        return self._schedule([p for p in plan if p.index >= self.start])

    def _halves(self, trials: Sequence[Trial]) -> Halves | None:
        """Of the rounds in which all four arms are usable; None where they are not measured."""
        if not {KERNEL, NGINX} <= self.beside.keys():
            return None
        rounds = planned_rounds([t.planned for t in trials])
        level = next(look.level for look in self._scheduled() if rounds <= look.rounds)
        p99 = p99_by_round(trials)
        arms = [p99.get(name, {}) for name in (self.against, KERNEL, NGINX, self.origin)]
        common = [block for block in arms[0] if all(block in arm for arm in arms[1:])]
        default, kernel, nginx, both = ([arm[block] for block in common] for arm in arms)
        return halves(default, kernel, nginx, both, level=level)

    def _plan(self, testbed: Testbed) -> list[PlannedTrial]:
        arms = {
            self.origin: self.configuration,
            **self.beside,
            self.against: _default(self.task, testbed, self.against),
        }
        return blocks(
            self.task,
            self.stage,
            arms,
            self.rounds,
            series=self.series,
            start=self.start,
            duration_s=self.duration_s,
        )

    def _is_clear(self, trials: Sequence[Trial]) -> bool:
        """Whether the verdict is, and if it is a gain, which of its halves that comes from."""
        default, _ = self._pairs(trials)
        if len(default) < 2 or not (found := self._outcome(trials)).is_clear:
            return False
        halves = self._halves(trials) if found.is_gain else None
        return halves is None or halves.is_attributed

    def _pairs(self, trials: Sequence[Trial]) -> tuple[list[Trial], list[Trial]]:
        arms = usable_by_round(trials)
        return paired(arms.get(self.against, {}), arms.get(self.origin, {}))


class Judge(Stage[Verdict]):
    """The best finalist against the default in fresh pairs, until the verdict is clear.

    A gain is clear when all guardrails are kept, or one is broken. The pairs are fresh: a finalist
    that was only lucky when it was picked has to be lucky again. `against` names the baseline that
    stands for the default, if not the host's own values do.
    """

    name = "judge"
    description = "the winner against the default"
    command = "verify"
    finds = "verdict"
    hands_on = ("verdict",)
    is_of_the_paper = False
    result_type = Verdict
    needs = ("pick",)

    def __init__(self, task: Task, picked: Picked, against: str = HOST) -> None:
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
        )

    @classmethod
    def begin(cls, task: Task, against: str = HOST) -> Self:
        _check_against(task, against)
        return cls(task, execute(Pick(task)), against)

    def ask(self, so_far: SoFar) -> Batch | None:
        return self._judgement.ask(so_far)

    def result(self, trials: Sequence[Trial]) -> Verdict:
        found = self._judgement.verdict(trials)
        self._judgement.say_if_early(found)
        return replace(found, models=_speed_ups(self.task, self.picked.trials))

    @classmethod
    def expected(cls, prospect: Prospect) -> Expected:
        """It ends at a look where it is clear. A gain worth having mostly is at the first."""
        budget = prospect.budget
        bound: Bound = "at most" if budget.judge_looks > 1 else ""
        places = prospect.places(cls.name)
        # Each half of a winner of both kinds is measured, too.
        arms = 2 * len(prospect.study.tunes)
        trials = len(places) or arms * budget.judge_pairs
        first = looks(budget.judge_pairs, budget.judge_looks, level=budget.level)[0]
        likely = trials if places else min(trials, arms * first.rounds)
        found = Expected(trials=trials, bound=bound, likely=None if places else likely)
        if budget.judge_duration_s is None:
            return found
        done = sum(place.is_done(budget.retries) for place in places)
        once = prospect.trial(budget.judge_duration_s)
        likely_share, most_share = ((n - done) / prospect.replicas for n in (likely, trials))
        return replace(found, time=once.of(likely_share, most_share))


def verify(task: Task, against: str = HOST) -> Verdict:
    """Pick the best finalist, then judge it against the default, or the baseline `against`.

    Raises UsageError for a baseline that is unknown, or not the one that the campaign's judgement
    was planned with, and what `Pick`, `Judge` and `execute` do.
    """
    return execute(Judge.begin(task, against))


def judged_latencies(task: Task) -> Latencies | None:
    """Those of the pairs that the campaign's verdict rests on, None before there is one."""
    verdict = task.store.get(task.subject, Verdict)
    if verdict is None:
        return None
    return latencies(*judged_pairs(task.trials("judge"), verdict), against=verdict.against)


def _halves_beside(task: Task, configuration: Configuration, against: str) -> Arms:
    """The arms with one half of a configuration of both kinds."""
    if against != HOST or not all(split_by_kind(configuration.values)):
        return {}
    return halves_of(configuration, required_space(task).defaults)


def _causes(default: Sequence[Trial], tuned: Sequence[Trial]) -> Causes | None:
    """Of the pairs whose load balancer has counted on both sides."""
    counted = [
        (_counted(one), _counted(other))
        for one, other in zip(default, tuned, strict=True)
        if one.replica in one.counters and other.replica in other.counters
    ]
    before, after = ([pair[n] for pair in counted] for n in (0, 1))
    return causes(before, after, load_counters(shipped("configs") / "counters.toml"))


def _counted(trial: Trial) -> HostCounters:
    """By the load balancer, and by the load generators, which know a P99 of their own."""
    generators = [n for n, host in trial.metrics.items() if host.p99_ms is not None]
    return with_clients(
        trial.counters[trial.replica],
        [trial.counters[name] for name in generators if name in trial.counters],
    )


def _check_against(task: Task, against: str) -> None:
    """Raises UsageError for a baseline that there is none of, or that comes too late."""
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
    """What the default's arm applies."""
    if against == HOST:
        return DEFAULT
    (baseline,) = chosen_baselines(task.context.study, (against,))
    try_out(task, testbed, (baseline,))
    found = fit(task, baseline)
    if found.configuration.is_default:
        task.context.progress.say(
            f"{task.title}: {against} changes nothing on this host, so the verdict is against "
            f"the host's own values"
        )
    return found.configuration


def _finalists(task: Task, count: int) -> dict[str, Configuration]:
    """By arm: promising candidates, the best measured one, few keys, and each model's own winner.

    `count` is how many there are without the last two. The lowest of single trials would be the
    luckiest, so the best is what is believed to be, given how noisy trials are, among those that
    never failed. A configuration has one arm only, the first that it would have.
    """
    search = task.store.get(task.subject, Search)
    if search is None or not search.candidates:
        raise prerequisites.missing(task, "no candidates yet", "search")
    best = best_measured(task, collected_trials(task))
    predicted = [c.configuration for c in search.candidates]
    room = count if best is None or count == 1 else count - 1
    named = [(f"candidate {n}", c) for n, c in enumerate(predicted[:room], start=1)]
    if best is not None and room < count:
        named.append((MEASURED_BEST, best.configuration))
    if few := _with_few_keys(task, predicted[0]):
        named.append((FEW_KEYS, few))
    named += [(winner.model, winner.configuration) for winner in search.winners]
    finalists: dict[str, Configuration] = {}
    for name, configuration in named:
        if configuration not in finalists.values():
            finalists[name] = configuration
    return finalists


def _with_few_keys(task: Task, candidate: Configuration) -> Configuration | None:
    """A candidate with nothing changed but what the screening found to act, or was hinted to.

    None where that is nothing, or the candidate changes nothing else. Most parameters do nothing,
    and a search gives each of them some value: what is measured then has their risks as well.
    """
    ranking = task.store.get(task.subject, Ranking)
    if ranking is None or ranking.screening is None:
        return None
    wanted = {*ranking.chosen, *ranking.screening.hinted}
    few = {key: value for key, value in candidate.values.items() if key in wanted}
    found = Configuration(few)
    if not few or found == candidate or required_space(task).broken(found):
        return None
    return found


def _speed_ups(task: Task, picked: Sequence[Trial]) -> SpeedUps | None:
    """What the models' own winners are worth; None where none of them was measured."""
    search = task.store.get(task.subject, Search)
    planned = planned_arms([t.planned for t in picked]).items()
    measured = {configuration.digest: arm for arm, configuration in planned}
    arms = {
        winner.model: measured[winner.configuration.digest]
        for winner in (search.winners if search else ())
        if winner.configuration.digest in measured
    }
    if not arms:
        return None
    return speed_ups(
        arms,
        p99_by_round(picked),
        Counter(t.planned.arm for t in picked if t.status == "failed"),
        default=HOST,
        level=task.context.study.budget.level,
    )


def _best(task: Task, picked: Sequence[Trial]) -> tuple[str, Configuration]:
    """The finalist with the lowest geometric mean of P99, among those that never failed.

    A disturbed trial says nothing about its finalist; one that is left with none is out, too. One
    with few keys (FEW_KEYS, or at most half as many as the lowest changes) is preferred where it is
    within a standard error of the lowest (the one standard error rule of Breiman, Friedman, Olshen
    and Stone, Classification and Regression Trees, 1984): further
    keys have to show that they are worth it. The standard error is that of the difference in the
    rounds that both finalists have.
    """
    arms = {t.configuration.digest: t.planned.arm for t in picked}
    sound = {
        arms[one.configuration.digest]: one
        for one in by_configuration(picked)
        if not one.configuration.is_default and not one.failures
    }
    if not sound:
        raise IntopError(
            f"{task.title}: every finalist failed, or was disturbed in all its trials: "
            f"{first_problem(picked)}"
        )
    name = min(sound, key=lambda n: sound[n].mean_log)
    p99 = p99_by_round(picked)
    keys = {n: len(one.configuration.values) for n, one in sound.items()}
    simple = [
        n
        for n in sound
        if (n == FEW_KEYS or 2 * keys[n] <= keys[name]) and _is_as_good(p99[n], p99[name])
    ]
    name = min(simple, key=lambda n: (keys[n], sound[n].mean_log), default=name)
    return name, sound[name].configuration


def _is_as_good(one: Mapping[Block, float], lowest: Mapping[Block, float]) -> bool:
    """Whether P99 (ms, by round) is within a standard error of the lowest finalist's."""
    longer = [math.log(a / b) for a, b in zip(*paired(one, lowest), strict=True)]
    return len(longer) > 1 and fmean(longer) <= stdev(longer) / math.sqrt(len(longer))
