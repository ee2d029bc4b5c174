"""Convergence of a search: the best prediction by generation, model by model."""

from itertools import cycle

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from intop.domain.search import Search
from intop.report.figures.axes import faint_grid, legend_below, plain_ticks
from intop.report.figures.drawing import BLUE, GREY, INK, ORANGE, Drawing, drawn

STROKES = ((BLUE, "-"), (ORANGE, "-"), (BLUE, "--"), (ORANGE, "--"), (GREY, "-"), (GREY, "--"))
TOGETHER = "ensemble"
"""The search that the candidates are of; its line is the thickest."""


def convergence(about: str, found: Search) -> Drawing:
    """The best prediction after each generation, with a mark where it improved no more.

    Raises ValueError where nothing was searched.
    """
    if not found.convergences:
        raise ValueError("the search has no generations")
    values = [value for run in found.convergences for value in run.best_ms]

    def paint(figure: Figure) -> None:
        axes = figure.subplots()
        strokes = cycle(STROKES)
        for run in found.convergences:
            together = run.model == TOGETHER
            colour, line = (INK, "-") if together else next(strokes)
            axes.plot(
                range(len(run.best_ms)),
                run.best_ms,
                color=colour,
                linestyle=line,
                linewidth=2.0 if together else 1.3,
                drawstyle="steps-post",
                marker="o",
                markersize=5,
                markevery=[run.converged_at],
                label=f"{run.model}: {run.converged_at}, {run.seconds:.1f} s",
                gid=f"run-{run.model}",
            )
        axes.set_yscale("log")
        plain_ticks(axes.yaxis, values)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set_xlabel("generation")
        axes.set_ylabel(f"best predicted {found.quantity} in ms")
        faint_grid(axes)
        legend_below(figure, axes, "converged after the marked generation; time in all")

    return drawn("convergence", "convergence of the search", paint, about=about, height=4.0)
