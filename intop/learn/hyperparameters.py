"""The search for a family's hyper-parameters, by Optuna, which can be cut into slices."""

import math
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from intop.domain.training import FittedFamily, Try
from intop.learn.families import FAMILIES, Family, Hyperparameters
from intop.learn.parallel import one_thread
from intop.learn.samples import Fold, Samples, Vector, split
from intop.learn.surrogate import fit, predicted
from intop.learn.tuning_effort import INNER_FOLDS, MOST_SEARCHED, UNPRUNED_TRIES, Effort

if TYPE_CHECKING:
    from optuna import Study, Trial
    from optuna.trial import FrozenTrial

FEWEST_ROWS = 4
"""The fewest configurations of a search: fewer leave training parts of one or two."""
FEW_FEATURES: Hyperparameters = {"kept_percent": 25}
"""The second try, beside the defaults: most parameters act on little."""


def score(measured: Vector, guesses: Vector) -> float:
    """Return what a search makes as low as it can: the mean absolute error of the log target.

    Not of its square: on noisy tables, a few rows that nothing explains would choose the model.
    Infinite for guesses that are no numbers, such as a network's that ran away.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        error = float(np.mean(np.abs(guesses - measured)))
    return error if math.isfinite(error) else math.inf


def best_of(family: str, tries: Sequence[Try]) -> FittedFamily:
    """Return the first try with the lowest error over all folds, `inner_score`."""
    best = min((t for t in tries if not t.pruned), key=lambda t: t.errors[-1])
    return FittedFamily(
        family=family, hyperparameters=best.hyperparameters, inner_score=best.errors[-1]
    )


def continued(
    family: str,
    samples: Samples,
    effort: Effort,
    tries: Sequence[Try] = (),
    slice_s: float = math.inf,
) -> list[Try]:
    """Continue a search after these tries until it ends, or for `slice_s`. Return all its tries.

    There is one more at least, unless it has ended. The first try is the family's own defaults. A
    try is given up after a fold by which it is worse than the median of the earlier ones was (the
    median stopping rule of Golovin et al., Proceedings of KDD 2017, 1487-1495). Of more than
    MOST_SEARCHED rows, so many are drawn at random.

    Each try depends on the seed and the earlier ones only, however they were cut into slices:
    Optuna's study goes through those again, with the errors that they had, and so its sampler and
    its pruner are where they were. Raises ValueError for fewer than FEWEST_ROWS rows.
    """
    import optuna

    if len(samples) < FEWEST_ROWS:
        raise ValueError(
            f"{len(samples)} configurations are too few to tune {family}; at least {FEWEST_ROWS}"
        )
    if effort.is_spent(tries):
        return list(tries)
    search = _Search(FAMILIES[family], samples, effort, tries, time.perf_counter() + slice_s)
    with _silent_optuna(), one_thread():
        # Half of a short search at random, not all of it.
        startup = min(10, 1 + effort.trials // 2)
        sampler = optuna.samplers.TPESampler(seed=effort.seed, n_startup_trials=startup)
        pruner = optuna.pruners.MedianPruner(n_startup_trials=UNPRUNED_TRIES, n_warmup_steps=1)
        study = optuna.create_study(direction="minimize", sampler=sampler, pruner=pruner)
        study.enqueue_trial(search.family.defaults)
        study.enqueue_trial(search.family.defaults | FEW_FEATURES)
        study.optimize(search.objective, n_trials=effort.trials, callbacks=[search.stop_in_time])
    return search.tries


class _Search:
    """A search as Optuna asks for it: each try's error, and whether to stop."""

    def __init__(
        self, family: Family, samples: Samples, effort: Effort, tries: Sequence[Try], ends: float
    ) -> None:
        self.family = family
        self.tries = list(tries)
        self._samples = samples.part(MOST_SEARCHED, effort.seed)
        self._folds = split(len(self._samples), INNER_FOLDS, effort.seed)
        self._effort = effort
        self._earlier = len(tries)
        self._ends = ends

    def objective(self, trial: "Trial") -> float:
        """Return the error of a try over all folds. Raises TrialPruned for one given up."""
        import optuna

        hyperparameters = self.family.suggest(trial)
        if trial.number == len(self.tries):
            self.tries.append(self._tried(trial, hyperparameters))
        else:
            for number, error in enumerate(self.tries[trial.number].errors):
                trial.report(error, number)
        if self.tries[trial.number].pruned:
            raise optuna.TrialPruned
        return self.tries[trial.number].errors[-1]

    def stop_in_time(self, study: "Study", trial: "FrozenTrial") -> None:
        """End the study where the effort or the slice is spent."""
        is_over = self._effort.is_spent(self.tries) or time.perf_counter() >= self._ends
        if trial.number >= self._earlier and is_over:
            study.stop()

    def _tried(self, trial: "Trial", hyperparameters: Hyperparameters) -> Try:
        """Return a try with its error over the held-out rows of all folds so far, fold by fold."""
        started = time.perf_counter()
        measured, guesses, pruned = np.empty(0), np.empty(0), False
        errors: list[float] = []
        for number, fold in enumerate(self._folds):
            held_out = self._samples.rows(fold.held_out)
            measured = np.append(measured, held_out.log_target)
            guesses = np.append(guesses, self._guesses(hyperparameters, fold, held_out))
            errors.append(score(measured, guesses))
            trial.report(errors[-1], number)
            if number + 1 < len(self._folds) and trial.should_prune():
                pruned = True
                break
        return Try(
            number=trial.number,
            hyperparameters=hyperparameters,
            errors=tuple(errors),
            pruned=pruned,
            seconds=time.perf_counter() - started,
        )

    def _guesses(self, hyperparameters: Hyperparameters, fold: Fold, held_out: Samples) -> Vector:
        model = self.family.build(self._samples.variables, hyperparameters, self._effort.seed)
        return predicted(fit(model, self._samples.rows(fold.training)), held_out.values)


@contextmanager
def _silent_optuna() -> Iterator[None]:
    """Keep Optuna from logging every trial, and restore the caller's setting."""
    import optuna

    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        with warnings.catch_warnings():
            # Experimental features, and nothing that a user could act on.
            warnings.simplefilter("ignore")
            yield
    finally:
        optuna.logging.set_verbosity(before)
