"""Curves of what the models predict about a winner."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from intop.campaign.collected import learned_samples
from intop.deferred import Deferred
from intop.domain.configuration import DEFAULT, Configuration
from intop.domain.explanation import Dependence, Explanation, Point
from intop.domain.space import Column, Space
from intop.domain.stats import geometric_mean
from intop.domain.training import Training
from intop.domain.trial import Trial
from intop.errors import ResultMissingError
from intop.run.context import Task

if TYPE_CHECKING:
    import numpy as np

    from intop.learn.samples import Samples, Vector
    from intop.learn.surrogate import Predictor
else:
    np = Deferred("numpy")

PLACES = 60
"""Points of a curve, evenly spaced on the parameter's scale."""


def curves(
    task: Task, explanation: Explanation, trials: Sequence[Trial]
) -> tuple[tuple[Dependence, ...], str]:
    """Return a curve for each number or choice in which the smallest set differs from the default.

    Where there are none, the second says why, and what to type.
    """
    from intop.learn.surrogate import fit_trees

    training = task.store.get(task.subject, Training)
    train = f"intop train --arch {task.subject.arch} --workload {task.workload.name}"
    if training is None:
        return (), f"no curves of dependence, since there are no models. Run: {train}"
    if training.objective == "component":
        return (), (
            "no curves of dependence, since the models learned a component: set "
            f'objective = "p99", then {train}'
        )
    try:
        space, samples, _ = learned_samples(task, training)
    except ResultMissingError as error:
        return (), f"no curves of dependence: {error}"
    changed = _changed_columns(space, explanation)
    if not changed:
        return (), f"no curves of dependence, since the models know none of the kept keys: {train}"
    try:
        predictor = fit_trees(training.fitted, samples, task.seed("explain"))
    except ValueError as error:
        return (), f"no curves of dependence: {error}: {train}"
    return tuple(
        _curve(space, index, explanation, trials, predictor, samples.own) for index in changed
    ), ""


def _changed_columns(space: Space, explanation: Explanation) -> list[int]:
    """Return the columns of the kept keys whose value is not the default's."""
    winner, default = space.values([explanation.winner, DEFAULT])
    kept = set(explanation.keys)
    return [
        index
        for index, column in enumerate(space.columns)
        if column.parameter.key in kept and winner[index] != default[index]
    ]


def _curve(
    space: Space,
    index: int,
    explanation: Explanation,
    trials: Sequence[Trial],
    predictor: "Predictor",
    samples: "Samples",
) -> Dependence:
    column = space.columns[index]
    places = _places(column)
    values = space.values([explanation.winner]).repeat(len(places), axis=0)
    values[:, index] = places
    judged_ms = np.exp(predictor(values))
    return Dependence(
        name=column.name,
        scale=column.parameter.scale if column.component else "choice",
        predicted=_points(column, places, judged_ms),
        measured=_measured(space, index, explanation, trials),
        elsewhere=_points(
            column, samples.values[:, index], [geometric_mean(row) for row in samples.measured]
        ),
    )


def _places(column: Column) -> "Vector":
    """Return values along a column: all choices, or numbers over its range."""
    if (component := column.component) is None:
        return np.arange(len(column.parameter.choices), dtype=np.float64)
    spaced = np.geomspace if column.parameter.scale == "log" else np.linspace
    return np.unique(np.rint(spaced(component.low, component.high, PLACES)))


def _measured(
    space: Space, index: int, explanation: Explanation, trials: Sequence[Trial]
) -> tuple[Point, ...]:
    """Return every trial of the winner, and of the winner without this one change."""
    column = space.columns[index]
    key = column.parameter.key
    group = next(c.keys for c in explanation.contributions if key in c.keys)
    ignored = {*group, *explanation.same}

    def compared_values(configuration: Configuration) -> dict[str, str]:
        return {k: v for k, v in configuration.values.items() if k not in ignored}

    wanted = compared_values(explanation.winner)
    about = [t for t in trials if t.usable and compared_values(t.configuration) == wanted]
    values = space.values([t.configuration for t in about])[:, index]
    return _points(column, values, [t.judged_ms for t in about])


def _points(
    column: Column, values: "Vector", judged_ms: "Sequence[float] | Vector"
) -> tuple[Point, ...]:
    choices = column.parameter.choices
    return tuple(
        Point(
            value=choices[int(value)] if column.component is None else float(value),
            judged_ms=float(latency),
        )
        for value, latency in zip(values, judged_ms, strict=True)
    )
