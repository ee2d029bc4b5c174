"""Checks of a host for what keeps a campaign from starting, or may disturb it."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

from intop.domain.cluster import Cluster
from intop.domain.diagnosis import HostDiagnosis, Readiness
from intop.domain.fetched import Fetched
from intop.domain.probing import Probe
from intop.domain.server import NGINX
from intop.domain.workload import Workload
from intop.hosts import other_servers, status_page
from intop.hosts.fetch import fetch
from intop.hosts.host import Host
from intop.hosts.load.engine import INTERPRETER
from intop.hosts.load.tools import PACKAGE
from intop.hosts.persistent import read_persistent
from intop.hosts.readiness import NEEDED, packages_of
from intop.hosts.sockets import listening, nobody_listens, port_of
from intop.inspect import load_room, nginx_connections
from intop.run import load_paths

CLOCK_TOLERANCE_S = 2.0
"""Above this the times of trials from several hosts can't be compared."""

MIN_FREE_MIB = 16
"""Free space for the snapshot and the load scripts, which take less than one. The rest is for
others."""

MOST_LINES = 5
"""Lines of a host's sysctl files that are shown."""

MOST_AGAIN = 40
"""Requests of a second look at the paths, at most."""


@dataclass
class Examined:
    """The results on one replica so far."""

    cluster: Cluster
    hosts: list[HostDiagnosis] = field(default_factory=list)
    load_tool: str = ""
    fetched: tuple[Fetched, ...] = ()
    probe: Probe | None = None
    """None until its load balancer answered."""
    tried: set[str] = field(default_factory=set)
    """The keys that were written their own values."""
    problems: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    @property
    def balancer(self) -> str:
        """The name of its load balancer."""
        return self.cluster.load_balancer.name


def check_host(
    host: Host, report: HostDiagnosis, workloads: Sequence[Workload], examined: Examined
) -> None:
    """Note the problems and warnings of a host. Raises what asking it does."""
    role = host.address.role
    _check_access(report, examined)
    _check_programs(report, NEEDED[role], examined)
    if role != "backend":
        examined.problems += _storing(host, report.readiness)
    if role == "load-balancer":
        examined.warnings += _others_at_work(report)
        _check_balancer(host, report.readiness, workloads, examined)
    if role == "load-generator":
        examined.problems += _unpinned(host)
        _check_answers(host, report.readiness, workloads, examined)


def without_interpreter(hosts: Iterable[HostDiagnosis]) -> list[str]:
    """Return a warning for each load generator that can't ask for paths."""
    return [
        f"{host.name}: has no {INTERPRETER}, so what the paths answer was not looked at. {PACKAGE}"
        for host in hosts
        if host.role == "load-generator" and INTERPRETER in host.readiness.lacks
    ]


# All hosts ----------------------------------------------------------------------------------------


def _check_access(report: HostDiagnosis, examined: Examined) -> None:
    name, is_balancer = report.name, report.role == "load-balancer"
    if abs(report.clock_offset_s) > CLOCK_TOLERANCE_S:
        examined.problems.append(
            f"{name}: its clock is {report.clock_offset_s:+.1f} s off ours: let NTP set it"
        )
    if report.facts.is_root:
        return
    if is_balancer:
        examined.problems.append(
            f"{name}: is reached without root, so nothing can be set: use sudo = true"
        )
    else:
        examined.warnings.append(
            f"{name}: is reached without root, which will do. Only what its kernel has learned of "
            "its peers stays from one trial to the next; sudo = true lets intop clear it"
        )


def _check_programs(report: HostDiagnosis, required: Collection[str], examined: Examined) -> None:
    name = report.name
    if report.role == "load-balancer" and not report.facts.nginx:
        examined.problems.append(f"{name}: has no {examined.cluster.server.title} on its PATH")
    lacks = [program for program in report.readiness.lacks if program != INTERPRETER]
    needed = [program for program in lacks if program in required]
    if needed:
        examined.problems.append(f"{name}: has no {', '.join(needed)}: {_installing(needed)}")
    elif lacks:
        examined.warnings.append(
            f"{name}: has no {', '.join(lacks)}, so what a load leaves behind there is not "
            f"seen: {_installing(lacks)}"
        )


def _installing(programs: Collection[str]) -> str:
    return f"apt-get install {packages_of(programs)}, on Debian and Ubuntu"


def _storing(host: Host, has: Readiness) -> list[str]:
    """The state folder must have room where files will be put, and be changed by nobody else."""
    name = host.address.name
    where = f"{name}: {host.address.state_dir}"
    if not has.can_store:
        return [f"{where} can't be made or written: name another folder in state_dir"]
    if has.untrusted:
        return [f"{name}: {has.untrusted}"]
    if has.free_mib is not None and has.free_mib < MIN_FREE_MIB:
        return [f"{where} has {has.free_mib} MiB free, {MIN_FREE_MIB} are needed: make room there"]
    return []


# Load balancers -----------------------------------------------------------------------------------


def _others_at_work(report: HostDiagnosis) -> list[str]:
    """Return who else sets sysctls on the host that is tuned, and what was left there."""
    name, state = report.name, report.state
    lines = [
        f"{name}: {tuner} runs there and may set keys meanwhile: stop it for the campaign"
        for tuner in report.readiness.tuners
    ]
    lines += [
        f"{name}: {path} sets sysctls again and again: see that it does not during the campaign"
        for path in report.readiness.schedules
    ]
    lines += [
        f"{name}: {c.key} was left at {c.left} and is {c.now} now; by hand: {c.command}"
        for c in state.foreign
    ]
    if state.holder and state.is_watched is False:
        lines.append(f"{name}: is held, and its watchdog is dead. Run: intop rollback")
    return lines


def _check_balancer(
    host: Host, has: Readiness, workloads: Sequence[Workload], examined: Examined
) -> None:
    cluster = examined.cluster
    if "ss" not in has.lacks:
        examined.problems += _elsewhere(host, cluster)
    examined.warnings += _without_effect(host)
    if cluster.server == NGINX:
        examined.warnings += nginx_connections.warnings(host, workloads, cluster)
        examined.warnings += status_page.warnings(host, cluster)
    else:
        _check_configuration(host, examined)


def _elsewhere(host: Host, cluster: Cluster) -> list[str]:
    """Return why the keys of the load balancer may have no effect on who takes the load."""
    name, server = host.address.name, cluster.server.title
    sockets = listening(host, cluster)
    if sockets is None:
        return []
    if not sockets:
        return [f"{name}: {nobody_listens(cluster)}"]
    programs = {program for socket in sockets for program in socket.programs}
    if not programs or programs & {*cluster.server.programs, *cluster.programs}:
        return []
    line = (
        f"{name}: {', '.join(sorted(programs))} listens on port {port_of(cluster)}, and not "
        f"{server}. If it passes connections on to a container, tuned keys don't act on "
        f"{server} there: give the container the host's network (docker run --network host). "
        f"If it serves in place of {server}, name it as server or in programs of the cluster"
    )
    return [line]


def _without_effect(host: Host) -> list[str]:
    """Return a warning for each of the first lines of sysctl files that set nothing."""
    name, unread = host.address.name, read_persistent(host).unread
    lines = [f"{name}: {line}, so no program sets anything by it" for line in unread[:MOST_LINES]]
    if len(unread) > MOST_LINES:
        lines.append(f"{name}: its sysctl files have more lines that set nothing")
    return lines


def _check_configuration(host: Host, examined: Examined) -> None:
    """Note whether the server would start again with its files as they are now."""
    server = examined.cluster.server
    where = f"{host.address.name}: {server.title}"
    for refusal in other_servers.refusals(host, server):
        if refusal.is_sure:
            examined.problems.append(
                f"{where} refuses its configuration as it is now, so that a restart would end it: "
                f"{refusal.text}"
            )
        else:
            examined.warnings.append(
                f"{where} could not check its configuration with the rights of user "
                f"{refusal.user}: {refusal.text}"
            )


# Load generators ----------------------------------------------------------------------------------


def _unpinned(host: Host) -> list[str]:
    """Return why a load can't run on the processors of load_cpus."""
    if not (cpus := host.address.load_cpus):
        return []
    attempt = host.run(f"taskset -c {cpus} true")
    if attempt.exit_code == 0:
        return []
    name = host.address.name
    return [f"{name}: its load can't run on the processors {cpus} (load_cpus): {attempt.message}"]


def _by_turns(paths: Sequence[str], cluster: Cluster) -> tuple[str, ...]:
    """Return paths to ask for again, each so often in a row that each backend has its turn.

    Were the whole list asked for again, a path could meet the same backend each time.
    """
    backends = len(cluster.backends)
    few = paths[: max(1, MOST_AGAIN // backends)] if backends > 1 else ()
    return tuple(path for path in few for _ in range(backends))


def _check_answers(
    host: Host, has: Readiness, workloads: Sequence[Workload], examined: Examined
) -> None:
    """Ask for each path of the loads, where a load generator can."""
    needed = {INTERPRETER, *NEEDED["load-generator"]}
    if needed.intersection(has.lacks) or not has.can_store or has.untrusted:
        return
    name, cluster = host.address.name, examined.cluster
    # A separate folder: a campaign may be at work with the scripts of another version.
    directory = f"{host.address.state_dir}/doctor"
    by_url: dict[str, list[Workload]] = {}
    for workload in workloads:
        by_url.setdefault(workload.url(cluster.url), []).append(workload)
    generators = [generator.name for generator in cluster.load_generators]
    share = dict(zip(generators, cluster.load_shares, strict=True))[name]
    everything: list[Fetched] = []
    for url, same_url in by_url.items():
        fetched = [
            answer
            for (http, headers), paths in load_paths.asked(same_url, cluster).items()
            for answer in fetch(host, directory, url, paths, headers=headers, http=http)
        ]
        everything += fetched
        examined.problems += load_paths.problems(name, url, fetched)
        again = [
            answer
            for (http, headers), paths in load_paths.fixed(same_url, cluster).items()
            for answer in fetch(
                host, directory, url, _by_turns(paths, cluster), headers=headers, http=http
            )
        ]
        examined.problems += load_paths.differing(name, url, [*fetched, *again])
        examined.warnings += load_paths.warnings(name, url, fetched)
        for workload in same_url:
            examined.warnings += load_room.short_connections(name, workload)
            rooms = load_room.rooms_of(workload, cluster, url, fetched, share)
            examined.problems += load_room.problems(name, rooms)
            examined.warnings += load_room.warnings(name, rooms)
    # The answers to the first generator are shown; problems are those of all.
    examined.fetched = examined.fetched or tuple(everything)
