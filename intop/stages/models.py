"""Saved models: of which campaign they are, and whether they may stand for this one's."""

from dataclasses import replace
from pathlib import Path

from intop import artefacts
from intop.artefacts import Artefact
from intop.config.study import Study
from intop.domain.artefact import Origin, obstacles, remarks
from intop.domain.space import Space
from intop.domain.training import Training
from intop.errors import ArtefactError, IncomparableError
from intop.learn.families import FAMILIES
from intop.learn.parallel import one_thread
from intop.learn.samples import Samples
from intop.learn.surrogate import Predictor, fit
from intop.run.context import Task

UNIT = "ms"


def target_of(study: Study) -> str:
    """What a study's models predict."""
    return "P99" if study.objective == "p99" else "P99 equivalent"


def path_of(folder: Path, task: Task) -> Path:
    """Where a task's models are in a folder of artefacts."""
    name = f"{task.subject.arch}-{task.workload.name}{artefacts.SUFFIX}"
    return folder / name


def save_models(
    folder: Path, task: Task, space: Space, samples: Samples, training: Training
) -> None:
    """Fit each family to all rows, as a search would, and write them to the folder.

    Raises ArtefactError and UsageError, as `artefacts.save`.
    """
    path, seed = path_of(folder, task), task.seed("search")
    # What was predicted of each held-out row is of use to whoever has the rows.
    errors = {error.family: replace(error, held_out=()) for error in training.errors}
    models = []
    with one_thread():
        for fitted in training.fitted:
            model = FAMILIES[fitted.family].build(samples.variables, fitted.hyperparameters, seed)
            models.append((fitted, errors[fitted.family], fit(model, samples)))
        artefacts.save(path, _origin(task, space, samples), models)
    names = ", ".join(fitted.family for fitted in training.fitted)
    task.context.progress.say(f"{task.title}: {names} are saved in {path}")


def usable_trees(artefact: Artefact, task: Task, space: Space, samples: Samples) -> Predictor:
    """The tree families of saved models for a task; what to know of them is said.

    Raises IncomparableError for models of another space, target, architecture or load, and
    ArtefactError, as `Artefact.model`.
    """
    path = artefact.path
    theirs, ours = artefact.manifest.origin, _origin(task, space, samples)
    if found := obstacles(theirs, ours):
        raise IncomparableError(
            f"{path}: these models are of something else than {task.title} of "
            f"{task.context.study.name} (theirs against this one's):\n  "
            + "\n  ".join(found)
            + "\n"
            f"Leave --models out, or fit this campaign's: intop train --arch {task.subject.arch} "
            f"--workload {task.workload.name} --models DIR"
        )
    for sentence in remarks(theirs, ours):
        task.context.progress.say(f"{task.title}: {path}: {sentence}")
    names = [m.family for m in artefact.manifest.models]
    trees = [name for name in names if name in FAMILIES and FAMILIES[name].is_tree]
    if not trees:
        raise ArtefactError(
            f"{path}: no tree family among {', '.join(names) or 'no models'}, and a search needs "
            f"one. {artefacts.ANEW}"
        )
    with one_thread():
        return Predictor({name: artefact.model(name) for name in trees})


def _origin(task: Task, space: Space, samples: Samples) -> Origin:
    trials = task.trials("collect", "refine")
    campaign = task.subject.campaign
    return Origin(
        study=task.context.study.name,
        campaign=campaign.started_at,
        arch=task.subject.arch,
        workload=task.workload.name,
        target=target_of(task.context.study),
        unit=UNIT,
        variables=samples.variables,
        defaults=dict(space.defaults),
        conditions=trials[-1].conditions,
        replicas=tuple(sorted({t.replica for t in trials})),
        configurations=len(samples.own),
        trials=sum(len(trials) for trials in samples.own.measured),
        samples=samples.digest,
    )
