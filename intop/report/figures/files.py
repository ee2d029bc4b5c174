"""Figures of results, and the files that they are written to."""

from collections.abc import Iterator, Mapping
from functools import singledispatch
from pathlib import Path

from intop.domain.comparison import Compared
from intop.domain.front import Tradeoff
from intop.domain.ranks import RankAgreement
from intop.domain.refined import Refined
from intop.domain.results import Ranking, Search, Training
from intop.report.figures.components import components
from intop.report.figures.convergence import convergence
from intop.report.figures.drawing import Drawing
from intop.report.figures.front import front
from intop.report.figures.importance import agreement, importance
from intop.report.figures.predictions import predictions
from intop.report.figures.refinement import refinement


def write_figures(folder: Path, form: str, found: Mapping[str, object]) -> list[Path]:
    """All figures of results by what they are about; `form` is "svg" or "png".

    Returns the paths of the files, which are called such as `x86-slt-importance.svg`. Raises
    IntopError for a file that can't be written.
    """
    written: list[Path] = []
    for about, result in found.items():
        for drawing in figures_of(result, about):
            written.append(folder / f"{drawing.name}.{form}")
            drawing.write(written[-1])
    return written


@singledispatch
def figures_of(_found: object, _about: str) -> Iterator[Drawing]:
    """The figures that there are of a result: none of some kinds, and none of empty ones."""
    yield from ()


@figures_of.register
def _of_ranking(found: Ranking, about: str) -> Iterator[Drawing]:
    if found.importances:
        yield importance(about, found)


@figures_of.register
def _of_agreement(found: RankAgreement, about: str) -> Iterator[Drawing]:
    if found.ranks:
        yield agreement(about, found)


@figures_of.register
def _of_comparison(found: Compared, about: str) -> Iterator[Drawing]:
    for one in found.comparisons:
        if one.rank_agreement is not None:
            yield from figures_of(one.rank_agreement, f"{about} {one.workload}")


@figures_of.register
def _of_refinement(found: Refined, about: str) -> Iterator[Drawing]:
    if found.steps:
        yield refinement(about, found)


@figures_of.register
def _of_training(found: Training, about: str) -> Iterator[Drawing]:
    if any(error.held_out for error in found.errors):
        yield predictions(about, found)
    if found.components is not None and found.components.loadings:
        yield components(about, found.components)


@figures_of.register
def _of_search(found: Search, about: str) -> Iterator[Drawing]:
    if found.convergences:
        yield convergence(about, found)


@figures_of.register
def _of_front(found: Tradeoff, about: str) -> Iterator[Drawing]:
    yield front(about, found)
