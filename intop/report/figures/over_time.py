"""Over time: the default's P99 in a campaign, both sides by campaign, and a soak."""

from collections.abc import Callable, Sequence
from itertools import cycle, pairwise
from textwrap import fill

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from intop.domain.drift import Sentinels
from intop.domain.history import History
from intop.domain.soak import Soak, SoakBlock
from intop.domain.stats import Interval
from intop.report.collect import drift_sentence
from intop.report.figures.axes import (
    error_bars,
    faint_grid,
    is_narrow,
    legend_below,
    panels,
    plain_ticks,
)
from intop.report.figures.drawing import BLUE, GREY, INK, ORANGE, Drawing, NoDataError, drawn
from intop.report.words import inert

DRIFT_HEIGHT = 3.0
MARKS = ((BLUE, "o"), (GREY, "s"), (BLUE, "D"), (GREY, "^"))
"""Marks of the replicas."""
ROOM = 1.3
"""Factor from the sentinels to the ends of the axis, whatever the interval of their trend."""
LETTERS = 62
"""Letters in a line above the marks."""
SHORT = 2.0
"""Hours below which minutes are the unit."""
HISTORY_HEIGHT = 3.4
MOST_TICKS = 10
SOAK_HEIGHT, NARROW_SOAK_HEIGHT = 5.0, 8.4
Value = Callable[[SoakBlock], float | None]


def default_drift(about: str, sentinels: Sentinels) -> Drawing:
    """Every trial of the default as a mark, replica by replica, and their trend with its interval.

    Raises NoDataError without any trial of the default.
    """
    if not sentinels.sentinels:
        raise NoDataError("there are no trials of the default")
    unit, scale = _unit(sentinels.drift.hours)

    def paint(figure: Figure) -> None:
        axes = figure.subplots()
        _marks(axes, sentinels, scale)
        _trend(axes, sentinels, scale)
        values = [s.p99_ms for s in sentinels.sentinels]
        axes.set_yscale("log")
        axes.set_ylim(min(values) / ROOM, max(values) * ROOM)
        plain_ticks(axes.yaxis, axes.get_ylim())
        axes.xaxis.set_major_locator(MaxNLocator(6))
        faint_grid(axes)
        lines = drift_sentence(sentinels.drift).replace(" (", "\n(").splitlines()
        axes.set_title(
            "\n".join(fill(line, LETTERS) for line in lines),
            loc="left",
            fontsize=8,
            fontweight="normal",
        )
        axes.set_xlabel(f"{unit} since the first trial of the default")
        axes.set_ylabel("P99 of the default in ms")
        legend_below(figure, axes)

    return drawn(
        "drift",
        f"the default's P99 over time ({len(sentinels.sentinels)} trials)",
        paint,
        about=about,
        height=DRIFT_HEIGHT,
        width=5.4,
    )


def _marks(axes: Axes, sentinels: Sentinels, scale: float) -> None:
    replicas = sorted({s.replica for s in sentinels.sentinels})
    for replica, (colour, mark) in zip(replicas, cycle(MARKS), strict=False):
        own = [s for s in sentinels.sentinels if s.replica == replica]
        axes.plot(
            [scale * s.hours for s in own],
            [s.p99_ms for s in own],
            mark,
            color=colour,
            markersize=3.5,
            label=f"measured on {inert(replica)}",
            gid=f"replica-{inert(replica)}",
        )


def _trend(axes: Axes, sentinels: Sentinels, scale: float) -> None:
    if not sentinels.trend:
        return
    hours = [scale * point.hours for point in sentinels.trend]
    axes.fill_between(
        hours,
        [point.p99_ms.low for point in sentinels.trend],
        [point.p99_ms.high for point in sentinels.trend],
        color=ORANGE,
        alpha=0.25,
        linewidth=0,
        gid="interval",
    )
    axes.plot(
        hours,
        [point.p99_ms.value for point in sentinels.trend],
        color=ORANGE,
        linewidth=1.8,
        label=f"trend with {sentinels.drift.level:.0%} interval",
        gid="trend",
    )


def history(about: str, history: History) -> Drawing:
    """Both configurations with intervals, and a vertical line where conditions changed.

    Where the load changed, no line leads on.
    """
    starts = [n for n, step in enumerate(history.steps, start=1) if step.incomparable]
    loads = [range(*ends) for ends in pairwise((0, *starts, len(history.moments)))]

    def paint(figure: Figure) -> None:
        axes = figure.subplots()
        for name, colour, mark, shift, latencies in (
            ("default", ORANGE, "s", -0.06, [m.default for m in history.moments]),
            ("tuned", BLUE, "o", 0.06, [m.tuned for m in history.moments]),
        ):
            placed = [
                (n, latency.mean_ms) for n, latency in enumerate(latencies) if latency is not None
            ]
            parts = [[p for p in placed if p[0] in part] for part in loads]
            for number, part in enumerate(filter(None, parts)):
                _series(axes, None if number else name, colour, mark, shift, part)
        _lines(axes, "not comparable", "--", [n - 0.5 for n in starts])
        others = [n for n, s in enumerate(history.steps) if s.changed and not s.incomparable]
        _lines(axes, "other conditions", ":", [n + 0.5 for n in others])
        axes.set_yscale("log")
        plain_ticks(axes.yaxis, axes.get_ylim())
        every = -(-len(history.moments) // MOST_TICKS)
        shown = list(enumerate(history.moments))[::every]
        axes.set_xticks(
            [place for place, _ in shown], [f"{m.campaign}\n{m.started_at[:10]}" for _, m in shown]
        )
        axes.set_xlim(-0.5, len(history.moments) - 0.5)
        axes.set_xlabel("campaign")
        axes.set_ylabel(f"P99 in ms, {history.level:.0%} intervals")
        faint_grid(axes, "y")
        legend_below(figure, axes)

    return drawn(
        "over-time",
        "P99 by campaign",
        paint,
        about=about,
        height=HISTORY_HEIGHT,
    )


def _lines(axes: Axes, name: str, style: str, places: Sequence[float]) -> None:
    for place in places:
        label = name if place == places[0] else None
        axes.axvline(place, color=GREY, linestyle=style, linewidth=1, label=label)


def _series(
    axes: Axes,
    name: str | None,
    colour: str,
    mark: str,
    shift: float,
    placed: Sequence[tuple[int, Interval]],
) -> None:
    axes.errorbar(
        [place + shift for place, _ in placed],
        [mean.value for _, mean in placed],
        yerr=error_bars([mean for _, mean in placed]),
        fmt=f"{mark}-",
        color=colour,
        markersize=5,
        linewidth=0.8,
        elinewidth=1.4,
        capsize=2.5,
        label=name,
    )


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
