"""The predicted front of several objectives, beside what was measured."""

from collections.abc import Sequence
from itertools import combinations

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from intop.campaign.search.tradeoff import ObjectiveName, Tradeoff
from intop.document.axes import faint_grid, is_narrow, legend_below, panels, plain_ticks
from intop.document.drawing import (
    BLUE,
    GREY,
    INK,
    ORANGE,
    PAGE_WIDTH,
    Drawing,
    NoDataError,
    drawn,
)

LABELS: dict[ObjectiveName, str] = {
    "p99": "P99 in ms",
    "cpu": "balancer's CPU in %",
    "throughput": "requests/s",
}
PANEL = 2.4
"""The height of a panel below another, in inches."""


def front(about: str, tradeoff: Tradeoff) -> Drawing:
    """Predicted configurations as a line of dots, measured ones as crosses.

    Of three objectives, a panel for each two of them, without lines: what is on the front by its
    third objective need not be on that of the two others. Raises NoDataError for an empty front.
    """
    names = [objective.name for objective in tradeoff.front.objectives]
    if not tradeoff.front.points:
        raise NoDataError("the front has no points")
    pairs = list(combinations(range(len(names)), 2))

    def paint(figure: Figure) -> None:
        axes = panels(figure, len(pairs), 1 if is_narrow(figure) else len(pairs))
        for panel, (x, y) in zip(axes, pairs, strict=True):
            _panel(panel, tradeoff, names, x, y, joined=len(pairs) == 1)
        legend_below(figure, panel)

    return drawn(
        "front " + " ".join(names),
        f"predicted front of {len(tradeoff.front.points)} configurations",
        paint,
        about=about,
        height=3.6 if len(pairs) == 1 else 2.9,
        width=5.4 if len(pairs) == 1 else PAGE_WIDTH,
        narrow_height=0.8 + PANEL * len(pairs),
    )


def _panel(
    axes: Axes, tradeoff: Tradeoff, names: Sequence[ObjectiveName], x: int, y: int, *, joined: bool
) -> None:
    measured = [p for p in tradeoff.measured if not p.configuration.is_default]
    default = [p for p in tradeoff.measured if p.configuration.is_default]
    points = tradeoff.front.points
    for name, label, mark, colour, rows in (
        ("measured", "measured", "x", GREY, [p.measured for p in measured]),
        ("default", "default, measured", "s", INK, [p.measured for p in default]),
        ("front", "predicted front", "o-" if joined else "o", BLUE, [p.predicted for p in points]),
        ("knee", "knee, predicted", "D", ORANGE, [points[tradeoff.front.knee].predicted]),
    ):
        axes.plot(
            [_shown(names[x], row[x]) for row in rows],
            [_shown(names[y], row[y]) for row in rows],
            mark,
            color=colour,
            markersize=3.2 if name == "front" else 4.5,
            linewidth=0.8,
            # Nothing is predicted between two points: up to the next one, this one is the best.
            drawstyle="steps-post",
            label=label,
            gid=f"{name}-{names[x]}-{names[y]}",
        )
    axes.set_xlabel(LABELS[names[x]])
    axes.set_ylabel(LABELS[names[y]])
    rows = [p.measured for p in tradeoff.measured] + [p.predicted for p in points]
    for axis, place, rescale in (
        (axes.xaxis, x, axes.set_xscale),
        (axes.yaxis, y, axes.set_yscale),
    ):
        values = [row[place] for row in rows]
        if names[place] == "p99":
            rescale("log")
            plain_ticks(axis, values)
        else:
            axis.set_major_locator(MaxNLocator(4))
            axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    faint_grid(axes)


def _shown(name: ObjectiveName, value: float) -> float:
    """Return a value in the unit of its axis."""
    return 100 * value if name == "cpu" else value
