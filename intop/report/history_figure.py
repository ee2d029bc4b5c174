"""Latency of both sides by campaign, as a figure."""

from collections.abc import Sequence
from itertools import pairwise

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from intop.document.axes import (
    error_bars,
    faint_grid,
    legend_below,
    plain_ticks,
)
from intop.document.drawing import BLUE, GREY, ORANGE, Drawing, drawn
from intop.domain.stats import Interval
from intop.report.history_result import History
from intop.words import percent

HISTORY_HEIGHT = 3.4
MOST_TICKS = 10


def history(about: str, history: History) -> Drawing:
    """Draw both configurations with intervals, and a vertical line where conditions changed.

    Where the load changed, no line leads on.
    """
    starts = [n for n, step in enumerate(history.steps, start=1) if step.incomparable]
    loads = [range(*ends) for ends in pairwise((0, *starts, len(history.moments)))]

    def paint(figure: Figure) -> None:
        axes = figure.subplots()
        for name, colour, mark, shift, latencies in (
            ("default", ORANGE, "s", -0.06, [m.default for m in history.moments]),
            ("tuned", BLUE, "o", 0.06, [m.tuned for m in history.moments]),
        ):
            placed = [
                (n, latency.mean_ms) for n, latency in enumerate(latencies) if latency is not None
            ]
            parts = [[p for p in placed if p[0] in part] for part in loads]
            for number, part in enumerate(filter(None, parts)):
                _series(axes, None if number else name, colour, mark, shift, part)
        _lines(axes, "not comparable", "--", [n - 0.5 for n in starts])
        changed_steps = [n for n, s in enumerate(history.steps) if s.changed and not s.incomparable]
        _lines(axes, "other conditions", ":", [n + 0.5 for n in changed_steps])
        axes.set_yscale("log")
        plain_ticks(axes.yaxis, axes.get_ylim())
        every = -(-len(history.moments) // MOST_TICKS)
        shown = list(enumerate(history.moments))[::every]
        axes.set_xticks(
            [place for place, _ in shown], [f"{m.campaign}\n{m.started_at[:10]}" for _, m in shown]
        )
        axes.set_xlim(-0.5, len(history.moments) - 0.5)
        axes.set_xlabel("campaign")
        axes.set_ylabel(f"{history.judged_by} in ms, {percent(history.level)} intervals")
        faint_grid(axes, "y")
        legend_below(figure, axes)

    return drawn(
        "over-time",
        f"{history.judged_by} by campaign",
        paint,
        about=about,
        height=HISTORY_HEIGHT,
    )


def _lines(axes: Axes, name: str, style: str, places: Sequence[float]) -> None:
    for place in places:
        label = name if place == places[0] else None
        axes.axvline(place, color=GREY, linestyle=style, linewidth=1, label=label)


def _series(
    axes: Axes,
    name: str | None,
    colour: str,
    mark: str,
    shift: float,
    placed: Sequence[tuple[int, Interval]],
) -> None:
    axes.errorbar(
        [place + shift for place, _ in placed],
        [mean.value for _, mean in placed],
        yerr=error_bars([mean for _, mean in placed]),
        fmt=f"{mark}-",
        color=colour,
        markersize=5,
        linewidth=0.8,
        elinewidth=1.4,
        capsize=2.5,
        label=name,
    )
