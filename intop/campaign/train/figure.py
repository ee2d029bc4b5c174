"""Models: predicted against measured, and the components of the metrics that they learn."""

import math
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.collections import PatchCollection
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

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
from intop.domain.training import Ceiling, Components, HeldOut, ModelError, Training
from intop.words import inert, percent

COLUMNS, NARROW_COLUMNS = 3, 2
PANEL, NARROW_PANEL = 2.2, 1.9
"""The height of a panel, in inches."""
MOST_POINTS = 500
"""Points in one panel. More hide each other, and make a file of megabytes."""
BEYOND = 3.0
"""Factor from the measurements to the edge, at which wilder guesses are drawn."""
METRIC_ROW = 0.26
"""The height of a metric's row, in inches."""
DEEPEST = 0.6
"""Opacity of a cell of loading 1; with more, ink is hard to read on it."""
GAP = 0.06
"""The space between two cells, as a part of one."""


def predictions(about: str, training: Training) -> Drawing:
    """Held-out rows, a panel for each family, on logarithmic axes that all of them share.

    A bar is the interval of a prediction. Around the diagonal is the band as wide as the mean
    error of a model that knows the truth, where the noise is known. Raises NoDataError where no
    family has held-out rows.
    """
    shown = [error for error in training.errors if error.held_out]
    if not shown:
        raise NoDataError("no family has predictions of rows that it has not seen")
    edges = _edges(shown)
    columns = min(COLUMNS, len(shown))
    quantity = inert(f"{training.target} in {training.unit}" if training.unit else training.target)

    def paint(figure: Figure) -> None:
        beside = min(NARROW_COLUMNS, columns) if is_narrow(figure) else columns
        axes = panels(figure, len(shown), beside, shared="xy")
        for panel, error in zip(axes, shown, strict=True):
            _panel(panel, error, training.ceiling, edges)
        for lowest in axes[-beside:]:
            lowest.set_xlabel(f"measured {quantity}")
        for leftmost in axes[::beside]:
            leftmost.set_ylabel(f"predicted {quantity}")
        legend_below(figure, axes[0])

    width = PAGE_WIDTH * columns / COLUMNS
    return drawn(
        "predictions",
        f"predicted and measured {training.target} of {_sample(shown[0])}",
        paint,
        about=about,
        height=1.0 + PANEL * -(-len(shown) // columns),
        width=width,
        narrow_height=1.1 + NARROW_PANEL * -(-len(shown) // NARROW_COLUMNS),
    )


def _edges(shown: Sequence[ModelError]) -> tuple[float, float]:
    """Return the ends of the axes, around measurements and reasonable predictions."""
    measured = [row.measured for error in shown for row in error.held_out]
    low, high = min(measured) / BEYOND, max(measured) * BEYOND
    predicted = [_inside(row.predicted, low, high) for error in shown for row in error.held_out]
    return 0.9 * min(*measured, *predicted), 1.1 * max(*measured, *predicted)


def _panel(
    axes: Axes, error: ModelError, ceiling: Ceiling | None, edges: tuple[float, float]
) -> None:
    low, high = edges
    rows = _drawn_rows(error)
    axes.set_title(f"{error.family}: MAPE {error.mape:.0f} %")
    axes.set(xscale="log", yscale="log", xlim=edges, ylim=edges)
    faint_grid(axes)
    if ceiling is not None:
        factor = 1 + ceiling.mape / 100
        axes.fill_between(
            edges,
            [low / factor, high / factor],
            [low * factor, high * factor],
            color=ORANGE,
            alpha=0.4,
            linewidth=0,
            label=f"mean error of a perfect model ({ceiling.mape:.0f} %)",
            gid=f"ceiling-{error.family}",
        )
    axes.plot(edges, edges, color=INK, linewidth=0.8)
    # One line with gaps: a path of its own for each bar would be most of the file.
    axes.plot(
        [row.measured for row in rows for _ in range(3)],
        [end for row in rows for end in (*_bar(row, low, high), math.nan)],
        color=GREY,
        alpha=0.6,
        linewidth=0.6,
        label=f"{percent(error.level)} interval",
        gid=f"intervals-{error.family}",
    )
    axes.plot(
        [row.measured for row in rows],
        [_inside(row.predicted, low, high) for row in rows],
        "o",
        color=BLUE,
        markersize=2.8,
        markeredgewidth=0,
        label="prediction",
        gid=f"points-{error.family}",
    )
    for axis in (axes.xaxis, axes.yaxis):
        plain_ticks(axis, edges)


def _drawn_rows(error: ModelError) -> tuple[HeldOut, ...]:
    """Return all rows, or a regular part of them."""
    return error.held_out[:: -(-len(error.held_out) // MOST_POINTS)]


def _bar(row: HeldOut, low: float, high: float) -> tuple[float, float]:
    return _inside(row.low, low, high), _inside(row.high, low, high)


def _inside(value: float, low: float, high: float) -> float:
    """Return a value, or the edge that it lies beyond."""
    return min(max(value, low), high)


def _sample(error: ModelError) -> str:
    count, drawn_count = len(error.held_out), len(_drawn_rows(error))
    some = f" ({drawn_count} of {count})" if drawn_count < count else ""
    return f"configurations not seen in training{some}"


def learned_components(about: str, training: Training) -> Drawing:
    """Return the components that the models learned. Raises NoDataError where they have none."""
    if training.components is None:
        raise NoDataError("the models learned no components")
    return components(about, training.components)


def components(about: str, components: Components) -> Drawing:
    """A heat map of the loadings of the components that are needed, with their shares above it.

    Raises NoDataError where there are none.
    """
    if not components.loadings:
        raise NoDataError(f"there are no components of {components.trials} trials")
    height = METRIC_ROW * len(components.metrics)

    def paint(figure: Figure) -> None:
        above, below = figure.subplots(2, 1, sharex=True, height_ratios=(0.8, height))
        _shares(above, components)
        _loadings(below, components)

    return drawn(
        "components",
        f"what the metrics of {components.trials} trials have in common",
        paint,
        about=about,
        height=1.7 + height,
        width=3.2 + 0.6 * components.needed,
    )


def _shares(axes: Axes, components: Components) -> None:
    places = [n + 0.5 for n in range(components.needed)]
    shares = [100 * share for share in components.explained[: components.needed]]
    bars = axes.bar(places, shares, color=BLUE, width=0.7)
    axes.bar_label(bars, fmt="{:.0f} %", fontsize=8, padding=1)
    axes.set_ylabel("share of\nvariance")
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.margins(y=0.3)
    axes.tick_params(axis="x", length=0)


def _loadings(axes: Axes, components: Components) -> None:
    rows = [
        [components.loadings[n][m] for n in range(components.needed)]
        for m in range(len(components.metrics))
    ]
    side = 1 - GAP
    cells = PatchCollection(
        [
            Rectangle((n + GAP / 2, m + GAP / 2), side, side)
            for m, row in enumerate(rows)
            for n in range(len(row))
        ],
        # Transparent, so that ink stands out on a light and on a dark screen.
        facecolors=[
            to_rgba(BLUE if loading > 0 else ORANGE, DEEPEST * abs(loading))
            for row in rows
            for loading in row
        ],
        linewidths=0,
        gid="loadings",
    )
    axes.add_collection(cells)
    axes.set_xlim(0, components.needed)
    axes.set_ylim(len(rows), 0)
    for m, row in enumerate(rows):
        for n, loading in enumerate(row):
            axes.text(n + 0.5, m + 0.5, f"{loading:+.2f}", fontsize=8, ha="center", va="center")
    axes.set_yticks([m + 0.5 for m in range(len(rows))], components.metrics)
    axes.set_xticks(
        [n + 0.5 for n in range(components.needed)], [str(n + 1) for n in range(components.needed)]
    )
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set_xlabel("component (numbers are correlations)")
