"""Figures of results, and the files that they are written to."""

from collections.abc import Iterator, Mapping
from functools import singledispatch
from pathlib import Path

from intop.domain.across import Across
from intop.domain.comparison import Compared
from intop.domain.drift import sentinels
from intop.domain.explanation import Explanation
from intop.domain.history import History
from intop.domain.pareto import Tradeoff
from intop.domain.ranking import RankAgreement, Ranking
from intop.domain.refined import Refined
from intop.domain.replicates import Collected
from intop.domain.search import Search
from intop.domain.sides import Latencies
from intop.domain.soak import Soak
from intop.domain.sweep import Sweep
from intop.domain.training import Training
from intop.report.figures.components import components
from intop.report.figures.convergence import convergence
from intop.report.figures.default_drift import default_drift
from intop.report.figures.drawing import Drawing
from intop.report.figures.errors import errors
from intop.report.figures.history import over_time as history_over_time
from intop.report.figures.importance import agreement, importance
from intop.report.figures.pareto import front
from intop.report.figures.partial_dependence import contributions, dependence
from intop.report.figures.percentiles import percentiles
from intop.report.figures.predictions import predictions
from intop.report.figures.refinement import refinement
from intop.report.figures.searches import generations, search_time
from intop.report.figures.soak import over_time as soak_over_time
from intop.report.figures.speedup import architectures, speedup, verdicts_of
from intop.report.figures.sweep import curves


def write_figures(folder: Path, form: str, found: Mapping[str, object]) -> dict[Path, str]:
    """All figures of results by what they are about; `form` is "svg" or "png".

    Returns the titles by the paths of the files, which are called such as
    `x86-slt-importance.svg`. Raises IntopError for a file that can't be written.
    """
    written: dict[Path, str] = {}
    for about, result in found.items():
        for drawing in figures_of(result, about):
            path = folder / f"{drawing.name}.{form}"
            drawing.write(path)
            written[path] = drawing.title
    return written


@singledispatch
def figures_of(_found: object, _about: str) -> Iterator[Drawing]:
    """The figures that there are of a result: none of some kinds, and none of empty ones."""
    yield from ()


@figures_of.register
def _of_several(found: tuple, about: str) -> Iterator[Drawing]:  # type: ignore[type-arg]
    for one in found:
        yield from figures_of(one, about)


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
    sides = {f"{s.name} {c.workload}": s for c in found.comparisons for s in c.sides}
    verdicts = {title: side.verdict for title, side in sides.items() if side.verdict}
    trainings = {title: s.training for title, s in sides.items() if s.training and s.errors}
    searches = {title: s.convergences for title, s in sides.items() if s.convergences}
    if verdicts:
        yield speedup(about, verdicts)
    if sides:
        yield architectures(about, found)
    if trainings:
        yield errors(about, trainings)
    if searches:
        yield generations(about, searches)
        yield search_time(about, searches)
    for one in found.comparisons:
        if one.rank_agreement is not None:
            yield from figures_of(one.rank_agreement, f"{about} {one.workload}")


@figures_of.register
def _of_collection(found: Collected, about: str) -> Iterator[Drawing]:
    defaults = sentinels(found.trials, level=found.drift.level)
    if defaults.sentinels:
        yield default_drift(about, defaults)


@figures_of.register
def _of_latencies(found: Latencies, about: str) -> Iterator[Drawing]:
    yield percentiles(about, found)


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
def _of_sweep(found: Sweep, about: str) -> Iterator[Drawing]:
    if found.has_latencies:
        yield curves(about, found)


@figures_of.register
def _of_soak(found: Soak, about: str) -> Iterator[Drawing]:
    if any(one.p99_ms for one in found.blocks):
        yield soak_over_time(about, found)


@figures_of.register
def _of_history(found: History, about: str) -> Iterator[Drawing]:
    yield history_over_time(about, found)


@figures_of.register
def _of_across(found: Across, about: str) -> Iterator[Drawing]:
    if verdicts := verdicts_of(found):
        yield speedup(about, verdicts)


@figures_of.register
def _of_front(found: Tradeoff, about: str) -> Iterator[Drawing]:
    yield front(about, found)


@figures_of.register
def _of_explanation(found: Explanation, about: str) -> Iterator[Drawing]:
    yield contributions(about, found)
    if found.curves:
        yield dependence(about, found)
