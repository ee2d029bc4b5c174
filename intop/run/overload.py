"""Defaults that do not carry the load: when they end a stage, and with which words."""

from collections.abc import Mapping, Sequence
from typing import Any

from intop.domain.concurrency import saturated
from intop.domain.overload import PENDING, default_before, is_doubted
from intop.domain.server import SERVERS
from intop.domain.trial import Trial
from intop.errors import BaselineError
from intop.run.context import Task
from intop.run.stage import Stage
from intop.run.validity import PORTS, main_error


def doubted(stage: Stage[Any], trial: Trial, trials: Mapping[int, Trial]) -> list[Trial] | None:
    """Return an overloaded default with an overloaded one before it, if there is one before it.

    None after a good default, and in a stage that doesn't end by overload.
    """
    if not stage.ends_by_overload or not trial.configuration.is_default:
        return None
    index = trial.planned.index
    defaults = {
        n: t.status
        for n, t in trials.items()
        if t.usable and t.configuration.is_default and t.replica == trial.replica
    }
    if not is_doubted(index, defaults):
        return None
    before = default_before(index, defaults)
    return [trial] if before is None else [trials[before], trial]


def is_repeated(
    stage: Stage[Any], trial: Trial, trials: Mapping[int, Trial], repeated: dict[int, Trial]
) -> bool:
    """Whether an overloaded default is measured again at once, as a stage's first one is.

    `repeated` has the earlier attempts by index. Raises BaselineError for two in a row.
    """
    if (defaults := doubted(stage, trial, trials)) is None:
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
    """Return the error with the evidence of two overloaded defaults, and what to do."""
    task, workload = stage.task, stage.task.workload.name
    evidence = "".join(f"\n  {_evidence(trial)}" for trial in defaults)
    return BaselineError(
        f"{task.title}: {defaults[-1].replica} does not carry this load with its default "
        f"configuration, twice in a row, so {stage.name} would compare failures:{evidence}\n"
        f"{remedies(task, defaults)}\n"
        "Once that is mended the same command measures this default again and goes on; all trials "
        f"are stored. Or lower rate_rps in [workload.{workload}] of {task.context.study.path} and "
        "begin anew with --new"
    )


def remedies(task: Task, trials: Sequence[Trial]) -> str:
    """Return what to do about trials that were overloaded or got no answer, in lines."""
    from intop.run.loads import load_of

    last = trials[-1]
    ask = f"intop doctor --arch {task.subject.arch}"
    if any(trial.errors.get(PORTS) for trial in trials):
        return (
            "The load generator ran out of ports. There, widen net.ipv4.ip_local_port_range; in "
            "the study, raise requests_per_connection, or share the load among several "
            f"[[cluster.{task.subject.arch}.load_generators]]"
        )
    server = SERVERS[last.conditions.server].title
    lines = [f"Look at {server} and its backends, and with: {ask}"]
    workload = load_of(last.planned, task.workload)
    too_few = saturated(workload, last.achieved_rps)
    if too_few and main_error(last.errors) in ("", PENDING):
        own = any(clients.connections is not None for clients in workload.clients)
        table = f"[[workload.{workload.name}.clients]]" if own else f"[workload.{workload.name}]"
        lines.append(
            f"Or the load has too few connections: {too_few}. That is so if an idle {server} takes "
            f"as long for an answer ({ask} shows it): then raise connections in {table}"
        )
    return "\n".join(lines)


def _evidence(trial: Trial) -> str:
    """Return such as: trial 0: 812 of 1000 requests/s (answered: 812 requests/s, errors: ...)."""
    latency = f"{trial.conditions.judged_by} {trial.judged_ms:.1f} ms"
    kinds = ", ".join(f"{count} {kind}" for kind, count in trial.errors.items() if count)
    return (
        f"trial {trial.planned.index}: {trial.detail} (answered: {trial.achieved_rps:.0f} "
        f"requests/s, errors: {kinds or 'none'}, {latency})"
    )
