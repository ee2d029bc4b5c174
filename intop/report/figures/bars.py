"""Panels of bars: a panel for each subject, a bar for each model in it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from intop.report.figures.axes import faint_grid, is_narrow
from intop.report.figures.drawing import BLUE, GREY, INK, ORANGE, Drawing, drawn

COLUMNS = 2
ROW = 0.21
"""The height of a bar's row, in inches."""


@dataclass(frozen=True)
class Bar:
    """A bar by its name, with its value in words; one that is not finite is not drawn."""

    name: str
    value: float
    label: str
    stands_out: bool = False


@dataclass(frozen=True)
class Panel:
    """A subject's bars, and the value of a dashed line through them, if any.

    `name` is unique in a figure; `title` stands above the panel.
    """

    name: str
    title: str
    bars: tuple[Bar, ...]
    line: float | None = None


def bars(kind: str, title: str, panels: Sequence[Panel], *, about: str, quantity: str) -> Drawing:
    """The panels side by side, on one axis of the `quantity` that begins at 0.

    Raises ValueError without any bar.
    """
    shown = [panel for panel in panels if panel.bars]
    if not shown:
        raise ValueError("there are no bars")
    rows = max(len(panel.bars) for panel in shown)
    columns = min(COLUMNS, len(shown))

    def height(beside: int) -> float:
        return 0.6 + (0.5 + ROW * rows) * -(-len(shown) // beside)

    def paint(figure: Figure) -> None:
        beside = 1 if is_narrow(figure) else columns
        shape = -(-len(shown) // beside), beside
        axes = list(figure.subplots(*shape, sharex=True, squeeze=False).flat)
        for one, panel in zip(axes, shown, strict=False):
            _panel(one, panel)
        axes[0].set_xlim(0, 1.15 * _highest(shown))
        for empty in axes[len(shown) :]:
            empty.set_axis_off()
        for lowest in axes[max(0, len(shown) - beside) : len(shown)]:
            lowest.set_xlabel(quantity)
            lowest.tick_params(labelbottom=True)

    return drawn(
        kind,
        title,
        paint,
        about=about,
        height=height(columns),
        width=5.4 if columns == 1 else 7.0,
        narrow_height=height(1),
    )


def _panel(axes: Axes, panel: Panel) -> None:
    places = range(len(panel.bars))
    made = axes.barh(
        places,
        [bar.value if math.isfinite(bar.value) else 0.0 for bar in panel.bars],
        color=[BLUE if bar.stands_out else GREY for bar in panel.bars],
        height=0.7,
    )
    for patch, bar in zip(made, panel.bars, strict=True):
        patch.set_gid(f"bar-{panel.name}-{bar.name}")
    axes.bar_label(made, [bar.label for bar in panel.bars], fontsize=8, padding=2)
    if panel.line is not None:
        axes.axvline(
            panel.line, color=ORANGE, linewidth=1.8, linestyle="--", gid=f"line-{panel.name}"
        )
    axes.set_title(panel.title, loc="left", fontsize=8.5)
    axes.set_yticks(places, [bar.name for bar in panel.bars])
    axes.set_ylim(len(panel.bars) - 0.4, -0.6)
    axes.axvline(0, color=INK, linewidth=0.8)
    axes.tick_params(axis="y", length=0)
    faint_grid(axes, "x")


def _highest(shown: Sequence[Panel]) -> float:
    """Of all bars and lines, which the axis has to hold."""
    values = [bar.value for panel in shown for bar in panel.bars]
    values += [panel.line for panel in shown if panel.line is not None]
    return max((value for value in values if math.isfinite(value)), default=1.0) or 1.0
