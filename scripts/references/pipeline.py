"""The pipeline as a block diagram: the stages, and what each hands on to the next."""

from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import fill
from typing import Literal

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from intop.document.axes import legend_below
from intop.document.drawing import BLUE, GREY, INK, Drawing, drawn
from intop.run import registry

StepKind = Literal["measured", "computed", "measured, not in the paper"]


@dataclass(frozen=True, kw_only=True)
class Step:
    """A step of the pipeline: the command that carries it out, and what it does."""

    command: str
    does: str
    kind: StepKind
    hands_on: tuple[str, ...] = ()
    """The paper's names of its result, for static and dynamic requests where they differ."""


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
WIDTH, HEIGHT = 8.8, 2.1
"""Inches."""
GAP = 0.6
"""The space between two boxes, in widths of a box."""


def steps() -> tuple[Step, ...]:
    """Return a step for each command of `tune`. Where stages share one, the last describes it."""
    by_command: dict[str, Step] = {}
    for stage in registry.in_tune():
        by_command[stage.command] = Step(
            command=stage.command,
            does=stage.description,
            kind="computed"
            if not stage.measures
            else "measured"
            if stage.is_of_the_paper
            else "measured, not in the paper",
            hands_on=stage.hands_on,
        )
    return tuple(by_command.values())


def pipeline(steps: Sequence[Step]) -> Drawing:
    """Return the steps from left to right."""

    def paint(figure: Figure) -> None:
        axes = figure.subplots()
        axes.set_axis_off()
        _across(axes, steps)
        legend_below(figure, axes)

    return drawn(
        "pipeline",
        "from a hundred parameters to the few that help",
        paint,
        about="intop",
        width=WIDTH,
        height=HEIGHT,
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
