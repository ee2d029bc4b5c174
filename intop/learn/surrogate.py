"""Surrogates: fitted models that stand for measurements, and how far they can be trusted."""

import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from intop.domain.encoding import Matrix, Variable, encode
from intop.domain.training import FittedFamily
from intop.learn.families import FAMILIES, Hyperparameters
from intop.learn.parallel import one_thread
from intop.learn.samples import Rows, Samples, Vector, split
from intop.learn.tuning_effort import (
    FEWEST_REPEATS,
    INTERVAL_FOLDS,
    INTERVAL_REPEATS,
    MANY_ROWS,
)

MOST_MISSES = 1000
"""Rows whose errors are kept for intervals. Of more, evenly spaced ones say as much."""
LARGEST_BLOCK = 1_000_000


@dataclass(frozen=True)
class Surrogate:
    """A fitted family, with its errors on rows that it had not seen."""

    model: Any
    """It knows all rows."""
    partial_models: tuple[Any, ...]
    """Models of the same family that lack some rows."""
    unseen: Matrix
    """1 where a partial model lacks the row (rows, models), else 0."""
    misses: Vector
    """Absolute errors of these models' mean (rows,), in units of their spread plus `floor`."""
    floor: float
    """The mean of all rows' spreads: where models agree, they are not certain."""

    def __call__(self, values: Matrix) -> Vector:
        """Return the log target (n,) for values (n, variables)."""
        return predicted(self.model, values)

    def interval(self, values: Matrix, level: float) -> tuple[Vector, Vector]:
        """Return low and high log targets (n,) for a measurement of these values.

        It will be between them with a chance of `level`, and the prediction is never outside.
        Jackknife+ after bootstrap of Kim, Xu and Barber (Advances in Neural Information Processing
        Systems 33, 2020), with folds for bags, and misses in units of spread: each row's models
        predict, less and plus its miss, and the order statistics of all rows are the ends.
        benchmarks/results/models.md compares its coverage with other methods. With fewer
        rows than 1 / (1 - level) the widest interval that they give stands for an infinite one.
        """
        here = self(values)
        # About the prediction itself, so that squares of small differences are exact.
        guesses = np.array([predicted(model, values) for model in self.partial_models]) - here
        rows, models = len(self.misses), self.unseen.sum(axis=1, keepdims=True)
        shares = self.unseen / models
        # A little less, since 0.95 * 20 must not be rounded up to 20.
        rank = min(math.ceil(level * (rows + 1) - 1e-9), rows) - 1
        low, high = np.empty_like(here), np.empty_like(here)
        step = max(1, LARGEST_BLOCK // rows)
        for start in range(0, len(values), step):
            block = slice(start, start + step)
            centres = shares @ guesses[:, block]
            squares = np.maximum(shares @ guesses[:, block] ** 2 - centres**2, 0)
            spreads = np.sqrt(squares * models / (models - 1)) + self.floor
            reach = self.misses[:, None] * spreads
            low[block] = np.partition(centres - reach, rows - 1 - rank, axis=0)[rows - 1 - rank]
            high[block] = np.partition(centres + reach, rank, axis=0)[rank]
        return here + np.minimum(low, 0), here + np.maximum(high, 0)


def surrogate(
    family: str,
    hyperparameters: Hyperparameters,
    samples: Samples,
    seed: int,
    repeats: int = INTERVAL_REPEATS,
) -> Surrogate:
    """Fit a family to all rows, and without each fold of them, with folds drawn `repeats` times.

    Of more than MANY_ROWS rows, they are drawn FEWEST_REPEATS times.
    """

    def fitted(rows: Samples) -> Any:
        return fit(FAMILIES[family].build(samples.variables, hyperparameters, seed), rows)

    repeats = repeats if len(samples) <= MANY_ROWS else FEWEST_REPEATS
    folds = [
        fold
        for repeat in range(repeats)
        for fold in split(len(samples), INTERVAL_FOLDS, seed + repeat)
    ]
    partial_models: list[Any] = []
    errors = np.full((len(samples), len(folds)), np.nan)
    with one_thread():
        for number, fold in enumerate(folds):
            rest = samples.rows(fold.held_out)
            partial_models.append(fitted(samples.rows(fold.training)))
            errors[fold.held_out, number] = (
                predicted(partial_models[-1], rest.values) - rest.log_target
            )
        model = fitted(samples)
    spreads = np.nanstd(errors, axis=1, ddof=1)
    # Models that all say the same have no unit to measure misses in.
    floor = float(spreads.mean()) or 1.0
    misses = np.abs(np.nanmean(errors, axis=1)) / (spreads + floor)
    kept = _evenly(misses, MOST_MISSES)
    unseen = np.isfinite(errors[kept]).astype(np.float64)
    return Surrogate(model, tuple(partial_models), unseen, misses[kept], floor)


def _evenly(misses: Vector, most: int) -> Rows:
    """Return the places of at most so many misses, evenly spaced in ascending order."""
    ascending = np.argsort(misses, kind="stable")
    if len(ascending) > most:
        places = np.floor((np.arange(most) + 0.5) * len(ascending) / most).astype(np.intp)
        ascending = ascending[places]
    return ascending


@dataclass(frozen=True)
class Predictor:
    """Fitted models by family. Called, it gives the mean of their predictions of log latency (n,).

    Values become features once for all models, and the models are asked without the checks that
    scikit-learn makes at each call: for a population they would take longer than the trees.
    """

    models: Mapping[str, Any]

    def __call__(self, values: Matrix) -> Vector:
        """Return the mean of all models' log latency (n,) for values (n, variables)."""
        return np.asarray(np.mean(list(self.each(values).values()), axis=0))

    def each(self, values: Matrix) -> dict[str, Vector]:
        """Return every model's log latency (n,), by family; their spread tells how sure it is."""
        return {name: some.mean(axis=0) for name, some in self.members(values).items()}

    def members(self, values: Matrix) -> dict[str, Matrix]:
        """Return the predictions of every model's members (members, n), by family.

        The trees of a forest; other models are one member. Their mean is the model's prediction.
        """
        features: dict[int, Matrix] = {}
        members = {}
        for name, model in self.models.items():
            if (direct := self._direct[name]) is None:
                members[name] = predicted(model, values)[None, :]
                continue
            if direct.encoding not in features:
                features[direct.encoding] = encode(self._encodings[direct.encoding], values)
            members[name] = direct.members(features[direct.encoding])
        return members

    def only(self, family: str) -> "Predictor":
        """Return a predictor with the model of one family. Raises ValueError where it has none."""
        if family not in self.models:
            raise ValueError(f"no model of family {family}, only {', '.join(self.models)}")
        return Predictor({family: self.models[family]})

    @cached_property
    def _encodings(self) -> list[tuple[Variable, ...]]:
        """The different variables of the models: one, where they were fitted to the same samples.

        A saved model brings its own.
        """
        return list(
            dict.fromkeys(tuple(m.named_steps["encode"].variables) for m in self.models.values())
        )

    @cached_property
    def _direct(self) -> "dict[str, _Direct | None]":
        return {name: _direct(name, model, self._encodings) for name, model in self.models.items()}


@dataclass(frozen=True)
class _Direct:
    """A fitted pipeline of trees: where to scale its features from and to, and which it kept."""

    encoding: int
    mean: Vector
    scale: Vector
    kept: Rows
    regressor: Any
    of_regressor: Callable[[Any, Matrix], Matrix]

    def members(self, features: Matrix) -> Matrix:
        """Return predictions (members, n) for features (n, f) as `encode` gives them."""
        return self.of_regressor(self.regressor, (features[:, self.kept] - self.mean) / self.scale)


def _direct(family: str, model: Any, encodings: list[tuple[Variable, ...]]) -> _Direct | None:
    """Return a model without the pipeline about it; None where it has to be asked itself."""
    of_regressor = FAMILIES[family].members
    steps = model.named_steps
    if of_regressor is None or steps["condense"] != "passthrough":
        return None
    kept = steps["select"].get_support(indices=True)
    return _Direct(
        encoding=encodings.index(tuple(steps["encode"].variables)),
        mean=steps["normalise"].mean_[kept],
        scale=steps["normalise"].scale_[kept],
        kept=kept,
        regressor=steps["model"],
        of_regressor=of_regressor,
    )


def fit_trees(fitted: Sequence[FittedFamily], samples: Samples, seed: int) -> Predictor:
    """Fit the tree families among `fitted` to all rows.

    Raises ValueError when no tree family is among them.
    """
    trees = [f for f in fitted if FAMILIES[f.family].is_tree]
    if not trees:
        raise ValueError("no tree family among the fitted ones; the search needs at least one")
    models = {}
    with one_thread():
        for tree in trees:
            model = FAMILIES[tree.family].build(samples.variables, tree.hyperparameters, seed)
            models[tree.family] = fit(model, samples)
    return Predictor(models)


def held_out(
    fitted: Sequence[FittedFamily],
    samples: Samples,
    *,
    folds: int,
    seed: int,
    progress: Callable[[str], None] | None = None,
) -> Vector:
    """Return the log target (n,) of each row, by the tree families fitted without its fold.

    It is the mean of them. Hyper-parameters are taken as they are, so this takes a fit for each
    family and fold. Raises ValueError when no tree family is among `fitted`.
    """
    guesses = np.empty(len(samples))
    for number, fold in enumerate(split(len(samples), folds, seed), start=1):
        training = samples.rows(fold.training)
        if np.ptp(training.log_target) == 0:
            # Not every library takes a target that never varies.
            guesses[fold.held_out] = training.log_target[0]
        else:
            predictor = fit_trees(fitted, training, seed)
            guesses[fold.held_out] = predictor(samples.values[fold.held_out])
        if progress is not None:
            progress(f"fold {number}")
    return guesses


def fit(model: Any, samples: Samples) -> Any:
    """Fit a pipeline without its libraries' warnings, and return it."""
    with _no_warnings():
        return model.fit(samples.values, samples.log_target)


def predicted(model: Any, values: Matrix) -> Vector:
    """Return log latency (n,) by a fitted pipeline, without its libraries' warnings."""
    with _no_warnings():
        return np.asarray(model.predict(values), dtype=np.float64).reshape(len(values))


@contextmanager
def _no_warnings() -> Iterator[None]:
    # A network that did not converge shows in the error on held-out rows, which is what counts;
    # features have no names here.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
