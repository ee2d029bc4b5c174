"""Figures of results, and the files that they are written to."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from intop import features
from intop.document.drawing import Drawing, NoDataError


def write_figures(folder: Path, form: str, results: Mapping[str, object]) -> dict[Path, str]:
    """Write all figures of results by what they are about; `form` is "svg" or "png".

    Returns the titles by the paths of the files, which are called such as
    `x86-slt-importance.svg`. Raises IntopError for a file that can't be written.
    """
    titles: dict[Path, str] = {}
    for about, result in results.items():
        for drawing in figures_of(result, about):
            path = folder / f"{drawing.name}.{form}"
            drawing.write(path)
            titles[path] = drawing.title
    return titles


def figures_of(result: object, about: str) -> Iterator[Drawing]:
    """Return the figures of a result, or of several: none of some kinds, none of empty ones.

    The functions that draw are those of the features. They get the words that the figure is about
    and the result, return a drawing or a list of them, and raise NoDataError for an empty result.
    """
    if isinstance(result, tuple):
        for part in result:
            yield from figures_of(part, about)
    for draw in features.figures_of(type(result)):
        with suppress(NoDataError):
            drawings = draw(about, result)
            yield from drawings if isinstance(drawings, list) else [drawings]
