"""Saved models: of which campaign they are, and whether they may stand for this one's."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from intop import artefacts
from intop.artefacts import Artefact
from intop.config.study import Study
from intop.domain.artefact import Origin
from intop.domain.comparison import EXPECTED_DIFFERENCES, MUST_BE_EQUAL, WARNED_DIFFERENCES
from intop.domain.encoding import Variable
from intop.domain.space import Space
from intop.domain.training import Training, quantity
from intop.errors import ArtefactError, IncomparableError
from intop.learn.families import FAMILIES
from intop.learn.parallel import one_thread
from intop.learn.samples import Samples
from intop.learn.surrogate import Predictor, fit
from intop.run.context import Task

UNIT = "ms"

FEW = 3
"""Lines of a longer list of differences that are shown."""


def target_of(study: Study) -> str:
    """Return the target of a study's models."""
    return quantity(study.objective)


def path_of(folder: Path, task: Task) -> Path:
    """Return the path of a task's models in a folder of artefacts."""
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
    """Return the tree families of saved models for a task, and say what to know of them.

    Raises IncomparableError for models of another space, target, architecture or load, and
    ArtefactError, as `Artefact.model`.
    """
    path = artefact.path
    theirs, ours = artefact.manifest.origin, _origin(task, space, samples)
    if differences := obstacles(theirs, ours):
        raise IncomparableError(
            f"{path}: these models are of something else than {task.title} of "
            f"{task.context.study.name} (theirs against this one's):\n  "
            + "\n  ".join(differences)
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


def obstacles(theirs: Origin, ours: Origin) -> list[str]:
    """Return why models of one origin say nothing about another, a line each with both values."""
    pairs = (
        ("architecture", theirs.arch, ours.arch),
        ("target", f"{theirs.target} in {theirs.unit}", f"{ours.target} in {ours.unit}"),
    )
    lines = [f"{what}: {there} against {here}" for what, there, here in pairs if there != here]
    lines += theirs.conditions.differences(ours.conditions, MUST_BE_EQUAL)
    return lines + _other_variables(theirs.variables, ours.variables)


def remarks(theirs: Origin, ours: Origin) -> list[str]:
    """Return what to know of models that can be used, a sentence each."""
    sentences: list[str] = []
    same_campaign = (theirs.study, theirs.campaign) == (ours.study, ours.campaign)
    if theirs.samples != ours.samples:
        if same_campaign and ours.trials > theirs.trials:
            sentences.append(
                f"they were fitted to {theirs.trials} trials, and the campaign has {ours.trials} "
                f"by now"
            )
        else:
            sentences.append(
                f"they are of other trials: {theirs.trials} of {theirs.configurations} "
                f"configurations on {', '.join(theirs.replicas)}, "
                f"study {theirs.study} of {theirs.campaign}"
            )
    names = [n for n in (*EXPECTED_DIFFERENCES, *WARNED_DIFFERENCES) if n != "arch"]
    if lines := theirs.conditions.differences(ours.conditions, names):
        sentences.append(
            f"they were measured elsewhere (theirs against this one's): {'; '.join(lines)}"
        )
    if lines := _other_defaults(theirs.defaults, ours.defaults):
        sentences.append(f"the hosts' defaults differ (theirs against this one's): {_few(lines)}")
    return sentences


def _other_variables(theirs: Sequence[Variable], ours: Sequence[Variable]) -> list[str]:
    known, here = {v.name: v for v in theirs}, {v.name: v for v in ours}
    lines = [f"{name}: varied there, not here" for name in known if name not in here]
    lines += [f"{name}: varied here, not there" for name in here if name not in known]
    lines += [
        f"{name}: {_described(variable)} against {_described(here[name])}"
        for name, variable in known.items()
        if name in here and variable != here[name]
    ]
    if not lines and list(known) != list(here):
        lines.append(f"order: {', '.join(known)} against {', '.join(here)}")
    return lines


def _described(variable: Variable) -> str:
    if variable.choices:
        return f"one of {', '.join(variable.choices)}"
    own = "" if variable.own is None else f", or {variable.own:.15g}"
    return f"{variable.low:.15g} to {variable.high:.15g} ({variable.scale}){own}"


def _other_defaults(theirs: Mapping[str, str], ours: Mapping[str, str]) -> list[str]:
    return [
        f"{key}: {value} against {ours[key]}"
        for key, value in theirs.items()
        if key in ours and ours[key] != value
    ]


def _few(lines: Sequence[str]) -> str:
    more = f"; and {len(lines) - FEW} more" if len(lines) > FEW else ""
    return "; ".join(lines[:FEW]) + more
