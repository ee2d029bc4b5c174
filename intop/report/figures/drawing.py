"""What all figures have in common: how they look, and how they become SVG or PNG.

The same values give the same bytes. Text in an SVG is text, in the colour of what stands around
it: dark on light, and light on dark where the reader's screen is.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import matplotlib as mpl
from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from intop.errors import IntopError
from intop.report.plain import inert

INK = "#24292f"
"""Of text, axes and lines of reference. No other colour is as dark."""
LIGHT_INK = "#e6edf3"
BLUE = "#2a83c6"
ORANGE = "#d4660a"
GREY = "#85898f"
"""Blue, orange and grey are told apart with any colour vision, on white and on black."""
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
    """A figure. Its `name` is what a file is called, and unique in a document of several."""

    name: str
    title: str
    figure: Figure

    def svg(self) -> str:
        """SVG, which may stand in a file or be put into an HTML document as it is."""
        name = f"figure-{self.name}"
        written = BytesIO()
        # Ids that hang on the content only, and on the name: documents have several figures.
        with _style(), mpl.rc_context({"svg.id": name, "svg.hashsalt": name}):
            metadata = {"Title": self.title, "Creator": "intop", "Date": None}
            self.figure.savefig(written, format="svg", metadata=metadata)
        # Without the XML prolog, which has no place in HTML, and which a file can do without.
        _, element, content = written.getvalue().decode().partition("<svg")
        # The rules hold for all of a document that it is put into, so they name what they are for.
        rules = (
            f"#{name}{{color:{INK}}}"
            f"@media(prefers-color-scheme:dark){{#{name}{{color:{LIGHT_INK}}}}}"
            f"#{name} *{{"
        )
        content = content.replace('<g id="', f'<g id="{name}-').replace(INK, "currentColor")
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


def drawn(
    kind: str,
    title: str,
    paint: Callable[[Figure], None],
    *,
    about: str,
    height: float,
    width: float = PAGE_WIDTH,
) -> Drawing:
    """A drawing of `width` and `height` in inches, on which `paint` has put what it shows.

    `about` says what of, such as `x86 slt`; with `kind` it makes the name.
    """
    heading = inert(f"{about}: {title}")
    with _style():
        figure = Figure(figsize=(width, height), layout="constrained")
        figure.suptitle(heading, fontsize=10)
        paint(figure)
    name = re.sub(r"[^a-z0-9]+", "-", f"{about} {kind}".lower()).strip("-")
    return Drawing(name, heading, figure)


def faint_grid(axes: Axes, which: str = "both") -> None:
    """Lines to read values by, along the ticks of "x", "y" or both."""
    axes.grid(axis=which, color=INK, alpha=0.15, linewidth=0.5)  # type: ignore[arg-type]


@contextmanager
def _style() -> Iterator[None]:
    """Our own look, whatever a user's matplotlibrc says, and theirs again afterwards."""
    with style.context(["default", _STYLE]):
        yield
