"""Warm starts: the worth of one architecture's stored trials for models of another."""

import math
from collections.abc import Sequence

import numpy as np

from intop.campaign.collected import collected_samples
from intop.domain.training import Training
from intop.errors import ResultMissingError
from intop.experiment.transfer.warm_start import CurvePoint, WarmStart
from intop.learn import accuracy
from intop.learn.families import FAMILIES, Hyperparameters
from intop.learn.parallel import each, one_thread
from intop.learn.samples import Samples
from intop.learn.surrogate import fit, predicted
from intop.learn.transfer import Prior, prior, warm_start
from intop.run import prerequisites
from intop.run.context import Task

SIZES = (10, 15, 20, 30, 40, 60, 80, 120)
"""Rows of the target, as far as there are so many and HELD_OUT more."""
HELD_OUT = 8
REPEATS = 10
FAMILY = "RFR"
"""The family where nothing is trained yet: quick, and hard to upset."""

_Curve = tuple[list[tuple[float, float]], dict[str, float]]
"""The errors from scratch and warm by size, and the shares of the largest size."""


def warm_starts(tasks: Sequence[Task]) -> tuple[list[WarmStart], list[ResultMissingError]]:
    """Return what the trials of each of two are worth for the other, and what is missing."""
    known: list[Samples] = []
    missing: list[ResultMissingError] = []
    for task in tasks:
        try:
            known.append(collected_samples(task)[1])
        except ResultMissingError as error:
            missing.append(error)
    if missing:
        return [], missing
    results: list[WarmStart] = []
    for here, there in ((0, 1), (1, 0)):
        source, target, rows = tasks[here], tasks[there], known[there]
        if len(rows) < SIZES[0] + HELD_OUT:
            why = (
                f"{len(rows)} configurations are too few to say what "
                f"{source.subject.arch}'s are worth; at least {SIZES[0] + HELD_OUT}"
            )
            missing.append(prerequisites.missing(target, why, "collect"))
        else:
            results.append(_warm_start(source, target, known[here], rows))
    return results, missing


def _warm_start(source: Task, target: Task, known: Samples, rows: Samples) -> WarmStart:
    family, hyperparameters = _family(target)
    seed = target.seed("transfer", source.subject.arch)
    theirs = prior(family, rows.variables, known, seed, _family(source, family)[1])
    sizes = [n for n in SIZES if n + HELD_OUT <= len(rows)]
    jobs = [(family, hyperparameters, rows, theirs, sizes, seed + n) for n in range(REPEATS)]
    curves: list[_Curve] = []
    progress = target.context.progress
    progress.begin(f"{target.title}: warm start from {source.subject.arch}", REPEATS)
    try:
        for curve in each(_curve, jobs, dask=target.context.dask):
            curves.append(curve)
            progress.step(family)
    finally:
        progress.end()
    scratch, warm = np.mean([errors for errors, _ in curves], axis=0).T.tolist()
    shares = [by_way for _, by_way in curves]
    common = {theirs.variables[here].key for here, _ in theirs.pairs}
    keys = dict.fromkeys(variable.key for variable in rows.variables)
    return WarmStart(
        source=source.subject.arch,
        target=target.subject.arch,
        family=family,
        common=tuple(key for key in keys if key in common),
        own=tuple(key for key in keys if key not in common),
        configurations=(len(rows), len(known)),
        repeats=REPEATS,
        curve=tuple(
            CurvePoint(configurations=n, scratch=s, warm=w, worth=worth(sizes, scratch, w))
            for n, s, w in zip(sizes, scratch, warm, strict=True)
        ),
        shares={way: float(np.mean([by_way[way] for by_way in shares])) for way in shares[0]},
    )


def _family(task: Task, wanted: str = "") -> tuple[str, Hyperparameters]:
    """Return the best family that was trained, or the wanted one, with its hyper-parameters."""
    training = task.store.get(task.subject, Training)
    name = wanted or (training.best if training else "") or FAMILY
    fitted = {f.family: f.hyperparameters for f in training.fitted} if training else {}
    return name, dict(fitted.get(name, FAMILIES[name].defaults))


def _curve(
    family: str,
    hyperparameters: Hyperparameters,
    rows: Samples,
    theirs: Prior,
    sizes: Sequence[int],
    seed: int,
) -> _Curve:
    """Return the errors by size, on the same rows for all."""
    order = np.random.default_rng(seed).permutation(len(rows))
    held_out_rows = rows.rows(order[sizes[-1] :])
    errors: list[tuple[float, float]] = []
    shares: dict[str, float] = {}
    for size in sizes:
        part = rows.rows(order[:size])
        with one_thread():
            built = FAMILIES[family].build(rows.variables, hyperparameters, seed)
            cold = predicted(fit(built, part), held_out_rows.values)
        warm = warm_start(family, part, theirs, seed, hyperparameters)
        scratch, warmed = (
            accuracy.mape(held_out_rows.log_target, guess)
            for guess in (cold, warm(held_out_rows.values))
        )
        errors.append((scratch, warmed))
        shares = dict(warm.shares)
    return errors, shares


def worth(sizes: Sequence[int], errors: Sequence[float], error: float) -> float | None:
    """Return how many rows from scratch have this error, by a curve of `sizes` (ascending).

    An error that grows with the rows is noise, so each counts as the least up to there; between
    two sizes the error goes with the logarithm of the rows. None where no size is so good, the
    least size where all are. Raises ValueError for no sizes, or lists of different lengths.
    """
    if not sizes or len(sizes) != len(errors):
        raise ValueError(f"{len(sizes)} sizes and {len(errors)} errors make no learning curve")
    if errors[0] <= error:
        return float(sizes[0])
    least = errors[0]
    for number in range(1, len(sizes)):
        before, least = least, min(least, errors[number])
        if least <= error:
            low, high = math.log(sizes[number - 1]), math.log(sizes[number])
            share = (before - error) / (before - least)
            return math.exp(low + share * (high - low))
    return None
