"""What all figures have in common: how they look, and how they become SVG or PNG.

The same values give the same bytes. Text in an SVG is text, in the colour of what stands around
it: dark on light, and light on dark where the reader's screen is.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from pathlib import Path

import matplotlib as mpl
from matplotlib import style
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import XAxis, YAxis
from matplotlib.figure import Figure
from matplotlib.rcsetup import cycler
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter, NullLocator

from intop.errors import IntopError
from intop.report.plain import inert

INK = "#24292f"
"""Of text, axes and lines of reference. No other colour is as dark."""
LIGHT_INK = "#e6edf3"
BLUE = "#2a83c6"
ORANGE = "#d4660a"
GREY = "#85898f"
"""Blue, orange and grey are told apart with any colour vision, on white and on black."""
GRID = "#25292f"
"""Of the lines of a grid, which are faint ink: what stands in a page may colour them otherwise."""
PAGE_WIDTH = 7.0
"""In inches: the text of a page, on which letters then have their size in points."""
NARROW_WIDTH = 4.2
"""In inches: letters of 9 points are still read where that is as wide as a phone."""
ROW_HALF = 0.3
"""Half the height of what stands in a row; between the rows their names find room."""
FEW_TICKS, MANY_TICKS = 5.0, {"x": 100.0, "y": 1000.0}
"""Ratios of the ends of a logarithmic axis with too few round numbers in it, and with too many."""
DOTS_PER_INCH = 160

_STYLE = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "Verdana", "sans-serif"],
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.titleweight": "bold",
    "axes.labelsize": 9,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.prop_cycle": cycler(color=(BLUE, ORANGE, GREY)),  # also inside of bars' caps
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
    "svg.fonttype": "none",
    "text.parse_math": False,  # the columns of a table may be called by any sign
    **dict.fromkeys(
        ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), INK
    ),
}


@dataclass(frozen=True)
class Drawing:
    """A figure. Its `name` is what a file is called, and unique in a document of several.

    `paint` puts what it shows on a figure, whose width it goes by where that is narrow. `width`
    and `height` are in inches, and so is `narrow_height`, that of the narrow form.
    """

    name: str
    title: str
    paint: Callable[[Figure], None]
    width: float
    height: float
    narrow_height: float

    @cached_property
    def figure(self) -> Figure:
        """As it stands in a file, under its title."""
        return self._painted(self.width, self.height, heading=True)

    @cached_property
    def narrow(self) -> Figure:
        """For a screen as narrow as a phone's. Without its title, which the page has in words."""
        return self._painted(NARROW_WIDTH, self.narrow_height, heading=False)

    def svg(self) -> str:
        """SVG, which may stand in a file or be put into an HTML document as it is."""
        name = f"figure-{self.name}"
        metadata = {"Title": self.title, "Creator": "intop", "Date": None}
        # Without the XML prolog, which has no place in HTML, and which a file can do without.
        _, element, content = written_svg(self.figure, name, metadata).partition("<svg")
        # The rules hold for all of a document that it is put into, so they name what they are for.
        rules = (
            f"#{name}{{color:{INK}}}"
            f"@media(prefers-color-scheme:dark){{#{name}{{color:{LIGHT_INK}}}}}"
            f"#{name} *{{"
        )
        content = content.replace('<g id="', f'<g id="{name}-')
        for ink in (INK, GRID):
            content = content.replace(ink, "currentColor")
        return element + content.replace(">*{", f">{rules}", 1)

    def png(self) -> bytes:
        """PNG on white, since it can't know where it will stand."""
        written = BytesIO()
        with _style():
            self.figure.savefig(
                written,
                format="png",
                dpi=DOTS_PER_INCH,
                facecolor="white",
                metadata={"Title": self.title, "Software": None},
            )
        return written.getvalue()

    def write(self, path: Path) -> None:
        """Write a file: PNG where its name ends so, else SVG. Raises IntopError."""
        made = self.png() if path.suffix == ".png" else self.svg().encode()
        try:
            path.write_bytes(made)
        except OSError as error:
            raise IntopError(f"the figure can't be written: {error}") from error

    def _painted(self, width: float, height: float, *, heading: bool) -> Figure:
        with _style():
            figure = Figure(figsize=(width, height), layout="constrained")
            if heading:
                figure.suptitle(self.title, fontsize=10)
            self.paint(figure)
        return figure


def drawn(
    kind: str,
    title: str,
    paint: Callable[[Figure], None],
    *,
    about: str,
    height: float,
    width: float = PAGE_WIDTH,
    narrow_height: float | None = None,
) -> Drawing:
    """A drawing of `width` and `height` in inches, on which `paint` puts what it shows.

    `about` says what of, such as `x86 slt`; with `kind` it makes the name.
    """
    return Drawing(
        name=re.sub(r"[^a-z0-9]+", "-", f"{about} {kind}".lower()).strip("-"),
        title=inert(f"{about}: {title}"),
        paint=paint,
        width=width,
        height=height,
        narrow_height=height if narrow_height is None else narrow_height,
    )


def written_svg(figure: Figure, name: str, metadata: dict[str, str | None]) -> str:
    """SVG as matplotlib writes it, in the colours that were drawn with."""
    written = BytesIO()
    # Ids that hang on the content only, and on the name: documents have several figures.
    with _style(), mpl.rc_context({"svg.id": name, "svg.hashsalt": name}):
        figure.savefig(written, format="svg", metadata=metadata)
    return written.getvalue().decode()


def is_narrow(part: Artist) -> bool:
    """Whether a figure, or that of a part of it, has no room for long names beside things."""
    figure = part.get_figure(root=True)
    return figure is not None and bool(figure.get_figwidth() <= NARROW_WIDTH)


def faint_grid(axes: Axes, which: str = "both") -> None:
    """Lines to read values by, along the ticks of "x", "y" or both."""
    axes.grid(axis=which, color=GRID, alpha=0.15, linewidth=0.5)  # type: ignore[arg-type]


def legend_below(figure: Figure, axes: Axes, title: str = "") -> None:
    """The legend of some axes under all of them, in as many columns as there is room for."""
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(
        handles,
        labels,
        title=title or None,
        title_fontsize=8,
        loc="outside lower center",
        ncols=_columns(labels, figure.get_figwidth()),
    )


def plain_ticks(axis: XAxis | YAxis, values: Sequence[float]) -> None:
    """Numbers at round places of a logarithmic axis that shows these values, not powers."""
    reach = max(values) / min(values)
    if reach < FEW_TICKS:
        axis.set_major_locator(MaxNLocator(6, steps=[1, 2, 2.5, 5, 10]))
    else:
        most = MANY_TICKS[axis.axis_name]
        axis.set_major_locator(LogLocator(subs=(1, 2, 5) if reach < most else (1,)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}".replace("e+0", "e")))
    axis.set_minor_locator(NullLocator())
    axis.set_minor_formatter(NullFormatter())


def name_rows(axes: Axes, names: Sequence[str]) -> None:
    """Name the rows 0, 1, 2 ... from the top: beside them, or above each where that is narrow.

    What stands in a row reaches `ROW_HALF` up and down.
    """
    axes.tick_params(axis="y", length=0)
    if not is_narrow(axes):
        axes.set_yticks(range(len(names)), names)
        axes.set_ylim(len(names) - 0.4, -0.6)
        return
    axes.set_yticks([])
    axes.set_ylim(len(names) - 0.4, -1.0)
    for place, name in enumerate(names):
        axes.text(
            0.01,
            place - ROW_HALF - 0.02,
            name,
            transform=axes.get_yaxis_transform(),
            va="bottom",
            fontsize=8,
        )


def row_line(axes: Axes, value: float, rows: int) -> None:
    """A line of reference through so many rows, with gaps where their names stand between them."""
    if not is_narrow(axes):
        axes.axvline(value, color=INK, linewidth=0.8)
        return
    low, high = ([row + away for row in range(rows)] for away in (-ROW_HALF, ROW_HALF))
    axes.vlines([value] * rows, low, high, color=INK, linewidth=0.8)


def _columns(labels: Sequence[str], width: float) -> int:
    """How many columns of a legend fit a width in inches, by a letter's usual width."""
    entries = [0.55 + 0.07 * len(label) for label in labels]
    for columns in range(len(labels), 1, -1):
        rows = -(-len(labels) // columns)
        if sum(max(entries[n : n + rows]) for n in range(0, len(entries), rows)) <= width:
            return columns
    return 1


@contextmanager
def _style() -> Iterator[None]:
    """Our own look, whatever a user's matplotlibrc says, and theirs again afterwards."""
    with style.context(["default", _STYLE]):
        yield
