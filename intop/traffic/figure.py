"""Each path's share of a log and of the load that imitates it."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from intop.document.axes import faint_grid
from intop.document.drawing import BLUE, INK, Drawing, NoDataError, drawn
from intop.traffic.agreement import Agreement


def mixes(about: str, result: Agreement) -> Drawing:
    """Draw a point for each path that both have. Raises NoDataError without any."""
    points = [shares for shares in result.shares.values() if all(shares)]
    if not points:
        raise NoDataError("the log and the load have no path in common")

    def paint(figure: Figure) -> None:
        axes: Axes = figure.subplots()
        edges = 0.7 * min(map(min, points)), 1.4 * max(map(max, points))
        axes.set(xscale="log", yscale="log", xlim=edges, ylim=edges)
        axes.plot(edges, edges, color=INK, linewidth=0.8, gid="equal")
        log, load = zip(*points, strict=True)
        axes.plot(log, load, "o", color=BLUE, markersize=3, markeredgewidth=0, gid="paths")
        axes.set_xlabel("share of the log's requests")
        axes.set_ylabel("share of the load's requests")
        faint_grid(axes)

    return drawn(
        "mixes", "paths of the log and of the load", paint, about=about, height=3.6, width=4.2
    )
