"""The error of the models, by family and by what they are models of."""

import math
from collections.abc import Mapping

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from intop.domain.results import Training
from intop.report.figures.drawing import (
    BLUE,
    GREY,
    INK,
    ORANGE,
    Drawing,
    drawn,
    faint_grid,
    is_narrow,
)

COLUMNS = 2
ROW = 0.21
"""The height of a family's row, in inches."""


def errors(about: str, trainings: Mapping[str, Training]) -> Drawing:
    """A panel for each training by its title, such as `x86 slt`: MAPE, and what limits it.

    All panels share their axis, which begins at 0. The family that is best stands out. Raises
    ValueError where no training has errors.
    """
    shown = {title: training for title, training in trainings.items() if training.errors}
    if not shown:
        raise ValueError("no training has errors")
    rows = max(len(training.errors) for training in shown.values())
    columns = min(COLUMNS, len(shown))

    def height(beside: int) -> float:
        return 0.6 + (0.5 + ROW * rows) * -(-len(shown) // beside)

    def paint(figure: Figure) -> None:
        beside = 1 if is_narrow(figure) else columns
        shape = -(-len(shown) // beside), beside
        panels = list(figure.subplots(*shape, sharex=True, squeeze=False).flat)
        for panel, (title, training) in zip(panels, shown.items(), strict=False):
            _panel(panel, title, training)
        panels[0].set_xlim(0, 1.15 * _highest(shown))
        for empty in panels[len(shown) :]:
            empty.set_axis_off()
        for lowest in panels[max(0, len(shown) - beside) : len(shown)]:
            lowest.set_xlabel("MAPE of configurations not seen, in %")
            lowest.tick_params(labelbottom=True)

    return drawn(
        "errors",
        "error of the models by family",
        paint,
        about=about,
        height=height(columns),
        width=5.4 if columns == 1 else 7.0,
        narrow_height=height(1),
    )


def _panel(axes: Axes, title: str, training: Training) -> None:
    families = training.errors
    bars = axes.barh(
        range(len(families)),
        [error.mape if math.isfinite(error.mape) else 0.0 for error in families],
        color=[BLUE if error.family == training.best else GREY for error in families],
        height=0.7,
    )
    for bar, error in zip(bars, families, strict=True):
        bar.set_gid(f"bar-{title}-{error.family}")
    axes.bar_label(
        bars,
        [f"{e.mape:.0f} %" if math.isfinite(e.mape) else "without bounds" for e in families],
        fontsize=8,
        padding=2,
    )
    heading = title
    if training.ceiling is not None:
        axes.axvline(
            training.ceiling.mape,
            color=ORANGE,
            linewidth=1.8,
            linestyle="--",
            gid=f"ceiling-{title}",
        )
        heading += f": a perfect model has {training.ceiling.mape:.0f} % (dashed)"
    axes.set_title(heading, loc="left", fontsize=8.5)
    axes.set_yticks(range(len(families)), [error.family for error in families])
    axes.set_ylim(len(families) - 0.4, -0.6)
    axes.axvline(0, color=INK, linewidth=0.8)
    axes.tick_params(axis="y", length=0)
    faint_grid(axes, "x")


def _highest(shown: Mapping[str, Training]) -> float:
    """Of all errors and ceilings, which the axis has to hold."""
    mapes = [error.mape for training in shown.values() for error in training.errors]
    mapes += [training.ceiling.mape for training in shown.values() if training.ceiling]
    return max((mape for mape in mapes if math.isfinite(mape)), default=1.0) or 1.0
