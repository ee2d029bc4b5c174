"""Tuning: hyper-parameters by Bayesian search, and the error to expect, by nested folds.

A configuration is one row, with all of its trials: replicates never stand on both sides of a
split, where a model would be praised for remembering. The error comes from outer folds, with the
search done anew inside each one's training part, so that it knows nothing of the held-out rows.
"""

import hashlib
import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from random import randrange

import numpy as np

from intop.domain.training import (
    FinishedSearch,
    FittedFamily,
    HeldOut,
    ModelError,
    SearchRecord,
    SearchRecords,
    Try,
)
from intop.learn import accuracy
from intop.learn.allotment import allotted, cut_line
from intop.learn.code_fingerprint import code_fingerprint
from intop.learn.families import FAMILIES
from intop.learn.hyperparameters import FEWEST_ROWS, best_of, continued
from intop.learn.parallel import each, one_thread
from intop.learn.samples import Fold, Samples, Vector, everything, split
from intop.learn.surrogate import surrogate
from intop.learn.tuning_effort import MOST_SEARCHED, Effort

_Place = tuple[str, int]
"""A search: its family and the number of its fold."""

SLICE_S = 10.0
"""Seconds after which a search says how far it is. A kill loses no more of each, and the try that
was under way."""


def limits(families: Sequence[str], samples: Samples, effort: Effort) -> list[str]:
    """Return lines for the user: what does not use all configurations, or not all of the effort."""
    rows, efforts = len(samples), _allotted(families, samples, effort)
    lines = [FAMILIES[family].limit(rows) for family in families]
    lines.append(cut_line(efforts, effort))
    if rows > MOST_SEARCHED:
        lines.append(
            f"hyper-parameters are searched on {MOST_SEARCHED:,} random configurations of {rows:,}"
        )
    return [line for line in lines if line is not None]


def train_all(
    families: Sequence[str],
    samples: Samples,
    effort: Effort,
    *,
    jobs: int | None = None,
    dask: str | None = None,
    records: SearchRecords | None = None,
    begin: Callable[[int, int], None] | None = None,
    progress: Callable[[str], None] | None = None,
) -> list[tuple[FittedFamily, ModelError]]:
    """Return each family tuned on all rows, with its error over the held-out rows of all folds.

    The rows are divided again into folds for each repeat; lent rows are held out in none, and all
    models learn from them. Every fold of every family is a search of its own, and the families take
    turns, so that the time of the first ones tells that of the others. `effort.time_s` cuts the
    effort as `allotted` does. `jobs` and `dask` say where, as for `each`. After each SLICE_S a
    search says how far it is, which `records` keeps; what is there already is not searched again.
    `begin` is called once, with the number of searches and how many ended earlier, and `progress`
    with the family of each search that ends. All are called here, in the calling process.
    Raises ValueError for too few rows.
    """
    efforts = _allotted(families, samples, effort)
    parts = [
        fold
        for repeat in range(min(e.repeats for e in efforts.values()))
        for fold in _outer_folds(samples, effort.folds, effort.seed + repeat)
    ]
    parts.append(everything(len(samples)))
    fingerprint = _fingerprint(samples, efforts)
    known = _Known(families, len(parts))
    if records is not None:
        known.learn(records.new(fingerprint))
    if begin is not None:
        begin(len(known.tries), len(known.finished))
    known.tell(None)
    while lacking := known.lacking():
        # Who makes the same training begins elsewhere, so that not all make the same searches.
        first = randrange(len(lacking)) if records is not None else 0
        tasks = (
            (family, n, parts[n], samples, efforts[family], known.tries[family, n], SLICE_S)
            for family, n in (*lacking[first:], *lacking[:first])
            # Somebody else may have finished it since.
            if (family, n) not in known.finished
        )
        # An interrupt in the body ends the processes at once, before the interpreter does.
        with closing(each(_advanced, tasks, jobs=jobs, dask=dask)) as advanced:
            for news in advanced:
                known.learn(news)
                if records is not None:
                    records.add(fingerprint, news)
                    known.learn(records.new(fingerprint))
                known.tell(progress)
    return [
        _both(family, samples, parts, known.searches(family), effort.level) for family in families
    ]


class _Known:
    """All searches of a training as far as they are known, by family and fold."""

    def __init__(self, families: Sequence[str], folds: int) -> None:
        self.finished: dict[_Place, FinishedSearch] = {}
        self.tries: dict[_Place, tuple[Try, ...]] = {
            (family, fold): () for fold in range(folds) for family in families
        }
        self._told: set[_Place] = set()

    def learn(self, records: Sequence[SearchRecord]) -> None:
        """Take in records, of which some may be known already."""
        for record in records:
            place = (record.family, record.fold)
            if isinstance(record.known, FinishedSearch):
                self.finished.setdefault(place, record.known)
            elif record.known.number == len(self.tries.get(place, ())):
                self.tries[place] = (*self.tries.get(place, ()), record.known)

    def searches(self, family: str) -> list[FinishedSearch]:
        """Return the finished searches of a family, in the order of the folds."""
        return [self.finished[place] for place in self.tries if place[0] == family]

    def lacking(self) -> list[_Place]:
        """Return the searches that have not ended."""
        return [place for place in self.tries if place not in self.finished]

    def tell(self, progress: Callable[[str], None] | None) -> None:
        """Name the family of each search that has ended since the last call."""
        ended = [place for place in self.finished if place not in self._told]
        self._told.update(ended)
        if progress is not None:
            for family, _ in ended:
                progress(family)


def _allotted(families: Sequence[str], samples: Samples, effort: Effort) -> Mapping[str, Effort]:
    features = sum(len(v.features) for v in samples.variables)
    return allotted(families, len(samples), features, effort)


def _fingerprint(samples: Samples, efforts: Mapping[str, Effort]) -> str:
    """Return a name for all that the searches depend on, apart from family and fold."""
    known = repr((samples.digest, sorted(efforts.items()), code_fingerprint()))
    return hashlib.sha256(known.encode()).hexdigest()


def _advanced(
    family: str,
    number: int,
    fold: Fold,
    samples: Samples,
    effort: Effort,
    tries: Sequence[Try],
    slice_s: float,
) -> list[SearchRecord]:
    """Return the tries of a search that follow these, as many as `slice_s` has room for.

    Where they are the last, also its model's predictions for the fold's held-out rows.
    """
    started = time.perf_counter()
    training, held_out = samples.rows(fold.training), samples.values[fold.held_out]
    all_tries = continued(family, training, effort, tries, slice_s)
    records = [SearchRecord(family=family, fold=number, known=t) for t in all_tries[len(tries) :]]
    if not effort.is_spent(all_tries):
        return records
    fitted = best_of(family, all_tries)
    guesses, low, high = np.empty((3, 0))
    if len(held_out):
        with one_thread():
            model = surrogate(
                family, fitted.hyperparameters, training, effort.seed, effort.interval_repeats
            )
            guesses, (low, high) = model(held_out), model.interval(held_out, effort.level)
    end = FinishedSearch(
        fitted=fitted,
        predicted=tuple(guesses.tolist()),
        low=tuple(low.tolist()),
        high=tuple(high.tolist()),
        seconds=sum(t.seconds for t in tries) + time.perf_counter() - started,
    )
    return [*records, SearchRecord(family=family, fold=number, known=end)]


def _both(
    family: str,
    samples: Samples,
    parts: Sequence[Fold],
    searches: Sequence[FinishedSearch],
    level: float,
) -> tuple[FittedFamily, ModelError]:
    """Return the hyper-parameters of the search on all rows, and the error over the folds.

    Each repeat has every row once, so its rows one after the other are a whole number of tables.
    """
    *judged, whole = searches
    order = np.concatenate([part.held_out for part in parts])
    measured = samples.log_target[order].reshape(-1, len(samples.own))
    guesses, low, high = (
        np.array([v for search in judged for v in getattr(search, name)]).reshape(measured.shape)
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
        seconds=sum(search.seconds for search in searches),
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
    """Return at most `folds` folds, each with enough rows left to tune a model on."""
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
    """Return the least number of which every fold, the largest too, leaves FEWEST_ROWS."""
    count = FEWEST_ROWS + 1
    while count - math.ceil(count / min(folds, count)) < FEWEST_ROWS:
        count += 1
    return count
