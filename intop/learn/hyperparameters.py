"""The search for a family's hyper-parameters, by Optuna, which can be cut into slices."""

import math
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from intop.domain.training import FittedFamily, Try
from intop.learn.families import FAMILIES
from intop.learn.folds import Fold, split
from intop.learn.parallel import one_thread
from intop.learn.preprocess import Hyperparameters
from intop.learn.samples import Samples, Vector
from intop.learn.surrogate import fit, predicted

if TYPE_CHECKING:
    from optuna import Study, Trial
    from optuna.trial import FrozenTrial

INNER_FOLDS = 5
"""With three, the choice among few tries on 40 rows was noise, and often worse than no search."""
FEWEST_ROWS = 4
"""What a search needs: fewer configurations leave training parts of one or two."""
MOST_SEARCHED = 2_000
"""Rows that hyper-parameters are searched on, drawn at random: of 50,000 a search takes hours."""
UNPRUNED_TRIES = 5
"""Tries that go through all folds, before the median of them is worth a comparison."""


@dataclass(frozen=True)
class Effort:
    """How much one search may cost, and the level of its intervals."""

    trials: int
    timeout_s: float | None
    seed: int
    level: float = 0.95

    def is_spent(self, tries: Sequence[Try]) -> bool:
        """Whether a search ends after these tries."""
        if len(tries) >= self.trials:
            return True
        return self.timeout_s is not None and sum(t.seconds for t in tries) >= self.timeout_s


def score(measured: Vector, guesses: Vector) -> float:
    """What a search makes as low as it can: the mean absolute error of the log target.

    Not of its square: on noisy tables, a few rows that nothing explains would choose the model.
    Infinite for guesses that are no numbers, such as a network's that ran away.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        error = float(np.mean(np.abs(guesses - measured)))
    return error if math.isfinite(error) else math.inf


def tune(
    family: str, samples: Samples, *, trials: int, timeout_s: float | None, seed: int
) -> FittedFamily:
    """The hyper-parameters of a family that predict held-out rows best, of `trials` tried.

    The first try is the family's own defaults. `inner_score` is `score` over the held-out rows of
    all folds. A try is given up after a fold by which it is worse than the median of the earlier
    ones was (the median stopping rule of Golovin et al., Proceedings of KDD 2017, 1487-1495). Of
    more than MOST_SEARCHED rows, so many are drawn at random. The same seed gives the same result
    unless `timeout_s` cuts the search short. Raises ValueError for fewer than FEWEST_ROWS rows.
    """
    return best_of(family, continued(family, samples, Effort(trials, timeout_s, seed)))


def best_of(family: str, tries: Sequence[Try]) -> FittedFamily:
    """The first try with the lowest error over all folds."""
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
    """A search from these tries on, until it ends or has gone on for `slice_s`: all of its tries.

    There is one more at least, unless it has ended. Each depends on the seed and the earlier ones
    only, however they were cut into slices: Optuna's study goes through those again, with the
    errors that they had, and so its sampler and its pruner are where they were.
    Raises ValueError for fewer than FEWEST_ROWS rows.
    """
    import optuna

    if len(samples) < FEWEST_ROWS:
        raise ValueError(
            f"{len(samples)} configurations are too few to tune {family}; at least {FEWEST_ROWS}"
        )
    made = list(tries)
    if effort.is_spent(made):
        return made
    samples = samples.part(MOST_SEARCHED, effort.seed)
    model, folds = FAMILIES[family], split(len(samples), INNER_FOLDS, effort.seed)
    ends = time.perf_counter() + slice_s

    def objective(trial: "Trial") -> float:
        hyperparameters = model.suggest(trial, len(samples))
        if trial.number == len(made):
            started = time.perf_counter()
            errors, pruned = _tried(
                trial, _errors(family, samples, hyperparameters, folds, effort.seed), len(folds)
            )
            seconds = time.perf_counter() - started
            made.append(
                Try(
                    number=trial.number,
                    hyperparameters=hyperparameters,
                    errors=errors,
                    pruned=pruned,
                    seconds=seconds,
                )
            )
        else:
            for number, error in enumerate(made[trial.number].errors):
                trial.report(error, number)
        if made[trial.number].pruned:
            raise optuna.TrialPruned
        return made[trial.number].errors[-1]

    def stop_in_time(study: "Study", trial: "FrozenTrial") -> None:
        if trial.number >= len(tries) and (effort.is_spent(made) or time.perf_counter() >= ends):
            study.stop()

    with _silent_optuna(), one_thread():
        # Half of a short search at random, not all of it.
        startup = min(10, 1 + effort.trials // 2)
        sampler = optuna.samplers.TPESampler(seed=effort.seed, n_startup_trials=startup)
        pruner = optuna.pruners.MedianPruner(n_startup_trials=UNPRUNED_TRIES, n_warmup_steps=1)
        study = optuna.create_study(direction="minimize", sampler=sampler, pruner=pruner)
        study.enqueue_trial(dict(model.defaults))
        study.optimize(objective, n_trials=effort.trials, callbacks=[stop_in_time])
    return made


def _errors(
    family: str,
    samples: Samples,
    hyperparameters: Hyperparameters,
    folds: Sequence[Fold],
    seed: int,
) -> Iterator[float]:
    """The error over the held-out rows of all folds so far, fold by fold."""
    measured, guesses = np.empty(0), np.empty(0)
    for fold in folds:
        training, held_out = samples.rows(fold.training), samples.rows(fold.held_out)
        model = FAMILIES[family].build(samples.variables, hyperparameters, seed)
        fitted = fit(model, training)
        measured = np.append(measured, held_out.log_target)
        guesses = np.append(guesses, predicted(fitted, held_out.values))
        yield score(measured, guesses)


def _tried(trial: "Trial", errors: Iterator[float], folds: int) -> tuple[tuple[float, ...], bool]:
    """The errors of a try, and whether it was given up before the last of the folds."""
    made: list[float] = []
    for error in errors:
        trial.report(error, len(made))
        made.append(error)
        if len(made) < folds and trial.should_prune():
            return tuple(made), True
    return tuple(made), False


@contextmanager
def _silent_optuna() -> Iterator[None]:
    """Optuna logs every trial unless told otherwise; the caller's setting comes back."""
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
