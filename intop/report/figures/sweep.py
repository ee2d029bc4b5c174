"""A sweep: P99, the rate that is reached, and processor and memory along its axis."""

from collections.abc import Callable, Sequence
from itertools import cycle

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from intop.domain.baseline import TUNED
from intop.domain.sweep import UNITS, ArmAt, Sweep
from intop.report.figures.axes import faint_grid, is_narrow, legend_below, plain_ticks
from intop.report.figures.drawing import BLUE, GREY, INK, ORANGE, Drawing, NoDataError, drawn

HEIGHT, NARROW_HEIGHT = 5.0, 8.4
MARKS = ("s", "^", "D", "v", "P", "X")
"""Of the arms that are neither the reference nor tuned, which are all grey."""


def curves(about: str, found: Sweep) -> Drawing:
    """A line for each arm in each of four panels, and a band where there is an interval.

    Dotted lines are the limit of P99, and the rate that was asked. Raises NoDataError for a sweep
    of which nothing is usable.
    """
    if not found.has_latencies:
        raise NoDataError("nothing of the sweep is usable")

    def paint(figure: Figure) -> None:
        columns = 1 if is_narrow(figure) else 2
        shape = (4 // columns, columns)
        panels = list(figure.subplots(*shape, sharex=True, squeeze=False).flat)
        names = ("P99 in ms", "reached requests/s", "CPU in %", "memory in MiB")
        lines: tuple[Callable[[ArmAt], float | None], ...] = (
            lambda one: None if one.p99_ms is None else one.p99_ms.value,
            lambda one: one.achieved_rps,
            lambda one: None if one.cpu is None else 100 * one.cpu,
            lambda one: one.memory_mib,
        )
        for axes, name, value in zip(panels, names, lines, strict=True):
            _lines(axes, found, value)
            axes.set_ylabel(name)
            faint_grid(axes)
        _scales(panels, found)
        for axes in panels[-columns:]:
            axes.set_xlabel(UNITS[found.axis])
            if found.axis == "file":
                labels = [point.label for point in found.points]
                axes.set_xticks([point.value for point in found.points], labels, rotation=20)
        legend_below(figure, panels[0])

    return drawn(
        f"sweep-{found.axis}-{found.loop}",
        f"along the {found.axis}" + (", in a closed loop" if found.loop == "closed" else ""),
        paint,
        about=about,
        height=HEIGHT,
        narrow_height=NARROW_HEIGHT,
    )


def _lines(axes: Axes, found: Sweep, value: Callable[[ArmAt], float | None]) -> None:
    others = cycle(MARKS)
    for arm in found.arms:
        colour, mark = {
            found.reference: (ORANGE, "o"),
            TUNED: (BLUE, "o"),
        }.get(arm.name) or (GREY, next(others))
        at = [(point.value, _of(point.arms, arm.name)) for point in found.points]
        shown = [(x, y) for x, one in at if (y := value(one)) is not None]
        axes.plot(
            [x for x, _ in shown],
            [y for _, y in shown],
            marker=mark,
            markersize=4,
            linewidth=1.5,
            color=colour,
            label=arm.name,
            gid=f"arm-{arm.name}",
        )


def _scales(panels: Sequence[Axes], found: Sweep) -> None:
    """Latencies on a logarithmic axis, with their bands; all others from 0 on."""
    latency, rate, *others = panels
    latency.set_yscale("log")
    for arm in found.arms:
        colour = {found.reference: ORANGE, TUNED: BLUE}.get(arm.name, GREY)
        at = [(point.value, _of(point.arms, arm.name).p99_ms) for point in found.points]
        shown = [(x, p99) for x, p99 in at if p99 is not None]
        latency.fill_between(
            [x for x, _ in shown],
            [p99.low for _, p99 in shown],
            [p99.high for _, p99 in shown],
            color=colour,
            alpha=0.2,
            linewidth=0,
            gid=f"band-{arm.name}",
        )
    if found.limit_ms is not None:
        latency.axhline(found.limit_ms, color=INK, linewidth=0.8, linestyle=":", gid="limit")
    plain_ticks(latency.yaxis, latency.get_ylim())
    values = [point.value for point in found.points]
    if found.axis == "rate":
        rate.plot(values, values, color=INK, linewidth=0.8, linestyle=":", gid="asked")
    elif found.axis != "file" and len(values) > 1:
        latency.set_xscale("log")
        plain_ticks(latency.xaxis, values)
    for axes in (rate, *others):
        axes.set_ylim(bottom=0)


def _of(arms: Sequence[ArmAt], name: str) -> ArmAt:
    return next(one for one in arms if one.arm == name)
