"""Transfer: models of one machine that start from what was measured on another.

Two machines differ by little more than a line in the logarithms where the same configurations are
fast on both; what is left is learned like any other target. benchmarks/results/transfer.md
compares the accuracy with other ways.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from intop.domain.encoding import Matrix, Variable
from intop.learn.families import FAMILIES
from intop.learn.folds import split
from intop.learn.parallel import one_thread
from intop.learn.preprocess import Hyperparameters
from intop.learn.samples import Samples, Vector
from intop.learn.surrogate import fit, predicted

SCRATCH, MAPPED, CORRECTED = "from scratch", "mapped", "corrected"
WAYS = (SCRATCH, MAPPED, CORRECTED)
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
    """What the source's trials say of the target's configurations, by the variables of both.

    `pairs` are the columns of target and source with the same name, one a number in both or a name
    in both. Where the source has measured the very configuration, that counts; else it is
    predicted by a model of the source.
    """

    family: str
    hyperparameters: Mapping[str, float | int | str | bool]
    variables: tuple[Variable, ...]
    source: Samples
    pairs: tuple[tuple[int, int], ...]
    seed: int

    def __call__(self, values: Matrix) -> Vector:
        """The source's log target (n,) of the target's values (n, variables)."""
        told = self._told(values)
        known = [self._measured.get(row.tobytes()) for row in told]
        unknown = [n for n, value in enumerate(known) if value is None]
        guesses = np.array([np.nan if value is None else value for value in known])
        if unknown:
            guesses[unknown] = predicted(self._model, told[unknown])
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
            model = family.build(self.known.variables, dict(self.hyperparameters), self.seed)
            return fit(model, self.known)

    @cached_property
    def _measured(self) -> dict[bytes, float]:
        """The log target by the bytes of a row: nothing where the source varied more than that."""
        if len(self.pairs) < len(self.source.variables):
            return {}
        rows = zip(self.known.values, self.known.log_target.tolist(), strict=True)
        return {row.tobytes(): value for row, value in rows}

    def _told(self, values: Matrix) -> Matrix:
        """The target's values in the source's numbers: its choices may stand in another order."""
        told = np.empty((len(values), len(self.pairs)))
        for place, (here, there) in enumerate(self.pairs):
            mine, theirs = self.variables[here], self.source.variables[there]
            # What the source never had is none of its choices, or half-way between two.
            unheard = -1.0 if len(theirs.choices) > 2 else 0.5
            told[:, place] = mine.in_terms_of(theirs, values[:, here] + 0.0, unheard)
        return told


@dataclass(frozen=True)
class Warm:
    """A model of the target that knows the source: the mean of all ways by `shares`.

    `errors` are mean absolute errors of the log target on held-out rows of the target. Both are by
    way; without a variable in common there is but one.
    """

    prior: Prior
    ways: Mapping[str, Predict]
    errors: Mapping[str, float]
    shares: Mapping[str, float]

    def __call__(self, values: Matrix) -> Vector:
        """The log target (n,) for values (n, variables)."""
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
    """What `source` says of configurations with the target's variables."""
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
    """A family's model of the target that starts from what is `known` of the source.

    The target's rows are held out fold by fold, and the ways weigh by their error there: a source
    that has nothing to do with the target has hardly any weight. Raises ValueError for fewer than
    FEWEST_ROWS rows.
    """
    if len(target) < FEWEST_ROWS:
        raise ValueError(f"a warm start needs {FEWEST_ROWS} rows of its own, got {len(target)}")
    chosen = dict(FAMILIES[family].defaults if hyperparameters is None else hyperparameters)
    names = WAYS if known.pairs else (SCRATCH,)
    hints = known(target.values) if known.pairs else np.zeros(len(target))
    reach = _reach(known.source.log_target)

    def fitted(samples: Samples, told: Vector) -> dict[str, Predict]:
        return {way: _MAKE[way](family, chosen, samples, told, reach, seed) for way in names}

    with one_thread():
        missed: dict[str, list[float]] = {way: [] for way in names}
        for fold in split(len(target), FOLDS, seed):
            out = fold.held_out
            tried = fitted(target.rows(fold.training), hints[fold.training])
            for way, predict in tried.items():
                guesses = predict(target.values[out], hints[out])
                missed[way] += np.abs(guesses - target.log_target[out]).tolist()
        ways = fitted(target, hints)
    errors = {way: float(np.mean(misses)) for way, misses in missed.items()}
    # What is met exactly has an error of 0.
    floored = np.maximum(list(errors.values()), 1e-12)
    weights = (floored / floored.min()) ** -STEEPNESS
    shares = dict(zip(errors, (weights / weights.sum()).tolist(), strict=True))
    return Warm(known, ways, errors, shares)


def _reach(logs: Vector) -> tuple[float, float]:
    low, high = float(logs.min()), float(logs.max())
    return (low, high) if low < high else (low - 0.5, high + 0.5)


def _scratch(
    family: str,
    hyperparameters: Hyperparameters,
    samples: Samples,
    _hints: Vector,
    _reach: tuple[float, float],
    seed: int,
) -> Predict:
    model = fit(FAMILIES[family].build(samples.variables, hyperparameters, seed), samples)
    return lambda values, _: predicted(model, values)


def _mapped(
    _family: str,
    _hyperparameters: Hyperparameters,
    samples: Samples,
    hints: Vector,
    _reach: tuple[float, float],
    _seed: int,
) -> Predict:
    """Least squares; a source that always says the same has no slope."""
    apart = hints - hints.mean()
    spread = float(apart @ apart)
    slope = float(apart @ samples.log_target) / spread if spread > 0 else 0.0
    centre, height = float(hints.mean()), float(samples.log_target.mean())
    return lambda _, told: height + slope * (told - centre)


def _corrected(
    family: str,
    hyperparameters: Hyperparameters,
    samples: Samples,
    hints: Vector,
    reach: tuple[float, float],
    seed: int,
) -> Predict:
    """The model sees what the source says as well: where a line bends, it can tell."""
    line = _mapped(family, hyperparameters, samples, hints, reach, seed)
    hint = Variable(name=PRIOR, key=PRIOR, low=reach[0], high=reach[1])
    misses = samples.log_target - line(samples.values, hints)
    wider = Samples(
        variables=(*samples.variables, hint),
        values=np.column_stack([samples.values, hints]),
        measured=tuple((miss,) for miss in np.exp(misses).tolist()),
    )
    model = fit(FAMILIES[family].build(wider.variables, hyperparameters, seed), wider)
    return lambda values, told: (
        line(values, told) + predicted(model, np.column_stack([values, told]))
    )


_MAKE = {SCRATCH: _scratch, MAPPED: _mapped, CORRECTED: _corrected}
