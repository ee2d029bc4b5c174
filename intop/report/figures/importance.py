"""Importance of parameters: one ranking, and the order of two side by side."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from intop.domain.results import Importance, Ranking
from intop.report.figures.drawing import BLUE, GREY, Drawing, drawn, faint_grid

MOST_BARS = 30
ROW = 0.19
"""The height of a parameter's row, in inches."""


def importance(title: str, ranking: Ranking) -> Drawing:
    """The most important parameters, with standard deviations; those that were chosen stand out.

    All chosen ones are shown, and others up to MOST_BARS. Raises ValueError where there are none.
    """
    if not ranking.importances:
        raise ValueError("the ranking has no parameters")
    chosen = set(ranking.chosen)
    count = max(MOST_BARS, len(chosen))
    shown = ranking.importances[:count]
    left = len(ranking.importances) - len(shown)

    def paint(figure: Figure) -> None:
        axes = figure.subplots()
        for name, colour, is_chosen in (("chosen", BLUE, True), ("left out", GREY, False)):
            bars = [(n, i) for n, i in enumerate(shown) if (i.key in chosen) == is_chosen]
            _bars(axes, name, colour, bars)
        axes.set_yticks(range(len(shown)), [i.key for i in shown])
        axes.set_ylim(len(shown) - 0.4, -0.6)
        axes.set_xlim(left=0)
        axes.tick_params(axis="y", length=0)
        faint_grid(axes, "x")
        more = f"; {left} further parameters are below" if left else ""
        axes.set_xlabel(f"importance, with its standard deviation{more}")
        axes.legend(loc="lower right")
        figure.suptitle(f"{title}: importance of parameters ({ranking.trials} trials)", fontsize=10)

    return drawn(f"{title} importance", paint, height=1.2 + ROW * len(shown))


def _bars(axes: Axes, name: str, colour: str, bars: list[tuple[int, Importance]]) -> None:
    if not bars:
        return
    drawn_bars = axes.barh(
        [place for place, _ in bars],
        [item.mean for _, item in bars],
        xerr=[item.sd for _, item in bars],
        color=colour,
        ecolor=GREY if colour == BLUE else BLUE,
        height=0.72,
        label=name,
        error_kw={"elinewidth": 1, "capsize": 1.5},
    )
    for patch in drawn_bars:
        patch.set_gid(f"bar-{name}")
