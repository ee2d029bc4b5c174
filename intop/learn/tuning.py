"""Tuning: hyper-parameters by Bayesian search, and the error to expect, by nested folds.

A configuration is one row, with all of its trials: replicates never stand on both sides of a
split, where a model would be praised for remembering. The error comes from outer folds, with the
search done anew inside each one's training part, so that it knows nothing of the held-out rows.
"""

import hashlib
import math
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from intop.domain.training import FinishedSearch, FittedFamily, HeldOut, ModelError, Searches
from intop.learn import accuracy
from intop.learn.code_fingerprint import code_fingerprint
from intop.learn.families import FAMILIES
from intop.learn.folds import Fold, everything, split
from intop.learn.parallel import each, one_thread
from intop.learn.preprocess import Hyperparameters
from intop.learn.samples import Samples, Vector
from intop.learn.surrogate import fit, predicted, surrogate

if TYPE_CHECKING:
    from optuna import Trial

INNER_FOLDS = 5
"""With three, the choice among few tries on 40 rows was noise, and often worse than no search."""
FEWEST_ROWS = 4
"""What a search needs: fewer configurations leave training parts of one or two."""
MOST_SEARCHED = 2_000
"""Rows that hyper-parameters are searched on, drawn at random: of 50,000 a search takes hours."""
UNPRUNED_TRIES = 5
"""Tries that go through all folds, before the median of them is worth a comparison."""


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
    import optuna

    if len(samples) < FEWEST_ROWS:
        raise ValueError(
            f"{len(samples)} configurations are too few to tune {family}; at least {FEWEST_ROWS}"
        )
    samples = samples.part(MOST_SEARCHED, seed)
    folds = split(len(samples), INNER_FOLDS, seed)
    model = FAMILIES[family]

    def objective(trial: "Trial") -> float:
        hyperparameters = model.suggest(trial, len(samples))
        trial.set_user_attr("hyperparameters", hyperparameters)
        measured, guesses, error = np.empty(0), np.empty(0), math.inf
        for number, fold in enumerate(folds):
            training, held_out = samples.rows(fold.training), samples.rows(fold.held_out)
            fitted = fit(model.build(samples.variables, hyperparameters, seed), training)
            measured = np.append(measured, held_out.log_target)
            guesses = np.append(guesses, predicted(fitted, held_out.values))
            error = score(measured, guesses)
            trial.report(error, number)
            if number < len(folds) - 1 and trial.should_prune():
                raise optuna.TrialPruned
        return error

    with _silent_optuna(), one_thread():
        # Half of a short search at random, not all of it.
        sampler = optuna.samplers.TPESampler(seed=seed, n_startup_trials=min(10, 1 + trials // 2))
        pruner = optuna.pruners.MedianPruner(n_startup_trials=UNPRUNED_TRIES, n_warmup_steps=1)
        study = optuna.create_study(direction="minimize", sampler=sampler, pruner=pruner)
        study.enqueue_trial(dict(model.defaults))
        study.optimize(objective, n_trials=trials, timeout=timeout_s)
    best = study.best_trial
    hyperparameters: Hyperparameters = best.user_attrs["hyperparameters"]
    return FittedFamily(
        family=family, hyperparameters=hyperparameters, inner_score=float(study.best_value)
    )


def limits(families: Sequence[str], rows: int) -> list[str]:
    """Lines for the user: what does not use all of so many configurations."""
    lines = [FAMILIES[family].limit(rows) for family in families]
    if rows > MOST_SEARCHED:
        lines.append(
            f"hyper-parameters are searched on {MOST_SEARCHED:,} random configurations of {rows:,}"
        )
    return [line for line in lines if line is not None]


def train_all(
    families: Sequence[str],
    samples: Samples,
    *,
    folds: int,
    trials: int,
    timeout_s: float | None,
    seed: int,
    repeats: int = 1,
    level: float = 0.95,
    jobs: int | None = None,
    kept: Searches | None = None,
    keep: Callable[[Searches], None] | None = None,
    progress: Callable[[str], None] | None = None,
) -> list[tuple[FittedFamily, ModelError]]:
    """Each family tuned on all rows, with its error over the held-out rows of all folds.

    The rows are divided anew into `folds` for each of `repeats`; lent rows are held out in none,
    and all models learn from them. Every fold of every family is a search of its own, `timeout_s`
    at most, for `jobs` processes (None: as many as processors). `keep` gets all that have ended
    after each one; `kept` is what it got last, in a training that was killed. Searches of other
    samples, settings or models are not used. `progress` is called with the name of each family that
    is finished. Both are called here, in the calling process.
    Raises ValueError for too few rows.
    """
    parts = [
        *(fold for n in range(repeats) for fold in _outer_folds(samples, folds, seed + n)),
        everything(len(samples)),
    ]
    effort = _Effort(trials, timeout_s, seed, level)
    fingerprint = _fingerprint(samples, folds, repeats, effort)
    finished = list(kept.finished) if kept and kept.fingerprint == fingerprint else []
    made = {(one.fitted.family, one.fold): one for one in finished}
    lacking = [
        (family, number, part, samples, effort)
        for family in families
        for number, part in enumerate(parts)
        if (family, number) not in made
    ]
    open_parts = {family: sum(task[0] == family for task in lacking) for family in families}
    for family in families:
        if not open_parts[family] and progress is not None:
            progress(family)
    for one in each(_searched, lacking, jobs=jobs):
        finished.append(one)
        made[one.fitted.family, one.fold] = one
        if keep is not None:
            keep(Searches(fingerprint=fingerprint, finished=tuple(finished)))
        open_parts[one.fitted.family] -= 1
        if not open_parts[one.fitted.family] and progress is not None:
            progress(one.fitted.family)
    return [
        _both(family, samples, parts, [made[family, n] for n in range(len(parts))], level)
        for family in families
    ]


@dataclass(frozen=True)
class _Effort:
    """How much one search may cost, and the level of its intervals."""

    trials: int
    timeout_s: float | None
    seed: int
    level: float


def _fingerprint(samples: Samples, folds: int, repeats: int, effort: _Effort) -> str:
    """All that the searches of a training depend on, apart from family and fold."""
    known = repr((samples.digest, folds, repeats, effort, code_fingerprint()))
    return hashlib.sha256(known.encode()).hexdigest()


def _searched(
    family: str, number: int, fold: Fold, samples: Samples, effort: _Effort
) -> FinishedSearch:
    """One search, and what its model says of the fold's held-out rows."""
    started = time.perf_counter()
    training, held_out = samples.rows(fold.training), samples.values[fold.held_out]
    fitted = tune(
        family, training, trials=effort.trials, timeout_s=effort.timeout_s, seed=effort.seed
    )
    guesses, low, high = np.empty((3, 0))
    if len(held_out):
        with one_thread():
            model = surrogate(family, fitted.hyperparameters, training, effort.seed)
            guesses, (low, high) = model(held_out), model.interval(held_out, effort.level)
    return FinishedSearch(
        fold=number,
        fitted=fitted,
        predicted=tuple(guesses.tolist()),
        low=tuple(low.tolist()),
        high=tuple(high.tolist()),
        seconds=time.perf_counter() - started,
    )


def _both(
    family: str,
    samples: Samples,
    parts: Sequence[Fold],
    searches: Sequence[FinishedSearch],
    level: float,
) -> tuple[FittedFamily, ModelError]:
    """The hyper-parameters found on all rows, and the error over the folds.

    Each repeat has every row once, so its rows one after the other are a whole number of tables.
    """
    *judged, whole = searches
    order = np.concatenate([part.held_out for part in parts])
    measured = samples.log_target[order].reshape(-1, len(samples.own))
    guesses, low, high = (
        np.array([v for one in judged for v in getattr(one, name)]).reshape(measured.shape)
        for name in ("predicted", "low", "high")
    )

    def mean(measure: Callable[[Vector, Vector], float]) -> float:
        return float(np.mean([measure(*rows) for rows in zip(measured, guesses, strict=True)]))

    with np.errstate(over="ignore"):
        columns = [np.exp(logs).ravel().tolist() for logs in (measured, guesses, low, high)]
    error = ModelError(
        family=family,
        mape=mean(accuracy.mape),
        r2=mean(accuracy.r_squared),
        spearman=mean(accuracy.rank_correlation),
        trials=sum(len(trials) for trials in samples.own.measured),
        seconds=sum(one.seconds for one in searches),
        coverage=float(np.mean((low <= measured) & (measured <= high))),
        level=level,
        regret=mean(accuracy.regret),
        held_out=tuple(
            HeldOut(measured=m, predicted=p, low=a, high=b)
            for m, p, a, b in zip(*columns, strict=True)
        ),
    )
    return whole.fitted, error


def _outer_folds(samples: Samples, folds: int, seed: int) -> list[Fold]:
    """At most `folds` of them, each with enough rows left to tune a model on."""
    count = len(samples.own)
    if folds < 2:
        raise ValueError(f"an error needs at least 2 folds, got {folds}")
    if count < (fewest := fewest_rows(folds)):
        raise ValueError(
            f"{count} configurations are too few to evaluate a model in {folds} folds;"
            f" at least {fewest}"
        )
    lent = np.arange(count, len(samples))
    return [
        Fold(np.concatenate([fold.training, lent]), fold.held_out)
        for fold in split(count, folds, seed)
    ]


def fewest_rows(folds: int) -> int:
    """The least number of which every fold, the largest too, leaves FEWEST_ROWS."""
    count = FEWEST_ROWS + 1
    while count - math.ceil(count / min(folds, count)) < FEWEST_ROWS:
        count += 1
    return count


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
