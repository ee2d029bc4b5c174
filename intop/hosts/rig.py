"""A cluster with its connections open: what the stages measure on."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from intop.domain.cluster import MACHINES, Cluster
from intop.domain.probing import HostFacts
from intop.domain.server import NGINX
from intop.domain.workload import LoadToolChoice, Workload
from intop.errors import CommandError, HostError, UsageError
from intop.hosts.answers import decimal, lines
from intop.hosts.facts import facts, facts_and_conf
from intop.hosts.host import Connect, Host, output
from intop.hosts.load.streams import streams
from intop.hosts.load.tools import FIND_TOOL, choose, parse_found
from intop.hosts.load.types import PATHS_FILE, LoadTool
from intop.hosts.nginx_conf import is_known
from intop.hosts.reader import Readers

T = TypeVar("T")

START_LIMIT_S = 60.0
START_LOOKS, START_PAUSE_S = 5, 0.2
"""How often, and after which pause, it is looked whether a started server shows its options."""


@dataclass(frozen=True)
class Rig:
    """The hosts of one cluster, the load generator first and the load balancer second."""

    cluster: Cluster
    hosts: tuple[Host, ...]

    @cached_property
    def readers(self) -> Readers:
        """What reads the hosts' counters. It starts when it is first asked."""
        return Readers(self.hosts)

    def reached_at(self, url: str) -> "Rig":
        """The same hosts and readers, with a load that goes to another URL."""
        if url == self.cluster.url:
            return self
        made = replace(self, cluster=replace(self.cluster, url=url))
        vars(made)["readers"] = self.readers
        return made

    @property
    def load_generator(self) -> Host:
        """The host that sends the load."""
        return self.hosts[0]

    @property
    def load_balancer(self) -> Host:
        """The host that is tuned."""
        return self.hosts[1]

    @property
    def load_generators(self) -> tuple[Host, ...]:
        """All hosts that send the load."""
        return tuple(host for host in self.hosts if host.address.role == "load-generator")

    def on_all(self, work: Callable[[Host], T]) -> dict[str, T]:
        """The results of `work` by host name, done on all hosts at once."""
        with ThreadPoolExecutor(len(self.hosts)) as pool:
            results = list(pool.map(work, self.hosts))
        return {h.address.name: r for h, r in zip(self.hosts, results, strict=True)}


def load_directory(generator: Host) -> str:
    """Where the scripts lie on a load generator."""
    return f"{generator.address.state_dir}/load"


@dataclass(frozen=True, kw_only=True)
class ClusterFacts:
    """What the hosts of a cluster are, by name; who could not be asked is missing.

    `nginx_conf` are the configurations of the load balancer's nginx (see `hosts/nginx_conf.py`), or
    of the server in its place, None where nobody asked.
    """

    hosts: Mapping[str, HostFacts]
    nginx_conf: tuple[str, ...] | None = None


@contextmanager
def connected(cluster: Cluster, connect: Connect) -> Iterator[Rig]:
    """The cluster's hosts, connected one after the other; closed at the end.

    Raises UnreachableError for the first host that can't be reached.
    """
    with ExitStack() as stack:
        hosts: list[Host] = []
        for address in cluster.hosts:
            host = connect(address)
            stack.callback(host.close)
            hosts.append(host)
        rig = Rig(cluster, tuple(hosts))
        stack.callback(lambda: rig.readers.close())
        yield rig


def balancer_facts(rig: Rig) -> HostFacts:
    """What the load balancer is. Raises HostError when its machine is not of the architecture."""
    return _accepted(rig, facts(rig.load_balancer, rig.cluster.server))


def cluster_facts(rig: Rig) -> ClusterFacts:
    """What all hosts are, asked at the same time. Raises what `balancer_facts` does."""

    def ask(host: Host) -> tuple[HostFacts, tuple[str, ...]]:
        if host is rig.load_balancer:
            return facts_and_conf(host, rig.cluster.server)
        return facts(host), ()

    answers = rig.on_all(ask)
    balancer, confs = answers[rig.load_balancer.address.name]
    _accepted(rig, balancer)
    return ClusterFacts(hosts={name: one for name, (one, _) in answers.items()}, nginx_conf=confs)


def with_server_started(rig: Rig, found: ClusterFacts) -> ClusterFacts:
    """The same with what only a running server shows, if it was not known since none ran.

    A session that was killed may have been restarting it. Not to come back is no error here: it is
    one of the first trial.
    """
    if is_known(found.nginx_conf or ()):
        return found
    host, server = rig.load_balancer, rig.cluster.server
    host.run(rig.cluster.server_restart, timeout_s=START_LIMIT_S)
    for _ in range(START_LOOKS):
        balancer, confs = facts_and_conf(host, server)
        if is_known(confs) and (balancer.nginx_cpus or server != NGINX):
            break
        # A daemon shows its options a moment after the command that started it has ended, and then
        # it starts its workers.
        time.sleep(START_PAUSE_S)
    hosts = {**found.hosts, host.address.name: balancer}
    return replace(found, hosts=hosts, nginx_conf=confs)


def _accepted(rig: Rig, found: HostFacts) -> HostFacts:
    if why := why_not_accepted(rig.cluster, found):
        raise HostError(rig.load_balancer.address.name, why)
    return found


def why_not_accepted(cluster: Cluster, found: HostFacts) -> str:
    """Why a machine can't be the cluster's load balancer; "" where it can."""
    accepted = cluster.machines or MACHINES.get(cluster.arch, ())
    if found.machine in accepted:
        return ""
    return (
        f"is a {found.machine} machine, and cluster {cluster.arch} accepts {', '.join(accepted)}. "
        f"Correct the configuration, or name it in machines of that cluster"
    )


def load_tool(rig: Rig, workload: Workload, wanted: LoadToolChoice) -> LoadTool:
    """The tool that sends a workload, the same and at the same path on all load generators.

    Raises CommandError for one that has none, or another than the first.
    """
    found = {g.address.name: tool_on(g, rig.cluster, workload, wanted) for g in rig.load_generators}
    (first, tool), *others = found.items()
    for name, other in others:
        if other != tool:
            mine, theirs = (f"{t.name} {t.version} ({t.path})" for t in (tool, other))
            raise CommandError(
                name,
                f"has {theirs}, and {first} has {mine}: load generators that share a load need "
                "the same",
            )
    return tool


def tool_on(host: Host, cluster: Cluster, workload: Workload, wanted: LoadToolChoice) -> LoadTool:
    """The load tool on a host. Raises CommandError if it has none for this workload."""
    # Its duration may not be known yet, and no tool is chosen by it.
    loads = [load for _, load in streams(replace(workload, duration_s=1), cluster)]
    tool = choose(parse_found(output(host, FIND_TOOL)), loads, wanted)
    if isinstance(tool, str):
        raise CommandError(host.address.name, tool)
    return tool


def upload_scripts(rig: Rig, directory: Path, paths: Iterable[str]) -> None:
    """Put the Lua scripts of a folder and the list of static paths on all load generators."""
    upload_load(rig, sorted(directory.glob("*.lua")), paths)


def upload_load(rig: Rig, scripts: Iterable[Path], paths: Iterable[str]) -> None:
    """Put these Lua scripts and the list of static paths on all load generators.

    Raises UsageError for a script that can't be read.
    """
    try:
        files = {path.name: path.read_text() for path in scripts}
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"a script of the load can't be read: {error}") from error
    files[PATHS_FILE] = "".join(f"{path}\n" for path in paths)
    for generator in rig.load_generators:
        generator.put(load_directory(generator), files)


def clock_offsets(rig: Rig) -> dict[str, float]:
    """Each host's clock minus ours, in s, to within the time that asking took.

    Raises CommandError for an answer that is no time.
    """

    def offset(host: Host) -> float:
        before = time.time()
        try:
            (answer,) = lines(output(host, "date +%s.%N"))
            theirs = decimal(answer)
        except ValueError as error:
            raise CommandError(host.address.name, f"its clock can't be read: {error}") from error
        return theirs - (before + time.time()) / 2

    return rig.on_all(offset)
