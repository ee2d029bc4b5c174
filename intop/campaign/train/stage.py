"""train: models over the collected trials (STM, DTM)."""

from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import ClassVar

from intop.campaign.collected import learned_samples, usable
from intop.domain.performance import performance
from intop.domain.training import Training
from intop.domain.trial import Trial
from intop.errors import UsageError
from intop.learn.parallel import processes
from intop.run import effort, prerequisites
from intop.run.context import Task
from intop.run.effort import Span
from intop.run.executor import execute
from intop.run.prospect import Prospect
from intop.run.stage import Expected, Stage


class Train(Stage[Training]):
    """Tune all families on the measured configurations, and measure their held-out errors.

    They learn from the screening, too, and are judged by what was collected and refined. A
    configuration counts once, with all of its trials: its replicates are never on both sides of a
    fold. They have no weights, since not all families know any. The searches are stored try
    by try, so that a training that is killed goes on with the others.
    """

    name = "train"
    description = "models that predict latency from a configuration"
    command = "train"
    finds = "models"
    hands_on = ("STM", "DTM")
    result_type = Training
    needs = ("collect",)
    families: ClassVar[Sequence[str]] = ()
    """The families to train; all of them where none is named."""

    def result(self, trials: Sequence[Trial]) -> Training:
        from intop.campaign.models import target_of
        from intop.campaign.train.limits import limited_effort, noise_ceiling
        from intop.learn.components import components
        from intop.learn.families import FAMILIES
        from intop.learn.tuning import limits, train_all

        task = self.task
        space, samples, trials = learned_samples(task)
        progress = task.context.progress
        families = self.families or tuple(FAMILIES)
        best = noise_ceiling(task, samples, trials)
        effort = limited_effort(task, best)
        for line in limits(families, samples, effort):
            progress.say(f"{task.title}: {line}")

        def begin(searches: int, ended: int) -> None:
            if ended < searches:
                task.begin(self.name)
            progress.begin(f"{task.title}: {self.name}", searches, ended)

        try:
            outcome = train_all(
                families,
                samples,
                effort=effort,
                dask=task.context.dask,
                records=task.store.searches(task.subject),
                begin=begin,
                progress=progress.step,
            )
        finally:
            progress.end()
        return Training(
            keys=tuple(p.key for p in space.parameters),
            fitted=tuple(fitted for fitted, _ in outcome),
            errors=tuple(error for _, error in outcome),
            trials=sum(len(trials) for trials in samples.own.measured),
            configurations=len(samples.own),
            lent=samples.lent,
            ceiling=best,
            components=components(performance(usable(trials, task))),
            objective=task.context.study.objective,
            target=target_of(task.context.study),
        )

    @classmethod
    def expected(cls, prospect: Prospect) -> Expected:
        """Return the time that it took before, where that is known."""
        budget, before = prospect.budget, prospect.training
        if before is None:
            rows = budget.screen_trials + budget.collect_trials + budget.refine_trials
            trials_s = None
            if (trial_s := _trial_s(prospect)) is not None:
                trials_s = rows * trial_s / prospect.replicas
            return Expected(time=effort.training(rows, budget, processes(), trials_s))
        seconds = sum(error.seconds for error in before.errors) / processes()
        return Expected(time=Span(likely_s=seconds, most_s=1.5 * seconds))


def _trial_s(prospect: Prospect) -> float | None:
    """Return the seconds of a trial, as measured, by the file, or as a pilot likely chooses."""
    from intop.campaign.train.limits import TAUGHT

    taken = [p.seconds for stage in TAUGHT for p in prospect.places(stage) if p.status is not None]
    if taken:
        return fmean(taken)
    reckoned = prospect.reckoned_trial(prospect.workload.duration_s)
    return None if reckoned is None else reckoned.likely_s


def train(task: Task, models: Path | None = None) -> Training:
    """Train the models, and save them in the folder `models`, fitted to all configurations.

    Raises what `learned_samples` does.
    """
    from intop import artefacts
    from intop.campaign.models import save_models

    if models is None:
        return execute(Train(task))
    space, samples, _ = learned_samples(task)
    artefacts.prepare(models)
    training = execute(Train(task))
    save_models(models, task, space, samples, training)
    return training


def required_training(task: Task) -> Training:
    """Return the training. Raises ResultMissingError, or UsageError for another objective's."""
    training = task.store.get(task.subject, Training)
    if training is None:
        raise prerequisites.missing(task, "no models yet", "train")
    study = task.context.study
    if training.objective != study.objective:
        train_again = prerequisites.command_line(
            study, ["train"], task.subject.arch, task.workload.name
        )
        raise UsageError(
            f"{task.title}: the models learned the objective {training.objective!r}, and "
            f"{study.path} asks for {study.objective!r}. Train them for it: {train_again}"
        )
    return training
