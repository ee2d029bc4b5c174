"""A trend: P99 of the default and of the winner, campaign by campaign."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from intop.domain.comparison import Latency
from intop.domain.trend import Trend
from intop.report.figures.axes import faint_grid, legend_below, plain_ticks
from intop.report.figures.colours import BLUE, GREY, ORANGE
from intop.report.figures.drawing import Drawing, drawn

HEIGHT, NARROW_HEIGHT = 3.4, 3.4
MOST_TICKS = 10


def over_time(about: str, found: Trend) -> Drawing:
    """Both configurations with intervals, and a dotted line where conditions changed before one."""

    def paint(figure: Figure) -> None:
        axes = figure.subplots()
        for name, colour, mark, shift, latencies in (
            ("default", ORANGE, "s", -0.06, [m.default for m in found.moments]),
            ("tuned", BLUE, "o", 0.06, [m.tuned for m in found.moments]),
        ):
            _series(axes, name, colour, mark, shift, latencies)
        changed = [n for n, s in enumerate(found.steps) if s.changed or s.incomparable]
        for place in changed:
            label = "conditions changed" if place == changed[0] else None
            axes.axvline(place + 0.5, color=GREY, linestyle=":", label=label, gid="changed")
        axes.set_yscale("log")
        plain_ticks(axes.yaxis, axes.get_ylim())
        every = -(-len(found.moments) // MOST_TICKS)
        shown = list(enumerate(found.moments))[::every]
        axes.set_xticks(
            [place for place, _ in shown], [f"{m.campaign}\n{m.started_at[:10]}" for _, m in shown]
        )
        axes.set_xlim(-0.5, len(found.moments) - 0.5)
        axes.set_xlabel("campaign")
        axes.set_ylabel(f"P99 in ms, {found.level:.0%} intervals")
        faint_grid(axes, "y")
        legend_below(figure, axes)

    return drawn(
        "over-time",
        "P99 by campaign",
        paint,
        about=about,
        height=HEIGHT,
        narrow_height=NARROW_HEIGHT,
    )


def _series(
    axes: Axes, name: str, colour: str, mark: str, shift: float, latencies: Sequence[Latency | None]
) -> None:
    placed = [(n + shift, one.mean_ms) for n, one in enumerate(latencies) if one is not None]
    if not placed:
        return
    axes.errorbar(
        [place for place, _ in placed],
        [mean.mean for _, mean in placed],
        yerr=[
            [mean.mean - mean.low for _, mean in placed],
            [mean.high - mean.mean for _, mean in placed],
        ],
        fmt=f"{mark}-",
        color=colour,
        markersize=5,
        linewidth=0.8,
        elinewidth=1.4,
        capsize=2.5,
        label=name,
    )[0].set_gid(f"dots-{name}")
