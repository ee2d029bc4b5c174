"""The error of the models, by family and by what they are models of."""

import math
from collections.abc import Mapping

from intop.domain.training import Training
from intop.report.figures.bars import Bar, Panel, bars
from intop.report.figures.drawing import Drawing


def errors(about: str, trainings: Mapping[str, Training]) -> Drawing:
    """A panel for each training by its title, such as `x86 slt`: MAPE, and what limits it.

    The family that is best stands out. Raises ValueError where no training has errors.
    """
    if not any(training.errors for training in trainings.values()):
        raise ValueError("no training has errors")
    return bars(
        "errors",
        "error of the models by family",
        [_panel(title, training) for title, training in trainings.items()],
        about=about,
        quantity="MAPE of configurations not seen, in %",
    )


def _panel(title: str, training: Training) -> Panel:
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
