"""Components of the performance metrics: what each is made of, and how much it explains."""

from matplotlib.axes import Axes
from matplotlib.collections import PatchCollection
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from intop.domain.training import Components
from intop.report.figures.drawing import BLUE, ORANGE, Drawing, drawn

ROW = 0.26
"""The height of a metric's row, in inches."""
DEEPEST = 0.6
"""How much of its colour a cell of loading 1 has; with more, ink is hard to read on it."""
GAP = 0.06
"""Between two cells, as a part of one."""


def components(about: str, found: Components) -> Drawing:
    """A heat map of the loadings of the components that are needed, with their shares above it.

    Raises ValueError where there are none.
    """
    if not found.loadings:
        raise ValueError(f"there are no components of {found.trials} trials")
    height = ROW * len(found.metrics)

    def paint(figure: Figure) -> None:
        above, below = figure.subplots(2, 1, sharex=True, height_ratios=(0.8, height))
        _shares(above, found)
        _loadings(below, found)

    return drawn(
        "components",
        f"what the metrics of {found.trials} trials have in common",
        paint,
        about=about,
        height=1.7 + height,
        width=3.2 + 0.6 * found.needed,
    )


def _shares(axes: Axes, found: Components) -> None:
    places = [n + 0.5 for n in range(found.needed)]
    shares = [100 * share for share in found.explained[: found.needed]]
    bars = axes.bar(places, shares, color=BLUE, width=0.7)
    axes.bar_label(bars, fmt="{:.0f} %", fontsize=8, padding=1)
    axes.set_ylabel("share of\nvariance")
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.margins(y=0.3)
    axes.tick_params(axis="x", length=0)


def _loadings(axes: Axes, found: Components) -> None:
    rows = [[found.loadings[n][m] for n in range(found.needed)] for m in range(len(found.metrics))]
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
    axes.set_xlim(0, found.needed)
    axes.set_ylim(len(rows), 0)
    for m, row in enumerate(rows):
        for n, loading in enumerate(row):
            axes.text(n + 0.5, m + 0.5, f"{loading:+.2f}", fontsize=8, ha="center", va="center")
    axes.set_yticks([m + 0.5 for m in range(len(rows))], found.metrics)
    axes.set_xticks(
        [n + 0.5 for n in range(found.needed)], [str(n + 1) for n in range(found.needed)]
    )
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set_xlabel("component (numbers are correlations)")
