"""A soak over time: P99, rate, memory, open files and sockets."""

from collections.abc import Callable, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from intop.domain.soak import Soak, SoakBlock
from intop.report.figures.axes import faint_grid, is_narrow, legend_below, plain_ticks
from intop.report.figures.drawing import BLUE, GREY, INK, ORANGE, Drawing, drawn

HEIGHT, NARROW_HEIGHT = 5.0, 8.4
SHORT = 2.0
"""Fewer hours than that are told in minutes."""

Value = Callable[[SoakBlock], float | None]


def over_time(about: str, found: Soak) -> Drawing:
    """Four panels over time: latencies, the rate, memory, and open files and sockets.

    Dotted lines are limits, and the rate that was asked. Raises ValueError for a soak of which no
    block has latencies.
    """
    if not any(one.p99_ms for one in found.blocks):
        raise ValueError("no block of the soak has latencies")
    unit, scale = ("minutes", 60.0) if found.hours < SHORT else ("hours", 1.0)

    def paint(figure: Figure) -> None:
        columns = 1 if is_narrow(figure) else 2
        panels = list(figure.subplots(4 // columns, columns, sharex=True, squeeze=False).flat)
        latency, rate, memory, handles = panels
        _line(latency, found.blocks, scale, lambda one: one.p99_ms or None, BLUE, "P99")
        _line(latency, found.blocks, scale, lambda one: one.p50_ms or None, GREY, "P50")
        _line(rate, found.blocks, scale, lambda one: one.achieved_rps, BLUE, "reached")
        _line(memory, found.blocks, scale, lambda one: one.nginx_memory_mib, BLUE, "of nginx")
        _line(handles, found.blocks, scale, lambda one: one.nginx_files, BLUE, "of nginx")
        _line(handles, found.blocks, scale, lambda one: one.time_wait, ORANGE, "TIME_WAIT")
        _line(handles, found.blocks, scale, lambda one: one.connections, GREY, "connections")
        latency.set_yscale("log")
        for axes, limit in ((latency, found.limits.p99_ms), (memory, found.limits.memory_mib)):
            if limit is not None:
                axes.axhline(limit, color=INK, linewidth=0.8, linestyle=":", gid="limit")
        rate.axhline(found.rate_rps, color=INK, linewidth=0.8, linestyle=":", gid="asked")
        plain_ticks(latency.yaxis, latency.get_ylim())
        for axes, name in zip(
            panels,
            ("latency in ms", "requests/s", "memory in MiB", "open files, sockets"),
            strict=True,
        ):
            axes.set_ylabel(name)
            faint_grid(axes)
        for axes in (rate, memory, handles):
            axes.set_ylim(bottom=0)
        for axes in panels[-columns:]:
            axes.set_xlabel(f"{unit} since the first block")
        latency.legend(loc="best")
        legend_below(figure, handles)

    return drawn(
        "soak", "over time", paint, about=about, height=HEIGHT, narrow_height=NARROW_HEIGHT
    )


def _line(
    axes: Axes, blocks: Sequence[SoakBlock], scale: float, value: Value, colour: str, name: str
) -> None:
    """A quantity over time, with a gap where it is not known; nothing where it never is."""
    known = [value(one) for one in blocks]
    if all(one is None for one in known):
        return
    axes.plot(
        [scale * one.hours for one in blocks],
        [float("nan") if one is None else one for one in known],
        marker="o",
        markersize=2,
        linewidth=1.2,
        color=colour,
        label=name,
        gid=f"line-{name}",
    )
