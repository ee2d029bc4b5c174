"""The pipeline as a block diagram: the stages, and what each hands on to the next."""

from collections.abc import Sequence
from textwrap import fill

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from intop.document.axes import is_narrow, legend_below
from intop.document.drawing import BLUE, GREY, INK, Drawing, drawn
from intop.report.findings import Step, StepKind

STYLES: dict[StepKind, tuple[str, str]] = {
    "measured": (BLUE, "-"),
    "computed": (GREY, "-"),
    "measured, not in the paper": (BLUE, "--"),
}
"""Colour and line of a stage's box."""


KEY = (
    "static requests (slt): SRP, SDS, STM",
    "dynamic requests (dlt): DRP, DDS, DTM",
    "RP: parameters, DS: trials, TM: models",
)
"""Meaning of the names on the arrows."""
WIDE, NARROW = (8.8, 2.1), 5.6
"""Width and height of the wide form, and height of the narrow one, in inches."""
GAP = 0.6
"""The space between two boxes of the wide form, in widths of a box."""
BOX = 0.6
"""The height of a box of the narrow form, whose rows are 1 high."""


def pipeline(steps: Sequence[Step]) -> Drawing:
    """The steps from left to right, or from top to bottom where that is narrow."""

    def paint(figure: Figure) -> None:
        axes = figure.subplots()
        axes.set_axis_off()
        (_down if is_narrow(figure) else _across)(axes, steps)
        legend_below(figure, axes)

    return drawn(
        "pipeline",
        "from a hundred parameters to the few that help",
        paint,
        about="intop",
        width=WIDE[0],
        height=WIDE[1],
        narrow_height=NARROW,
    )


def _across(axes: Axes, steps: Sequence[Step]) -> None:
    labelled: set[StepKind] = set()
    for place, step in enumerate(steps):
        left = place * (1 + GAP)
        _box(axes, step, (left, 0), (1, 1), labelled)
        axes.text(left + 0.5, -0.2, fill(step.does, 15), ha="center", va="top", fontsize=7.5)
        if step.hands_on:
            middle, right = left + 1 + GAP / 2, left + 1 + GAP
            _arrow(axes, (left + 1, 0.5), (right, 0.5))
            for word, y, va in zip(step.hands_on, (0.58, 0.4), ("bottom", "top"), strict=False):
                axes.text(middle, y, word, ha="center", va=va, fontsize=7.5)
    axes.text(0, 1.35, "   ".join(KEY), fontsize=7.5)
    axes.set_xlim(-0.05, len(steps) * (1 + GAP) - GAP + 0.05)
    axes.set_ylim(-1.4, 1.6)


def _down(axes: Axes, steps: Sequence[Step]) -> None:
    labelled: set[StepKind] = set()
    for place, step in enumerate(steps):
        _box(axes, step, (0, place), (1, BOX), labelled)
        axes.text(1.12, place + BOX / 2, step.does, va="center", fontsize=8)
        if step.hands_on:
            _arrow(axes, (0.5, place + BOX), (0.5, place + 1))
            words = ", ".join(step.hands_on)
            axes.text(0.58, place + (1 + BOX) / 2, words, va="center", fontsize=8)
    axes.text(0, len(steps) - 0.25, "\n".join(KEY), va="top", fontsize=8)
    axes.set_xlim(-0.03, 3.6)
    axes.set_ylim(len(steps) + 0.6, -0.05)


def _box(
    axes: Axes,
    step: Step,
    corner: tuple[float, float],
    size: tuple[float, float],
    labelled: set[StepKind],
) -> None:
    """The stage's name in a box; the first of each kind has the entry of the legend."""
    colour, line = STYLES[step.kind]
    axes.add_patch(
        Rectangle(
            corner,
            *size,
            facecolor="none",
            edgecolor=colour,
            linestyle=line,
            linewidth=1.6,
            label=None if step.kind in labelled else step.kind,
            gid=f"stage-{step.command}",
        )
    )
    labelled.add(step.kind)
    x, y = (start + length / 2 for start, length in zip(corner, size, strict=True))
    axes.text(x, y, step.command, ha="center", va="center", fontsize=9, fontweight="bold")


def _arrow(axes: Axes, start: tuple[float, float], end: tuple[float, float]) -> None:
    axes.annotate(
        "",
        end,
        start,
        arrowprops={
            "arrowstyle": "-|>",
            "color": INK,
            "linewidth": 0.9,
            "shrinkA": 0,
            "shrinkB": 0,
        },
    )
