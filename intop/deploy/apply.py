"""apply: carries out a plan, host by host, each after an A/B on that host."""

from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from intop.campaign.pilot.stage import timed
from intop.campaign.verify.judge import Judgement
from intop.deploy.deployable import task_of
from intop.deploy.provenance import provenance
from intop.deploy.result import Plan
from intop.deploy.rollout import HostRollout, Rollout
from intop.domain.baseline import HOST
from intop.domain.configuration import Configuration
from intop.domain.deployment import Deployment
from intop.domain.rounds import latest_series, planned_arms
from intop.domain.sysctl_file import sysctl_file
from intop.domain.trial import Trial
from intop.domain.verdict import Verdict
from intop.errors import IntopError, UsageError
from intop.run.context import Context, Task, clusters_of
from intop.run.executor import OpenTestbeds, execute
from intop.run.stage import Batch, SoFar, Stage
from intop.sentences import verdict_sentence

if TYPE_CHECKING:
    from intop.hosts.guard import GuardedHost
    from intop.run.cluster_testbed import ClusterTestbed


def check(plans: Iterable[Plan]) -> None:
    """Raises IntopError for whatever is in the way on any host: then none is to be touched.

    UsageError for a plan that is for review only.
    """
    plans = list(plans)
    if any(plan.for_review for plan in plans):
        raise UsageError("a plan of hosts that the study doesn't have is for review only")
    if problems := [line for plan in plans for line in plan.problems]:
        raise IntopError("\n".join(["nothing was touched on any host:", *problems]))


def roll_out(context: Context, plan: Plan, *, accept_no_loss: bool = False) -> Rollout:
    """Measure and apply on one host after the other, as long as each shows a gain.

    With `accept_no_loss` it is enough that none is worse. A host that shows too little, or breaks a
    guardrail that the plan does not accept, is restored, and later hosts are left alone.

    Raises the errors of `check`, of measuring and of `GuardedHost.keep`. What was applied by then
    stays.
    """
    check([plan])
    deployment = plan.deployment
    task = timed(task_of(context, deployment))
    names = [answer.name for answer in plan.hosts]
    before = task.store.get(task.subject, Rollout)
    rollout = Rollout(title=task.title, hosts=(), series=before.series if before else 0)
    for number, answer in enumerate(plan.hosts):
        if answer.result is not None and answer.result.has_it:
            file = answer.result.file if plan.persist else ""
            there = answer.result.applied.nginx_files if answer.result.applied else ()
            done = HostRollout(
                host=answer.name,
                outcome="already",
                file=file,
                nginx_files=tuple(file.path for file in there),
            )
            series = rollout.series
        elif answer.result is not None and answer.result.lacks_file:
            done, series = _made_lasting(task, plan, number), rollout.series
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


def _made_lasting(task: Task, plan: Plan, number: int) -> HostRollout:
    """Give a host the file for the values that an apply has left there."""
    from intop.hosts.guard import guarded

    address = clusters_of(task.context.study, task.subject.arch)[number].load_balancer
    configuration = Configuration(dict(plan.deployment.values))
    say = task.context.progress.say
    with (
        closing(task.context.connect(address)) as host,
        guarded(host, configuration.values, originals=True, say=say) as guard,
    ):
        _check_as_planned(guard, plan, number)
        now = _now()
        path = _persistent_path(plan, number)
        text = sysctl_file(plan.deployment, written_at=now, host=address.name)
        guard.keep(configuration, _about(plan.deployment, now), (path, text))
    return HostRollout(host=address.name, outcome="already", file=path)


def _on_host(
    task: Task, plan: Plan, number: int, decided: int, accept_no_loss: bool
) -> tuple[HostRollout, int]:
    """The A/B on one replica and what follows from it, and the series of its rounds."""
    from intop.run.opening import cluster_testbed

    deployment, name = plan.deployment, plan.hosts[number].name
    path = _persistent_path(plan, number)
    say = task.context.progress.say
    configuration = Configuration(dict(deployment.values))
    with cluster_testbed(task, number, originals=True) as ready:
        _check_as_planned(ready.guard, plan, number)
        stage = RollOut(ready, configuration, plan.rounds, decided)
        say(f"{task.title}: {name}: A/B against the default in up to {plan.rounds} rounds")
        verdict = execute(stage, on=OpenTestbeds((ready,)))
        if not _is_enough(verdict, accept_no_loss, plan.accept_costs):
            ready.give_server_its_own()
            outcome = HostRollout(host=name, outcome="stopped", verdict=verdict)
        else:
            now = _now()
            file = None
            if path:
                file = (path, sysctl_file(deployment, written_at=now, host=name))
            ready.leave(configuration, _about(deployment, now), file)
            say(f"{task.title}: {name}: applied: {verdict_sentence(verdict)}")
            outcome = HostRollout(
                host=name,
                outcome="applied",
                verdict=verdict,
                file=path,
                nginx_files=_edited(plan, number),
            )
    return outcome, stage.series


class RollOut(Stage[Verdict]):
    """The deployed values against the default on one host, before they stay.

    Fresh rounds, or those that were begun on this host and led to no decision yet: `decided` is the
    last series that did.
    """

    name = "apply"
    description = "what is deployed against the default, on each host before it stays"
    command = "apply"
    result_type = Rollout
    needs = ("judge",)
    is_apart = True
    ends_by_overload = False  # what is deployed may be what such a host needs
    is_listed = False

    def __init__(
        self, testbed: "ClusterTestbed", configuration: Configuration, rounds: int, decided: int
    ) -> None:
        super().__init__(testbed.task)
        task, origin = testbed.task, f"deployment on {testbed.name}"
        before = task.store.plan(task.subject, self.name)
        self.series, planned = latest_series(before)
        if self.series <= decided or planned_arms(planned).get(origin) != configuration:
            self.series, planned = self.series + bool(planned), []
        self.start = planned[0].index if planned else len(before)
        self._judgement = Judgement(
            task=task,
            stage=self.name,
            origin=origin,
            configuration=configuration,
            against=HOST,
            rounds=rounds,
            looks=task.context.study.budget.judge_looks,
            duration_s=task.context.study.budget.judge_duration_s,
            series=self.series,
            start=self.start,
        )

    def ask(self, so_far: SoFar) -> Batch | None:
        return self._judgement.ask(so_far)

    def result(self, trials: Sequence[Trial]) -> Verdict:
        verdict = self._judgement.verdict(trials)
        self._judgement.say_if_early(verdict)
        return verdict


def _is_enough(verdict: Verdict, accept_no_loss: bool, accept_costs: bool) -> bool:
    if verdict.broken and not accept_costs:
        return False
    outcome = verdict.latency_outcome
    return outcome == "gain" or (accept_no_loss and outcome != "worse")


def _persistent_path(plan: Plan, number: int) -> str:
    """Return the file in which a host keeps its values; "" without --persist."""
    host = plan.hosts[number].result
    return host.file if host is not None and plan.persist else ""


def _edited(plan: Plan, number: int) -> tuple[str, ...]:
    """The files of nginx that a host's part of the plan changes."""
    host = plan.hosts[number].result
    return tuple(edit.path for edit in host.edits) if host is not None else ()


def _now() -> str:
    """Return the time in UTC, ISO 8601."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _check_as_planned(guard: "GuardedHost", plan: Plan, number: int) -> None:
    """Raises IntopError where a host has changed while it waited for its turn."""
    host = plan.hosts[number].result
    for key in host.keys if host is not None else ():
        now = guard.value_before(key.change.key)
        if now != key.now:
            raise IntopError(
                f"{plan.hosts[number].name}: {key.change.key} was {key.now} when it was planned, "
                f"and is {'left out' if now is None else now} now: this host was left as it is. "
                f"Plan again: intop plan"
            )


def _about(deployment: Deployment, now: str) -> dict[str, str]:
    """Return the provenance that the host keeps with its values."""
    return provenance(
        since=now,
        study=deployment.study,
        campaign=deployment.campaign,
        started_at=deployment.started_at,
        arch=deployment.arch,
        workload=deployment.workload,
        origin=deployment.origin,
    )
