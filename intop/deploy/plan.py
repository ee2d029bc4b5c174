"""plan: what a deployment changes on which hosts, and all that is in its way.

`apply` carries out such a plan and no other. Hosts are only read.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from intop.campaign.pilot.stage import timed
from intop.deploy.deployable import deployments, task_of
from intop.deploy.host_plans import Seen, SeenCluster, host_plan, look, look_around, replica_plan
from intop.deploy.result import HostPlan, Plan, SavedPlan
from intop.domain.applied import Applied
from intop.domain.cluster import Cluster, HostAddress
from intop.domain.deployment import Deployment
from intop.domain.host_state import Answer
from intop.domain.sysctl_file import plain_values
from intop.errors import IntopError, LabError, UsageError
from intop.hosts.host import Host
from intop.inspect.host_states import ask_all, replica_name
from intop.run.context import Context, Task, chosen_archs, chosen_workloads, cluster_of

AGAIN = "Make a plan of what is so now: intop plan --output FILE"


def plan(
    context: Context,
    *,
    whole: bool = False,
    persist: bool = False,
    rounds: int | None = None,
    hosts: Sequence[HostAddress] = (),
    accept_costs: bool = False,
    configuration: str = "",
) -> dict[str, Plan | None]:
    """The plan of each architecture that has a verdict; None: keep the defaults.

    With `accept_costs` a broken guardrail is accepted, now and on each host. `whole` and
    `configuration` are as in `deployments`. `hosts` stand in place
    of the study's, for review. A host that can't be asked has its error in its place. Raises what
    `deployments` does, and UsageError where it is not clear what `hosts` are to get, or for values
    that no file can have.
    """
    by_arch = deployments(
        context, whole=whole, accept_costs=accept_costs, configuration=configuration
    )
    gains = [arch for arch, deployment in by_arch.items() if deployment is not None]
    if hosts and len(gains) > 1:
        raise UsageError(
            f"{' and '.join(gains)} have a gain, with values of their own: say with --arch which "
            "of them the hosts of --host are to get"
        )
    plans: dict[str, Plan | None] = dict.fromkeys(by_arch)
    for arch, deployment in by_arch.items():
        if deployment is None:
            continue
        if persist:
            plain_values(deployment)
        elif deployment.directives:
            raise UsageError(
                f"{deployment.title}: directives stay in nginx's files after a reboot, and the "
                "kernel's values beside them would not: say --persist"
            )
        answers = (
            _named(context, deployment, hosts, persist=persist)
            if hosts
            else _replicas(context, deployment, persist=persist)
        )
        plans[arch] = Plan(
            deployment=deployment,
            hosts=tuple(answers),
            rounds=rounds or max(context.study.budget.judge_pairs, deployment.verdict.pairs),
            persist=persist,
            for_review=bool(hosts),
            accept_costs=accept_costs,
        )
    return plans


def plan_again(context: Context, saved: SavedPlan) -> dict[str, Plan | None]:
    """The saved plans, made again by what the study and its hosts are now.

    Raises UsageError for a plan of another study, or one for review only, and IntopError, with
    all of it, where anything has changed that a plan rests on.
    """
    if saved.study != context.study.name:
        raise UsageError(
            f"the plan is of the study {saved.study}, and {context.study.path} is "
            f"{context.study.name}: name its file by --config"
        )
    campaign = context.campaign
    if (saved.campaign, saved.started_at) != (campaign.id, campaign.started_at):
        raise IntopError(
            f"the plan is of campaign {saved.campaign} of {saved.started_at}, and the latest one "
            f"of {saved.study} is {campaign.id} of {campaign.started_at}. {AGAIN}"
        )
    if any(then.for_review for then in saved.plans):
        raise UsageError(
            "the plan is for review only: it is of hosts that the study doesn't have, and what is "
            "applied is measured first. Plan without --host, or add their clusters to the study"
        )
    plans: dict[str, Plan | None] = {}
    lines: list[str] = []
    for then in saved.plans:
        now = _planned_again(context, then, saved)
        if now is None:
            lines.append(f"{then.deployment.title}: its verdict is no gain any more")
            continue
        plans[then.deployment.arch] = now
        lines += changes(then, now)
    if lines:
        problems = [line for now in plans.values() if now for line in now.problems]
        reasons = "\n  ".join(dict.fromkeys([*lines, *problems]))
        raise IntopError(
            f"what the plan of {saved.made_at} rests on has changed, so nothing was touched on any "
            f"host:\n  {reasons}\n{AGAIN}"
        )
    return plans


def _planned_again(context: Context, then: Plan, saved: SavedPlan) -> Plan | None:
    arch = then.deployment.arch
    narrow = replace(
        context,
        archs=chosen_archs(context.study, arch),
        workloads=chosen_workloads(context.study, then.deployment.workload),
    )
    again = plan(
        narrow,
        whole=saved.whole,
        persist=then.persist,
        rounds=then.rounds,
        accept_costs=then.accept_costs,
        configuration=saved.configuration,
    )
    return again[arch]


def _named(
    context: Context, deployment: Deployment, hosts: Sequence[HostAddress], *, persist: bool
) -> list[Answer[HostPlan]]:
    """The plan of hosts that the study doesn't have."""
    parameters = {
        p.key: p for p in context.study.catalogue.parameters if p.key in deployment.values
    }

    def work(host: Host) -> HostPlan:
        directives = context.study.directives if deployment.directives else None
        seen = look(host, parameters.values(), deployment, directives)
        return host_plan(seen, deployment, parameters, persist=persist)

    return ask_all(hosts, context.connect, work)


def _replicas(context: Context, deployment: Deployment, *, persist: bool) -> list[Answer[HostPlan]]:
    """The plan of the study's load balancers, in the order of its file."""
    task = task_of(context, deployment)
    has_trials = any(place.attempts for place in task.store.places(task.subject))
    if task.workload.duration_s is None and has_trials:
        task = timed(task)  # there are trials, so the pilot was made: nothing is measured
    up: list[tuple[str, Cluster | None, str]] = []
    for replica in context.study.clusters[deployment.arch]:
        try:
            up.append((replica_name(replica), cluster_of(replica), ""))
        except LabError as error:
            up.append((replica_name(replica), None, str(error)))
    by_balancer = {cluster.load_balancer: cluster for _, cluster, _ in up if cluster is not None}

    def work(host: Host) -> SeenCluster:
        directives = context.study.directives if "nginx" in context.study.tunes else None
        cluster = by_balancer[host.address]
        parameters = context.study.catalogue.parameters
        balancer: Seen = look(host, parameters, deployment, directives, cluster.server)
        return look_around(task, cluster, balancer)

    answers = dict(zip(by_balancer, ask_all(list(by_balancer), context.connect, work), strict=True))
    return [
        Answer(name=name, error=error)
        if cluster is None
        else _answer(task, answers[cluster.load_balancer], number, deployment, persist=persist)
        for number, (name, cluster, error) in enumerate(up)
    ]


def _answer(
    task: Task,
    answer: Answer[SeenCluster],
    number: int,
    deployment: Deployment,
    *,
    persist: bool,
) -> Answer[HostPlan]:
    if answer.result is None:
        return Answer(name=answer.name, folder=answer.folder, error=answer.error)
    planned = replica_plan(task, answer.result, number, deployment, persist=persist)
    return Answer(name=answer.name, folder=answer.folder, result=planned)


# What has changed since a plan was made -----------------------------------------------------------


def changes(then: Plan, now: Plan) -> list[str]:
    """A line for each difference, with both values. `now` is the same plan made again.

    A host that has by now all that is planned is no difference: nothing is left to be done there.
    """
    title = then.deployment.title
    facts = [_deployment_facts(plan.deployment) for plan in (then, now)]
    lines = [f"{title}: {line}" for line in _differences(*facts)]
    before, after = ([answer.name for answer in plan.hosts] for plan in (then, now))
    if before != after:
        lines.append(_differs(f"{title}: load balancers", ", ".join(before), ", ".join(after)))
        return lines
    for earlier, answer in zip(then.hosts, now.hosts, strict=True):
        was, host = earlier.result, answer.result
        if host is None:
            lines.append(answer.error)
        elif was is None:
            lines.append(f"{answer.name}: could not be asked then, and can be now")
        elif not host.has_it:
            lines += [f"{answer.name}: {line}" for line in _host_changes(was, host)]
    return lines


def _differences(then: Mapping[str, str], now: Mapping[str, str]) -> Iterator[str]:
    for what in dict.fromkeys([*then, *now]):
        before, after = then.get(what, "nothing"), now.get(what, "nothing")
        if before != after:
            yield _differs(what, before, after)


def _shared_differences(then: Mapping[str, str], now: Mapping[str, str]) -> Iterator[str]:
    """Differences of the facts that both have."""
    shared = [what for what in then if what in now]
    return _differences(*({what: facts[what] for what in shared} for facts in (then, now)))


def _differs(what: str, then: str, now: str) -> str:
    return f"{what}: {then or 'empty'} in the plan, {now or 'empty'} now"


def _deployment_facts(deployment: Deployment) -> dict[str, str]:
    names = ("study", "campaign", "started_at", "workload", "origin")
    facts = {name: str(getattr(deployment, name)) for name in names}
    facts |= {f"{key}: set to": value for key, value in deployment.values.items()}
    return facts | {f"{c.key}: the default": c.default for c in deployment.changes}


def _host_changes(then: HostPlan, now: HostPlan) -> Iterator[str]:
    yield from _shared_differences(_host_facts(then), _host_facts(now))
    diffs = [{edit.path: edit.diff for edit in host.edits} for host in (then, now)]
    for path in dict.fromkeys([*diffs[0], *diffs[1]]):
        if diffs[0].get(path) != diffs[1].get(path):
            yield f"{path}: other lines would change there than in the plan"
    planned = {key.change.key for key in now.keys}
    yield from _applied_changes(then.applied, now.applied, planned)


def _host_facts(host: HostPlan) -> dict[str, str]:
    """Return what a plan rests on; what sets a key to the same value is no matter."""
    facts = {"machine": host.machine, "kernel": host.kernel, "file": host.file}
    for key in host.keys:
        name, filed = key.change.key, key.filed
        rivals = (f"{r.setting.place} to {r.setting.value} ({r.wins})" for r in key.rivals)
        facts |= {
            name: "no value" if key.now is None else key.now,
            f"{name}: what is in its way": key.obstacle or "nothing",
            f"{name}: what else sets it": ", ".join(rivals) or "nothing",
            f"{name}: our file": f"{filed.place} has {filed.value}" if filed else "nothing",
        }
    return facts


def _applied_changes(
    then: Applied | None, now: Applied | None, planned: Collection[str]
) -> Iterator[str]:
    """Differences of what an apply has left; the values of `planned` keys stand elsewhere."""
    yield from _differences({"applied": _record(then)}, {"applied": _record(now)})
    if then is None or now is None:
        return
    if then.file_is != now.file_is:
        yield _differs(then.file or now.file, str(then.file_is), str(now.file_is))
    yield from _shared_differences(_left_facts(then, planned), _left_facts(now, planned))


def _left_facts(applied: Applied, planned: Collection[str]) -> dict[str, str]:
    return {
        f"{key.key}, which an apply has left: {name}": getattr(key, name)
        for key in (*applied.keys, *applied.directives)
        for name in ("before", "left", "now")
        if name != "now" or key.key not in planned
    }


def _record(applied: Applied | None) -> str:
    if applied is None:
        return "nothing"
    keys = ", ".join(sorted(applied.values))
    return f"{applied.title}, since {applied.since} ({keys})"
