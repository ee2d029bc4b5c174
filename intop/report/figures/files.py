"""Figures of results, and the files that they are written to."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from intop.domain.comparison import Compared
from intop.domain.explanation import Explanation
from intop.domain.ranks import RankAgreement
from intop.domain.results import Ranking, Training
from intop.report.figures.components import components
from intop.report.figures.dependence import contributions, dependence
from intop.report.figures.drawing import Drawing
from intop.report.figures.importance import agreement, importance
from intop.report.figures.predictions import predictions


def write_figures(folder: Path, form: str, found: Mapping[str, object]) -> list[Path]:
    """All figures of results by what they are about; `form` is "svg" or "png".

    Returns the paths of the files, which are called such as `x86-slt-importance.svg`. Raises
    IntopError for a file that can't be written.
    """
    written: list[Path] = []
    for about, result in found.items():
        for drawing in figures_of(about, result):
            written.append(folder / f"{drawing.name}.{form}")
            drawing.write(written[-1])
    return written


def figures_of(about: str, found: object) -> Iterator[Drawing]:
    """The figures that there are of a result: none of some kinds, and none of empty ones."""
    if isinstance(found, Explanation):
        yield from _of_explanation(about, found)
    if isinstance(found, Ranking) and found.importances:
        yield importance(about, found)
    if isinstance(found, RankAgreement) and found.ranks:
        yield agreement(about, found)
    if isinstance(found, Compared):
        for one in found.comparisons:
            if one.rank_agreement is not None and one.rank_agreement.ranks:
                yield agreement(f"{about} {one.workload}", one.rank_agreement)
    if isinstance(found, Training):
        yield from _of_training(about, found)


def _of_explanation(about: str, found: Explanation) -> Iterator[Drawing]:
    yield contributions(about, found)
    if found.curves:
        yield dependence(about, found)


def _of_training(about: str, found: Training) -> Iterator[Drawing]:
    if any(error.held_out for error in found.errors):
        yield predictions(about, found)
    if found.components is not None and found.components.loadings:
        yield components(about, found.components)
