"""Tuning: hyper-parameters by Bayesian search, and the error to expect, by nested folds.

A configuration is one row, with all of its trials: replicates never stand on both sides of a
split, where a model would be praised for remembering. The error comes from outer folds, with the
search done anew inside each one's training part, so that it knows nothing of the held-out rows.
"""

import math
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from intop.domain.results import FittedFamily, ModelError
from intop.learn.families import FAMILIES
from intop.learn.families.family import Family
from intop.learn.preprocess import Hyperparameters
from intop.learn.samples import Rows, Samples, Vector
from intop.learn.surrogate import fit, one_thread, predicted

if TYPE_CHECKING:
    from optuna import Trial

INNER_FOLDS = 5
"""With three, the choice among few tries on 40 rows was noise, and often worse than no search."""
FEWEST_ROWS = 4
"""What a search needs: fewer configurations leave training parts of one or two."""


def tune(
    family: str, samples: Samples, *, trials: int, timeout_s: float | None, seed: int
) -> FittedFamily:
    """The hyper-parameters of a family that predict held-out rows best, of `trials` tried.

    The first try is the family's own defaults. `inner_score` is R² on the log target over the
    held-out rows of all folds. The same seed gives the same result unless `timeout_s` cuts the
    search short. Raises ValueError for fewer than FEWEST_ROWS rows.
    """
    import optuna

    if len(samples) < FEWEST_ROWS:
        raise ValueError(
            f"{len(samples)} configurations are too few to tune {family}; at least {FEWEST_ROWS}"
        )
    parts = _split(len(samples), INNER_FOLDS, seed)
    model = FAMILIES[family]

    def objective(trial: "Trial") -> float:
        hyperparameters = model.suggest(trial, len(samples))
        trial.set_user_attr("hyperparameters", hyperparameters)
        guesses = np.empty(len(samples))
        for part in parts:
            guesses[part.held_out] = _guesses(model, hyperparameters, samples, part, seed)
        return r_squared(samples.log_target, guesses)

    with _silent_optuna(), one_thread():
        # Half of a short search at random, not all of it.
        sampler = optuna.samplers.TPESampler(seed=seed, n_startup_trials=min(10, 1 + trials // 2))
        study = optuna.create_study(direction="maximize", sampler=sampler)
        study.enqueue_trial(dict(model.defaults))
        study.optimize(objective, n_trials=trials, timeout=timeout_s)
    best = study.best_trial
    hyperparameters: Hyperparameters = best.user_attrs["hyperparameters"]
    return FittedFamily(
        family=family, hyperparameters=hyperparameters, inner_score=float(study.best_value)
    )


def train_all(
    families: Sequence[str],
    samples: Samples,
    *,
    folds: int,
    trials: int,
    timeout_s: float | None,
    seed: int,
    jobs: int = 2,
    progress: Callable[[str], None] | None = None,
) -> list[tuple[FittedFamily, ModelError]]:
    """Each family tuned on all rows, with its error over the held-out rows of all folds.

    Every fold of every family is a task of its own for `jobs` processes. `timeout_s` bounds the
    searches of one family, folds included. `progress` is called here, in the calling process,
    with the name of each family that is finished. Raises ValueError for too few rows.
    """
    from joblib import Parallel, delayed

    parts = [*_outer_parts(len(samples), folds, seed), _everything(len(samples))]
    effort = _Effort(trials, None if timeout_s is None else timeout_s / len(parts), seed)
    finished: dict[str, list[_Outcome]] = {family: [] for family in families}
    tasks = [_Task(family, part) for family in finished for part in parts]
    run = Parallel(n_jobs=jobs, return_as="generator_unordered")
    for outcome in run(delayed(_run)(task, samples, effort) for task in tasks):
        outcomes = finished[outcome.family]
        outcomes.append(outcome)
        if len(outcomes) == len(parts) and progress is not None:
            progress(outcome.family)
    return [_both(family, samples, finished[family]) for family in families]


def r_squared(measured: Vector, guesses: Vector) -> float:
    """The share of the variance that the guesses explain; 0 when nothing varies."""
    total = float(np.sum((measured - measured.mean()) ** 2))
    return 0.0 if total == 0 else 1 - float(np.sum((measured - guesses) ** 2)) / total


@dataclass(frozen=True)
class _Part:
    """One split of the rows; in the one that is for use rather than judged, none is held out."""

    training: Rows
    held_out: Rows


@dataclass(frozen=True)
class _Effort:
    """How much one search may cost."""

    trials: int
    timeout_s: float | None
    seed: int


@dataclass(frozen=True)
class _Task:
    """One family, to be tuned and fitted on one part."""

    family: str
    part: _Part


@dataclass(frozen=True)
class _Outcome:
    """What a task found, with its predictions for the held-out rows."""

    family: str
    fitted: FittedFamily
    held_out: Rows
    guesses: Vector
    seconds: float


def _run(task: _Task, samples: Samples, effort: _Effort) -> _Outcome:
    started = time.perf_counter()
    fitted = tune(
        task.family,
        samples.rows(task.part.training),
        trials=effort.trials,
        timeout_s=effort.timeout_s,
        seed=effort.seed,
    )
    guesses = np.empty(0)
    if len(task.part.held_out):
        with one_thread():
            guesses = _guesses(
                FAMILIES[task.family], fitted.hyperparameters, samples, task.part, effort.seed
            )
    seconds = time.perf_counter() - started
    return _Outcome(task.family, fitted, task.part.held_out, guesses, seconds)


def _guesses(
    family: Family, hyperparameters: Hyperparameters, samples: Samples, part: _Part, seed: int
) -> Vector:
    """The log target of a part's held-out rows, by a model of its training rows."""
    model = family.build(samples.variables, hyperparameters, seed)
    return predicted(fit(model, samples.rows(part.training)), samples.values[part.held_out])


def _both(
    family: str, samples: Samples, outcomes: Sequence[_Outcome]
) -> tuple[FittedFamily, ModelError]:
    """The hyper-parameters found on all rows, and the error over the folds."""
    whole = next(o for o in outcomes if not len(o.held_out))
    return whole.fitted, _model_error(family, samples, [o for o in outcomes if o is not whole])


def _model_error(family: str, samples: Samples, outcomes: Sequence[_Outcome]) -> ModelError:
    measured = samples.log_target
    guesses = np.empty(len(samples))
    for outcome in outcomes:
        guesses[outcome.held_out] = outcome.guesses
    return ModelError(
        family=family,
        # |exp(guess) - P99| / P99, without the two large numbers.
        mape=float(100 * np.mean(np.abs(np.expm1(guesses - measured)))),
        r2=r_squared(measured, guesses),
        spearman=_spearman(measured, guesses),
        trials=sum(len(trials) for trials in samples.measured),
        seconds=sum(outcome.seconds for outcome in outcomes),
    )


def _spearman(measured: Vector, guesses: Vector) -> float:
    from scipy.stats import spearmanr

    # A model that always says the same ranks nothing.
    if np.ptp(guesses) == 0 or np.ptp(measured) == 0:
        return 0.0
    return float(spearmanr(measured, guesses).statistic)


def _outer_parts(count: int, folds: int, seed: int) -> list[_Part]:
    """At most `folds` parts, each with enough rows left to tune a model on."""
    if folds < 2:
        raise ValueError(f"an error needs at least 2 folds, got {folds}")
    if count < (fewest := fewest_rows(folds)):
        raise ValueError(
            f"{count} configurations are too few to evaluate a model in {folds} folds;"
            f" at least {fewest}"
        )
    return _split(count, folds, seed)


def fewest_rows(folds: int) -> int:
    """The least number of which every fold, the largest too, leaves FEWEST_ROWS."""
    count = FEWEST_ROWS + 1
    while count - math.ceil(count / min(folds, count)) < FEWEST_ROWS:
        count += 1
    return count


def _split(count: int, folds: int, seed: int) -> list[_Part]:
    """Parts of which each holds out about as many rows as the others."""
    from sklearn.model_selection import KFold

    splitter = KFold(n_splits=min(folds, count), shuffle=True, random_state=seed)
    return [_Part(train, test) for train, test in splitter.split(np.empty(count))]


def _everything(count: int) -> _Part:
    rows = np.arange(count)
    return _Part(rows, rows[:0])


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
