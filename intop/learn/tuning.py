"""Tuning: hyper-parameters by Bayesian search, and the error to expect, by nested folds.

Rows of one group (one configuration, measured several times) always stand on the same side of a
split; otherwise a model would be praised for remembering. The error comes from outer folds, with
the search done anew inside each one's training part, so that it knows nothing of the held-out
rows.
"""

import math
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from intop.domain.results import FittedFamily, ModelError
from intop.domain.space import Matrix
from intop.learn.preprocess import Hyperparameters
from intop.learn.surrogate import FAMILIES, Family, Vector, fit, one_thread, predicted

if TYPE_CHECKING:
    from optuna import Trial

Rows = NDArray[np.intp]
Groups = Sequence[str] | Sequence[int] | NDArray[np.generic]

INNER_FOLDS = 5
"""With three, the choice among few tries on 40 rows was noise, and often worse than no search."""
FEWEST_GROUPS = 4
"""What a search needs: fewer configurations leave training parts of one or two."""


def tune(
    family: str,
    features: Matrix,
    log_p99: Vector,
    groups: Groups,
    *,
    trials: int,
    timeout_s: float | None,
    seed: int,
) -> FittedFamily:
    """The hyper-parameters of a family that predict held-out groups best, of `trials` tried.

    The first try is the family's own defaults. `inner_score` is R² on log P99 over the held-out
    rows of all folds. The same seed gives the same result unless `timeout_s` cuts the search
    short. Raises ValueError for fewer than FEWEST_GROUPS groups.
    """
    import optuna

    data = _data(features, log_p99, groups)
    count = len(np.unique(data.groups))
    if count < FEWEST_GROUPS:
        raise ValueError(
            f"{count} configurations are too few to tune {family}; at least {FEWEST_GROUPS}"
        )
    parts = _split(data.groups, INNER_FOLDS, seed)
    model = FAMILIES[family]

    def objective(trial: "Trial") -> float:
        hyperparameters = model.suggest(trial, len(log_p99))
        trial.set_user_attr("hyperparameters", hyperparameters)
        guesses = np.empty(len(log_p99))
        for part in parts:
            guesses[part.held_out] = _guesses(model, hyperparameters, data, part, seed)
        return r_squared(data.log_p99, guesses)

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


def evaluate(
    family: str,
    features: Matrix,
    log_p99: Vector,
    groups: Groups,
    *,
    folds: int,
    trials: int,
    timeout_s: float | None,
    seed: int,
) -> ModelError:
    """How well a family predicts groups that neither the model nor the search has seen.

    `timeout_s` bounds the searches of all folds together. Raises ValueError for too few groups.
    """
    data = _data(features, log_p99, groups)
    parts = _outer_parts(data.groups, folds, seed)
    effort = _Effort(trials, None if timeout_s is None else timeout_s / len(parts), seed)
    return _model_error(family, data, [_run(_Task(family, part), data, effort) for part in parts])


def train_all(
    families: Sequence[str],
    features: Matrix,
    log_p99: Vector,
    groups: Groups,
    *,
    folds: int,
    trials: int,
    timeout_s: float | None,
    seed: int,
    jobs: int = 2,
    progress: Callable[[str], None] | None = None,
) -> list[tuple[FittedFamily, ModelError]]:
    """Each family tuned on all rows, with its error: as `tune` and `evaluate` give them.

    Every fold of every family is a task of its own for `jobs` processes. `timeout_s` bounds the
    searches of one family, folds included. `progress` is called here, in the calling process,
    with the name of each family that is finished. Raises ValueError for too few groups.
    """
    from joblib import Parallel, delayed

    data = _data(features, log_p99, groups)
    parts = [*_outer_parts(data.groups, folds, seed), _everything(data)]
    effort = _Effort(trials, None if timeout_s is None else timeout_s / len(parts), seed)
    finished: dict[str, list[_Outcome]] = {family: [] for family in families}
    tasks = [_Task(family, part) for family in finished for part in parts]
    run = Parallel(n_jobs=jobs, return_as="generator_unordered")
    for outcome in run(delayed(_run)(task, data, effort) for task in tasks):
        outcomes = finished[outcome.family]
        outcomes.append(outcome)
        if len(outcomes) == len(parts) and progress is not None:
            progress(outcome.family)
    return [_both(family, data, finished[family]) for family in families]


def r_squared(measured: Vector, guesses: Vector) -> float:
    """The share of the variance that the guesses explain; 0 when nothing varies."""
    total = float(np.sum((measured - measured.mean()) ** 2))
    return 0.0 if total == 0 else 1 - float(np.sum((measured - guesses) ** 2)) / total


@dataclass(frozen=True)
class _Data:
    """Trials as numbers: features (n, f), log P99 (n,), groups (n,)."""

    features: Matrix
    log_p99: Vector
    groups: NDArray[np.generic]


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


def _run(task: _Task, data: _Data, effort: _Effort) -> _Outcome:
    started = time.perf_counter()
    rows = task.part.training
    fitted = tune(
        task.family,
        data.features[rows],
        data.log_p99[rows],
        data.groups[rows],
        trials=effort.trials,
        timeout_s=effort.timeout_s,
        seed=effort.seed,
    )
    guesses = np.empty(0)
    if len(task.part.held_out):
        with one_thread():
            guesses = _guesses(
                FAMILIES[task.family], fitted.hyperparameters, data, task.part, effort.seed
            )
    seconds = time.perf_counter() - started
    return _Outcome(task.family, fitted, task.part.held_out, guesses, seconds)


def _guesses(
    family: Family, hyperparameters: Hyperparameters, data: _Data, part: _Part, seed: int
) -> Vector:
    """Log P99 of a part's held-out rows, by a model of its training rows."""
    rows = part.training
    model = fit(family.build(hyperparameters, seed), data.features[rows], data.log_p99[rows])
    return predicted(model, data.features[part.held_out])


def _both(
    family: str, data: _Data, outcomes: Sequence[_Outcome]
) -> tuple[FittedFamily, ModelError]:
    """The hyper-parameters found on all rows, and the error over the folds."""
    whole = next(o for o in outcomes if not len(o.held_out))
    return whole.fitted, _model_error(family, data, [o for o in outcomes if o is not whole])


def _model_error(family: str, data: _Data, outcomes: Sequence[_Outcome]) -> ModelError:
    guesses = np.empty(len(data.log_p99))
    for outcome in outcomes:
        guesses[outcome.held_out] = outcome.guesses
    return ModelError(
        family=family,
        # |exp(guess) - P99| / P99, without the two large numbers.
        mape=float(100 * np.mean(np.abs(np.expm1(guesses - data.log_p99)))),
        r2=r_squared(data.log_p99, guesses),
        spearman=_spearman(data.log_p99, guesses),
        trials=len(guesses),
        seconds=sum(outcome.seconds for outcome in outcomes),
    )


def _spearman(measured: Vector, guesses: Vector) -> float:
    from scipy.stats import spearmanr

    # A model that always says the same ranks nothing.
    if np.ptp(guesses) == 0 or np.ptp(measured) == 0:
        return 0.0
    return float(spearmanr(measured, guesses).statistic)


def _outer_parts(groups: NDArray[np.generic], folds: int, seed: int) -> list[_Part]:
    """At most `folds` parts, each with enough groups left to tune a model on."""
    if folds < 2:
        raise ValueError(f"an error needs at least 2 folds, got {folds}")
    count = len(np.unique(groups))
    fewest = _fewest_groups(folds)
    if count < fewest:
        raise ValueError(
            f"{count} configurations are too few to evaluate a model in {folds} folds;"
            f" at least {fewest}"
        )
    return _split(groups, folds, seed)


def _fewest_groups(folds: int) -> int:
    """The least number of which every fold, the largest too, leaves FEWEST_GROUPS."""
    count = FEWEST_GROUPS + 1
    while count - math.ceil(count / min(folds, count)) < FEWEST_GROUPS:
        count += 1
    return count


def _split(groups: NDArray[np.generic], folds: int, seed: int) -> list[_Part]:
    """Parts of which each holds out about as many groups as the others."""
    from sklearn.model_selection import GroupKFold

    # Shuffled, it deals out groups evenly; otherwise rows, and a sentinel with many replicates
    # would make up a fold of its own.
    count = min(folds, len(np.unique(groups)))
    splitter = GroupKFold(n_splits=count, shuffle=True, random_state=seed)
    return [_Part(train, test) for train, test in splitter.split(groups, groups=groups)]


def _everything(data: _Data) -> _Part:
    rows = np.arange(len(data.log_p99))
    return _Part(rows, rows[:0])


def _data(features: Matrix, log_p99: Vector, groups: Groups) -> _Data:
    lengths = (len(features), len(log_p99), len(groups))
    if len(set(lengths)) > 1:
        raise ValueError("features, log_p99 and groups have {}, {} and {} rows".format(*lengths))
    if not np.all(np.isfinite(log_p99)):
        raise ValueError("every log P99 must be a finite number")
    return _Data(features, log_p99, np.asarray(groups))


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
