"""One host's part of a plan: what it has, what a deployment changes there, what is in its way."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from difflib import unified_diff

from intop.deploy.result import FileEdit, HostPlan, has_applied, planned_key, problems_of
from intop.domain.cluster import MACHINES, Cluster, HostAddress
from intop.domain.deployment import Change, Deployment
from intop.domain.host_state import HostState
from intop.domain.nginx.edits import changed
from intop.domain.nginx.permitted import is_directive
from intop.domain.nginx.probe import NginxProbe, probed
from intop.domain.nginx.standing import Directives
from intop.domain.parameter import PARTNERS, Parameter
from intop.domain.persistent import Persistent, our_file
from intop.domain.probing import MISSING, HostFacts, Probe, asked_keys, offered_choices, why_not_set
from intop.domain.server import NGINX, Server
from intop.errors import HostError
from intop.hosts import guard, sysctl
from intop.hosts.facts import facts, facts_and_conf
from intop.hosts.guard.script import STATE_FOLDER_ADVICE
from intop.hosts.host import Host
from intop.hosts.load.types import LoadTool
from intop.hosts.nginx_conf import is_known
from intop.hosts.nginx_files import TunableNginx, tunable_nginx
from intop.hosts.persistent import read_persistent
from intop.hosts.rig import ClusterFacts, tool_on, why_not_accepted
from intop.inspect.host_states import state_of
from intop.run.available_space import probed_of
from intop.run.comparability import conditions_of, differences, said_by
from intop.run.context import Task


@dataclass(frozen=True, kw_only=True)
class Seen:
    """The answers of a load balancer."""

    address: HostAddress
    state: HostState
    probe: Probe
    persistent: Persistent
    unwritable: tuple[str, ...] = ()
    """Folders that an apply has to write to and can't."""
    nginx_conf: tuple[str, ...] = ()
    """Configurations of its server."""
    edits: tuple[FileEdit, ...] = ()
    """Changes of a deployment in the files of its server."""
    kept: tuple[str, ...] = ()
    """Remarks about lines that those changes leave alone."""


@dataclass(frozen=True, kw_only=True)
class SeenCluster:
    """The answers of all hosts of a replica."""

    cluster: Cluster
    balancer: Seen
    tool: LoadTool | None
    """The load tool of its load generator."""
    problems: tuple[str, ...]
    """A line for each host that could not be asked."""
    host_facts: Mapping[str, HostFacts] = field(default_factory=dict)
    """The facts of its hosts but the load balancer, by name."""


def look(
    host: Host,
    parameters: Iterable[Parameter],
    deployment: Deployment,
    directives: Directives | None = None,
    server: Server = NGINX,
) -> Seen:
    """Ask a load balancer for all of these parameters, their partners, and what is deployed.

    With `directives` its nginx is looked at, too. Nothing is written; but a host whose session has
    been silent for its lease, and whose watchdog is dead, restores itself first, as when `intop
    status` asks it. Raises HostError.
    """
    state = state_of(host)
    asked = dict.fromkeys([*deployment.sysctls, *asked_keys(parameters)])
    asked |= dict.fromkeys(PARTNERS[key] for key in list(asked) if key in PARTNERS)
    address = host.address
    described, confs = facts_and_conf(host, server)
    seen = Seen(
        address=address,
        state=state,
        probe=Probe(facts=described, readings=sysctl.probe(host, list(asked))),
        persistent=read_persistent(host),
        nginx_conf=confs,
    )
    if directives is not None:
        seen = _with_nginx(seen, tunable_nginx(host, directives), deployment)
    folders = [address.state_dir, _folder(our_file(address.config_root))]
    folders += [_folder(edit.path) for edit in seen.edits]
    return replace(seen, unwritable=guard.unwritable(host, dict.fromkeys(folders)))


def _with_nginx(seen: Seen, nginx: TunableNginx, deployment: Deployment) -> Seen:
    """The same with what its nginx is, and what deploying changes in its files."""
    probe = probed(nginx.directives, nginx.conf, nginx.facts)
    wanted = {
        key: value
        for key, value in deployment.directives.items()
        if key in probe.values and key not in probe.unfit
    }
    edited = changed(nginx.directives, nginx.conf, wanted, nginx.facts)
    edits = tuple(
        FileEdit(path=path, diff=_diff(nginx.conf.sources[path].text, text))
        for path, text in edited.texts.items()
    )
    return replace(seen, probe=replace(seen.probe, nginx=probe), edits=edits, kept=edited.left)


def _diff(before: str, after: str) -> str:
    """Return a diff without context, since a file of nginx may hold secrets."""
    lines = unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=0)
    return "\n".join(line for line in lines if not line.startswith(("---", "+++", "@@")))


def _folder(path: str) -> str:
    return path.rpartition("/")[0]


def look_around(task: Task, cluster: Cluster, balancer: Seen) -> SeenCluster:
    """Ask a replica's other hosts, too: without them nothing can be measured there."""
    context = task.context
    tool: LoadTool | None = None
    host_facts: dict[str, HostFacts] = {}
    problems: list[str] = []
    for address in dict.fromkeys((*cluster.load_generators, *cluster.backends)):
        try:
            with closing(context.connect(address)) as host:
                host_facts[address.name] = facts(host)
                if address.role == "load-generator":
                    tool = tool_on(host, cluster, task.workload, context.study.load_tool)
        except HostError as error:
            problems.append(f"its cluster can't be measured on: {error}")
    return SeenCluster(
        cluster=cluster,
        balancer=balancer,
        tool=tool,
        problems=tuple(problems),
        host_facts=host_facts,
    )


def host_plan(
    seen: Seen,
    deployment: Deployment,
    parameters: Mapping[str, Parameter],
    *,
    persist: bool = False,
    left_out: Mapping[str, str] | None = None,
    problems: Iterable[str] = (),
) -> HostPlan:
    """Return the changes of a deployment on one host; `parameters` by key.

    `left_out` says which keys can't be set there for another reason than what the host says of
    them, and `problems` what else is in the way.
    """
    probe, state, persistent = seen.probe, seen.state, seen.persistent
    file = our_file(seen.address.config_root) if deployment.sysctls else ""
    wanted = file if persist else ""
    applied = state.applied
    before = {k.key: k.before for k in (*applied.keys, *applied.directives)} if applied else {}
    has_it = has_applied(state, deployment.values, wanted)
    lacks_file = bool(wanted) and has_applied(state, deployment.values, "") and not seen.edits
    in_the_way = [*problems_of(state, persistent, wanted)]
    if not has_it:
        in_the_way += [*_of_directives(state), *_unwritable(seen, file, persist=persist)]
        # Nothing is measured for a file.
        in_the_way += () if lacks_file else problems
    return HostPlan(
        file=file,
        keys=tuple(
            planned_key(
                change,
                _value(change.key, probe),
                _obstacle(change, parameters, probe, before.get(change.key))
                or (left_out or {}).get(change.key, ""),
                persistent,
                file,
                before.get(change.key),
                _limits(parameters.get(change.key), probe),
            )
            for change in deployment.changes
        ),
        machine=probe.facts.machine,
        kernel=probe.facts.kernel,
        applied=applied,
        has_it=has_it,
        lacks_file=lacks_file,
        edits=seen.edits,
        kept=seen.kept,
        problems=tuple(in_the_way),
        notes=(*_elsewhere(deployment, probe), *_applied(state), *persistent.problems),
    )


def replica_plan(
    task: Task, seen: SeenCluster, number: int, deployment: Deployment, *, persist: bool
) -> HostPlan:
    """Return the changes of a deployment on a replica of the study, the `number`th from 0.

    All that taking the host and measuring there would find is looked for here.
    """
    balancer = seen.balancer
    parameters = {p.key: p for p in task.context.study.catalogue.parameters}
    problems = list(seen.problems)
    if why := why_not_accepted(seen.cluster, balancer.probe.facts):
        problems.append(why)
    # What a session has set there meanwhile says nothing of the host.
    if not balancer.state.holder:
        problems += _incomparable(task, seen, number)
    return host_plan(
        balancer,
        deployment,
        parameters,
        persist=persist,
        left_out=_left_out(task, balancer, deployment),
        problems=problems,
    )


def _limits(parameter: Parameter | None, probe: Probe) -> Sequence[str]:
    """The lowest and the highest value of a parameter's range, or the choices that a host has."""
    if parameter is None:
        return ()
    if not parameter.components:
        return sorted(offered_choices(parameter, probe.facts, probe.readings))
    bounds = [(str(c.low), str(c.high)) for c in parameter.components]
    return [" ".join(numbers) for numbers in zip(*bounds, strict=True)]


def _value(key: str, probe: Probe) -> str | None:
    if is_directive(key):
        return None if probe.nginx is None else probe.nginx.values.get(key)
    reading = probe.readings.get(key, MISSING)
    return reading.value if reading.has_value else None


def _obstacle(
    change: Change, parameters: Mapping[str, Parameter], probe: Probe, own: str | None
) -> str:
    if is_directive(change.key):
        return _obstacle_in_nginx(change, probe.nginx)
    if change.key in parameters:
        return why_not_set(parameters[change.key], change.value, probe, own)
    # It is no longer in the catalogue.
    reading = probe.readings.get(change.key, MISSING)
    if reading.access == "writable":
        return ""
    return "this kernel doesn't have it" if reading.access == "missing" else "can't be written"


def _obstacle_in_nginx(change: Change, nginx: NginxProbe | None) -> str:
    if nginx is None:
        return "its nginx was not looked at: the study tunes the kernel alone"
    lacks = nginx.lacking.get(change.key, {}).get(change.value, "")
    known = "" if change.key in nginx.values else "the catalogue of directives doesn't have it"
    return nginx.unfit.get(change.key, "") or lacks or known


def _of_directives(state: HostState) -> list[str]:
    """A record of edited files is not replaced: two would have to be undone in order."""
    if state.applied is None or not state.applied.nginx_files:
        return []
    reason = "has directives of nginx from an earlier apply, and other values don't go over those"
    return [f"{reason}. Give the host back first, then apply again: intop rollback"]


def _unwritable(seen: Seen, file: str, *, persist: bool) -> list[str]:
    lines = []
    for folder in seen.unwritable:
        if folder == seen.address.state_dir:
            lines.append(f"its state folder {folder} can't be written. {STATE_FOLDER_ADVICE}")
            continue
        written = [edit.path for edit in seen.edits if _folder(edit.path) == folder]
        written += [file] if persist and file and _folder(file) == folder else []
        if written:
            belong = f"{' and '.join(written)} belong{'s' if len(written) == 1 else ''} there"
            lines.append(f"{folder} can't be written, and {belong}: make it writable")
    return lines


def _elsewhere(deployment: Deployment, probe: Probe) -> list[str]:
    machine = probe.facts.machine
    if machine in MACHINES.get(deployment.arch, (machine,)):
        return []
    warning = f"its machine is {machine}, and the gain was measured on {deployment.arch}"
    return [f"{warning}: measure there before you deploy there"]


def _applied(state: HostState) -> list[str]:
    if state.applied is None:
        return []
    line = f"it has {state.applied.title} applied, since {state.applied.since}"
    return [line, *(f"{d.where} is {d.kind} since: {d.detail}" for d in state.drift)]


def _left_out(task: Task, seen: Seen, deployment: Deployment) -> dict[str, str]:
    """The keys that the guard would not hold on this host, and why: so they could not be set."""
    study = task.context.study
    asked = asked_keys(study.catalogue.parameters)
    readings = {key: seen.probe.readings.get(key, MISSING) for key in asked}
    offered = probed_of(study, replace(seen.probe, readings=readings))
    held = {p.key for p in offered.space.parameters}
    held |= {PARTNERS[key] for key in held if key in PARTNERS}
    if seen.state.applied is not None:
        held |= set(seen.state.applied.values)
    return {
        key: f"{offered.refused.get(key, 'it is not among the parameters of the study')}. Tune "
        "again, with what the host has now"
        for key in deployment.values
        if key not in held
    }


def _incomparable(task: Task, seen: SeenCluster, number: int) -> list[str]:
    """Return a line with the conditions that are no longer those of the campaign's trials."""
    if seen.tool is None or task.workload.duration_s is None:
        return []  # without a duration there are no trials yet
    name, confs = seen.balancer.address.name, seen.balancer.nginx_conf
    stored = task.store.get(task.subject, Probe)
    before = stored if number == 0 else said_by(stored, name)
    probe = _own(task, seen.balancer, before)
    described = ClusterFacts(
        hosts={**seen.host_facts, name: probe.facts},
        # Measuring would start a server that does not run.
        nginx_conf=confs if is_known(confs) else None,
    )
    conditions = conditions_of(task, seen.cluster, described, seen.tool, probe)
    lines = differences(task, conditions, probe, before, name)
    if not lines:
        return []
    heading = "the campaign's trials were made under other conditions (then against now): "
    return [f"{heading}{'; '.join(lines)}. Bring them back, or begin anew: intop tune --new"]


def _own(task: Task, seen: Seen, before: Probe | None) -> Probe:
    """Return the host's readings, with its own values in place of those of an apply.

    Which keys refuse their own values is only seen by writing, so that is taken from `before`.
    """
    study = task.context.study
    readings = dict(seen.probe.readings)
    asked = asked_keys(study.catalogue.parameters)
    offered = {p.key for p in probed_of(study, seen.probe).space.parameters}
    kept = {
        key: reading
        for key, reading in readings.items()
        if key in asked or (PARTNERS.get(key) in offered and reading.has_value)
    }
    for left in seen.state.applied.keys if seen.state.applied else ():
        if left.key in kept:
            kept[left.key] = replace(kept[left.key], value=left.before)
    for key, reading in before.readings.items() if before else ():
        if reading.refusal and key in kept:
            kept[key] = replace(kept[key], refusal=reading.refusal)
    return replace(seen.probe, readings=kept)
