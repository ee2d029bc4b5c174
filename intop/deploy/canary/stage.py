"""canary: the default and a configuration in turn, until it is clear or the pairs are over."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from random import Random

from intop.deploy.canary.limits import BlockLimits
from intop.deploy.canary.quantities import Period, measured, requests, slow_limit_ms
from intop.deploy.canary.verdict import Measured, outcome, sides
from intop.domain.campaign_status import Place
from intop.domain.canary import DELIVERY, Canary, Metrics, Outcome, judged_by, moving_keys
from intop.domain.configuration import DEFAULT, Configuration
from intop.domain.rounds import latest_series
from intop.domain.trial import PlannedTrial, Trial
from intop.errors import BaselineError
from intop.run.context import Task
from intop.run.effort import Span
from intop.run.prospect import Prospect
from intop.run.stage import Batch, Expected, SoFar, Stage
from intop.run.testbed import Testbed

ARMS = ("default", "canary")


@dataclass(frozen=True, kw_only=True)
class CanaryRequest:
    """A canary that is asked for."""

    configuration: Configuration
    title: str
    hosts: int = 1
    """The hosts that take part at the same time."""
    pairs: int = 60
    """The most pairs of blocks on each host."""
    block_s: int = 60
    washout_s: int = 10
    margin: float = 1.05
    """A ratio that matters, above 1."""
    limits: BlockLimits = field(default_factory=BlockLimits)
    only_new: bool = True
    """Whether only connections count that began in a block."""
    sees_delivery: bool = False
    """Whether the TCP_INFO of all hosts can be read."""
    metrics: Metrics = field(default_factory=dict)

    @property
    def judged_by(self) -> str:
        """The quantity whose fall is a gain."""
        return judged_by(self.configuration, sees_delivery=self.sees_delivery)

    @property
    def seconds(self) -> float:
        """The time that it takes at most, without waiting."""
        return (1 + 2 * self.pairs) * (self.block_s + self.washout_s)


class Switchback(Stage[Canary]):
    """Pairs of blocks in random order on hosts with real traffic.

    Every second host has the opposite order, so what happens on all of them at once cancels. After
    each block it ends where the bounds show a gain, a harm or no difference that matters, and where
    a block broke a limit. An unfinished canary of the same configuration on the same hosts goes on.
    """

    name = "canary"
    description = "a configuration against the default on real traffic"
    command = "canary"
    result_type = Canary
    is_apart = True
    ends_by_failures = False
    ends_by_overload = False
    measures_once = True

    def __init__(self, task: Task, request: CanaryRequest, *, again: bool = False) -> None:
        super().__init__(task)
        self.request = request
        self.again = again
        self.series = 0
        """The series of the plan, once it is known."""

    def ask(self, so_far: SoFar) -> Batch | None:
        hosts = self.request.hosts
        if not self.series:
            self.series = self._series(so_far)
            first = (p.index for p in so_far.plan if p.series == self.series)
            self.start = next(first, len(so_far.plan))
        planned = [p for p in so_far.plan if p.series == self.series]
        if not planned:
            plan = self._plan(len(so_far.plan), self.series)
            return Batch(plan[:hosts], later=plan[hosts:])
        trials = [t for t in so_far.trials if t.planned.series == self.series]
        if self._is_over(planned, trials):
            return None
        done = {trial.planned.index for trial in trials}
        slots = (planned[n : n + hosts] for n in range(0, len(planned), hosts))
        left = ([place for place in slot if place.index not in done] for slot in slots)
        return Batch(next(filter(None, left)))

    def result(self, trials: Sequence[Trial]) -> Canary:
        mine = [t for t in trials if t.planned.series == self.series]
        lead_ins = _lead_ins(mine)
        if useless := [t for t in lead_ins if not t.usable]:
            raise BaselineError(
                f"{self.task.title}: the first block with the default says too little on "
                f"{useless[0].replica}: {useless[0].detail}"
            )
        numbers = self._numbers(mine)
        stopped = next((f"{t.replica}: {t.detail}" for t in mine if _broke_a_limit(t)), "")
        counts = {arm: sum(requests(t) for t in mine if t.planned.arm == arm) for arm in ARMS}
        return Canary(
            hosts=tuple(sorted(lead_in.replica for lead_in in lead_ins)),
            title=self.request.title,
            configuration=self.request.configuration,
            outcome="harm" if stopped else self._outcome(numbers),
            stopped=stopped,
            judged_by=self.request.judged_by,
            sides=sides(numbers, judged_by=self.request.judged_by, level=self.budget.level),
            pairs=sum(map(len, self._periods(mine))),
            planned=self.request.pairs * self.request.hosts,
            left_out=tuple(
                f"{t.replica}, {t.planned.arm}, {t.started_at}: {t.detail}"
                for t in mine
                if t.status == "disturbed"
            ),
            block_s=self.request.block_s,
            washout_s=self.request.washout_s,
            requests=counts["default"],
            canary_requests=counts["canary"],
            blurred=moving_keys(self.request.configuration),
            only_new=self.request.only_new,
            slow_ms=max(map(slow_limit_ms, lead_ins)),
            margin=self.request.margin,
            level=self.budget.level,
        )

    @classmethod
    def unplanned(cls, prospect: Prospect) -> Expected:
        request = prospect.requested(CanaryRequest)
        if request is None:
            return Expected()
        time = Span(likely_s=request.seconds, most_s=request.seconds)
        trials = request.hosts * (1 + 2 * request.pairs)
        return Expected(trials=trials, bound="at most", time=time)

    @classmethod
    def expected(cls, prospect: Prospect) -> Expected:
        # It ends where the outcome is clear.
        return replace(super().expected(prospect), bound="at most")

    @classmethod
    def is_through(cls, prospect: Prospect, places: Sequence[Place]) -> bool:
        return prospect.covers(Canary, places)

    # -- plan ------------------------------------------------------------------------------------

    def _series(self, so_far: SoFar) -> int:
        """Return the latest series if it is this canary and not over, else a further one."""
        latest, planned = latest_series(so_far.plan)
        if not planned:
            return latest
        wanted = self._plan(planned[0].index, latest)
        trials = [t for t in so_far.trials if t.planned.series == latest]
        is_useless = any(not t.usable for t in _lead_ins(trials))
        is_same = list(planned) == wanted and _is_alike(trials, so_far.testbeds())
        is_begun_again = self.again and self._is_over(planned, trials)
        if is_same and not is_useless and not is_begun_again:
            return latest
        self.task.context.progress.say(f"{self.task.title}: this canary begins with its first pair")
        return latest + 1

    def _plan(self, start: int, series: int) -> list[PlannedTrial]:
        """Return lead-ins, and pairs whose orders are drawn by the campaign's seed.

        A slot has a block of each host. The number of its round says on which host a block is.
        """
        hosts = range(self.request.hosts)
        rng = Random(self.task.seed("canary", series, self.request.configuration.digest))
        slots: list[tuple[str, int | None]] = [("default", None) for _ in hosts]
        for period in range(self.request.pairs):
            first = rng.randrange(2)
            for half in range(2):
                slots += [
                    (ARMS[(first + half + host) % 2], period * len(hosts) + host + 1)
                    for host in hosts
                ]
        return [
            PlannedTrial(
                index=start + n,
                role="sentinel" if arm == "default" else "finalist",
                configuration=DEFAULT if arm == "default" else self.request.configuration,
                arm=arm,
                round=number,
                series=series,
                duration_s=self.request.block_s,
            )
            for n, (arm, number) in enumerate(slots)
        ]

    def _is_over(self, planned: Sequence[PlannedTrial], trials: Sequence[Trial]) -> bool:
        lead_ins = _lead_ins(trials)
        if len(trials) == len(planned) or any(map(_broke_a_limit, trials)):
            return True
        if len(lead_ins) < self.request.hosts:
            return False
        if not all(lead_in.usable for lead_in in lead_ins):
            return True
        return self._outcome(self._numbers(trials)) != "undecided"

    def _numbers(self, trials: Sequence[Trial]) -> tuple[Measured, ...]:
        """Return all quantities of the pairs so far."""
        request = self.request
        is_moved = request.judged_by == DELIVERY and moving_keys(request.configuration)
        return measured(
            self._periods(trials),
            slow_ms={lead_in.replica: slow_limit_ms(lead_in) for lead_in in _lead_ins(trials)},
            margin=request.margin,
            sees_delivery=request.sees_delivery,
            times_count=not is_moved,
            metrics=request.metrics,
        )

    def _outcome(self, numbers: Sequence[Measured]) -> Outcome:
        request = self.request
        return outcome(
            numbers, judged_by=request.judged_by, margin=request.margin, level=self.budget.level
        )

    def _periods(self, trials: Sequence[Trial]) -> list[Period]:
        """Return the pairs with two blocks that count, by period and in order."""
        by_round: dict[int, dict[str, Trial]] = {}
        for trial in trials:
            if trial.planned.round is not None and trial.status == "ok":
                by_round.setdefault(trial.planned.round, {})[trial.planned.arm] = trial
        periods: dict[int, list[tuple[Trial, Trial]]] = {}
        for number, blocks in sorted(by_round.items()):
            if len(blocks) == len(ARMS):
                period = periods.setdefault((number - 1) // self.request.hosts, [])
                period.append((blocks["default"], blocks["canary"]))
        return list(periods.values())


def _lead_ins(trials: Sequence[Trial]) -> list[Trial]:
    return [trial for trial in trials if trial.planned.round is None]


def _is_alike(trials: Sequence[Trial], testbeds: Sequence[Testbed]) -> bool:
    """Return whether these blocks have the same hosts in the same places, observed alike."""
    places = ((was, testbeds[was.planned.turn % len(testbeds)]) for was in trials)
    return all(
        (was.replica, was.conditions) == (now.name, getattr(now, "conditions", was.conditions))
        for was, now in places
    )


def _broke_a_limit(trial: Trial) -> bool:
    """Return whether a block was stopped: only such a one is pruned, or failed."""
    return trial.status in ("pruned", "failed")
