"""sweep: the host's own values, the winner and baselines along a load, or along nginx's workers."""

import random
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any

from intop.config.workload import load_problem
from intop.domain.baseline import HOST, TUNED
from intop.domain.configuration import Configuration
from intop.domain.sweep import (
    Arm,
    Axis,
    Curves,
    Knee,
    Loop,
    Point,
    Sweep,
    Sweeps,
    arms_at,
    bends,
    capacities,
    points_of,
    saturations,
)
from intop.domain.trial import Block, PlannedTrial, Trial
from intop.domain.verdict import Verdict
from intop.domain.workload import Workload, is_path
from intop.errors import UsageError
from intop.run.available_space import stored_probed
from intop.run.context import Task
from intop.run.executor import execute
from intop.run.prospect import Prospect
from intop.run.stage import Batch, SoFar, Stage
from intop.stages.baselines import base_of, chosen_baselines, fit, try_out
from intop.stages.blocks import Arms, latest_series, planned_rounds
from intop.stages.pilot import timed

FEWEST_ROUNDS = 3
EXAMPLES = {"cores": "1,2,4", "file": "/small.html,/large.jpg"}
"""Of points, where somebody has to say which."""
POINTS = {"rate": "0.25x,0.5x,0.75x,1x,1.25x,1.5x,2x", "connections": "0.25x,0.5x,1x,2x,4x"}
"""Where nobody says which."""
WORKERS = "nginx:main.worker_processes"
AFFINITY = "nginx:main.worker_cpu_affinity"

_Place = tuple[float | None, int | None, bool, str, int | None, str, str]
"""What a trial is of, without its round: the load, and the arm."""


@dataclass(frozen=True, kw_only=True)
class Request:
    """What to sweep over. `points` as the user types them; None stands for the defaults (POINTS).

    With `limit_ms` a sweep over the rate says the capacity at that P99. `seconds` is the duration
    of each trial, None as the workload has it. `names` are baselines that take part.
    """

    axis: Axis = "rate"
    loop: Loop = "open"
    points: str | None = None
    rounds: int = FEWEST_ROUNDS
    seconds: int | None = None
    limit_ms: float | None = None
    names: tuple[str, ...] = ()

    def points_for(self, workload: Workload) -> Mapping[float, str]:
        """Where it measures under a workload, in order, and what each is called.

        Raises UsageError.
        """
        text = self.points or POINTS.get(self.axis)
        if text is None:
            raise UsageError(f"--over {self.axis} needs --points, such as {EXAMPLES[self.axis]}")
        try:
            found = self._points(text, workload)
        except ValueError as error:
            raise UsageError(f"--points: {error}") from error
        if self.axis == "file" and workload.kind != "slt":
            raise UsageError("--over file asks for static files: --workload slt")
        if self.loop == "closed" and self.axis == "rate":
            raise UsageError("a closed loop has no rate: --over connections, or without --closed")
        if self.axis == "connections" and any(c.connections for c in workload.clients):
            raise UsageError(
                f"--over connections: clients of {workload.name} have connections of their own, "
                "which it would not change"
            )
        if self.limit_ms is not None and self.axis != "rate":
            raise UsageError("--limit-ms asks for the capacity, which takes --over rate")
        self._check_allowed(workload, found)
        self._check_idle(workload, found)
        return found

    def _points(self, text: str, workload: Workload) -> dict[float, str]:
        """Raises ValueError."""
        if self.axis != "file":
            found = points_of(text, own_value(workload, self.axis))
            return {point: f"{point:g}" for point in found}
        paths = [path for word in text.split(",") if is_path(path := word.strip())]
        if len(set(paths)) < len(paths):
            raise ValueError("a file is there twice")
        return {float(n): path for n, path in enumerate(paths, 1)}

    def _check_allowed(self, workload: Workload, points: Iterable[float]) -> None:
        """Raises UsageError for a load that no study allows."""
        for point in points:
            at: dict[str, Any] = {}
            if self.axis in ("rate", "connections"):
                at = {"rate_rps": point} if self.axis == "rate" else {"connections": int(point)}
            if problem := load_problem(replace(workload, **at)):
                raise UsageError(f"--points: {problem}: leave {point:g} out")

    def _check_idle(self, workload: Workload, points: Iterable[float]) -> None:
        """Raises UsageError for a load whose connections wait too long for a request."""
        if self.loop == "closed":
            return
        for point in points:
            rate = point if self.axis == "rate" else workload.rate_rps
            connections = point if self.axis == "connections" else workload.connections
            if connections / rate >= workload.timeout_s:
                raise UsageError(
                    f"--points: at {rate:g} requests/s {connections:g} connections are idle for "
                    f"longer than timeout_s ({workload.timeout_s}): leave {point:g} out"
                )


class SweepAlong(Stage[Sweeps]):
    """Arms along an axis, in interleaved rounds. What fails is a result.

    Arms are the host's own values, the verdict's configuration once there is a verdict (its own
    default then takes the place of the host's values), and baselines. Each round has every point
    with every arm once. A sweep that was asked for before goes on, or is read from the store;
    another one, or the same `again`, is a further series. Raises UsageError for what can't be
    measured on this cluster.
    """

    name = "sweep"
    description = "the winner and others along a load"
    command = "sweep"
    result_type = Sweeps
    of_its_own = True
    is_apart = True
    ends_by_failures = False
    ends_by_overload = False

    def __init__(self, task: Task, request: Request, *, again: bool = False) -> None:
        super().__init__(timed(task))
        self.request = request
        self.points = request.points_for(task.workload)
        self.again = again
        self.series = 0
        """Which one of the plan this is, once that is known."""
        self._verdict = task.store.get(task.subject, Verdict)
        named = chosen_baselines(task.context.study, request.names)
        self._baselines = named if request.names else ()

    def ask(self, so_far: SoFar) -> Batch | None:
        if not self.series:
            self.series = self._series(so_far)
        mine = [p for p in so_far.plan if p.series == self.series]
        if not mine:
            try_out(self.task, so_far.testbed(), self._baselines)
            return Batch(self._plan(len(so_far.plan)))
        settled = sum(t.planned.series == self.series for t in so_far.trials)
        return Batch(mine) if settled < len(mine) else None

    def result(self, trials: Sequence[Trial]) -> Sweeps:
        mine = [t for t in trials if t.planned.series == self.series]
        arms, level, limit = self._arms(), self.budget.level, self.request.limit_ms
        reference = next(iter(arms))
        by_arm = {name: [t for t in mine if t.planned.arm == name] for name in arms}
        curves = {name: self._curves(own) for name, own in by_arm.items()}
        own = own_value(self.task.workload, self.request.axis)
        knees: tuple[Knee, ...] = ()
        if self.request.loop == "closed" and self.request.axis != "file":
            knees = bends(curves, level=level)
        elif self.request.axis == "rate":
            knees = saturations(curves, level=level)

        def at(point: float, label: str) -> Point:
            here = {
                name: [t for t in made if self._point(t.planned) == point]
                for name, made in by_arm.items()
            }
            return Point(
                value=point,
                label=label,
                times=point / own if own else None,
                arms=arms_at(here, reference, level=level),
            )

        found = Sweep(
            axis=self.request.axis,
            loop=self.request.loop,
            arms=tuple(Arm(name=name, configuration=c) for name, c in arms.items()),
            points=tuple(at(point, label) for point, label in self.points.items()),
            rounds=self.request.rounds,
            level=level,
            limit_ms=limit,
            capacities=() if limit is None else capacities(curves, reference, limit, level=level),
            knees=knees,
        )
        before = self.task.store.get(self.task.subject, Sweeps) or Sweeps()
        return before.with_one(found)

    @classmethod
    def is_done(cls, prospect: Prospect) -> bool:
        """Whether the last one that was begun has ended: a default that failed is a result here."""
        places = prospect.places(cls.name)
        return super().is_done(prospect) and all(p.is_done(prospect.budget.retries) for p in places)

    # -- plan ------------------------------------------------------------------------------------

    def _arms(self) -> Arms:
        """The reference first. The host must have been looked at."""
        verdict = self._verdict
        against = verdict.against if verdict else ""
        arms = {against or HOST: base_of(self.task, against)}
        if verdict is not None:
            arms[TUNED] = verdict.configuration
        for baseline in self._baselines:
            arms.setdefault(baseline.name, fit(self.task, baseline).configuration)
        return arms

    def _series(self, so_far: SoFar) -> int:
        """The latest series that is this sweep, else a further one."""
        latest, _ = latest_series(so_far.plan)
        if not so_far.plan:
            return latest
        wanted = {_place(p) for p in self._plan(0, rounds=1, series=latest)}
        for series in range(latest, 0, -1):
            planned = [p for p in so_far.plan if p.series == series]
            measured = sum(t.planned.series == series for t in so_far.trials)
            is_this = {_place(p) for p in planned} == wanted
            if is_this and planned_rounds(planned) == self.request.rounds:
                if self.again and measured == len(planned):
                    break
                return series
        self.task.context.progress.say(
            f"{self.task.title}: another sweep than those before: all of it is measured"
        )
        return latest + 1

    def _plan(
        self, start: int, rounds: int | None = None, series: int | None = None
    ) -> list[PlannedTrial]:
        """Every point with every arm once a round, in an order of the round's own."""
        series = series or self.series
        rng = random.Random(self.task.seed(self.name, "order", series))
        cells = [(p, name, c) for p in self.points for name, c in self._arms().items()]
        plan: list[PlannedTrial] = []
        for number in range(1, (rounds or self.request.rounds) + 1):
            for point, name, configuration in rng.sample(cells, len(cells)):
                at = self._configured(configuration, point)
                plan.append(
                    PlannedTrial(
                        index=start + len(plan),
                        role="sentinel" if at.is_default else "finalist",
                        configuration=at,
                        arm=name,
                        round=number,
                        series=series,
                        duration_s=self.request.seconds,
                        rate_rps=point if self.request.axis == "rate" else None,
                        connections=int(point) if self.request.axis == "connections" else None,
                        closed_loop=self.request.loop == "closed",
                        path=self.points[point] if self.request.axis == "file" else "",
                    )
                )
        return plan

    def _configured(self, configuration: Configuration, point: float) -> Configuration:
        """An arm at a point: its own values, along cores with so many workers.

        Raises UsageError where nginx's workers can't be set.
        """
        if self.request.axis != "cores":
            return configuration
        probed = stored_probed(self.task)
        offered = {p.key for p in probed.space.parameters} if probed else set()
        if WORKERS not in offered:
            why = probed.refused.get(WORKERS, "") if probed else ""
            raise UsageError(
                f"{self.task.title}: --over cores sets {WORKERS}, which is not tuned here"
                + (f" ({why})" if why else ': set tunes = ["kernel", "nginx"] in [study]')
            )
        own = {WORKERS: f"{point:.0f}"} | ({AFFINITY: "auto"} if AFFINITY in offered else {})
        return Configuration({**configuration.values, **own})

    def _curves(self, trials: Sequence[Trial]) -> Curves:
        """An arm's curves by round, without rounds in which a point is missing."""
        found: dict[Block, list[tuple[float, Trial]]] = defaultdict(list)
        for trial in trials:
            if trial.status != "disturbed" and trial.planned.block is not None:
                found[trial.planned.block].append((self._point(trial.planned), trial))
        return {
            block: sorted(curve, key=itemgetter(0))
            for block, curve in found.items()
            if len(curve) == len(self.points)
        }

    def _point(self, planned: PlannedTrial) -> float:
        """Where a trial of this sweep is on its axis."""
        if self.request.axis == "rate":
            return float(planned.rate_rps or 0.0)
        if self.request.axis == "connections":
            return float(planned.connections or 0)
        if self.request.axis == "file":
            return next(point for point, path in self.points.items() if path == planned.path)
        return float(planned.configuration.values[WORKERS])


def sweep(task: Task, request: Request, *, again: bool = False) -> Sweep:
    """Measure a sweep. Raises what `SweepAlong` and `execute` do."""
    found = execute(SweepAlong(task, request, again=again))
    return found.found[-1]


def own_value(workload: Workload, axis: Axis) -> float | None:
    """What a workload has along an axis, None where it says nothing of it."""
    return {"rate": workload.rate_rps, "connections": float(workload.connections)}.get(axis)


def _place(p: PlannedTrial) -> _Place:
    load = (p.rate_rps, p.connections, p.closed_loop, p.path, p.duration_s)
    return (*load, p.arm, p.configuration.digest)
