"""Figures of results, and the files that they are written to."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from intop.domain.across import Across
from intop.domain.comparison import Compared, Side
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
from intop.report.figures.bars import errors, generations, search_time
from intop.report.figures.convergence import convergence, refinement
from intop.report.figures.drawing import Drawing, NoDataError
from intop.report.figures.drift import default_drift
from intop.report.figures.importance import agreement, importance
from intop.report.figures.models import components, predictions
from intop.report.figures.over_time import history
from intop.report.figures.pareto import front
from intop.report.figures.partial_dependence import contributions, dependence
from intop.report.figures.percentiles import percentiles
from intop.report.figures.soak import soak
from intop.report.figures.speedup import architectures, speedup, verdicts_of
from intop.report.figures.sweep import curves


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
    """Return the figures of a result, or of several: none of some kinds, none of empty ones."""
    if isinstance(result, tuple):
        for part in result:
            yield from figures_of(part, about)
    for draw in FIGURES.get(type(result), ()):
        with suppress(NoDataError):
            yield draw(about, result)
    if isinstance(result, Compared):
        for comparison in result.comparisons:
            yield from figures_of(comparison.rank_agreement, f"{about} {comparison.workload}")


def _drift(about: str, collected: Collected) -> Drawing:
    return default_drift(about, sentinels(collected.trials, level=collected.drift.level))


def _components(about: str, training: Training) -> Drawing:
    if training.components is None:
        raise NoDataError("the models learned no components")
    return components(about, training.components)


def _across(about: str, across: Across) -> Drawing:
    return speedup(about, verdicts_of(across))


def _speed_ups(about: str, compared: Compared) -> Drawing:
    return speedup(about, {name: s.verdict for name, s in _sides(compared) if s.verdict})


def _errors(about: str, compared: Compared) -> Drawing:
    return errors(about, {name: s.training for name, s in _sides(compared) if s.training})


def _generations(about: str, compared: Compared) -> Drawing:
    return generations(about, {name: s.convergences for name, s in _sides(compared)})


def _search_time(about: str, compared: Compared) -> Drawing:
    return search_time(about, {name: s.convergences for name, s in _sides(compared)})


def _sides(compared: Compared) -> list[tuple[str, Side]]:
    """Return all sides with such names as `x86 slt`."""
    return [(f"{s.name} {c.workload}", s) for c in compared.comparisons for s in c.sides]


FIGURES: Mapping[type, tuple[Callable[[str, Any], Drawing], ...]] = {
    Across: (_across,),
    Collected: (_drift,),
    Compared: (_speed_ups, architectures, _errors, _generations, _search_time),
    Explanation: (contributions, dependence),
    History: (history,),
    Latencies: (percentiles,),
    RankAgreement: (agreement,),
    Ranking: (importance,),
    Refined: (refinement,),
    Search: (convergence,),
    Soak: (soak,),
    Sweep: (curves,),
    Tradeoff: (front,),
    Training: (predictions, _components),
}
"""The figures of each type of result, by functions that raise NoDataError for an empty one."""
