"""doctor: can every host be reached, read and measured, do all paths answer, and what is out of
bounds?

Read-only but for the load scripts, which are put on the load generator, unless it is asked to write
keys' own values back to them. A campaign asks the same before its first trial on an architecture.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace

from intop.config.study import Study
from intop.domain.cluster import Cluster, HostAddress
from intop.domain.diagnosis import (
    Diagnosis,
    HostDiagnosis,
    Readiness,
    diagnosed_keys,
    lost_choices,
    ranges_of,
)
from intop.domain.fetched import Fetched
from intop.domain.nginx.probe import probed as probed_nginx
from intop.domain.parameter import Parameter
from intop.domain.probing import Probe, asked_keys, other_values, tried_keys
from intop.domain.server import NGINX
from intop.domain.workload import Workload
from intop.errors import HostError, IntopError, LoadOutputError
from intop.hosts import guard, other_servers, status_page, sysctl
from intop.hosts.facts import facts
from intop.hosts.fetch import INTERPRETER, fetch
from intop.hosts.host import Connect, Host
from intop.hosts.load.tools import PACKAGE
from intop.hosts.nginx_files import tunable_nginx
from intop.hosts.readiness import NEEDED, packages_of, readiness
from intop.hosts.rig import Rig, balancer_facts, clock_offsets, load_tool
from intop.hosts.sockets import listening, nobody_listens, port_of
from intop.report.words import counted, few
from intop.run import load_paths, load_room, nginx_connections, sysctl_files
from intop.run.available_space import lists_of_choices, probed_of
from intop.run.context import Task, clusters_of

CLOCK_TOLERANCE_S = 2.0
"""Above this the times of trials from several hosts can't be laid side by side."""

MIN_FREE_MIB = 16
"""For the snapshot and the load scripts, which take less than one; the rest is for others."""


@dataclass
class _Examined:
    """What was found on one replica so far; `probe` is None until its load balancer answered.

    `tried` are the keys that were written their own values.
    """

    cluster: Cluster
    hosts: list[HostDiagnosis] = field(default_factory=list)
    load_tool: str = ""
    fetched: tuple[Fetched, ...] = ()
    probe: Probe | None = None
    tried: set[str] = field(default_factory=set)
    problems: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    @property
    def balancer(self) -> str:
        """The name of its load balancer."""
        return self.cluster.load_balancer.name


def examine(
    clusters: Sequence[Cluster],
    study: Study,
    connect: Connect,
    *,
    workloads: Iterable[Workload] | None = None,
    writes: bool = False,
) -> list[Diagnosis]:
    """Ask every host of the replicas of an architecture; whatever is wrong is in the reports.

    Every path of the workloads (the study's, unless others are given) is asked for once, from the
    load generator. `writes` also writes keys of the load balancers their own values, under the
    guard, to see whether they are taken. Nothing is raised.
    """
    loads = tuple(study.workloads.values() if workloads is None else workloads)
    found = [_examined(cluster, study, connect, loads, writes) for cluster in clusters]
    for other in found[1:]:
        _compare(found[0], other, study)
    return [_diagnosis(one, found, study) for one in found]


def check_ready(task: Task) -> None:
    """Examine the task's cluster, unless the campaign has a plan of its architecture already.

    Warnings are counted, and stop nothing. Raises IntopError with all problems, unless the context
    says `force`; then they are told, and it goes on. Raises LabError for a lab that isn't up.
    """
    context, arch = task.context, task.subject.arch
    if not task.store.is_empty(task.subject.campaign, arch):
        return
    found = examine(
        clusters_of(context.study, arch),
        context.study,
        context.connect,
        workloads=context.workloads,
    )
    ask = f"intop doctor --arch {arch}"
    if count := sum(len(one.warnings) for one in found):
        context.progress.say(f"{arch}: {counted(count, 'warning')}: {ask}")
    problems = "\n".join(f"  PROBLEM  {problem}" for one in found for problem in one.problems)
    if not problems:
        return
    if not context.force:
        raise IntopError(
            f"{arch}: the cluster is not ready, and nothing was written to any host:\n{problems}\n"
            f"Look again with: {ask}\nOr go on all the same with --force"
        )
    context.progress.say(f"{arch}: the cluster is not ready; it goes on by --force:\n{problems}")


def _examined(
    cluster: Cluster,
    study: Study,
    connect: Connect,
    workloads: Sequence[Workload],
    writes: bool,
) -> _Examined:
    found = _Examined(cluster)
    with ExitStack() as stack:
        hosts: list[Host] = []
        for address in cluster.hosts:
            with _noting(found.problems):
                hosts.append(connect(address))
                stack.callback(hosts[-1].close)
        for host in hosts:
            with _noting(found.problems):
                report = _report(host, cluster)
                found.hosts.append(report)
                _judge(host.address, report, found)
                if host.address.role == "load-balancer":
                    _judge_listening(host, report.readiness, found)
                    found.warnings += sysctl_files.warnings(host)
                    if cluster.server == NGINX:
                        found.warnings += nginx_connections.warnings(host, workloads, cluster)
                        found.warnings += status_page.warnings(host, cluster)
                    else:
                        _judge_configuration(host, found)
                if host.address.role == "load-generator":
                    found.problems += _unpinned(host)
                    _judge_answers(host, report.readiness, workloads, found)
        if len(hosts) < len(cluster.hosts):
            return found
        rig = Rig(cluster, tuple(hosts))
        with _noting(found.problems):
            tools = [load_tool(rig, w, study.load_tool) for w in workloads]
            found.load_tool = ", ".join(dict.fromkeys(f"{t.name} {t.version}" for t in tools))
            found.warnings += _unasked(found.hosts)
        with _noting(found.problems):
            found.probe = _probe(rig, study)
            if writes:
                _write_back(rig.load_balancer, study, found)
    return found


@contextmanager
def _noting(problems: list[str]) -> Iterator[None]:
    """What goes wrong with a host becomes a problem, and the rest is still looked at."""
    try:
        yield
    except (HostError, LoadOutputError) as error:
        problems.append(str(error))


def _report(host: Host, cluster: Cluster) -> HostDiagnosis:
    name = host.address.name
    return HostDiagnosis(
        name=name,
        role=host.address.role,
        facts=facts(host, cluster.server if host.address.role == "load-balancer" else NGINX),
        clock_offset_s=clock_offsets(Rig(cluster, (host,)))[name],
        readiness=readiness(host),
        state=guard.status(host),
    )


def _judge(address: HostAddress, report: HostDiagnosis, found: _Examined) -> None:
    """What a host has that keeps a campaign from starting, or may come in its way."""
    name, has = report.name, report.readiness
    is_balancer = address.role == "load-balancer"
    if abs(report.clock_offset_s) > CLOCK_TOLERANCE_S:
        found.problems.append(
            f"{name}: its clock is {report.clock_offset_s:+.1f} s off ours: let NTP set it"
        )
    if not report.facts.is_root:
        if is_balancer:
            found.problems.append(
                f"{name}: is reached without root, so nothing can be set: use sudo = true"
            )
        else:
            found.warnings.append(
                f"{name}: is reached without root, so its kernel keeps what it learned of its "
                "peers from one trial to the next: use sudo = true"
            )
    if is_balancer and not report.facts.nginx:
        found.problems.append(f"{name}: has no {found.cluster.server.title} on its PATH")
    lacks = [program for program in has.lacks if program != INTERPRETER]
    needed = [program for program in lacks if program in NEEDED[address.role]]
    if needed:
        found.problems.append(f"{name}: has no {', '.join(needed)}: {_installing(needed)}")
    elif lacks:
        found.warnings.append(
            f"{name}: has no {', '.join(lacks)}, so what a load leaves behind there is not "
            f"seen: {_installing(lacks)}"
        )
    if address.role != "backend":
        found.problems += _storing(address, has)
    if is_balancer:
        found.warnings += _others_at_work(report)


def _judge_answers(
    host: Host, has: Readiness, workloads: Sequence[Workload], found: _Examined
) -> None:
    """What each path of a load answers to a load generator, where it can be asked from there."""
    needed = {INTERPRETER, *NEEDED["load-generator"]}
    if needed.intersection(has.lacks) or not has.can_store or has.untrusted:
        return
    name = host.address.name
    # A folder of our own: a campaign may be at work with the scripts of another version.
    directory = f"{host.address.state_dir}/doctor"
    by_url: dict[str, list[Workload]] = {}
    for workload in workloads:
        by_url.setdefault(workload.url(found.cluster.url), []).append(workload)
    generators = [generator.name for generator in found.cluster.load_generators]
    shares = dict(zip(generators, found.cluster.load_shares, strict=True))
    everything: list[Fetched] = []
    for url, some in by_url.items():
        fetched = [
            one
            for (http, headers), paths in load_paths.asked(some, found.cluster).items()
            for one in fetch(host, directory, url, paths, headers=headers, http=http)
        ]
        everything += fetched
        found.problems += load_paths.problems(name, url, fetched)
        found.warnings += load_paths.warnings(name, url, fetched)
        for workload in some:
            rooms = load_room.rooms_of(workload, found.cluster, url, fetched, shares[name])
            found.problems += load_room.problems(name, rooms)
            found.warnings += load_room.warnings(name, rooms)
    # Those of the first generator are shown; what is wrong is told of each.
    found.fetched = found.fetched or tuple(everything)


def _unpinned(host: Host) -> list[str]:
    """Why a load can't run on the processors that it is to run on, if it can't."""
    if not (cpus := host.address.load_cpus):
        return []
    done = host.run(f"taskset -c {cpus} true")
    if done.exit_code == 0:
        return []
    name = host.address.name
    return [f"{name}: its load can't run on the processors {cpus} (load_cpus): {done.said}"]


def _unasked(hosts: Iterable[HostDiagnosis]) -> list[str]:
    """Load generators that need no luajit for their load, but would for asking for paths."""
    return [
        f"{host.name}: has no {INTERPRETER}, so what the paths answer was not looked at. {PACKAGE}"
        for host in hosts
        if host.role == "load-generator" and INTERPRETER in host.readiness.lacks
    ]


def _judge_listening(host: Host, has: Readiness, found: _Examined) -> None:
    """Who takes the load on the load balancer, where its keys have an effect on it."""
    name, cluster = host.address.name, found.cluster
    if "ss" in has.lacks:
        return
    sockets = listening(host, cluster)
    if sockets is None:
        return
    if not sockets:
        found.problems.append(f"{name}: {nobody_listens(cluster)}")
        return
    programs = {program for sock in sockets for program in sock.programs}
    server = cluster.server.title
    if programs and programs.isdisjoint({*cluster.server.programs, *cluster.programs}):
        found.problems.append(
            f"{name}: {', '.join(sorted(programs))} listens on port {port_of(cluster)}, and not "
            f"{server}. If it passes connections on to a container, tuned keys don't act on "
            f"{server} there: give the container the host's network (docker run --network host). "
            f"If it serves in place of {server}, name it as server or in programs of the cluster"
        )


def _judge_configuration(host: Host, found: _Examined) -> None:
    """Whether the server would start again with what is in its files now."""
    server = found.cluster.server
    for refusal in other_servers.refusals(host, server):
        where = f"{host.address.name}: {server.title}"
        if refusal.is_sure:
            found.problems.append(
                f"{where} refuses its configuration as it is now, so that a restart would end it: "
                f"{refusal.text}"
            )
        else:
            found.warnings.append(
                f"{where} could not check its configuration with the rights of user "
                f"{refusal.user}: {refusal.text}"
            )


def _installing(programs: Collection[str]) -> str:
    return f"apt-get install {packages_of(programs)}, on Debian and Ubuntu"


def _storing(address: HostAddress, has: Readiness) -> list[str]:
    """The state folder must have room where files will be put, and be changed by nobody else."""
    where = f"{address.name}: {address.state_dir}"
    if not has.can_store:
        return [f"{where} can't be made or written: name another folder in state_dir"]
    if has.untrusted:
        return [f"{address.name}: {has.untrusted}"]
    if has.free_mib is not None and has.free_mib < MIN_FREE_MIB:
        return [f"{where} has {has.free_mib} MiB free, {MIN_FREE_MIB} are needed: make room there"]
    return []


def _others_at_work(report: HostDiagnosis) -> list[str]:
    """Who else sets sysctls on the host that is tuned, and what was left there."""
    name, state = report.name, report.state
    told = [
        f"{name}: {tuner} runs there and may set keys meanwhile: stop it for the campaign"
        for tuner in report.readiness.tuners
    ]
    told += [
        f"{name}: {path} sets sysctls again and again: see that it does not during the campaign"
        for path in report.readiness.schedules
    ]
    told += [
        f"{name}: {c.key} was left at {c.left} and is {c.now} now; by hand: {c.command}"
        for c in state.foreign
    ]
    if state.holder and state.is_watched is False:
        told.append(f"{name}: is held, and its watchdog is dead: intop rollback gives it back")
    return told


def _probe(rig: Rig, study: Study) -> Probe:
    catalogue = study.catalogue
    found = balancer_facts(rig)
    readings = sysctl.probe(rig.load_balancer, asked_keys(catalogue.parameters))
    nginx = None
    if "nginx" in study.tunes:
        tunable = tunable_nginx(rig.load_balancer, study.directives)
        nginx = probed_nginx(study.directives, tunable.conf, tunable.facts)
    return Probe(facts=found, readings=readings, nginx=nginx)


def _write_back(host: Host, study: Study, found: _Examined) -> None:
    """Write keys their own values, as a campaign would do before its first trial."""
    probe = found.probe
    if probe is None:
        return
    if any(h.state.holder for h in found.hosts if h.name == host.address.name):
        found.warnings.append(f"{host.address.name}: is held, so nothing was written there")
        return
    catalogue = study.catalogue
    keys = [p.key for p in probed_of(study, probe).space.parameters]
    tried = tried_keys(catalogue.parameters, catalogue.constraints, probe.readings)
    found.tried = {key for key in tried if key in keys}
    with guard.guarded(host, found.tried):
        refusals = sysctl.write_back(host, found.tried)
    refused = {k: replace(probe.readings[k], refusal=told) for k, told in refusals.items()}
    found.probe = replace(probe, readings={**probe.readings, **refused})


def _compare(one: _Examined, other: _Examined, study: Study) -> None:
    """Note in the other one why the two are no replicas of each other."""
    if one.probe is None or other.probe is None:
        return
    described = [
        {
            **{
                name: getattr(e.probe.facts, name) for name in ("machine", "kernel", "cpu", "nginx")
            },
            "load tool": e.load_tool,
            "link": e.cluster.link,
            "emulation": e.cluster.emulation,
        }
        for e in (one, other)
        if e.probe is not None
    ]
    differences = [
        f"{name}: {value or 'none'} against {described[1][name] or 'none'}"
        for name, value in described[0].items()
        if value != described[1][name]
    ]
    differences += other_values(one.probe, other.probe, lists_of_choices(study))
    if differences:
        other.problems.append(
            f"{one.balancer} and {other.balancer} are no replicas of each other: "
            f"{few(differences)}. Make them alike, or take one of them out of {study.path}"
        )


def _diagnosis(one: _Examined, found: Sequence[_Examined], study: Study) -> Diagnosis:
    offered: tuple[Parameter, ...] = ()
    refused: Mapping[str, str] = {}
    lost: Mapping[str, Mapping[str, str]] = {}
    hosts = one.hosts
    if one.probe is not None:
        others = {e.balancer: e.probe for e in found if e is not one and e.probe is not None}
        shared = replace(one.probe, replicas=others)
        probed = probed_of(study, shared)
        offered, refused = probed.space.parameters, probed.refused
        lost = lost_choices(study.catalogue.parameters, shared, probed)
        keys = diagnosed_keys(
            study.catalogue.parameters, one.probe, probed_of(study, one.probe), one.tried
        )
        hosts = [replace(h, keys=keys) if h.name == one.balancer else h for h in hosts]
        if not offered:
            one.problems.append(f"{one.balancer}: offers none of the catalogue's parameters")
        one.warnings += _confined(hosts)
    return Diagnosis(
        arch=one.cluster.arch,
        link=one.cluster.link,
        load_tool=one.load_tool,
        fetched=one.fetched,
        hosts=tuple(hosts),
        offered=tuple(p.key for p in offered),
        ranges={p.key: ranges_of(p) for p in offered if p.is_numeric},
        refused=refused,
        lost=lost,
        problems=tuple(one.problems),
        warnings=tuple(one.warnings),
        emulation=one.cluster.emulation,
    )


def _confined(hosts: Iterable[HostDiagnosis]) -> list[str]:
    """Where keys are refused and a security module is at work, it may be that."""
    return [
        f"{h.name}: keys refuse to be written, which may be by {h.readiness.confinement}"
        for h in hosts
        if h.readiness.confinement and any(k.reading.refusal for k in h.keys.values())
    ]
