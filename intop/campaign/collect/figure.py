"""The drift of the default as a figure."""

from itertools import cycle
from textwrap import fill

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from intop.campaign.collect.view import drift_sentence
from intop.document.axes import (
    faint_grid,
    legend_below,
    plain_ticks,
)
from intop.document.drawing import BLUE, GREY, ORANGE, Drawing, NoDataError, drawn
from intop.domain.drift import Sentinels, sentinels
from intop.domain.replicates import Collected
from intop.words import inert, percent

DRIFT_HEIGHT = 3.0


MARKS = ((BLUE, "o"), (GREY, "s"), (BLUE, "D"), (GREY, "^"))
"""Marks of the replicas."""


ROOM = 1.3
"""Factor from the sentinels to the ends of the axis, whatever the interval of their trend."""


LETTERS = 62
"""Letters in a line above the marks."""


SHORT = 2.0
"""Hours below which minutes are the unit."""


def collected(about: str, collected: Collected) -> Drawing:
    """Return the drift of the default in a collection. Raises NoDataError without its trials."""
    return default_drift(about, sentinels(collected.trials, level=collected.drift.level))


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
        values = [s.judged_ms for s in sentinels.sentinels]
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
        axes.set_ylabel(f"{sentinels.judged_by} of the default in ms")
        legend_below(figure, axes)

    return drawn(
        "drift",
        f"the default's {sentinels.judged_by} over time ({len(sentinels.sentinels)} trials)",
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
            [s.judged_ms for s in own],
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
        [point.judged_ms.low for point in sentinels.trend],
        [point.judged_ms.high for point in sentinels.trend],
        color=ORANGE,
        alpha=0.25,
        linewidth=0,
        gid="interval",
    )
    axes.plot(
        hours,
        [point.judged_ms.value for point in sentinels.trend],
        color=ORANGE,
        linewidth=1.8,
        label=f"trend with {percent(sentinels.drift.level)} interval",
        gid="trend",
    )


def _unit(hours: float) -> tuple[str, float]:
    """Return the unit of a time axis, and how many of it are an hour."""
    return ("minutes", 60.0) if hours < SHORT else ("hours", 1.0)
