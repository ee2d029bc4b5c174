"""train and search: models over the collected trials, and the candidates that they promise."""

from functools import partial
from pathlib import Path

import numpy as np

from intop import artefacts
from intop.domain.performance import performance
from intop.domain.replicates import by_configuration
from intop.domain.results import Candidate, Convergence, Ranking, Search, Searches, Training
from intop.domain.space import Space
from intop.domain.trial import Stage, Trial
from intop.errors import IntopError, UsageError
from intop.learn.ceiling import ceiling
from intop.learn.components import components, p99_equivalent
from intop.learn.families import FAMILIES
from intop.learn.finalists import diverse
from intop.learn.fitness import Fitness
from intop.learn.samples import Samples
from intop.learn.searching.search import search as global_search
from intop.learn.surrogate import fit_trees
from intop.learn.tuning import limits, train_all
from intop.pipeline import steps
from intop.pipeline.context import Task
from intop.pipeline.models import path_of, save_models, target_of, usable_trees
from intop.pipeline.sampling import (
    collected_space,
    collected_trials,
    samples_of,
    usable,
)

PROMISING, KEPT_CANDIDATES = 2_000, 20
"""Candidates, and how many different ones of them are kept."""


def train(task: Task, models: Path | None = None) -> Training:
    """Tune all six families on the collected configurations, and measure their held-out error.

    A configuration counts once, with all of its trials: its replicates are never on both sides of
    a fold. They have no weights, since not all six families know any. Every search is stored as
    soon as it ends, so that a training that is killed goes on with the others.
    Fitted to all configurations, the models are saved in the folder `models`.
    """
    budget, objective = task.context.study.budget, task.context.study.objective
    space, samples, trials = collected_samples(task)
    if models is not None:
        artefacts.prepare(models)
    progress = task.context.progress
    for line in limits(list(FAMILIES), len(samples)):
        progress.say(f"{task.title}: {line}")
    progress.begin(f"{task.title}: train", len(FAMILIES))
    try:
        outcome = train_all(
            list(FAMILIES),
            samples,
            folds=budget.folds,
            trials=budget.tuning_trials,
            timeout_s=budget.tuning_timeout_s,
            seed=task.seed("train"),
            repeats=budget.repeats,
            level=budget.level,
            kept=task.store.get(task.subject, Searches),
            keep=partial(task.store.put, task.subject),
            progress=progress.step,
        )
    finally:
        progress.end()
    training = Training(
        keys=tuple(p.key for p in space.parameters),
        fitted=tuple(fitted for fitted, _ in outcome),
        errors=tuple(error for _, error in outcome),
        trials=sum(len(trials) for trials in samples.measured),
        configurations=len(samples),
        ceiling=ceiling(samples),
        components=components(performance(usable(trials, task))),
        objective=objective,
        target=target_of(task.context.study),
    )
    task.store.put(task.subject, training)
    if models is not None:
        save_models(models, task, space, samples, training)
    return training


def search(task: Task, models: Path | None = None, algorithm: str = "genetic") -> Search:
    """Search STM / DTM for the configurations with the lowest predicted P99.

    The four tree models are searched one by one, as in the paper, and together. The candidates
    are from the search of all four, with a penalty where they are not sure; each model's own
    best is kept beside them, so that `verify` can measure it. The models are fitted
    again from the stored trials and hyper-parameters, which takes a second or two, unless there is
    a folder `models` of saved ones.
    """
    source = required_training(task) if models is None else artefacts.read(path_of(models, task))
    budget = task.context.study.budget
    space, samples, _ = collected_samples(task)
    if isinstance(source, Training):
        predictor = fit_trees(source.fitted, samples, task.seed("search"))
    else:
        predictor = usable_trees(source, task, space, samples)
    names = [*predictor.models, "ensemble"]
    start = space.genes(samples.values[np.argsort(samples.log_target)[:10]])
    progress = task.context.progress
    progress.begin(f"{task.title}: search", len(names))
    convergences: list[Convergence] = []
    candidates: list[Candidate] = []
    winners: list[Candidate] = []
    try:
        for name in names:
            found = global_search(
                space,
                Fitness(predictor) if name == "ensemble" else predictor.only(name),
                algorithm=algorithm,
                model=name,
                seed=task.seed("search", name),
                population=budget.population,
                generations=budget.generations,
                patience=budget.patience,
                keep=PROMISING if name == "ensemble" else 1,
                start=start,
            )
            convergences.append(found.convergence)
            (candidates if name == "ensemble" else winners).extend(found.candidates)
            progress.step(name)
    finally:
        progress.end()
    ranking = task.store.get(task.subject, Ranking)
    weights = {i.key: i.mean for i in ranking.importances} if ranking else None
    result = Search(
        candidates=tuple(diverse(space, candidates, KEPT_CANDIDATES, weights=weights)),
        convergences=tuple(convergences),
        objective=task.context.study.objective,
        winners=tuple(winners),
    )
    task.store.put(task.subject, result)
    return result


def required_training(task: Task) -> Training:
    """What was trained. Raises ResultMissingError, or UsageError for another objective's models."""
    training = task.store.get(task.subject, Training)
    if training is None:
        raise steps.missing(task, "no models yet", "train")
    study = task.context.study
    if training.objective != study.objective:
        train_again = steps.command_line(study, ["train"], task.subject.arch, task.workload.name)
        raise UsageError(
            f"{task.title}: the models learned the objective {training.objective!r}, and "
            f"{study.path} asks for {study.objective!r}. Train them for it: {train_again}"
        )
    return training


def collected_samples(task: Task) -> tuple[Space, Samples, list[Trial]]:
    """What was collected and refined, as models are trained on it, and the trials themselves.

    Raises ResultMissingError, or IntopError where the study's objective is a component, and there
    is none that could be one.
    """
    space, trials = collected_space(task), collected_trials(task)
    measured = by_configuration(trials)
    if task.context.study.objective == "component":
        told = equivalents(task)
        measured = by_configuration(trials, lambda t: told[t.stage, t.planned.index])
    return space, samples_of(space, measured), trials


def equivalents(task: Task) -> dict[tuple[Stage, int], float]:
    """Each usable collected trial told as P99 equivalent of the first component, by its place.

    Raises ResultMissingError, and IntopError where there is none that could be one.
    """
    told = usable(collected_trials(task), task)
    try:
        found = p99_equivalent(performance(told))
    except ValueError as error:
        raise IntopError(
            f'{task.title}: objective = "component" is no objective here: {error}. '
            f'Set objective = "p99" in [study] of {task.context.study.path}'
        ) from error
    return {(t.stage, t.planned.index): v for t, v in zip(told, found, strict=True)}
