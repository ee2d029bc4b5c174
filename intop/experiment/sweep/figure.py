"""A sweep: latency, the rate that is reached, and processor and memory along its axis."""

from collections.abc import Callable, Mapping, Sequence
from itertools import cycle

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from intop.document.axes import faint_grid, is_narrow, legend_below, plain_ticks
from intop.document.drawing import BLUE, GREY, INK, ORANGE, Drawing, NoDataError, drawn
from intop.domain.baseline import TUNED
from intop.domain.sweep import UNITS, ArmAt, Sweep

HEIGHT, NARROW_HEIGHT = 5.0, 8.4
MARKS = ("s", "^", "D", "v", "P", "X")
"""The marks of arms that are neither the reference nor tuned, which are all grey."""


PANELS: Mapping[str, Callable[[ArmAt], float | None]] = {
    "latency in ms": lambda at: None if at.judged_ms is None else at.judged_ms.value,
    "reached requests/s": lambda at: at.achieved_rps,
    "CPU in %": lambda at: None if at.cpu is None else 100 * at.cpu,
    "memory in MiB": lambda at: at.memory_mib,
}


def curves(about: str, sweep: Sweep) -> Drawing:
    """Return a line for each arm in each of four panels, and a band where there is an interval.

    Dotted lines are the limit of latency, and the rate that was asked. Raises NoDataError for a
    sweep of which nothing is usable.
    """
    if not sweep.has_latencies:
        raise NoDataError("nothing of the sweep is usable")

    def paint(figure: Figure) -> None:
        columns = 1 if is_narrow(figure) else 2
        shape = (len(PANELS) // columns, columns)
        panels = list(figure.subplots(*shape, sharex=True, squeeze=False).flat)
        for axes, (name, value) in zip(panels, PANELS.items(), strict=True):
            _lines(axes, sweep, value)
            axes.set_ylabel(name.replace("latency", sweep.judged_by))
            faint_grid(axes)
        _latencies(panels[0], sweep)
        _scales(panels, sweep)
        for axes in panels[-columns:]:
            axes.set_xlabel(UNITS[sweep.axis])
            if sweep.axis == "file":
                labels = [point.label for point in sweep.points]
                axes.set_xticks([point.value for point in sweep.points], labels, rotation=20)
        legend_below(figure, panels[0])

    return drawn(
        f"sweep-{sweep.axis}-{sweep.loop}",
        f"along the {sweep.axis}" + (", in a closed loop" if sweep.loop == "closed" else ""),
        paint,
        about=about,
        height=HEIGHT,
        narrow_height=NARROW_HEIGHT,
    )


def _lines(axes: Axes, sweep: Sweep, value: Callable[[ArmAt], float | None]) -> None:
    marks = cycle(MARKS)
    for arm in sweep.arms:
        colour = _colour(sweep, arm.name)
        at = [(point.value, value(arm_at)) for point, arm_at in sweep.along(arm.name)]
        shown = [(x, y) for x, y in at if y is not None]
        axes.plot(
            [x for x, _ in shown],
            [y for _, y in shown],
            marker=next(marks) if colour == GREY else "o",
            markersize=4,
            linewidth=1.5,
            color=colour,
            label=arm.name,
            gid=f"arm-{arm.name}",
        )


def _latencies(axes: Axes, sweep: Sweep) -> None:
    """Draw the bands and the limit of latency, on a logarithmic axis."""
    axes.set_yscale("log")
    for arm in sweep.arms:
        at = [(point.value, arm_at.judged_ms) for point, arm_at in sweep.along(arm.name)]
        shown = [(x, latency) for x, latency in at if latency is not None]
        axes.fill_between(
            [x for x, _ in shown],
            [latency.low for _, latency in shown],
            [latency.high for _, latency in shown],
            color=_colour(sweep, arm.name),
            alpha=0.2,
            linewidth=0,
            gid=f"band-{arm.name}",
        )
    if sweep.limit_ms is not None:
        axes.axhline(sweep.limit_ms, color=INK, linewidth=0.8, linestyle=":", gid="limit")
    plain_ticks(axes.yaxis, axes.get_ylim())


def _scales(panels: Sequence[Axes], sweep: Sweep) -> None:
    """Let all but latencies begin at 0; loads other than the rate have a logarithmic axis."""
    latency, rate, *_ = panels
    values = [point.value for point in sweep.points]
    if sweep.axis == "rate":
        rate.plot(values, values, color=INK, linewidth=0.8, linestyle=":", gid="asked")
    elif sweep.axis != "file" and len(values) > 1:
        latency.set_xscale("log")
        plain_ticks(latency.xaxis, values)
    for axes in panels[1:]:
        axes.set_ylim(bottom=0)


def _colour(sweep: Sweep, arm: str) -> str:
    return {sweep.reference: ORANGE, TUNED: BLUE}.get(arm, GREY)
