"""Transfer: models of one machine that start from what was measured on another.

Two machines differ by little more than a line in the logarithms where the same configurations are
fast on both; what is left is learned like any other target. benchmarks/results/models.md
compares the accuracy with other ways.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from intop.domain.encoding import Matrix, Variable
from intop.learn.accuracy import weights_by_error
from intop.learn.families import FAMILIES, Hyperparameters, Value
from intop.learn.parallel import one_thread
from intop.learn.samples import Samples, Vector, split
from intop.learn.surrogate import fit, predicted

SCRATCH, MAPPED, CORRECTED = "from scratch", "mapped", "corrected"
"""The target's rows alone; a line of the source's logs; that line and a model of what it misses."""
STEEPNESS = 8
"""Twice the error: a 256th of the weight. Of some forty rows, errors are known to a fifth or so,
and a steeper choice would often be the wrong one."""
FOLDS = 4
FEWEST_ROWS = 2 * FOLDS
PRIOR = "source's log target"

Predict = Callable[[Matrix, Vector], Vector]
"""Values (n, variables) and what the source says of them (n,), to the log target (n,)."""


@dataclass(frozen=True)
class Prior:
    """A guess of the target's configurations by the source's trials and the common variables.

    Where the source has measured the very configuration, that counts; else a model of the source
    predicts it.
    """

    family: str
    hyperparameters: Mapping[str, Value]
    variables: tuple[Variable, ...]
    """The target's."""
    source: Samples
    pairs: tuple[tuple[int, int], ...]
    """Columns of target and source with the same name, a number in both or a name in both."""
    seed: int

    def __call__(self, values: Matrix) -> Vector:
        """Return the source's log target (n,) of the target's values (n, variables)."""
        rows = self._translated(values)
        known = [self._measured.get(row.tobytes()) for row in rows]
        unknown = [n for n, value in enumerate(known) if value is None]
        guesses = np.array([np.nan if value is None else value for value in known])
        if unknown:
            guesses[unknown] = predicted(self._model, rows[unknown])
        return guesses

    @cached_property
    def known(self) -> Samples:
        """The source's rows, by the common variables alone."""
        columns = [there for _, there in self.pairs]
        return Samples(
            variables=tuple(self.source.variables[n] for n in columns),
            values=self.source.values[:, columns] + 0.0,
            measured=self.source.measured,
        )

    @cached_property
    def _model(self) -> Any:
        family = FAMILIES[self.family]
        with one_thread():
            model = family.build(self.known.variables, self.hyperparameters, self.seed)
            return fit(model, self.known)

    @cached_property
    def _measured(self) -> dict[bytes, float]:
        """The log target by the bytes of a row: nothing where the source varied more than that."""
        if len(self.pairs) < len(self.source.variables):
            return {}
        rows = zip(self.known.values, self.known.log_target.tolist(), strict=True)
        return {row.tobytes(): value for row, value in rows}

    def _translated(self, values: Matrix) -> Matrix:
        """Return the target's values in the source's numbers: its choices may be in other order."""
        rows = np.empty((len(values), len(self.pairs)))
        for place, (here, there) in enumerate(self.pairs):
            mine, theirs = self.variables[here], self.source.variables[there]
            # What the source never had is none of its choices, or half-way between two.
            unheard = -1.0 if len(theirs.choices) > 2 else 0.5
            rows[:, place] = mine.in_terms_of(theirs, values[:, here] + 0.0, unheard)
        return rows


@dataclass(frozen=True)
class Warm:
    """A model of the target that knows the source: the mean of all ways by their shares."""

    prior: Prior
    ways: Mapping[str, Predict]
    """Ways by name; from scratch alone where there is no variable in common."""
    errors: Mapping[str, float]
    """Mean absolute errors of the log target on held-out rows of the target, by way."""
    shares: Mapping[str, float]

    def __call__(self, values: Matrix) -> Vector:
        """Return the log target (n,) for values (n, variables)."""
        hints = self.prior(values) if len(self.ways) > 1 else np.zeros(len(values))
        guesses = [self.shares[way] * self.ways[way](values, hints) for way in self.ways]
        return np.asarray(np.sum(guesses, axis=0), dtype=np.float64)


def prior(
    family: str,
    target: tuple[Variable, ...],
    source: Samples,
    seed: int,
    hyperparameters: Hyperparameters | None = None,
) -> Prior:
    """Return what `source` says of configurations with the target's variables."""
    places = {variable.name: n for n, variable in enumerate(source.variables)}
    pairs = tuple(
        (here, places[variable.name])
        for here, variable in enumerate(target)
        if variable.name in places
        and bool(variable.choices) == bool(source.variables[places[variable.name]].choices)
    )
    chosen = FAMILIES[family].defaults if hyperparameters is None else hyperparameters
    return Prior(family, chosen, target, source, pairs, seed)


def warm_start(
    family: str,
    target: Samples,
    known: Prior,
    seed: int,
    hyperparameters: Hyperparameters | None = None,
) -> Warm:
    """Return a family's model of the target that starts from what is `known` of the source.

    The target's rows are held out fold by fold, and the ways weigh by their error there: a source
    that has nothing to do with the target has hardly any weight. Raises ValueError for fewer than
    FEWEST_ROWS rows.
    """
    if len(target) < FEWEST_ROWS:
        raise ValueError(f"a warm start needs {FEWEST_ROWS} rows of its own, got {len(target)}")
    chosen = FAMILIES[family].defaults if hyperparameters is None else hyperparameters
    ways = _WAYS if known.pairs else {SCRATCH: _scratch}
    hints = known(target.values) if known.pairs else np.zeros(len(target))
    reach = _reach(known.source.log_target)

    def unfitted(variables: tuple[Variable, ...]) -> Any:
        return FAMILIES[family].build(variables, chosen, seed)

    def fitted(rows: Samples, hints: Vector) -> dict[str, Predict]:
        lesson = _Lesson(unfitted, rows, hints, reach)
        return {name: way(lesson) for name, way in ways.items()}

    with one_thread():
        misses: dict[str, list[float]] = {name: [] for name in ways}
        for fold in split(len(target), FOLDS, seed):
            out = fold.held_out
            for name, predict in fitted(target.rows(fold.training), hints[fold.training]).items():
                guesses = predict(target.values[out], hints[out])
                misses[name] += np.abs(guesses - target.log_target[out]).tolist()
        models = fitted(target, hints)
    errors = {name: float(np.mean(some)) for name, some in misses.items()}
    weights = weights_by_error(list(errors.values()), STEEPNESS)
    return Warm(known, models, errors, dict(zip(errors, weights.tolist(), strict=True)))


def _reach(logs: Vector) -> tuple[float, float]:
    low, high = float(logs.min()), float(logs.max())
    return (low, high) if low < high else (low - 0.5, high + 0.5)


@dataclass(frozen=True)
class _Lesson:
    """The rows that a way learns from."""

    unfitted: Callable[[tuple[Variable, ...]], Any]
    """Makes a model of the family for these variables."""
    rows: Samples
    """The target's."""
    hints: Vector
    """The source's predictions for the rows (n,)."""
    reach: tuple[float, float]
    """The lowest and the highest log target of the source."""


def _scratch(lesson: _Lesson) -> Predict:
    model = fit(lesson.unfitted(lesson.rows.variables), lesson.rows)
    return lambda values, _: predicted(model, values)


def _mapped(lesson: _Lesson) -> Predict:
    """Least squares; a source that always says the same has no slope."""
    target, hints = lesson.rows.log_target, lesson.hints
    apart = hints - hints.mean()
    spread = float(apart @ apart)
    slope = float(apart @ target) / spread if spread > 0 else 0.0
    centre, height = float(hints.mean()), float(target.mean())
    return lambda _, hints: height + slope * (hints - centre)


def _corrected(lesson: _Lesson) -> Predict:
    """The model sees what the source says as well: where a line bends, it can tell."""
    line, rows = _mapped(lesson), lesson.rows
    low, high = lesson.reach
    misses = rows.log_target - line(rows.values, lesson.hints)
    wider = Samples(
        variables=(*rows.variables, Variable(name=PRIOR, key=PRIOR, low=low, high=high)),
        values=np.column_stack([rows.values, lesson.hints]),
        measured=tuple((miss,) for miss in np.exp(misses).tolist()),
    )
    model = fit(lesson.unfitted(wider.variables), wider)
    return lambda values, hints: (
        line(values, hints) + predicted(model, np.column_stack([values, hints]))
    )


_WAYS = {SCRATCH: _scratch, MAPPED: _mapped, CORRECTED: _corrected}
