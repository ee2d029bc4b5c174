"""Drawings: the colours of all figures, how they look, and how they become SVG or PNG.

The same values give the same bytes. Text in an SVG is text. Ink takes the colour of the text around
the figure: dark on light, and light on dark where the reader's screen is.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from io import BytesIO
from pathlib import Path

import matplotlib as mpl
from matplotlib import style
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.rcsetup import cycler

from intop.atomic import write_atomically
from intop.errors import IntopError
from intop.words import inert

INK = "#24292f"
"""Colour of text, axes and lines of reference. No other colour is as dark."""
LIGHT_INK = "#e6edf3"
BLUE = "#2a83c6"
ORANGE = "#d4660a"
GREY = "#85898f"
"""Blue, orange and grey differ with any colour vision, on white and on black."""
PAGE_COLOURS = {BLUE: "--series-1", ORANGE: "--series-2", GREY: "--muted"}
"""The HTML page's CSS variable for each colour that is not ink."""

PAGE_WIDTH = 7.0
"""Width of a page's text in inches. On it letters have their size in points."""
NARROW_WIDTH = 4.2
"""Width of a phone in inches, on which letters of 9 points are still read."""
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


class NoDataError(ValueError):
    """A result has nothing that its figure could show."""


@dataclass(frozen=True)
class Drawing:
    """A figure that can become SVG or PNG."""

    name: str
    """Name of its file without the ending; unique in a document of several."""
    title: str
    paint: Callable[[Figure], None]
    """Draws on an empty figure, and goes by that figure's width."""
    width: float
    """Width in a file, in inches."""
    height: float
    narrow_height: float
    """Height of the narrow form, which is `NARROW_WIDTH` wide."""

    def svg(self) -> str:
        """Return the SVG of a file, with its title. It may also be put into HTML as it is."""
        name = f"figure-{self.name}"
        rules = (
            f"#{name}{{color:{INK}}}"
            f"@media(prefers-color-scheme:dark){{#{name}{{color:{LIGHT_INK}}}}}"
        )
        metadata = {"Title": self.title, "Creator": "intop"}
        return _svg(self.figure, name, metadata, rules)

    def page_svg(self, name: str, label: str) -> str:
        """Return the narrow form for an HTML page, in the page's colours and without a title.

        `name` is unique in the page, and begins all ids. `label` says what there is to be seen.
        """
        metadata = dict.fromkeys(("Creator", "Format", "Type"))
        text = _svg(self.narrow, name, metadata)
        for colour, variable in PAGE_COLOURS.items():
            text = text.replace(colour, f"var({variable})")
        # Names may hold what no XML can, such as the start of a terminal's sequence.
        return inert(text.replace("<svg", f'<svg role="img" aria-label="{escape(label)}"', 1))

    def png(self) -> bytes:
        """Return a PNG on white, since it can't know where it will stand."""
        metadata = {"Title": self.title, "Software": None}
        content = BytesIO()
        with _our_look():
            self.figure.savefig(
                content, format="png", dpi=DOTS_PER_INCH, facecolor="white", metadata=metadata
            )
        return content.getvalue()

    def write(self, path: Path) -> None:
        """Write a file: PNG where its name ends so, else SVG. Raises IntopError."""
        content = self.png() if path.suffix == ".png" else self.svg().encode()
        try:
            write_atomically(path, content)
        except OSError as error:
            raise IntopError(f"the figure can't be written: {error}") from error

    @property
    def figure(self) -> Figure:
        """The form of a file, under its title."""
        return self._painted(self.width, self.height, self.title)

    @property
    def narrow(self) -> Figure:
        """The form for a screen as narrow as a phone's. The page tells its title in words."""
        return self._painted(NARROW_WIDTH, self.narrow_height)

    def _painted(self, width: float, height: float, heading: str = "") -> Figure:
        with _our_look():
            figure = Figure(figsize=(width, height), layout="constrained")
            if heading:
                figure.suptitle(heading, fontsize=10)
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
    """Return a drawing of `width` and `height` in inches, which `paint` fills.

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


@contextmanager
def _our_look() -> Iterator[None]:
    """Set our own look, whatever a user's matplotlibrc says, and theirs again afterwards."""
    with style.context(["default", _STYLE]):
        yield


def _svg(figure: Figure, name: str, metadata: Mapping[str, str | None], rules: str = "") -> str:
    """Return an SVG element whose ids and style rules hold for no other part of a document.

    Its ink is the colour of the text around it.
    """
    content = BytesIO()
    # Ids that hang on the content only, and on the name: documents have several figures.
    with _our_look(), mpl.rc_context({"svg.id": name, "svg.hashsalt": name}):
        # Not savefig, which draws twice where there is a layout. Here a draw lays it out, too.
        canvas = FigureCanvasSVG(figure)
        canvas.print_svg(content, metadata={**metadata, "Date": None})  # type: ignore[no-untyped-call]
    # Without the XML prolog, which has no place in HTML, and which a file can do without.
    _, start, text = content.getvalue().decode().partition("<svg")
    text = text.replace('<g id="', f'<g id="{name}-').replace(INK, "currentColor")
    return start + text.replace(">*{", f">{rules}#{name} *{{", 1)
