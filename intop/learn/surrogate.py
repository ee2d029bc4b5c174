"""Surrogates: fitted models that stand for measurements."""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from intop.domain.encoding import Matrix
from intop.domain.results import FittedFamily
from intop.learn.families import FAMILIES
from intop.learn.samples import Samples, Vector


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
def one_thread() -> Iterator[None]:
    """One thread for linear algebra and OpenMP as long as it lasts.

    Matrices are small here: more threads only wait for each other. Entering costs milliseconds.
    """
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1):
        yield


@contextmanager
def _no_warnings() -> Iterator[None]:
    # A network that did not converge shows in the error on held-out rows, which is what counts;
    # features have no names here.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
