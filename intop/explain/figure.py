"""An explanation drawn: what each change does, and how latency hangs on those that are kept."""

import math
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from intop.document.axes import (
    ROW_HALF,
    error_bars,
    faint_grid,
    is_narrow,
    legend_below,
    name_rows,
    panels,
    plain_ticks,
    row_line,
)
from intop.document.drawing import BLUE, GREY, INK, ORANGE, Drawing, NoDataError, drawn
from intop.domain.explanation import Dependence, Explanation, Point
from intop.words import percent

ROW, NARROW_ROW = 0.34, 0.5
"""The height of a change's row, in inches."""
BAR = 2 * ROW_HALF / 3
PANEL = 2.3
MOST_PANELS = 6


def contributions(about: str, explanation: Explanation) -> Drawing:
    """Return the measured ratios of each change with intervals; above 1 it helps."""
    shown = [c for c in explanation.contributions if c.is_kept or c.alone or c.left_out or c.missed]

    def paint(figure: Figure) -> None:
        axes = figure.subplots()
        for shift, colour, label, ratios in (
            (-BAR, BLUE, "left out of the winner", [c.left_out for c in shown]),
            (0.0, ORANGE, "alone", [c.alone for c in shown]),
            (BAR, GREY, "left out of the smallest set", [c.missed for c in shown]),
        ):
            bars = [(n + shift, r) for n, r in enumerate(ratios) if r is not None]
            if not bars:
                continue
            axes.barh(
                [place for place, _ in bars],
                [r.value - 1 for _, r in bars],
                left=1,
                xerr=error_bars([r for _, r in bars]),
                color=colour,
                height=BAR,
                label=label,
                error_kw={"elinewidth": 0.9, "capsize": 1.5, "ecolor": INK},
            )
        axes.set_xscale("log")
        plain_ticks(axes.xaxis, axes.get_xlim())
        row_line(axes, 1, len(shown))
        names = [f"{c.name} (kept)" if c.is_kept else c.name for c in shown]
        name_rows(axes, names)
        faint_grid(axes, "x")
        judged_by, level = explanation.verdict.judged_by, explanation.level
        axes.set_xlabel(f"ratio of {judged_by}, above 1 it helps, with {percent(level)} intervals")
        legend_below(figure, axes)

    return drawn(
        "contributions",
        "what each change does (measured)",
        paint,
        about=about,
        height=1.2 + ROW * len(shown),
        narrow_height=1.0 + NARROW_ROW * len(shown),
    )


def dependence(about: str, explanation: Explanation) -> Drawing:
    """Predicted lines along each kept number or choice about the winner, and measured marks.

    Raises NoDataError where there are no curves.
    """
    if not explanation.curves:
        raise NoDataError("there are no curves")
    shown = explanation.curves[:MOST_PANELS]
    columns = min(2, len(shown))
    rows = -(-len(shown) // columns)
    judged_by = explanation.verdict.judged_by

    def paint(figure: Figure) -> None:
        axes = panels(figure, len(shown), 1 if is_narrow(figure) else columns)
        for panel, curve in zip(axes, shown, strict=True):
            _panel(panel, curve, judged_by)
        legend_below(figure, axes[0])

    return drawn(
        "dependence",
        f"{judged_by} about the winner: lines are predicted, marks are measured",
        paint,
        about=about,
        height=1.4 + PANEL * rows,
        narrow_height=0.9 + PANEL * len(shown),
    )


def _panel(axes: Axes, curve: Dependence, judged_by: str) -> None:
    if curve.scale == "choice":
        names = [str(point.value) for point in curve.predicted]
        axes.set_xticks(range(len(names)), names)
    else:
        names = []
        if curve.scale == "log" and all(float(p.value) > 0 for p in curve.predicted):
            axes.set_xscale("log")
            plain_ticks(axes.xaxis, [float(p.value) for p in curve.predicted])
    marks: tuple[tuple[Sequence[Point], str, str, float, str], ...] = (
        (curve.elsewhere, "o", GREY, 0.5, "collected, all else differs (measured)"),
        (curve.measured, "D", ORANGE, 0.9, "winner, with and without (measured)"),
    )
    for points, mark, colour, alpha, label in marks:
        axes.plot(
            _places(points, names),
            [p.judged_ms for p in points],
            mark,
            color=colour,
            alpha=alpha,
            markersize=3.5,
            label=label,
        )
    axes.plot(
        _places(curve.predicted, names),
        [p.judged_ms for p in curve.predicted],
        "--" if names else "-",
        color=BLUE,
        linewidth=1.3,
        label="models about the winner (predicted)",
    )
    axes.set_yscale("log")
    plain_ticks(axes.yaxis, axes.get_ylim())
    faint_grid(axes)
    axes.set_title(curve.name)
    axes.set_ylabel(f"{judged_by} in ms")


def _places(points: Sequence[Point], names: Sequence[str]) -> list[float]:
    """Return the places of points; one that is no choice any more has none."""
    if not names:
        return [float(p.value) for p in points]
    return [float(names.index(str(p.value))) if p.value in names else math.nan for p in points]
