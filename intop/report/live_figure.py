"""A campaign's trials as they come in: their latencies, the default's drift, the best so far."""

from collections.abc import Sequence
from itertools import accumulate

from matplotlib.figure import Figure

from intop.document.axes import faint_grid, legend_below, plain_ticks
from intop.document.drawing import BLUE, GREY, ORANGE, Drawing, NoDataError, drawn
from intop.domain.campaign_status import Place

HEIGHT = 2.8


def trials_so_far(about: str, places: Sequence[Place]) -> Drawing:
    """Draw the measured places in their order. Raises NoDataError where there are none."""
    measured = [(n, p) for n, p in enumerate(places, start=1) if p.status is not None]
    usable = [(n, p) for n, p in measured if p.usable]
    if not usable:
        raise NoDataError("no trial is usable yet")
    candidates = [
        (n, p.judged_ms) for n, p in usable if p.judged_ms and not p.configuration.is_default
    ]
    default = [(n, p.judged_ms) for n, p in usable if p.judged_ms and p.configuration.is_default]
    lost = [n for n, p in measured if not p.usable]

    def paint(figure: Figure) -> None:
        axes = figure.subplots()
        if candidates:
            numbers, latencies = zip(*candidates, strict=True)
            best = list(accumulate(latencies, min))
            axes.plot(numbers, latencies, ".", color=GREY, label="configurations")
            axes.step(numbers, best, where="post", color=ORANGE, label="lowest so far")
        if default:
            axes.plot(*zip(*default, strict=True), "o", color=BLUE, ms=4, label="default")
        axes.set_yscale("log")
        if lost:
            top = axes.get_ylim()[1]
            axes.plot(lost, [top] * len(lost), "x", color=GREY, label="failed or disturbed")
        plain_ticks(axes.yaxis, axes.get_ylim())
        axes.set_xlim(0, len(places) + 1)
        axes.set_xlabel("trial, of all that are planned so far")
        axes.set_ylabel("judged latency in ms")
        faint_grid(axes, "y")
        legend_below(figure, axes)

    return drawn("trials-so-far", "trials so far", paint, about=about, height=HEIGHT)
