"""canary: the default and a configuration in turn, until it is clear or the pairs are over."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

from intop.deploy.canary.limits import BlockLimits
from intop.deploy.canary.verdict import Period, outcome, requests, sides, slow_limit_ms
from intop.domain.canary import ALL_CONNECTIONS, MOVES_THE_END, Canary
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
    of_its_own = True
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
        periods = self._periods(mine)
        slow_ms = {lead_in.replica: slow_limit_ms(lead_in) for lead_in in lead_ins}
        measured = sides(periods, slow_ms=slow_ms, level=self.budget.level)
        stopped = next((f"{t.replica}: {t.detail}" for t in mine if _broke_a_limit(t)), "")
        counts = {arm: sum(requests(t) for t in mine if t.planned.arm == arm) for arm in ARMS}
        return Canary(
            hosts=tuple(sorted(slow_ms)),
            title=self.request.title,
            configuration=self.request.configuration,
            outcome=outcome(measured, self.request.margin, is_stopped=bool(stopped)),
            stopped=stopped,
            sides=measured,
            pairs=sum(map(len, periods)),
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
            blurred=tuple(sorted(MOVES_THE_END.keys() & self.request.configuration.values.keys())),
            only_new=all(t.conditions.traffic != ALL_CONNECTIONS for t in lead_ins),
            slow_ms=max(slow_ms.values()),
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

    # -- plan ------------------------------------------------------------------------------------

    def _series(self, so_far: SoFar) -> int:
        """Return the latest series if it is this canary and not over, else a further one."""
        latest, planned = latest_series(so_far.plan)
        if not planned:
            return latest
        wanted = self._plan(planned[0].index, latest)
        trials = [t for t in so_far.trials if t.planned.series == latest]
        is_useless = any(not t.usable for t in _lead_ins(trials))
        is_same = list(planned) == wanted and _is_alike(trials, so_far.testbed())
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
        measured = sides(
            self._periods(trials),
            slow_ms={lead_in.replica: slow_limit_ms(lead_in) for lead_in in lead_ins},
            level=self.budget.level,
        )
        return outcome(measured, self.request.margin, is_stopped=False) != "undecided"

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


def _is_alike(trials: Sequence[Trial], testbed: Testbed) -> bool:
    """Return whether a host, its log and the wash-out are those of these blocks."""
    if not trials:
        return True
    same = [trial.conditions for trial in trials if trial.replica == testbed.name]
    return bool(same) and same[-1] == getattr(testbed, "conditions", same[-1])


def _broke_a_limit(trial: Trial) -> bool:
    """Return whether a block was stopped: only such a one is pruned, or failed."""
    return trial.status in ("pruned", "failed")
