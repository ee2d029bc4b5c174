"""sweep: the host's own values, the winner and baselines along a load, or along nginx's workers."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import itemgetter
from statistics import fmean

from intop.campaign.baselines import both_sides, chosen_baselines, fit, try_out
from intop.campaign.pilot.stage import timed
from intop.domain.configuration import Configuration
from intop.domain.rounds import ArmResult, Arms, Cells, cell, compare
from intop.domain.sweep import Arm, ArmAt, Knee, Point, Sweep, Sweeps
from intop.domain.trial import PlannedTrial, SeriesRound, Trial
from intop.domain.verdict import Verdict
from intop.errors import UsageError
from intop.experiment.sweep.curves import Curves, bends, capacities, saturations
from intop.experiment.sweep.request import SweepRequest, own_value
from intop.run.available_space import stored_probed
from intop.run.context import Task
from intop.run.experiment import Experiment
from intop.run.prospect import Prospect
from intop.run.stage import Expected
from intop.run.testbed import Testbed

WORKERS = "nginx:main.worker_processes"
AFFINITY = "nginx:main.worker_cpu_affinity"


class SweepAlong(Experiment[Sweeps]):
    """Arms along an axis: each round has every point with every arm once.

    Arms are the host's own values, the verdict's configuration once there is a verdict (its own
    default then takes the place of the host's values), and baselines. A sweep that was asked for
    before goes on, or is read from the store. Raises UsageError for what can't be measured on this
    cluster.
    """

    name = "sweep"
    description = "the winner and others along a load"
    command = "sweep"
    result_type = Sweeps
    is_apart = True
    looks_back = True
    measures_all = "another sweep than those before: all of it is measured"

    def __init__(self, task: Task, request: SweepRequest) -> None:
        super().__init__(timed(task))
        self.request, self.rounds = request, request.rounds
        self.points = request.points_for(task.workload)
        self._verdict = task.store.get(task.subject, Verdict)
        named = chosen_baselines(task.context.study, request.names)
        self._baselines = named if request.names else ()
        self.go_on(again=request.again)

    def prepare(self, testbed: Testbed) -> None:
        try_out(self.task, testbed, self._baselines)

    def cells(self) -> Cells:
        arms = self._arms()
        return [
            self._cell(point, name, configuration)
            for point in self.points
            for name, configuration in arms.items()
        ]

    def order_words(self) -> tuple[str | int, ...]:
        return ("order", self.series)

    @classmethod
    def unplanned(cls, prospect: Prospect) -> Expected:
        request = prospect.requested(SweepRequest) or SweepRequest()
        named = chosen_baselines(prospect.study, request.names) if request.names else ()
        # The host's own values and the winner meet them at each point.
        arms, points = len(named) + 2, len(request.points_for(prospect.workload))
        return Expected(trials=request.rounds * points * arms)

    def result(self, trials: Sequence[Trial]) -> Sweeps:
        mine, arms, level = self.measured(trials), self._arms(), self.budget.level
        reference, limit = next(iter(arms)), self.request.limit_ms
        curves = {name: self._curves([t for t in mine if t.planned.arm == name]) for name in arms}
        sweep = Sweep(
            axis=self.request.axis,
            loop=self.request.loop,
            arms=tuple(Arm(name=name, configuration=c) for name, c in arms.items()),
            points=tuple(self._at(point, mine, arms) for point in self.points),
            rounds=self.rounds,
            level=level,
            limit_ms=limit,
            capacities=() if limit is None else capacities(curves, reference, limit, level=level),
            knees=self._knees(curves),
            judged_by=mine[0].conditions.judged_by,
        )
        before = self.task.store.get(self.task.subject, Sweeps) or Sweeps()
        return before.with_one(sweep)

    @classmethod
    def is_done(cls, prospect: Prospect) -> bool:
        """Whether the last one that was begun has ended: a default that failed is a result here."""
        places = prospect.places(cls.name)
        return super().is_done(prospect) and all(p.is_done(prospect.budget.retries) for p in places)

    # -- cells -----------------------------------------------------------------------------------

    def _arms(self) -> Arms:
        """Return the arms, the reference first. The host must have been probed."""
        arms = both_sides(self.task, self._verdict)
        for baseline in self._baselines:
            arms.setdefault(baseline.name, fit(self.task, baseline).configuration)
        return arms

    def _cell(self, point: float, arm: str, configuration: Configuration) -> PlannedTrial:
        axis = self.request.axis
        return cell(
            arm,
            self._with_workers(configuration, point) if axis == "cores" else configuration,
            duration_s=self.request.seconds,
            rate_rps=point if axis == "rate" else None,
            connections=int(point) if axis == "connections" else None,
            closed_loop=self.request.loop == "closed",
            path=self.points[point] if axis == "file" else "",
        )

    def _with_workers(self, configuration: Configuration, count: float) -> Configuration:
        """Return a configuration with so many of nginx's workers.

        Raises UsageError where they can't be set.
        """
        probed = stored_probed(self.task)
        offered = {p.key for p in probed.space.parameters} if probed else set()
        if WORKERS not in offered:
            why = probed.refused.get(WORKERS, "") if probed else ""
            raise UsageError(
                f"{self.task.title}: --over cores sets {WORKERS}, which is not tuned here"
                + (f" ({why})" if why else ': set tunes = ["kernel", "nginx"] in [study]')
            )
        own = {WORKERS: f"{count:.0f}"} | ({AFFINITY: "auto"} if AFFINITY in offered else {})
        return Configuration({**configuration.values, **own})

    # -- results ---------------------------------------------------------------------------------

    def _at(self, point: float, trials: Sequence[Trial], arms: Arms) -> Point:
        own = own_value(self.task.workload, self.request.axis)
        here = [trial for trial in trials if self._point(trial.planned) == point]
        return Point(
            value=point,
            label=self.points[point],
            times=point / own if own else None,
            arms=arms_at(here, arms, next(iter(arms)), level=self.budget.level),
        )

    def _knees(self, curves: Mapping[str, Curves]) -> tuple[Knee, ...]:
        if self.request.loop == "closed" and self.request.axis != "file":
            return bends(curves, level=self.budget.level)
        return saturations(curves, level=self.budget.level) if self.request.axis == "rate" else ()

    def _curves(self, trials: Sequence[Trial]) -> Curves:
        """Return an arm's curves by round, without rounds in which a point is missing."""
        curves: dict[SeriesRound, list[tuple[float, Trial]]] = defaultdict(list)
        for trial in trials:
            if trial.status != "disturbed" and trial.planned.series_round is not None:
                curves[trial.planned.series_round].append((self._point(trial.planned), trial))
        return {
            series_round: sorted(curve, key=itemgetter(0))
            for series_round, curve in curves.items()
            if len(curve) == len(self.points)
        }

    def _point(self, planned: PlannedTrial) -> float:
        """Return where a trial of this sweep is on its axis."""
        if self.request.axis == "rate":
            return float(planned.rate_rps or 0.0)
        if self.request.axis == "connections":
            return float(planned.connections or 0)
        if self.request.axis == "file":
            return next(point for point, path in self.points.items() if path == planned.path)
        return float(planned.configuration.values[WORKERS])


def arms_at(
    trials: Sequence[Trial], arms: Iterable[str], reference: str, *, level: float
) -> tuple[ArmAt, ...]:
    """Return all arms at one point, by the trials there."""
    results = compare(trials, arms, reference, level=level)

    def at(arm: str, own: ArmResult) -> ArmAt:
        usable = [trial for trial in own.trials if trial.usable]
        observed = [trial for trial in usable if trial.metrics]
        requests = [trial.histogram.total for trial in own.trials if trial.histogram is not None]
        return ArmAt(
            arm=arm,
            is_reference=arm == reference,
            trials=len(own.trials),
            overloaded=sum(trial.status == "overloaded" for trial in own.trials),
            failed=own.failures,
            fails_more=own.failures > results[reference].failures,
            judged_ms=own.judged_ms,
            mean_ms=_mean(usable, lambda t: t.histogram.mean_ms if t.histogram else None),
            achieved_rps=_mean(usable, lambda t: t.achieved_rps),
            received_mb_s=_mean(usable, lambda t: t.received_mb_s or None),
            cpu=_mean(observed, lambda t: t.balancer.cpu),
            memory_mib=_mean(observed, lambda t: t.balancer.memory_mib),
            ratio=own.ratio,
            fewest_requests=min(requests, default=None),
        )

    return tuple(at(arm, own) for arm, own in results.items())


def _mean(trials: Sequence[Trial], of: Callable[[Trial], float | None]) -> float | None:
    """Return the mean over the trials that have a value; None without any."""
    values = [value for trial in trials if (value := of(trial)) is not None]
    return fmean(values) if values else None
