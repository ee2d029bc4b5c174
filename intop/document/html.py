"""A page as one HTML file that needs nothing else: no other file, no network, no script."""

from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from intop.document.columns import Link, worded
from intop.document.model import Document, Figure, Notes, Paragraph, Section, Table, Verbatim
from intop.words import inert

HERE = Path(__file__).parent


def html(document: Document, *, refresh_s: int = 0) -> str:
    """The page, which a browser asks for again after `refresh_s`.

    All that it tells came from stores, files and hosts, so all of it is escaped.
    """
    environment = Environment(
        loader=FileSystemLoader(HERE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        finalize=_finalised,
    )
    drawings = _drawings(document)
    environment.filters |= {"worded": worded, "drawn": lambda figure: drawings[figure.label]}
    environment.tests |= {
        kind.__name__.lower(): lambda block, kind=kind: isinstance(block, kind)
        for kind in (Paragraph, Notes, Verbatim, Table, Figure, Section, Link)
    }
    stylesheet = Markup((HERE / "page.css").read_text(encoding="utf-8").strip())  # noqa: S704 (ours)
    page = environment.get_template("page.html.j2")
    return page.render(document=document, stylesheet=stylesheet, refresh_s=refresh_s).lstrip()


def _finalised(value: Any) -> Any:
    """Text without characters that can't be seen, which could turn the direction of writing."""
    return inert(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _drawings(document: Document) -> dict[str, Markup]:
    """Return all figures by their labels, which are unique in a document."""
    return {
        # Its texts are escaped.
        figure.label: Markup(figure.draw().page_svg(f"figure-{number}", figure.label))  # noqa: S704
        for number, figure in enumerate(document.figures(), start=1)
    }
