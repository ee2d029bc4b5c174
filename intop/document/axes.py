"""Helpers for the axes of figures: named rows, grids, ticks and legends."""

from collections.abc import Sequence

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import XAxis, YAxis
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter, NullLocator

from intop.document.drawing import INK, NARROW_WIDTH
from intop.domain.stats import Interval

ROW_HALF = 0.3
"""Half the height of what stands in a row; between the rows their names find room."""
FEW_TICKS, MANY_TICKS = 5.0, {"x": 100.0, "y": 1000.0}
"""Ratios of the ends of a logarithmic axis with too few round numbers in it, and with too many."""


def is_narrow(part: Artist) -> bool:
    """Return whether a figure, or the figure of a part, has no room for long names."""
    figure = part.get_figure(root=True)
    return figure is not None and bool(figure.get_figwidth() <= NARROW_WIDTH)


def faint_grid(axes: Axes, which: str = "both") -> None:
    """Lines to read values by, along the ticks of "x", "y" or both."""
    axes.grid(axis=which, color=INK, alpha=0.15, linewidth=0.5)  # type: ignore[arg-type]


def legend_below(figure: Figure, axes: Axes, title: str = "") -> None:
    """The legend of some axes under all of them, in as many columns as there is room for."""
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(
        handles,
        labels,
        title=title or None,
        title_fontsize=8,
        loc="outside lower center",
        ncols=_columns(labels, figure.get_figwidth()),
    )


def panels(figure: Figure, count: int, columns: int, *, shared: str = "") -> list[Axes]:
    """Return so many panels in rows of `columns`; they share their "x", "y" or "xy" axes.

    The lowest panels have the names of the ticks of a shared x axis.
    """
    axes = figure.subplots(
        -(-count // columns), columns, sharex="x" in shared, sharey="y" in shared, squeeze=False
    )
    cells = list(axes.flat)
    for empty in cells[count:]:
        empty.set_axis_off()
    for lowest in cells[max(0, count - columns) : count]:
        lowest.tick_params(labelbottom=True)
    return cells[:count]


def plain_ticks(axis: XAxis | YAxis, values: Sequence[float]) -> None:
    """Numbers at round places of a logarithmic axis that shows these values, not powers."""
    reach = max(values) / min(values)
    if reach < FEW_TICKS:
        axis.set_major_locator(MaxNLocator(6, steps=[1, 2, 2.5, 5, 10]))
    else:
        most = MANY_TICKS[axis.axis_name]
        axis.set_major_locator(LogLocator(subs=(1, 2, 5) if reach < most else (1,)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}".replace("e+0", "e")))
    axis.set_minor_locator(NullLocator())
    axis.set_minor_formatter(NullFormatter())


def name_rows(axes: Axes, names: Sequence[str]) -> None:
    """Name the rows 0, 1, 2 ... from the top: beside them, or above each where that is narrow.

    What stands in a row reaches `ROW_HALF` up and down.
    """
    axes.tick_params(axis="y", length=0)
    if not is_narrow(axes):
        axes.set_yticks(range(len(names)), names)
        axes.set_ylim(len(names) - 0.4, -0.6)
        return
    axes.set_yticks([])
    axes.set_ylim(len(names) - 0.4, -1.0)
    for place, name in enumerate(names):
        axes.text(
            0.01,
            place - ROW_HALF - 0.02,
            name,
            transform=axes.get_yaxis_transform(),
            va="bottom",
            fontsize=8,
        )


def error_bars(intervals: Sequence[Interval]) -> list[list[float]]:
    """Return how far intervals reach below and above their values, as matplotlib takes it."""
    return [[i.value - i.low for i in intervals], [i.high - i.value for i in intervals]]


def row_line(axes: Axes, value: float, rows: int) -> None:
    """A line of reference through so many rows, with gaps where their names stand between them."""
    if not is_narrow(axes):
        axes.axvline(value, color=INK, linewidth=0.8)
        return
    low, high = ([row + away for row in range(rows)] for away in (-ROW_HALF, ROW_HALF))
    axes.vlines([value] * rows, low, high, color=INK, linewidth=0.8)


def _columns(labels: Sequence[str], width: float) -> int:
    """Return the columns of a legend that fit a width in inches, by a letter's usual width."""
    entries = [0.55 + 0.07 * len(label) for label in labels]
    for columns in range(len(labels), 1, -1):
        rows = -(-len(labels) // columns)
        if sum(max(entries[n : n + rows]) for n in range(0, len(entries), rows)) <= width:
            return columns
    return 1
