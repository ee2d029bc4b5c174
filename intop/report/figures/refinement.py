"""Refinement: the best known P99 by the number of measurements."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from intop.domain.refined import Refined
from intop.report.figures.axes import faint_grid
from intop.report.figures.drawing import BLUE, GREY, ORANGE, Drawing, drawn

HEIGHT = 3.2


def refinement(about: str, found: Refined) -> Drawing:
    """Best known P99 after the first design and after each step, beside the default's.

    Raises ValueError for a refinement without a step.
    """
    if not found.steps:
        raise ValueError("the refinement has no steps")
    counts = [found.collected, *(found.collected + step.spent for step in found.steps)]
    best = [found.before.p99_ms, *(step.best.p99_ms for step in found.steps)]

    def paint(figure: Figure) -> None:
        axes: Axes = figure.subplots()
        axes.step(
            counts,
            best,
            "o-",
            where="post",
            color=BLUE,
            markersize=3.5,
            label="best known",
            gid="best-known",
        )
        axes.axhline(
            found.default_p99_ms,
            color=ORANGE,
            linewidth=1.3,
            linestyle="--",
            label="default",
            gid="default",
        )
        axes.axvline(
            found.collected,
            color=GREY,
            linewidth=0.8,
            label="end of the first design",
            gid="first-design",
        )
        axes.set_ylim(bottom=0)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        faint_grid(axes, "y")
        axes.set_xlabel("measurements, without those of the default")
        axes.set_ylabel("measured P99 in ms")
        axes.legend()

    return drawn("refinement", "best known P99", paint, about=about, height=HEIGHT)
