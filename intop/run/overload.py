"""Defaults that do not carry the load: when a stage ends by them, and what is said then."""

from collections.abc import Mapping, Sequence
from typing import Any

from intop.domain.overload import default_before, is_doubted
from intop.domain.server import SERVERS
from intop.domain.trial import Trial
from intop.errors import BaselineError
from intop.run.stage import Stage


def doubted(stage: Stage[Any], trial: Trial, made: Mapping[int, Trial]) -> list[Trial] | None:
    """An overloaded default with the one before it, which was overloaded, too, or is not there.

    None where that is no matter: after a good default, and in a stage that doesn't end by it.
    """
    if not stage.ends_by_overload or not trial.configuration.is_default:
        return None
    index = trial.planned.index
    defaults = {
        n: t.status
        for n, t in made.items()
        if t.usable and t.configuration.is_default and t.replica == trial.replica
    }
    if not is_doubted(index, defaults):
        return None
    before = default_before(index, defaults)
    return [trial] if before is None else [made[before], trial]


def is_repeated(
    stage: Stage[Any], trial: Trial, made: Mapping[int, Trial], repeated: dict[int, Trial]
) -> bool:
    """Whether an overloaded default is measured again at once, as a stage's first one is.

    `repeated` has those that were, by index. Raises BaselineError for two in a row.
    """
    if (defaults := doubted(stage, trial, made)) is None:
        return False
    index, task = trial.planned.index, stage.task
    if len(defaults) > 1 or index in repeated:
        raise _too_much(stage, [*filter(None, [repeated.get(index)]), *defaults])
    repeated[index] = trial
    task.context.progress.say(
        f"{task.title}: the first default of {stage.name} is overloaded ({trial.detail}), and "
        "measured again"
    )
    return True


def _too_much(stage: Stage[Any], defaults: Sequence[Trial]) -> BaselineError:
    """What is known of two overloaded defaults in a row, and what to do."""
    task, workload = stage.task, stage.task.workload.name
    server = SERVERS[defaults[-1].conditions.server].title
    evidence = "".join(f"\n  {_evidence(one)}" for one in defaults)
    return BaselineError(
        f"{task.title}: {defaults[-1].replica} does not carry this load with its default "
        f"configuration, twice in a row, so {stage.name} would compare failures:{evidence}\n"
        f"Look at {server} and its backends, and with: intop doctor --arch {task.subject.arch}\n"
        "Once that is mended the same command measures this default again and goes on; all trials "
        f"are stored. Or lower rate_rps in [workload.{workload}] of {task.context.study.path} and "
        "begin anew with --new"
    )


def _evidence(trial: Trial) -> str:
    """Such as: trial 0: 812 of 1000 requests/s (answered: 812 requests/s, errors: ...)."""
    kinds = ", ".join(f"{count} {kind}" for kind, count in trial.errors.items() if count)
    return (
        f"trial {trial.planned.index}: {trial.detail} (answered: {trial.achieved_rps:.0f} "
        f"requests/s, errors: {kinds or 'none'}, P99 {trial.p99_ms:.1f} ms)"
    )
