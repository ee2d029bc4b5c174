"""Surrogates: fitted models that stand for measurements, and how far they can be trusted."""

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from intop.domain.encoding import Matrix
from intop.domain.results import FittedFamily
from intop.learn.families import FAMILIES
from intop.learn.folds import split
from intop.learn.parallel import one_thread
from intop.learn.preprocess import Hyperparameters
from intop.learn.samples import Samples, Vector

INTERVAL_FOLDS = 5
MOST_MISSES = 1000
"""Errors that are kept for intervals. Of more, evenly spaced order statistics say as much."""
LARGEST_BLOCK = 1_000_000


@dataclass(frozen=True)
class Surrogate:
    """A fitted family, with its errors on rows that it had not seen.

    `model` knows all rows; each of the `others` lacks one fold's, and its `misses` are the
    absolute errors of log target there, ascending.
    """

    model: Any
    others: tuple[Any, ...]
    misses: tuple[Vector, ...]

    def __call__(self, values: Matrix) -> Vector:
        """The log target (n,) for values (n, variables)."""
        return predicted(self.model, values)

    def interval(self, values: Matrix, level: float) -> tuple[Vector, Vector]:
        """Where a measurement of these values will be with a chance of `level`: low and high.

        Both are log targets (n,), and the prediction is never outside. CV+ of Barber, Candès,
        Ramdas and Tibshirani (Annals of Statistics 49, 2021, 486-507): the order statistics of
        each other model's prediction less and plus its misses. It takes the rows as drawn alike,
        and nothing else. With fewer rows than 1 / (1 - level) the widest interval that they give
        stands for an infinite one.
        """
        here = self(values)
        guesses = [predicted(model, values) for model in self.others]
        count = sum(len(misses) for misses in self.misses)
        # A little less, since 0.95 * 20 must not be rounded up to 20.
        rank = min(math.ceil(level * (count + 1) - 1e-9), count) - 1
        low, high = np.empty_like(here), np.empty_like(here)
        step = max(1, LARGEST_BLOCK // count)
        for start in range(0, len(values), step):
            block = slice(start, start + step)
            pairs = [
                (guess[block, None], misses)
                for guess, misses in zip(guesses, self.misses, strict=True)
            ]
            below = np.hstack([guess - misses for guess, misses in pairs])
            above = np.hstack([guess + misses for guess, misses in pairs])
            low[block] = np.partition(below, count - 1 - rank, axis=1)[:, count - 1 - rank]
            high[block] = np.partition(above, rank, axis=1)[:, rank]
        return np.minimum(low, here), np.maximum(high, here)


def surrogate(
    family: str, hyperparameters: Hyperparameters, samples: Samples, seed: int
) -> Surrogate:
    """A family fitted to all rows, and once more without each fold of them."""

    def fitted(rows: Samples) -> Any:
        return fit(FAMILIES[family].build(samples.variables, hyperparameters, seed), rows)

    folds = split(len(samples), INTERVAL_FOLDS, seed)
    most = max(1, MOST_MISSES // len(folds))
    others: list[Any] = []
    misses: list[Vector] = []
    with one_thread():
        for fold in folds:
            other, held_out = fitted(samples.rows(fold.training)), samples.rows(fold.held_out)
            others.append(other)
            misses.append(
                _thinned(np.abs(predicted(other, held_out.values) - held_out.log_target), most)
            )
        return Surrogate(fitted(samples), tuple(others), tuple(misses))


def _thinned(misses: Vector, most: int) -> Vector:
    """In ascending order, and at most so many of them, evenly spaced."""
    ascending = np.sort(misses)
    if len(ascending) <= most:
        return ascending
    return ascending[np.floor((np.arange(most) + 0.5) * len(ascending) / most).astype(int)]


@dataclass(frozen=True)
class Predictor:
    """Fitted models by family. Called, it gives the mean of their predictions of log P99 (n,)."""

    models: Mapping[str, Any]

    def __call__(self, values: Matrix) -> Vector:
        """The mean of all models' log P99 (n,) for values (n, variables)."""
        return np.asarray(np.mean(list(self.each(values).values()), axis=0))

    def each(self, values: Matrix) -> dict[str, Vector]:
        """Every model's log P99 (n,), by family; their spread shows how sure the mean is."""
        return {name: predicted(model, values) for name, model in self.models.items()}

    def only(self, family: str) -> "Predictor":
        """The same with the model of one family. Raises ValueError for one that it lacks."""
        if family not in self.models:
            raise ValueError(f"no model of family {family}, only {', '.join(self.models)}")
        return Predictor({family: self.models[family]})


def fit_trees(fitted: Sequence[FittedFamily], samples: Samples, seed: int) -> Predictor:
    """The tree families among `fitted`, each fitted to all rows.

    Raises ValueError when no tree family is among them.
    """
    trees = [f for f in fitted if FAMILIES[f.family].is_tree]
    if not trees:
        raise ValueError("no tree family among the fitted ones; the search needs at least one")
    models = {}
    with one_thread():
        for found in trees:
            family = FAMILIES[found.family]
            model = family.build(samples.variables, found.hyperparameters, seed)
            models[found.family] = fit(model, samples)
    return Predictor(models)


def fit(model: Any, samples: Samples) -> Any:
    """Fits a pipeline without its libraries' warnings, and returns it."""
    with _no_warnings():
        return model.fit(samples.values, samples.log_target)


def predicted(model: Any, values: Matrix) -> Vector:
    """Log P99 (n,) by a fitted pipeline, without its libraries' warnings."""
    with _no_warnings():
        return np.asarray(model.predict(values), dtype=np.float64).reshape(len(values))


@contextmanager
def _no_warnings() -> Iterator[None]:
    # A network that did not converge shows in the error on held-out rows, which is what counts;
    # features have no names here.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
