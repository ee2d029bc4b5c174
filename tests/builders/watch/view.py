"""The result of a watch as a document and as a figure."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from builders.watch.stage import Watched
from intop.document.columns import Column
from intop.document.drawing import Drawing, drawn
from intop.document.model import Section, tabled


def watched(title: str, watched: Watched) -> Section:
    """Return a row for each trial."""
    columns = (Column("trial"), Column("P99 ms"))
    return tabled(f"{title}: watched", columns, list(enumerate(watched.judged_ms)), [])


def figure(about: str, watched: Watched) -> Drawing:
    """Return P99 by trial."""

    def paint(figure: Figure) -> None:
        axes: Axes = figure.subplots()
        axes.plot(watched.judged_ms)

    return drawn("watch", "P99 by trial", paint, about=about, height=3.0)
