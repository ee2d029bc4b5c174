"""The default's P99 over the time of a campaign, and whether it drifted."""

from itertools import cycle
from textwrap import fill

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from intop.domain.drift import Sentinels
from intop.report.collect import drift_sentence
from intop.report.figures.axes import faint_grid, legend_below, plain_ticks
from intop.report.figures.drawing import BLUE, GREY, ORANGE, Drawing, drawn
from intop.report.words import inert

HEIGHT = 3.0
MARKS = ((BLUE, "o"), (GREY, "s"), (BLUE, "D"), (GREY, "^"))
"""Of the replicas."""
ROOM = 1.3
"""By so much the axis reaches beyond the sentinels, whatever the interval of their trend."""
LETTERS = 62
"""In a line above the marks."""
SHORT = 2.0
"""Fewer hours than that are told in minutes."""


def default_drift(about: str, found: Sentinels) -> Drawing:
    """Every trial of the default as a mark, replica by replica, and their trend with its interval.

    Raises ValueError without any trial of the default.
    """
    if not found.sentinels:
        raise ValueError("there are no trials of the default")
    in_minutes = found.drift.hours < SHORT
    unit, scale = ("minutes", 60.0) if in_minutes else ("hours", 1.0)

    def paint(figure: Figure) -> None:
        axes = figure.subplots()
        _marks(axes, found, scale)
        _trend(axes, found, scale)
        values = [s.p99_ms for s in found.sentinels]
        axes.set_yscale("log")
        axes.set_ylim(min(values) / ROOM, max(values) * ROOM)
        plain_ticks(axes.yaxis, axes.get_ylim())
        axes.xaxis.set_major_locator(MaxNLocator(6))
        faint_grid(axes)
        told = drift_sentence(found.drift).replace(" (", "\n(").splitlines()
        axes.set_title(
            "\n".join(fill(line, LETTERS) for line in told),
            loc="left",
            fontsize=8,
            fontweight="normal",
        )
        axes.set_xlabel(f"{unit} since the first trial of the default")
        axes.set_ylabel("P99 of the default in ms")
        legend_below(figure, axes)

    return drawn(
        "drift",
        f"the default's P99 over time ({len(found.sentinels)} trials)",
        paint,
        about=about,
        height=HEIGHT,
        width=5.4,
    )


def _marks(axes: Axes, found: Sentinels, scale: float) -> None:
    replicas = sorted({s.replica for s in found.sentinels})
    for replica, (colour, mark) in zip(replicas, cycle(MARKS), strict=False):
        made = [s for s in found.sentinels if s.replica == replica]
        axes.plot(
            [scale * s.hours for s in made],
            [s.p99_ms for s in made],
            mark,
            color=colour,
            markersize=3.5,
            label=f"measured on {inert(replica)}",
            gid=f"replica-{inert(replica)}",
        )


def _trend(axes: Axes, found: Sentinels, scale: float) -> None:
    if not found.trend:
        return
    hours = [scale * point.hours for point in found.trend]
    axes.fill_between(
        hours,
        [point.p99_ms.low for point in found.trend],
        [point.p99_ms.high for point in found.trend],
        color=ORANGE,
        alpha=0.25,
        linewidth=0,
        gid="interval",
    )
    axes.plot(
        hours,
        [point.p99_ms.value for point in found.trend],
        color=ORANGE,
        linewidth=1.8,
        label=f"trend with {found.drift.level:.0%} interval",
        gid="trend",
    )
