"""The options of a sweep: an axis, its points, and a loop."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from intop.config.workload import load_problem
from intop.domain.sweep import HIGHEST_TIMES, LOWEST_TIMES, Axis, Loop
from intop.domain.workload import Workload, is_path
from intop.errors import UsageError

FEWEST_ROUNDS = 3
MOST_POINTS = 24
EXAMPLES = {"cores": "1,2,4", "file": "/small.html,/large.jpg"}
"""Points for the axes that have no defaults."""
POINTS = {"rate": "0.25x,0.5x,0.75x,1x,1.25x,1.5x,2x", "connections": "0.25x,0.5x,1x,2x,4x"}
"""The default points."""


@dataclass(frozen=True, kw_only=True)
class SweepRequest:
    """The options of a sweep."""

    axis: Axis = "rate"
    loop: Loop = "open"
    points: str | None = None
    """The points as the user types them; None stands for the defaults (POINTS)."""
    rounds: int = FEWEST_ROUNDS
    seconds: int | None = None
    """The duration of each trial; None is the workload's."""
    limit_ms: float | None = None
    """The limit of latency for which a sweep over the rate finds the capacity."""
    names: tuple[str, ...] = ()
    """The baselines that take part."""
    again: bool = False
    """Whether it is measured again where it is finished."""

    def points_for(self, workload: Workload) -> Mapping[float, str]:
        """Return the points under a workload, in order, with their labels. Raises UsageError."""
        text = self.points or POINTS.get(self.axis)
        if text is None:
            raise UsageError(f"--over {self.axis} needs --points, such as {EXAMPLES[self.axis]}")
        try:
            points = self._points(text, workload)
        except ValueError as error:
            raise UsageError(f"--points: {error}") from error
        self._check_axis(workload)
        self._check_allowed(workload, points)
        self._check_idle(workload, points)
        return points

    def _points(self, text: str, workload: Workload) -> dict[float, str]:
        """Raises ValueError."""
        if self.axis != "file":
            return {p: f"{p:g}" for p in points_of(text, own_value(workload, self.axis))}
        paths = [word.strip() for word in text.split(",") if is_path(word.strip())]
        if len(set(paths)) < len(paths):
            raise ValueError("a file is there twice")
        return {float(n): path for n, path in enumerate(paths, 1)}

    def _check_axis(self, workload: Workload) -> None:
        """Raises UsageError for an axis that the workload or another option excludes."""
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


def own_value(workload: Workload, axis: Axis) -> float | None:
    """Return what a workload has along an axis, None where it says nothing of it."""
    return {"rate": workload.rate_rps, "connections": float(workload.connections)}.get(axis)


def points_of(text: str, own: float | None) -> tuple[float, ...]:
    """Return points from a list such as `50,100,200` or `0.5x,1x,2x`, in ascending order.

    `x` is times the workload's `own` value, which is None where it has none. All are whole numbers
    in the end, as load tools and nginx take them. Raises ValueError for what is no such list, for a
    point that it has twice, and for one that is out of reach.
    """
    points = sorted(_point(word.strip(), own) for word in text.split(","))
    if len(set(points)) < len(points):
        raise ValueError(f"{text!r} has a point twice")
    if len(points) > MOST_POINTS:
        raise ValueError(f"{len(points)} points are more than {MOST_POINTS}")
    return tuple(points)


def _point(word: str, own: float | None) -> float:
    is_multiple = word.endswith("x")
    try:
        number = float(word.removesuffix("x"))
    except ValueError as error:
        raise ValueError(f"{word!r} is no point such as 100 or 0.5x") from error
    if is_multiple and own is None:
        raise ValueError(f"{word}: the workload says nothing of it, so say a number")
    value = number * (own or 1.0) if is_multiple else number
    times = value / own if own else 1.0
    if not (math.isfinite(value) and value > 0 and LOWEST_TIMES <= times <= HIGHEST_TIMES):
        raise ValueError(
            f"{word} is not in {LOWEST_TIMES:g}x to {HIGHEST_TIMES:g}x of what the workload has"
            if own
            else f"{word} is no number above 0"
        )
    return float(max(1, round(value)))
