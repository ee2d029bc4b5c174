"""The best value so far: by generation of a search, by measurement of a refinement."""

from itertools import cycle

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from intop.document.axes import faint_grid, legend_below, plain_ticks
from intop.document.drawing import BLUE, GREY, INK, ORANGE, Drawing, NoDataError, drawn
from intop.domain.refined import Refined
from intop.domain.search import Search

STROKES = ((BLUE, "-"), (ORANGE, "-"), (BLUE, "--"), (ORANGE, "--"), (GREY, "-"), (GREY, "--"))
TOGETHER = "ensemble"
"""The search that the candidates are of; its line is the thickest."""
HEIGHT = 3.2


def convergence(about: str, search: Search) -> Drawing:
    """The best prediction after each generation, with a mark where it improved no more.

    Raises NoDataError where nothing was searched.
    """
    if not search.convergences:
        raise NoDataError("the search has no generations")
    values = [value for run in search.convergences for value in run.best_ms]

    def paint(figure: Figure) -> None:
        axes = figure.subplots()
        strokes = cycle(STROKES)
        for run in search.convergences:
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
        axes.set_ylabel(f"best predicted {search.quantity} in ms")
        faint_grid(axes)
        legend_below(figure, axes, "converged after the marked generation; time in all")

    return drawn("convergence", "convergence of the search", paint, about=about, height=4.0)


def refinement(about: str, refined: Refined) -> Drawing:
    """Best known latency after the first design and after each step, beside the default's.

    Raises NoDataError for a refinement without a step.
    """
    if not refined.steps:
        raise NoDataError("the refinement has no steps")
    counts = [refined.collected, *(refined.collected + step.spent for step in refined.steps)]
    best = [refined.before.judged_ms, *(step.best.judged_ms for step in refined.steps)]

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
            refined.default_ms,
            color=ORANGE,
            linewidth=1.3,
            linestyle="--",
            label="default",
            gid="default",
        )
        axes.axvline(
            refined.collected,
            color=GREY,
            linewidth=0.8,
            label="end of the first design",
            gid="first-design",
        )
        axes.set_ylim(bottom=0)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        faint_grid(axes, "y")
        axes.set_xlabel("measurements, without those of the default")
        axes.set_ylabel(f"measured {refined.judged_by} in ms")
        axes.legend()

    title = f"best known {refined.judged_by}"
    return drawn("refinement", title, paint, about=about, height=HEIGHT)
