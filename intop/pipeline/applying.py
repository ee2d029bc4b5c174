"""apply: a deployment on its load balancers, host by host, each after an A/B of its own."""

import getpass
import socket
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime

from intop.domain.answer import Answer
from intop.domain.applied import overruled
from intop.domain.baseline import HOST
from intop.domain.cluster import HostAddress
from intop.domain.configuration import Configuration
from intop.domain.deployment import Deployment
from intop.domain.host_state import HostState
from intop.domain.parameter import PARTNERS
from intop.domain.persistent import Persistent, our_file
from intop.domain.results import Verdict
from intop.domain.rollout import HostRollout, HostStep, Rollout, RolloutPlan
from intop.domain.sysctl_file import plain_values, sysctl_file
from intop.errors import IntopError, UsageError
from intop.hosts.host import Host
from intop.hosts.persistent import read_persistent
from intop.pipeline.bench import Bench, bench
from intop.pipeline.blocks import latest_series, planned_sides
from intop.pipeline.context import Context, Task
from intop.pipeline.deploying import deployments
from intop.pipeline.host_states import ask_all, state_of
from intop.pipeline.pilot import timed
from intop.pipeline.verifying import Place, judge
from intop.report.verdict import sentence
from intop.version import __version__


def plan_rollouts(
    context: Context, *, whole: bool = False, persist: bool = False, rounds: int | None = None
) -> list[RolloutPlan]:
    """What is to be applied where, after all hosts were asked; nothing is written.

    Empty where the defaults are to be kept. Raises what `deployments` does, and UsageError for
    values that no file can have.
    """
    found = deployments(context, whole=whole)
    return [
        RolloutPlan(
            deployment=deployment,
            hosts=_host_plans(_task(context, deployment), deployment, persist=persist),
            rounds=rounds or context.study.budget.judge_pairs,
        )
        for deployment in found.values()
        if deployment is not None
    ]


def check(plans: Iterable[RolloutPlan]) -> None:
    """Raises IntopError for whatever is in the way on any host: then none is to be touched."""
    if problems := [host.problem for plan in plans for host in plan.hosts if host.problem]:
        raise IntopError("\n".join(problems))


def roll_out(context: Context, plan: RolloutPlan, *, accept_no_loss: bool = False) -> Rollout:
    """Measure and apply on one host after the other, as long as each shows a gain.

    With `accept_no_loss` it is enough that none is worse. A host that shows too little is given
    back as it was, and those after it are left alone. Raises what `check` does, and what measuring
    and `GuardedHost.keep` do; what was applied by then stays.
    """
    check([plan])
    deployment = plan.deployment
    task = timed(_task(context, deployment))
    names = [host.host for host in plan.hosts]
    before = task.store.get(task.subject, Rollout)
    rollout = Rollout(title=task.title, hosts=(), series=before.series if before else 0)
    for number, host in enumerate(plan.hosts):
        if host.has_it:
            done = HostRollout(host=host.host, outcome="already", file=host.file)
            series = rollout.series
        else:
            done, series = _on_host(task, plan, number, rollout.series, accept_no_loss)
        rollout = replace(
            rollout,
            hosts=(*rollout.hosts, done),
            untouched=tuple(names[number + 1 :]),
            series=series,
        )
        task.store.put(task.subject, rollout)
        if rollout.is_stopped:
            break
    return rollout


def _on_host(
    task: Task, plan: RolloutPlan, number: int, decided: int, accept_no_loss: bool
) -> tuple[HostRollout, int]:
    """The A/B on one replica and what follows from it, and the series of its rounds."""
    deployment, host = plan.deployment, plan.hosts[number]
    say = task.context.progress.say
    configuration = Configuration(dict(deployment.values))
    with bench(task, number, originals=True) as ready:
        _check_guarded(ready, configuration)
        place = _place(ready, configuration, plan.rounds, decided)
        say(f"{task.title}: {host.host}: A/B against the default in up to {place.rounds} rounds")
        found = judge(ready.task, _side(ready), configuration, HOST, place)
        if not _is_enough(found, accept_no_loss):
            ready.give_nginx_its_own()
            outcome = HostRollout(host=host.host, outcome="stopped", verdict=found)
        else:
            now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
            file = None
            if host.file:
                file = (host.file, sysctl_file(deployment, written_at=now, host=host.host))
            ready.leave(configuration, _about(deployment, now), file)
            say(f"{task.title}: {host.host}: applied: {sentence(found)}")
            outcome = HostRollout(host=host.host, outcome="applied", verdict=found, file=host.file)
    return outcome, place.series


def _place(ready: Bench, configuration: Configuration, rounds: int, decided: int) -> Place:
    """Fresh rounds, or those that were begun on this host and led to no decision yet."""
    before = ready.task.store.plan(ready.task.subject, "apply")
    series, planned = latest_series(before)
    begun = planned_sides(planned).get(_side(ready))
    if series <= decided or begun != configuration:
        series, planned = series + bool(planned), []
    return Place(
        stage="apply",
        rounds=rounds,
        looks=ready.task.context.study.budget.judge_looks,
        series=series,
        start=planned[0].index if planned else len(before),
        on=ready,
    )


def _side(ready: Bench) -> str:
    return f"deployment on {ready.name}"


def _is_enough(found: Verdict, accept_no_loss: bool) -> bool:
    return found.outcome == "gain" or (accept_no_loss and found.outcome != "worse")


def _check_guarded(ready: Bench, configuration: Configuration) -> None:
    """Raises UsageError for a key that the study or the host doesn't let be set any more."""
    for key in configuration.values:
        if key not in ready.guard.snapshot:
            why = ready.probed.refused.get(key, "it is not among the study's parameters")
            raise UsageError(f"{ready.name}: {key} is left out by now: {why}. Tune anew")


def _about(deployment: Deployment, now: str) -> dict[str, str]:
    """What the host is told of where its values come from."""
    user = "somebody"
    with suppress(KeyError, OSError):
        user = getpass.getuser()
    return {
        "since": now,
        "study": deployment.study,
        "campaign": str(deployment.campaign),
        "started_at": deployment.started_at,
        "arch": deployment.arch,
        "workload": deployment.workload,
        "origin": deployment.origin,
        "by": f"{user}@{socket.gethostname()}",
        "version": __version__,
    }


# Looking first ------------------------------------------------------------------------------------


def _task(context: Context, deployment: Deployment) -> Task:
    return next(
        task
        for task in context.subjects()
        if (task.subject.arch, task.workload.name) == (deployment.arch, deployment.workload)
    )


def _host_plans(task: Task, deployment: Deployment, *, persist: bool) -> tuple[HostStep, ...]:
    values = plain_values(deployment) if persist else deployment.values

    def look(host: Host) -> tuple[HostState, Persistent | None]:
        return state_of(host), read_persistent(host) if persist else None

    addresses = [cluster.load_balancer for cluster in task.clusters()]
    answers = ask_all(addresses, task.context.connect, look)

    def planned(
        address: HostAddress, answer: Answer[tuple[HostState, Persistent | None]]
    ) -> HostStep:
        if answer.said is None:
            return HostStep(host=address.name, problem=answer.error)
        state, persistent = answer.said
        file = our_file(address.config_root) if persist else ""
        return HostStep(
            host=address.name,
            has_it=_has(state, values, file),
            problem=_problem(address.name, state, persistent, file),
            file=file,
            overruled=tuple(overruled(values, file, persistent)) if persistent else (),
        )

    return tuple(map(planned, addresses, answers))


def _has(state: HostState, values: Mapping[str, str], file: str) -> bool:
    """Whether a host has exactly these values applied; a key's partner has one by itself."""
    if state.applied is None or state.applied.file != file:
        return False
    found = state.applied.values
    others = {key for key in found if key not in values and PARTNERS.get(key) not in values}
    as_applied = all(drift.kind == "overridden" for drift in state.drift)
    return as_applied and not others and all(found.get(k) == v for k, v in values.items())


def _problem(name: str, state: HostState, persistent: Persistent | None, file: str) -> str:
    """Why nothing may be applied to a host as it is, with the next step; "" where all is well."""
    if state.holder:
        return f"{name}: is held by {state.holder} since {state.since}: end that session first"
    ours = state.applied.file if state.applied else ""
    for drift in state.drift:
        if drift.kind in ("changed", "edited"):
            return (
                f"{name}: {drift.where} was changed by somebody else since it was applied "
                f"({drift.detail}). Give the host back first, then apply anew: intop rollback "
                "(--force overwrites what was changed)"
            )
    if ours and state.applied and state.applied.file_is == "ours" and not file:
        return (
            f"{name}: has {ours} from an earlier apply, which would undo this one at the next "
            "boot. Say --persist to replace it, or remove it first by intop rollback"
        )
    if persistent and file != ours and file in persistent.files:
        return f"{name}: {file} is there already, and no apply wrote it: move it away first"
    return ""
