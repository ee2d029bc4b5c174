"""The predicted front of several objectives, beside what was measured."""

from collections.abc import Sequence
from itertools import combinations

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter, NullLocator

from intop.domain.front import ObjectiveName, Tradeoff
from intop.report.figures.drawing import (
    BLUE,
    GREY,
    INK,
    ORANGE,
    PAGE_WIDTH,
    Drawing,
    drawn,
    faint_grid,
)

LABELS: dict[ObjectiveName, str] = {
    "p99": "P99 in ms",
    "cpu": "balancer's CPU in %",
    "throughput": "requests/s",
}
NARROW = 5.0
"""A range of less than that has too few round numbers of a logarithmic scale in it."""


def front(about: str, found: Tradeoff) -> Drawing:
    """Predicted configurations as a line of dots, measured ones as crosses.

    Of three objectives, a panel for each two of them, without lines: what is on the front by its
    third objective need not be on that of the two others. Raises ValueError for an empty front.
    """
    names = [objective.name for objective in found.front.objectives]
    if not found.front.points:
        raise ValueError("the front has no points")
    pairs = list(combinations(range(len(names)), 2))

    def paint(figure: Figure) -> None:
        panels = figure.subplots(1, len(pairs), squeeze=False).flat
        for panel, (x, y) in zip(panels, pairs, strict=True):
            _panel(panel, found, names, x, y, joined=len(pairs) == 1)
        handles, labels = panel.get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))

    return drawn(
        "front " + " ".join(names),
        f"predicted front of {len(found.front.points)} configurations",
        paint,
        about=about,
        height=3.6 if len(pairs) == 1 else 2.9,
        width=5.4 if len(pairs) == 1 else PAGE_WIDTH,
    )


def _panel(
    axes: Axes, found: Tradeoff, names: Sequence[ObjectiveName], x: int, y: int, *, joined: bool
) -> None:
    measured = [p for p in found.measured if not p.configuration.is_default]
    default = [p for p in found.measured if p.configuration.is_default]
    points = found.front.points
    for name, label, mark, colour, rows in (
        ("measured", "measured", "x", GREY, [p.measured for p in measured]),
        ("default", "default, measured", "s", INK, [p.measured for p in default]),
        ("front", "predicted front", "o-" if joined else "o", BLUE, [p.predicted for p in points]),
        ("knee", "knee, predicted", "D", ORANGE, [points[found.front.knee].predicted]),
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
    rows = [p.measured for p in found.measured] + [p.predicted for p in points]
    for axis, place, rescale in (
        (axes.xaxis, x, axes.set_xscale),
        (axes.yaxis, y, axes.set_yscale),
    ):
        values = [row[place] for row in rows]
        if names[place] == "p99":
            narrow = max(values) / min(values) < NARROW
            rescale("log")
            axis.set_major_locator(MaxNLocator(4) if narrow else LogLocator(subs=(1, 2, 5)))
            axis.set_minor_locator(NullLocator())
            axis.set_minor_formatter(NullFormatter())
        else:
            axis.set_major_locator(MaxNLocator(4))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    faint_grid(axes)


def _shown(name: ObjectiveName, value: float) -> float:
    """In the unit of the axis."""
    return 100 * value if name == "cpu" else value
