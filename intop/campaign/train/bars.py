"""Panels of bars: a panel for each subject, a bar for each model in it."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from intop.document.axes import faint_grid, is_narrow, panels
from intop.document.drawing import BLUE, GREY, INK, ORANGE, Drawing, NoDataError, drawn
from intop.domain.comparison import Converged
from intop.domain.training import TREE_MODELS, Training
from intop.words import number

COLUMNS = 2
ROW = 0.21
"""The height of a bar's row, in inches."""


@dataclass(frozen=True)
class Bar:
    """A bar by its name, with its value in words; one that is not finite is not drawn."""

    name: str
    value: float
    label: str
    stands_out: bool = False


@dataclass(frozen=True)
class Panel:
    """A subject's bars."""

    name: str
    """Name of the subject, unique in a figure."""
    title: str
    """Heading of the panel."""
    bars: tuple[Bar, ...]
    line: float | None = None
    """Value of a dashed line through the bars."""


def bars(kind: str, title: str, subjects: Sequence[Panel], *, about: str, quantity: str) -> Drawing:
    """The panels side by side, on one axis of the `quantity` that begins at 0.

    Raises NoDataError without any bar.
    """
    shown = [panel for panel in subjects if panel.bars]
    if not shown:
        raise NoDataError("there are no bars")
    rows = max(len(panel.bars) for panel in shown)
    columns = min(COLUMNS, len(shown))

    def height(beside: int) -> float:
        return 0.6 + (0.5 + ROW * rows) * -(-len(shown) // beside)

    def paint(figure: Figure) -> None:
        beside = 1 if is_narrow(figure) else columns
        axes = panels(figure, len(shown), beside, shared="x")
        for part, panel in zip(axes, shown, strict=True):
            _panel(part, panel)
        axes[0].set_xlim(0, 1.15 * _highest(shown))
        for lowest in axes[-beside:]:
            lowest.set_xlabel(quantity)

    return drawn(
        kind,
        title,
        paint,
        about=about,
        height=height(columns),
        width=5.4 if columns == 1 else 7.0,
        narrow_height=height(1),
    )


def _panel(axes: Axes, panel: Panel) -> None:
    places = range(len(panel.bars))
    patches = axes.barh(
        places,
        [bar.value if math.isfinite(bar.value) else 0.0 for bar in panel.bars],
        color=[BLUE if bar.stands_out else GREY for bar in panel.bars],
        height=0.7,
    )
    for patch, bar in zip(patches, panel.bars, strict=True):
        patch.set_gid(f"bar-{panel.name}-{bar.name}")
    axes.bar_label(patches, [bar.label for bar in panel.bars], fontsize=8, padding=2)
    if panel.line is not None:
        axes.axvline(
            panel.line, color=ORANGE, linewidth=1.8, linestyle="--", gid=f"line-{panel.name}"
        )
    axes.set_title(panel.title, loc="left", fontsize=8.5)
    axes.set_yticks(places, [bar.name for bar in panel.bars])
    axes.set_ylim(len(panel.bars) - 0.4, -0.6)
    axes.axvline(0, color=INK, linewidth=0.8)
    axes.tick_params(axis="y", length=0)
    faint_grid(axes, "x")


def _highest(shown: Sequence[Panel]) -> float:
    """Return the highest value of all bars and lines, which the axis has to hold."""
    values = [bar.value for panel in shown for bar in panel.bars]
    values += [panel.line for panel in shown if panel.line is not None]
    return max((value for value in values if math.isfinite(value)), default=1.0) or 1.0


def errors(about: str, trainings: Mapping[str, Training]) -> Drawing:
    """A panel for each training by its title, such as `x86 slt`: MAPE, and what limits it.

    The family that is best stands out. Raises NoDataError where no training has errors.
    """
    if not any(training.errors for training in trainings.values()):
        raise NoDataError("no training has errors")
    return bars(
        "errors",
        "error of the models by family",
        [_error_panel(title, training) for title, training in trainings.items()],
        about=about,
        quantity="MAPE of configurations not seen, in %",
    )


def _error_panel(title: str, training: Training) -> Panel:
    ceiling = training.ceiling
    heading = f": noise ceiling {ceiling.mape:.0f} % (dashed)" if ceiling else ""
    return Panel(
        name=title,
        title=f"{title}{heading}",
        bars=tuple(
            Bar(
                error.family,
                error.mape,
                f"{error.mape:.0f} %" if math.isfinite(error.mape) else "without bounds",
                stands_out=error.family == training.best,
            )
            for error in training.errors
        ),
        line=ceiling.mape if ceiling else None,
    )


def generations(about: str, searches: Mapping[str, Sequence[Converged]]) -> Drawing:
    """A panel for each search by its title, such as `x86 slt`: generations until it converged.

    The models that the paper searches stand out. Raises NoDataError where nothing was searched.
    """
    return bars(
        "generations",
        "generations until the search converged",
        _search_panels(searches, lambda run: (float(run.generations), str(run.generations))),
        about=about,
        quantity="generation of the last improvement",
    )


def search_time(about: str, searches: Mapping[str, Sequence[Converged]]) -> Drawing:
    """The same with the time of each search in seconds. Raises NoDataError as above."""
    return bars(
        "search-time",
        "time of the search",
        _search_panels(searches, lambda run: (run.seconds, f"{number(run.seconds)} s")),
        about=about,
        quantity="time of the whole search, in s",
    )


def _search_panels(
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
