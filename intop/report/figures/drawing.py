"""What a figure is: how it looks, and how it becomes SVG or PNG.

The same values give the same bytes. Text in an SVG is text, in the colour of what stands around
it: dark on light, and light on dark where the reader's screen is.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from pathlib import Path

import matplotlib as mpl
from matplotlib import style
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.rcsetup import cycler

from intop.atomic import write_atomically
from intop.errors import IntopError
from intop.report.figures.axes import NARROW_WIDTH
from intop.report.figures.colours import BLUE, GREY, GRID, INK, LIGHT_INK, ORANGE
from intop.report.plain import inert

PAGE_WIDTH = 7.0
"""In inches: the text of a page, on which letters then have their size in points."""
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
_HAS_OUR_LOOK = ContextVar("has our look", default=False)


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
        with our_look():
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
            write_atomically(path, made)
        except OSError as error:
            raise IntopError(f"the figure can't be written: {error}") from error

    def _painted(self, width: float, height: float, *, heading: bool) -> Figure:
        with our_look():
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
    with our_look(), mpl.rc_context({"svg.id": name, "svg.hashsalt": name}):
        # Not savefig, which draws twice where there is a layout. Here a draw lays it out, too.
        canvas = FigureCanvasSVG(figure)
        canvas.print_svg(written, metadata=metadata)  # type: ignore[no-untyped-call]
    return written.getvalue().decode()


@contextmanager
def our_look() -> Iterator[None]:
    """Our own look, whatever a user's matplotlibrc says, and theirs again afterwards.

    Setting hundreds of values takes ms, so whoever draws many figures does so within it.
    """
    if _HAS_OUR_LOOK.get():
        yield
        return
    outside = _HAS_OUR_LOOK.set(True)
    try:
        with style.context(["default", _STYLE]):
            yield
    finally:
        _HAS_OUR_LOOK.reset(outside)
