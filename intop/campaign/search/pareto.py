"""search --objectives: what configurations promise where one gain may cost another."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from intop.campaign.collected import collected_space, collected_trials, samples_of
from intop.campaign.search.tradeoff import (
    HIGHER_IS_BETTER,
    OBJECTIVES,
    Front,
    FrontPoint,
    LearnedObjective,
    MeasuredPoint,
    ObjectiveName,
    Tradeoff,
)
from intop.campaign.train.stage import required_training
from intop.domain.configuration import DEFAULT
from intop.domain.encoding import Matrix
from intop.domain.replicates import by_configuration
from intop.domain.space import Space
from intop.domain.training import Training
from intop.domain.trial import Trial
from intop.errors import ResultMissingError, UsageError
from intop.learn import accuracy
from intop.learn.samples import Samples, Vector
from intop.learn.searching.pareto import ParetoResult, front
from intop.learn.surrogate import Predictor, fit_trees, held_out
from intop.run.context import Task

NO_CPU = 1e-4
"""A share of CPU time that is read as 0 counts as that: clocks know no less of some seconds."""
BEST_MEASURED = 10
"""Configurations of each objective that the search begins with."""

_OF_TRIAL: Mapping[ObjectiveName, Callable[[Trial], float]] = {
    "p99": lambda t: t.statistic_ms("P99"),
    "cpu": lambda t: max(t.balancer.cpu, NO_CPU),
    "throughput": lambda t: t.achieved_rps,
}


def chosen_objectives(text: str) -> tuple[ObjectiveName, ...]:
    """Return the objectives of a text such as `p99,cpu`.

    Raises UsageError for an unknown one, a repeated one, or a single one.
    """
    words = [word.strip() for word in text.split(",")]
    known: list[ObjectiveName] = [name for word in words for name in OBJECTIVES if name == word]
    if len(known) < len(words):
        unknown = next(word for word in words if word not in OBJECTIVES)
        raise UsageError(
            f"--objectives {text}: {unknown!r} is none; there are {', '.join(OBJECTIVES)}"
        )
    if len(known) < 2 or len(set(known)) < len(known):
        raise UsageError(
            f"--objectives {text}: name two or three different ones of {', '.join(OBJECTIVES)}"
        )
    return tuple(known)


def search_front(task: Task, objectives: Sequence[ObjectiveName]) -> Tradeoff:
    """Search the models of several objectives for the front of what is predicted, by NSGA-II.

    Each objective is learned from the collected trials by the tree families, with the
    hyper-parameters that the training found for P99, and judged by held-out folds. Raises
    ResultMissingError before a training or without an objective's measurements, and UsageError
    for an objective that is the same in all configurations.
    """
    training = required_training(task)
    # A study whose models learn something else than P99 still has P99 for an objective here.
    space, trials = collected_space(task), collected_trials(task)
    samples = {name: _samples(task, space, trials, name) for name in objectives}
    for name, rows in samples.items():
        _check_differences(task, name, rows)
    learned, models, result = _searched(task, training, space, samples)

    def points(values: Matrix) -> list[FrontPoint]:
        predicted = np.exp(np.column_stack([model(values) for model in models])).tolist()
        return [
            FrontPoint(configuration=configuration, predicted=tuple(row))
            for configuration, row in zip(space.configurations(values), predicted, strict=True)
        ]

    (default,) = points(space.values([DEFAULT]))
    predicted_front = Front(
        objectives=tuple(learned),
        points=tuple(points(result.values)),
        knee=knee(result.predicted.tolist()),
        default=replace(default, configuration=DEFAULT),
        generations=len(result.hypervolumes) - 1,
        converged_at=result.converged_at,
        seconds=result.seconds,
    )
    task.store.put(task.subject, predicted_front)
    return Tradeoff(
        front=predicted_front,
        measured=_measured(trials, list(samples.values())),
        rate_rps=trials[-1].conditions.rate_rps,
    )


def _searched(
    task: Task, training: Training, space: Space, samples: Mapping[ObjectiveName, Samples]
) -> tuple[list[LearnedObjective], list[Predictor], ParetoResult]:
    """Return the objectives with their held-out errors, their models, and the models' front."""
    budget, progress = task.context.study.budget, task.context.progress
    folds = min(budget.folds, min(map(len, samples.values())))
    learned: list[LearnedObjective] = []
    models: list[Predictor] = []
    progress.begin(f"{task.title}: search", len(samples) * (folds + 1) + 1)
    try:
        for name, rows in samples.items():
            seed = task.seed("front", name)
            guesses = held_out(
                training.fitted, rows, folds=folds, seed=seed, progress=progress.step
            )
            learned.append(_learned(name, rows, guesses))
            models.append(fit_trees(training.fitted, rows, seed))
            progress.step(name)
        result = front(
            space,
            [_costs(name, model) for name, model in zip(samples, models, strict=True)],
            seed=task.seed("search", "front", *samples),
            population=budget.population,
            generations=budget.generations,
            patience=budget.patience,
            start=_start(space, samples),
        )
        progress.step("front")
    finally:
        progress.end()
    return learned, models, result


def _samples(task: Task, space: Space, trials: Sequence[Trial], name: ObjectiveName) -> Samples:
    """Return an objective of all usable trials, a row for each configuration."""
    of = _OF_TRIAL[name]
    usable = [t for t in trials if t.usable]
    if name == "throughput" and (idle := [t for t in usable if t.achieved_rps <= 0]):
        raise ResultMissingError(
            f"{task.title}: {len(idle)} of {len(usable)} collected trials have no rate, trial "
            f"{idle[0].planned.index} first. Search without throughput: intop search --objectives "
            f"p99,cpu, or collect anew: intop collect --new"
        )
    return samples_of(space, by_configuration(trials, of))


def _check_differences(task: Task, name: ObjectiveName, samples: Samples) -> None:
    """Raises UsageError for an objective that is the same everywhere: no library learns that."""
    if np.ptp(samples.log_target) == 0:
        choices = ",".join(o for o in OBJECTIVES if o != name)
        raise UsageError(
            f"{task.title}: {name} is {np.exp(samples.log_target[0]):g} in all configurations, so "
            f"there is nothing to learn of it. Choose others: intop search --objectives {choices}"
        )


def _learned(name: ObjectiveName, samples: Samples, guesses: Vector) -> LearnedObjective:
    measured = samples.log_target
    return LearnedObjective(
        name=name,
        mape=accuracy.mape(measured, guesses),
        r2=accuracy.r_squared(measured, guesses),
        spearman=accuracy.rank_correlation(measured, guesses),
        configurations=len(samples),
        measured_low=float(np.exp(measured.min())),
        measured_high=float(np.exp(measured.max())),
    )


def _costs(name: ObjectiveName, model: Predictor) -> Callable[[Matrix], Vector]:
    """Return `cost` of a prediction, which is a logarithm already."""
    return (lambda values: -model(values)) if name in HIGHER_IS_BETTER else model


def _start(space: Space, samples: Mapping[ObjectiveName, Samples]) -> Matrix:
    """Genes of the configurations that were measured best in each objective, without repeats."""
    best: dict[int, None] = {}
    for name, rows in samples.items():
        costs = [cost(name, float(np.exp(log))) for log in rows.log_target]
        best |= dict.fromkeys(np.argsort(costs, kind="stable")[:BEST_MEASURED].tolist())
    values = next(iter(samples.values())).values
    return space.genes(values[list(best)])


def _measured(trials: Sequence[Trial], samples: Sequence[Samples]) -> tuple[MeasuredPoint, ...]:
    """Return the rows of all objectives, which have the same configurations in the same order."""
    table = np.exp(np.column_stack([rows.log_target for rows in samples])).tolist()
    return tuple(
        MeasuredPoint(configuration=measured.configuration, measured=tuple(row))
        for measured, row in zip(by_configuration(trials), table, strict=True)
    )


def cost(name: ObjectiveName, value: float) -> float:
    """Return the logarithm of an objective, turned so that lower is better."""
    return -math.log(value) if name in HIGHER_IS_BETTER else math.log(value)


def knee(costs: Sequence[Sequence[float]]) -> int:
    """Return the place of the point that is nearest to the best of all objectives at once.

    `costs` are lower where better. Each objective is scaled to its range over the front, and the
    distance is Euclidean: of equals the first. Raises ValueError without points.
    """
    if not costs:
        raise ValueError("a front without points has no knee")
    best = [min(column) for column in zip(*costs, strict=True)]
    ranges = [max(column) - min(column) for column in zip(*costs, strict=True)]
    return min(
        range(len(costs)),
        key=lambda place: math.hypot(
            *(
                (value - low) / reach if reach else 0.0
                for value, low, reach in zip(costs[place], best, ranges, strict=True)
            )
        ),
    )
