"""doctor: can every host be reached, read and measured, and do all paths answer?

It reads only, but for the load scripts on the load generator, and for keys' own values if it is
asked to write them back. A campaign asks the same before its first trial on an architecture.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace

from intop.config.study import Study
from intop.domain.cluster import Cluster
from intop.domain.diagnosis import (
    Diagnosis,
    HostDiagnosis,
    diagnosed_keys,
    lost_choices,
    ranges_of,
)
from intop.domain.nginx.probe import probed as probed_nginx
from intop.domain.parameter import Parameter
from intop.domain.probing import Probe, asked_keys, other_values, tried_keys
from intop.domain.server import NGINX
from intop.domain.workload import Workload
from intop.errors import HostError, IntopError, LoadOutputError
from intop.hosts import guard, sysctl
from intop.hosts.facts import facts
from intop.hosts.host import Connect, Host
from intop.hosts.nginx_files import tunable_nginx
from intop.hosts.readiness import readiness
from intop.hosts.rig import Rig, balancer_facts, clock_offsets, load_tool
from intop.hosts.settle import check_restart
from intop.inspect.host_checks import Examined, check_host, without_interpreter
from intop.run.available_space import lists_of_choices, probed_of
from intop.run.context import Task, clusters_of
from intop.words import counted, few


def examine(
    clusters: Sequence[Cluster],
    study: Study,
    connect: Connect,
    *,
    workloads: Iterable[Workload] | None = None,
    writes: bool = False,
) -> list[Diagnosis]:
    """Ask every host of an architecture's replicas; whatever is wrong is in the diagnoses.

    Every path of the workloads (by default the study's) is asked for once, from the load generator.
    `writes` also writes keys of the load balancers their own values, under the guard, and restarts
    their servers once.
    """
    loads = tuple(study.workloads.values() if workloads is None else workloads)
    replicas = [_examined(cluster, study, connect, loads, writes=writes) for cluster in clusters]
    for replica in replicas[1:]:
        _compare(replicas[0], replica, study)
    return [_diagnosis(replica, replicas, study) for replica in replicas]


def check_ready(task: Task) -> None:
    """Examine the task's cluster, unless the campaign has a plan of its architecture already.

    Warnings are counted, and stop nothing.

    Raises:
        IntopError: with all problems, unless the context says `force`.
        LabError: for a lab that isn't up.
    """
    context, arch = task.context, task.subject.arch
    if not task.store.is_empty(task.subject.campaign, arch):
        return
    diagnoses = examine(
        clusters_of(context.study, arch),
        context.study,
        context.connect,
        workloads=context.workloads,
    )
    ask = f"intop doctor --arch {arch}"
    if count := sum(len(diagnosis.warnings) for diagnosis in diagnoses):
        context.progress.say(f"{arch}: {counted(count, 'warning')}: {ask}")
    problems = "\n".join(f"  PROBLEM  {line}" for each in diagnoses for line in each.problems)
    if not problems:
        return
    if not context.force:
        raise IntopError(
            f"{arch}: the cluster is not ready, and nothing was written to any host:\n{problems}\n"
            f"Look again with: {ask}\nOr go on all the same with --force"
        )
    context.progress.say(f"{arch}: the cluster is not ready; it goes on by --force:\n{problems}")


# One replica --------------------------------------------------------------------------------------


def _examined(
    cluster: Cluster,
    study: Study,
    connect: Connect,
    workloads: Sequence[Workload],
    *,
    writes: bool,
) -> Examined:
    examined = Examined(cluster)
    with ExitStack() as stack:
        hosts: list[Host] = []
        for address in cluster.hosts:
            with _noting(examined.problems):
                hosts.append(connect(address))
                stack.callback(hosts[-1].close)
        for host in hosts:
            with _noting(examined.problems):
                report = _report(host, cluster)
                examined.hosts.append(report)
                check_host(host, report, workloads, examined)
        if len(hosts) < len(cluster.hosts):
            return examined
        rig = Rig(cluster, tuple(hosts))
        with _noting(examined.problems):
            tools = [load_tool(rig, w, study.load_tool) for w in workloads]
            examined.load_tool = ", ".join(dict.fromkeys(f"{t.name} {t.version}" for t in tools))
            examined.warnings += without_interpreter(examined.hosts)
        with _noting(examined.problems):
            examined.probe = _probe(rig, study)
            if writes:
                _try_out(rig, study, examined, examined.probe)
    return examined


@contextmanager
def _noting(problems: list[str]) -> Iterator[None]:
    """Add what goes wrong with a host to the problems, so that the rest is still examined."""
    try:
        yield
    except (HostError, LoadOutputError) as error:
        problems.append(str(error))


def _report(host: Host, cluster: Cluster) -> HostDiagnosis:
    name, role = host.address.name, host.address.role
    return HostDiagnosis(
        name=name,
        role=role,
        facts=facts(host, cluster.server if role == "load-balancer" else NGINX),
        clock_offset_s=clock_offsets(Rig(cluster, (host,)))[name],
        readiness=readiness(host),
        state=guard.status(host),
    )


def _probe(rig: Rig, study: Study) -> Probe:
    balancer = balancer_facts(rig)
    readings = sysctl.probe(rig.load_balancer, asked_keys(study.catalogue.parameters))
    nginx = None
    if "nginx" in study.tunes:
        tunable = tunable_nginx(rig.load_balancer, study.directives)
        nginx = probed_nginx(study.directives, tunable.conf, tunable.facts)
    return Probe(facts=balancer, readings=readings, nginx=nginx)


def _try_out(rig: Rig, study: Study, examined: Examined, probe: Probe) -> None:
    """Write keys their own values and restart the server, as a campaign does.

    A server that would not come back for sure is left alone.
    """
    name = rig.load_balancer.address.name
    if any(report.state.holder for report in examined.hosts if report.name == name):
        examined.warnings.append(f"{name}: is held, so nothing was written there")
        return
    host, catalogue = rig.load_balancer, study.catalogue
    offered = {p.key for p in probed_of(study, probe).space.parameters}
    tried = tried_keys(catalogue.parameters, catalogue.constraints, probe.readings)
    examined.tried = offered.intersection(tried)
    with guard.guarded(host, examined.tried):
        refusals = sysctl.write_back(host, examined.tried)
        refused = {key: replace(probe.readings[key], refusal=why) for key, why in refusals.items()}
        examined.probe = replace(probe, readings={**probe.readings, **refused})
        # Under the guard: nobody else measures there meanwhile.
        if not examined.problems:
            examined.warnings += check_restart(rig)


# All replicas -------------------------------------------------------------------------------------


def _compare(first: Examined, second: Examined, study: Study) -> None:
    """Note in the second one why the two are no replicas of each other."""
    if first.probe is None or second.probe is None:
        return
    ours, theirs = _described(first, first.probe), _described(second, second.probe)
    differences = [
        f"{name}: {value or 'none'} against {theirs[name] or 'none'}"
        for name, value in ours.items()
        if value != theirs[name]
    ]
    differences += other_values(first.probe, second.probe, lists_of_choices(study))
    if differences:
        second.problems.append(
            f"{first.balancer} and {second.balancer} are no replicas of each other: "
            f"{few(differences)}. Make them alike, or take one of them out of {study.path}"
        )


def _described(examined: Examined, probe: Probe) -> dict[str, str]:
    """Return what replicas have in common beside the values of their keys."""
    return {
        "machine": probe.facts.machine,
        "kernel": probe.facts.kernel,
        "cpu": probe.facts.cpu,
        "nginx": probe.facts.nginx,
        "load tool": examined.load_tool,
        "link": examined.cluster.link,
        "emulation": examined.cluster.emulation,
    }


def _diagnosis(examined: Examined, replicas: Sequence[Examined], study: Study) -> Diagnosis:
    offered: tuple[Parameter, ...] = ()
    refused: Mapping[str, str] = {}
    lost: Mapping[str, Mapping[str, str]] = {}
    hosts, parameters = examined.hosts, study.catalogue.parameters
    if (probe := examined.probe) is not None:
        probes = {
            e.balancer: e.probe for e in replicas if e is not examined and e.probe is not None
        }
        shared = replace(probe, replicas=probes)
        probed = probed_of(study, shared)
        offered, refused = probed.space.parameters, probed.refused
        lost = lost_choices(parameters, shared, probed)
        keys = diagnosed_keys(parameters, probe, probed_of(study, probe), examined.tried)
        hosts = [replace(h, keys=keys) if h.name == examined.balancer else h for h in hosts]
        if not offered:
            examined.problems.append(
                f"{examined.balancer}: offers none of the catalogue's parameters"
            )
        examined.warnings += _confined(hosts)
    return Diagnosis(
        arch=examined.cluster.arch,
        link=examined.cluster.link,
        load_tool=examined.load_tool,
        fetched=examined.fetched,
        hosts=tuple(hosts),
        offered=tuple(p.key for p in offered),
        ranges={p.key: ranges_of(p) for p in offered if p.is_numeric},
        refused=refused,
        lost=lost,
        problems=tuple(examined.problems),
        warnings=tuple(examined.warnings),
        emulation=examined.cluster.emulation,
    )


def _confined(hosts: Iterable[HostDiagnosis]) -> list[str]:
    """Return a warning for each host where a security module may be what refuses keys."""
    return [
        f"{h.name}: keys refuse to be written, which may be by {h.readiness.confinement}"
        for h in hosts
        if h.readiness.confinement and any(k.reading.refusal for k in h.keys.values())
    ]
