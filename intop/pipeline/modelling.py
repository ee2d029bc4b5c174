"""train and search: models over the collected trials, and the candidates that they promise."""

from functools import partial

import numpy as np

from intop.domain.results import Candidate, Convergence, Ranking, Search, Searches, Training
from intop.domain.space import Space
from intop.errors import ResultMissingError
from intop.learn.ceiling import ceiling
from intop.learn.families import FAMILIES
from intop.learn.finalists import diverse
from intop.learn.genetic import search as genetic_search
from intop.learn.samples import Samples
from intop.learn.surrogate import fit_trees
from intop.learn.tuning import train_all
from intop.pipeline.context import Task
from intop.pipeline.sampling import collected, collected_space

KEPT_CANDIDATES = 20


def train(task: Task) -> Training:
    """Tune all six families on the collected configurations, and measure their held-out error.

    A configuration counts once, with all of its trials: its replicates are never on both sides of
    a fold. They have no weights, since not all six families know any. Every search is stored as
    soon as it ends, so that a training that is killed goes on with the others.
    """
    budget = task.context.study.budget
    space, samples = collected_samples(task)
    progress = task.context.progress
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
    )
    task.store.put(task.subject, training)
    return training


def search(task: Task) -> Search:
    """Search STM / DTM for the configurations with the lowest predicted P99.

    The four tree models are searched one by one, as in the paper, and together; the candidates
    are those of all four together. The models are fitted again from the stored trials and
    hyper-parameters, which takes a second or two and needs no model files.
    """
    training = task.store.get(task.subject, Training)
    if training is None:
        raise ResultMissingError(
            f"{task.title}: no models yet: intop train --arch {task.subject.arch} "
            f"--workload {task.workload.name}"
        )
    budget = task.context.study.budget
    space, samples = collected_samples(task)
    models = fit_trees(training.fitted, samples, task.seed("search"))
    names = [*models.models, "ensemble"]
    start = space.genes(samples.values[np.argsort(samples.log_target)[:10]])
    progress = task.context.progress
    progress.begin(f"{task.title}: search", len(names))
    convergences: list[Convergence] = []
    candidates: list[Candidate] = []
    try:
        for name in names:
            found = genetic_search(
                space,
                models if name == "ensemble" else models.only(name),
                model=name,
                seed=task.seed("search", name),
                population=budget.population,
                generations=budget.generations,
                patience=budget.patience,
                start=start,
            )
            convergences.append(found.convergence)
            candidates = list(found.candidates)
            progress.step(name)
    finally:
        progress.end()
    ranking = task.store.get(task.subject, Ranking)
    weights = {i.key: i.mean for i in ranking.importances} if ranking else None
    result = Search(
        candidates=tuple(diverse(space, candidates, KEPT_CANDIDATES, weights=weights)),
        convergences=tuple(convergences),
    )
    task.store.put(task.subject, result)
    return result


def collected_samples(task: Task) -> tuple[Space, Samples]:
    """What was collected, as models are trained on it. Raises ResultMissingError."""
    space, measured = collected_space(task), collected(task)
    return space, Samples(
        variables=space.variables,
        values=space.values([m.configuration for m in measured]),
        measured=tuple(m.p99_ms for m in measured),
    )
