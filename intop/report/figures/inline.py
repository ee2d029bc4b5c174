"""Figures as a part of an HTML page, in the page's own colours and letters."""

import re
from collections.abc import Iterator, Mapping
from hashlib import sha256
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from intop.report.figures.axes import NARROW_WIDTH
from intop.report.figures.colours import BLUE, GREY, GRID, INK, ORANGE
from intop.report.figures.drawing import Drawing, written_svg
from intop.report.plain import inert

VARIABLES = {
    INK: "--ink",
    GREY: "--muted",
    GRID: "--grid",
    BLUE: "--series-1",
    ORANGE: "--series-2",
}
"""The page's CSS variable for each colour that figures are drawn in."""
WIDEST = 1.25
"""So many times their own width figures are shown at most: beyond it, letters become too large."""

SVG, XLINK = "{http://www.w3.org/2000/svg}", "{http://www.w3.org/1999/xlink}"
NOT_NEEDED = ("metadata", "style", "title")
SHAPES = ("path", "rect", "text", "use")
NUMBERS = ("d", "x", "y", "width", "height", "transform")


def inline_svg(drawing: Drawing, *, label: str) -> str:
    """The narrow form of a figure as an `<svg>` element of an HTML page, which is XML, too.

    It is as wide as what it stands in, and takes its colours from the page's CSS variables, those
    of `VARIABLES`. `label` says what it shows to those who can't see it; it is unique in a page,
    since ids are made of it. The figure's title is for the page to tell. Raises ValueError for a
    colour that there is no variable for.
    """
    mark = "f" + sha256(label.encode()).hexdigest()[:8]
    untold = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    # Names may hold what no XML can, such as the start of a terminal's sequence.
    written = inert(written_svg(drawing.narrow, mark, untold))
    root = ElementTree.fromstring(written)  # noqa: S314 (ours)
    made = Element(
        "svg",
        {
            "xmlns": SVG.strip("{}"),
            "viewBox": root.attrib["viewBox"],
            "width": "100%",
            "style": f"max-width:{WIDEST * NARROW_WIDTH:g}in;height:auto",
            "stroke-linejoin": "round",
            "role": "img",
            "aria-label": inert(label),
        },
    )
    used = {name for e in root.iter() for name in _references(e.attrib)}
    for child in root:
        made.extend(_cleaned(child, mark, used))
    return ElementTree.tostring(made, encoding="unicode")


def _cleaned(element: Element, mark: str, used: set[str], *, hidden: bool = False) -> list[Element]:
    """An element without what a page can do without: itself, what is in it, or nothing.

    What is `hidden` is shown where another one refers to it, which has its colours.
    """
    tag = element.tag.removeprefix(SVG)
    hidden = hidden or tag == "defs"
    if tag in NOT_NEEDED:
        return []
    attributes = dict(_attributes(element.attrib, mark, used))
    children = [c for child in element for c in _cleaned(child, mark, used, hidden=hidden)]
    if not hidden and tag in SHAPES:
        style = attributes.get("style", "")
        if "fill:" not in style:
            raise ValueError(f"the page has no variable for black, in which a {tag} is drawn")
        if "fill:none" in style and "stroke:" not in style:
            return []
    if tag in ("defs", "g") and not children:
        return []
    if tag == "g":
        attributes |= _in_common(children)
        if not attributes:
            return children
    made = Element(tag, attributes)
    made.text = element.text if tag == "text" else None
    made.extend(children)
    return [made]


def _attributes(found: Mapping[str, str], mark: str, used: set[str]) -> Iterator[tuple[str, str]]:
    """Without ids that nothing refers to, and without turns by nothing."""
    for name, value in found.items():
        if name == "id":
            if value in used:
                yield name, f"{mark}-{value}"
        elif name == "style":
            yield name, _page_style(value)
        elif name in NUMBERS:
            if not value.startswith("rotate(-0 "):
                yield name, _shortened(value)
        else:
            yield name.removeprefix(XLINK), value.replace("#", f"#{mark}-")


def _references(found: Mapping[str, str]) -> list[str]:
    """The ids that an element's attributes name, such as `url(#id)` and `#id`."""
    names = (f"{XLINK}href", "clip-path")
    return [id_ for name in names for id_ in re.findall(r"#([\w.-]+)", found.get(name, ""))]


def _page_style(written: str) -> str:
    """A style in the page's colours and letters."""
    rules = dict(rule.split(": ", 1) for rule in written.split("; "))
    rules.pop("font-family", None)
    if rules.get("stroke") == GRID:
        rules.pop("stroke-opacity", None)  # the page's colour for it is faint as it is
    for name in ("fill", "stroke"):
        colour = rules.get(name, "none")
        if colour == "none":
            continue
        if colour not in VARIABLES:
            raise ValueError(f"the page has no variable for the colour {colour}")
        rules[name] = f"var({VARIABLES[colour]})"
    return ";".join(f"{name}:{value}" for name, value in rules.items())


def _in_common(children: list[Element]) -> dict[str, str]:
    """The style that all marks of a group have, taken from each of them.

    What is half transparent keeps it: as a group its marks would not shine through each other.
    """
    styles = {child.attrib.get("style", "") for child in children if child.tag == "use"}
    if len(styles) != 1 or any(child.tag != "use" for child in children):
        return {}
    (style,) = styles
    if not style or ";opacity:" in style:
        return {}
    for child in children:
        del child.attrib["style"]
    return {"style": style}


def _shortened(numbers: str) -> str:
    """Two decimals are a hundredth of a point; lines of a path need no line ends."""
    short = re.sub(r"-?\d+\.\d+", lambda found: f"{round(float(found[0]), 2):g}", numbers)
    return " ".join(short.split())
