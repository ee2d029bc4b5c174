"""A soak over time as a figure."""

from collections.abc import Callable, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from intop.document.axes import (
    faint_grid,
    is_narrow,
    legend_below,
    panels,
    plain_ticks,
)
from intop.document.drawing import BLUE, GREY, INK, ORANGE, Drawing, NoDataError, drawn
from intop.domain.soak import Soak, SoakBlock

SHORT = 2.0
"""Hours below which minutes are the unit."""


SOAK_HEIGHT, NARROW_SOAK_HEIGHT = 5.0, 8.4


Value = Callable[[SoakBlock], float | None]


def soak(about: str, soak: Soak) -> Drawing:
    """Four panels over time: latencies, the rate, memory, and open files and sockets.

    Dotted lines are limits, and the rate that was asked. Raises NoDataError for a soak of which no
    block has latencies.
    """
    if not any(block.p99_ms for block in soak.blocks):
        raise NoDataError("no block of the soak has latencies")
    unit, scale = _unit(soak.hours)

    def paint(figure: Figure) -> None:
        columns = 1 if is_narrow(figure) else 2
        latency, rate, memory, handles = shown = panels(figure, 4, columns, shared="x")
        _line(latency, soak.blocks, scale, lambda block: block.p99_ms or None, BLUE, "P99")
        _line(latency, soak.blocks, scale, lambda block: block.p50_ms or None, GREY, "P50")
        _line(rate, soak.blocks, scale, lambda block: block.achieved_rps, BLUE, "reached")
        _line(memory, soak.blocks, scale, lambda block: block.nginx_memory_mib, BLUE, "of nginx")
        _line(handles, soak.blocks, scale, lambda block: block.nginx_files, BLUE, "of nginx")
        _line(handles, soak.blocks, scale, lambda block: block.time_wait, ORANGE, "TIME_WAIT")
        _line(handles, soak.blocks, scale, lambda block: block.connections, GREY, "connections")
        latency.set_yscale("log")
        for axes, limit in ((latency, soak.limits.p99_ms), (memory, soak.limits.memory_mib)):
            if limit is not None:
                axes.axhline(limit, color=INK, linewidth=0.8, linestyle=":", gid="limit")
        rate.axhline(soak.rate_rps, color=INK, linewidth=0.8, linestyle=":", gid="asked")
        plain_ticks(latency.yaxis, latency.get_ylim())
        for axes, name in zip(
            shown,
            ("latency in ms", "requests/s", "memory in MiB", "open files, sockets"),
            strict=True,
        ):
            axes.set_ylabel(name)
            faint_grid(axes)
        for axes in (rate, memory, handles):
            axes.set_ylim(bottom=0)
        for axes in shown[-columns:]:
            axes.set_xlabel(f"{unit} since the first block")
        latency.legend(loc="best")
        legend_below(figure, handles)

    return drawn(
        "soak",
        "over time",
        paint,
        about=about,
        height=SOAK_HEIGHT,
        narrow_height=NARROW_SOAK_HEIGHT,
    )


def _line(
    axes: Axes, blocks: Sequence[SoakBlock], scale: float, value: Value, colour: str, name: str
) -> None:
    """A quantity over time, with a gap where it is not known; nothing where it never is."""
    known = [value(block) for block in blocks]
    if all(number is None for number in known):
        return
    axes.plot(
        [scale * block.hours for block in blocks],
        [float("nan") if number is None else number for number in known],
        marker="o",
        markersize=2,
        linewidth=1.2,
        color=colour,
        label=name,
        gid=f"line-{name}",
    )


def _unit(hours: float) -> tuple[str, float]:
    """Return the unit of a time axis, and how many of it are an hour."""
    return ("minutes", 60.0) if hours < SHORT else ("hours", 1.0)
