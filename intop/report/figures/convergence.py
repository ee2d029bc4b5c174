"""Convergence of a search: the best prediction by generation, model by model."""

from itertools import cycle

from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter, NullLocator

from intop.domain.results import Search
from intop.report.figures.drawing import BLUE, GREY, INK, ORANGE, Drawing, drawn, faint_grid

STROKES = ((BLUE, "-"), (ORANGE, "-"), (BLUE, "--"), (ORANGE, "--"), (GREY, "-"), (GREY, "--"))
TOGETHER = "ensemble"
"""The search that the candidates are of; its line is the thickest."""
NARROW = 5.0
"""A range of less than that has too few round numbers of a logarithmic scale in it."""


def convergence(about: str, found: Search) -> Drawing:
    """The best predicted P99 after each generation, with a mark where it improved no more.

    Raises ValueError where nothing was searched.
    """
    if not found.convergences:
        raise ValueError("the search has no generations")
    values = [value for run in found.convergences for value in run.best_ms]
    narrow = max(values) / min(values) < NARROW
    unit = "P99" if found.objective == "p99" else "P99 equivalent"

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
        axes.yaxis.set_major_locator(MaxNLocator(5) if narrow else LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.yaxis.set_minor_locator(NullLocator())
        axes.yaxis.set_minor_formatter(NullFormatter())
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set_xlabel("generation")
        axes.set_ylabel(f"best predicted {unit} in ms")
        faint_grid(axes)
        handles, labels = axes.get_legend_handles_labels()
        figure.legend(
            handles,
            labels,
            title="converged after the marked generation; time of the whole search",
            title_fontsize=8,
            loc="outside lower center",
            ncols=3,
        )

    return drawn("convergence", "convergence of the search", paint, about=about, height=4.0)
