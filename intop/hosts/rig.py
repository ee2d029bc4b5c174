"""A cluster with its connections open, on which the stages measure."""

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
from intop.hosts.answers import decimal, joined, lines
from intop.hosts.facts import facts, facts_and_conf
from intop.hosts.host import Connect, Host, output
from intop.hosts.load.streams import streams
from intop.hosts.load.tools import FIND_TOOL, choose, parse_tools
from intop.hosts.load.types import PATHS_FILE, LoadTool
from intop.hosts.nginx_conf import is_known
from intop.hosts.reader import Readers

T = TypeVar("T")

START_LIMIT_S = 60.0
START_LOOKS, START_PAUSE_S = 5, 0.2
"""Looks at a started server, until it shows its options, and the pause between two."""


@dataclass(frozen=True)
class Rig:
    """The hosts of one cluster, the load generator first and the load balancer second."""

    cluster: Cluster
    hosts: tuple[Host, ...]

    @cached_property
    def readers(self) -> Readers:
        """The readers of the hosts' counters. They start when they are first asked."""
        return Readers(self.hosts)

    def reached_at(self, url: str) -> "Rig":
        """Return the same hosts and readers, with a load that goes to another URL."""
        if url == self.cluster.url:
            return self
        rig = replace(self, cluster=replace(self.cluster, url=url))
        vars(rig)["readers"] = self.readers
        return rig

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
        """Return the results of `work` by host name, done on all hosts at once."""
        with ThreadPoolExecutor(len(self.hosts)) as pool:
            results = list(pool.map(work, self.hosts))
        return {h.address.name: r for h, r in zip(self.hosts, results, strict=True)}


def load_directory(generator: Host) -> str:
    """Return the folder of the scripts on a load generator."""
    return f"{generator.address.state_dir}/load"


@dataclass(frozen=True, kw_only=True)
class ClusterFacts:
    """The facts of a cluster."""

    hosts: Mapping[str, HostFacts]
    """The facts of each host by its name; a host that could not be asked is missing."""
    nginx_conf: tuple[str, ...] | None = None
    """The configurations of the load balancer's nginx, or of the server in its place.

    See `hosts/nginx_conf.py`. None where nobody asked.
    """


@contextmanager
def connected(cluster: Cluster, connect: Connect) -> Iterator[Rig]:
    """Return the cluster's hosts, connected one after the other; closed at the end.

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
    """Return the load balancer's facts. Raises HostError for a machine of another architecture."""
    return _accepted(rig, facts(rig.load_balancer, rig.cluster.server))


def cluster_facts(rig: Rig) -> ClusterFacts:
    """Return the facts of all hosts, asked at the same time. Raises what `balancer_facts` does."""

    def ask(host: Host) -> tuple[HostFacts, tuple[str, ...]]:
        if host is rig.load_balancer:
            return facts_and_conf(host, rig.cluster.server)
        return facts(host), ()

    answers = rig.on_all(ask)
    balancer, confs = answers[rig.load_balancer.address.name]
    _accepted(rig, balancer)
    return ClusterFacts(
        hosts={name: answer for name, (answer, _) in answers.items()}, nginx_conf=confs
    )


def with_server_started(rig: Rig, known: ClusterFacts) -> ClusterFacts:
    """Return the facts with those that only a running server shows, if none ran before.

    A session that was killed may have been restarting it. Not to come back is no error here: it is
    one of the first trial.
    """
    if is_known(known.nginx_conf or ()):
        return known
    host, server = rig.load_balancer, rig.cluster.server
    host.run(rig.cluster.server_restart, timeout_s=START_LIMIT_S)
    for _ in range(START_LOOKS):
        balancer, confs = facts_and_conf(host, server)
        if is_known(confs) and (balancer.nginx_cpus or server != NGINX):
            break
        # A daemon shows its options a moment after the command that started it has ended, and then
        # it starts its workers.
        time.sleep(START_PAUSE_S)
    hosts = {**known.hosts, host.address.name: balancer}
    return replace(known, hosts=hosts, nginx_conf=confs)


def _accepted(rig: Rig, balancer: HostFacts) -> HostFacts:
    if why := why_not_accepted(rig.cluster, balancer):
        raise HostError(rig.load_balancer.address.name, why)
    return balancer


def why_not_accepted(cluster: Cluster, balancer: HostFacts) -> str:
    """Return why a machine can't be the cluster's load balancer; "" where it can."""
    accepted = cluster.machines or MACHINES.get(cluster.arch, ())
    if balancer.machine in accepted:
        return ""
    return (
        f"is a {balancer.machine} machine, and cluster {cluster.arch} accepts "
        f"{', '.join(accepted)}. Correct the configuration, or name it in machines of that cluster"
    )


def load_tool(rig: Rig, workload: Workload, wanted: LoadToolChoice) -> LoadTool:
    """Return the tool that sends a workload, the same on all load generators.

    Raises:
        CommandError: A load generator has none, or another one than the first, or at another path.
    """
    tools = {g.address.name: tool_on(g, rig.cluster, workload, wanted) for g in rig.load_generators}
    first, tool = next(iter(tools.items()))
    for name, its_tool in tools.items():
        if its_tool != tool:
            mine, theirs = (f"{t.name} {t.version} ({t.path})" for t in (tool, its_tool))
            raise CommandError(
                name,
                f"has {theirs}, and {first} has {mine}: load generators that share a load need "
                "the same",
            )
    return tool


def tool_on(host: Host, cluster: Cluster, workload: Workload, wanted: LoadToolChoice) -> LoadTool:
    """Return the load tool on a host. Raises CommandError if it has none for this workload."""
    # Its duration may not be known yet, and no tool is chosen by it.
    loads = [load for _, load in streams(replace(workload, duration_s=1), cluster)]
    tool = choose(parse_tools(output(host, FIND_TOOL)), loads, wanted)
    if isinstance(tool, str):
        raise CommandError(host.address.name, tool)
    return tool


def upload_load(rig: Rig, scripts: Iterable[Path], paths: Iterable[str]) -> None:
    """Put these Lua scripts and the list of static paths on all load generators.

    Raises UsageError for a script that can't be read.
    """
    try:
        files = {path.name: path.read_text() for path in scripts}
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"a script of the load can't be read: {error}") from error
    files[PATHS_FILE] = joined(paths)
    for generator in rig.load_generators:
        generator.put(load_directory(generator), files)


def clock_offsets(rig: Rig) -> dict[str, float]:
    """Return each host's clock minus ours, in s, to within the time that asking took.

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
