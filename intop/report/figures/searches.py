"""How long the search took, by model and by what was searched."""

from collections.abc import Callable, Mapping, Sequence

from intop.domain.comparison import Converged
from intop.domain.training import TREE_MODELS
from intop.report.figures.bars import Bar, Panel, bars
from intop.report.figures.drawing import Drawing
from intop.report.words import number


def generations(about: str, searches: Mapping[str, Sequence[Converged]]) -> Drawing:
    """A panel for each search by its title, such as `x86 slt`: generations until it converged.

    The models that the paper searches stand out. Raises ValueError where nothing was searched.
    """
    return bars(
        "generations",
        "generations until the search converged",
        _panels(searches, lambda run: (float(run.generations), str(run.generations))),
        about=about,
        quantity="generation of the last improvement",
    )


def search_time(about: str, searches: Mapping[str, Sequence[Converged]]) -> Drawing:
    """The same with the time of each search in seconds. Raises ValueError as above."""
    return bars(
        "search-time",
        "time of the search",
        _panels(searches, lambda run: (run.seconds, f"{number(run.seconds)} s")),
        about=about,
        quantity="time of the whole search, in s",
    )


def _panels(
    searches: Mapping[str, Sequence[Converged]], of: Callable[[Converged], tuple[float, str]]
) -> list[Panel]:
    return [
        Panel(
            name=title,
            title=title,
            bars=tuple(
                Bar(run.model, *of(run), stands_out=run.model in TREE_MODELS) for run in runs
            ),
        )
        for title, runs in searches.items()
    ]
