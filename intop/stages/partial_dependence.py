"""How P99 hangs on the kept keys about the winner: the models' lines beside measured trials."""

from collections.abc import Sequence

import numpy as np

from intop.domain.configuration import Configuration
from intop.domain.explanation import Dependence, Explanation, Point
from intop.domain.space import Column, Space
from intop.domain.stats import geometric_mean
from intop.domain.training import Training
from intop.domain.trial import Trial
from intop.errors import ResultMissingError
from intop.learn.samples import Samples
from intop.learn.surrogate import fit_trees
from intop.run.context import Task
from intop.stages.collected import learned_samples

PLACES = 60
"""Points of a line, evenly spaced on the parameter's scale."""


def curves(
    task: Task, found: Explanation, trials: Sequence[Trial]
) -> tuple[tuple[Dependence, ...], str]:
    """A curve for each number or choice in which the smallest set differs from the default.

    Where there are none, the second says why, and what to type.
    """
    training = task.store.get(task.subject, Training)
    train = f"intop train --arch {task.subject.arch} --workload {task.workload.name}"
    if training is None:
        return (), f"no curves of dependence, since there are no models: {train}"
    if training.objective != "p99":
        return (), (
            "no curves of dependence, since the models learned another objective than P99: set "
            f'objective = "p99", then {train}'
        )
    try:
        space, samples, _ = learned_samples(task, training)
    except ResultMissingError as error:
        return (), f"no curves of dependence: {error}"
    (at,) = space.values([found.winner])
    (default,) = space.values([Configuration()])
    kept = set(found.keys)
    changed = [
        index
        for index, column in enumerate(space.columns)
        if column.parameter.key in kept and at[index] != default[index]
    ]
    if not changed:
        return (), f"no curves of dependence, since the models know none of the kept keys: {train}"
    try:
        predictor = fit_trees(training.fitted, samples, task.seed("explain"))
    except ValueError as error:
        return (), f"no curves of dependence: {error}: {train}"
    made: list[Dependence] = []
    for index in changed:
        column = space.columns[index]
        values = np.repeat(at[None, :], *_places(column).shape, axis=0)
        values[:, index] = _places(column)
        p99 = np.exp(predictor(values))
        predicted = [_point(column, v, p) for v, p in zip(values[:, index], p99, strict=True)]
        made.append(
            Dependence(
                name=column.name,
                scale=column.parameter.scale if column.component else "choice",
                predicted=tuple(predicted),
                measured=_measured(space, index, found, trials),
                elsewhere=_elsewhere(samples.own, index, column),
            )
        )
    return tuple(made), ""


def _places(column: Column) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    """Values along a column: all choices, or numbers over its range."""
    if (component := column.component) is None:
        return np.arange(len(column.parameter.choices), dtype=np.float64)
    spaced = np.geomspace if column.parameter.scale == "log" else np.linspace
    return np.unique(np.rint(spaced(component.low, component.high, PLACES)))


def _measured(
    space: Space, index: int, found: Explanation, trials: Sequence[Trial]
) -> tuple[Point, ...]:
    """Every trial of the winner, and of it without this one change."""
    column = space.columns[index]
    key = column.parameter.key
    group = next(c.keys for c in found.contributions if key in c.keys)

    def others(configuration: Configuration) -> dict[str, str]:
        ignored = {*group, *found.same}
        return {k: v for k, v in configuration.values.items() if k not in ignored}

    about = [t for t in trials if t.usable and others(t.configuration) == others(found.winner)]
    numbers = space.values([t.configuration for t in about])[:, index]
    return tuple(_point(column, v, t.p99_ms) for v, t in zip(numbers, about, strict=True))


def _elsewhere(samples: Samples, index: int, column: Column) -> tuple[Point, ...]:
    values = samples.values[:, index]
    means = [geometric_mean(p99) for p99 in samples.measured]
    return tuple(_point(column, v, p) for v, p in zip(values, means, strict=True))


def _point(column: Column, value: float, p99_ms: float) -> Point:
    if column.component is None:
        return Point(value=column.parameter.choices[int(value)], p99_ms=float(p99_ms))
    return Point(value=float(value), p99_ms=float(p99_ms))
