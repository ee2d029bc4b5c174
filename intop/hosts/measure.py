"""One measurement: put the cluster under load, read what happened."""

import shlex
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from intop.domain.cluster import Cluster, HostAddress
from intop.domain.trial import HostMetrics
from intop.domain.workload import Workload
from intop.errors import CommandError, LoadKilledError, UnreachableError
from intop.hosts.host import Host
from intop.hosts.load.streams import Stream, merged, starting_at, streams
from intop.hosts.load.tools import command, parse_output, planned_run_s, threads_of
from intop.hosts.load.types import Load, LoadResult, LoadTool
from intop.hosts.metrics import TICKS_PER_S, Counters, between, read_counters
from intop.hosts.rig import Rig, clock_offsets, load_directory

LOAD_GRACE_S = 60
START_IN_S = 1.0
"""How long several streams have to be started before they begin together."""
KILLED = 128
"""To which a shell adds the number of the signal that ended a command."""

SERVERS = ("nginx", "sshd", "sshd-session", "sshd-auth")
"""The programs that a load keeps busy on any cluster; what our commands use is sshd's, too."""


@dataclass(frozen=True)
class Measurement:
    """A load that ran to its end, or was pruned, and what its hosts did meanwhile."""

    result: LoadResult
    metrics: dict[str, HostMetrics]


def measure(
    rig: Rig,
    tool: LoadTool,
    workload: Workload,
    *,
    seed: int,
    prune_above_ms: float | None = None,
    expected: Mapping[str, str] = {},
) -> Measurement:
    """Load at the workload's rate, from all load generators.

    `expected` is what `expected_answers` returned. The load ends as soon as its P99 is certainly
    above `prune_above_ms`, where the tool can tell. Raises CommandError, LoadOutputError, or
    LoadKilledError.
    """
    wanted = streams(
        workload, rig.cluster, seed=seed, prune_above_ms=prune_above_ms, expected=expected
    )
    before = _counters(rig)
    results = _run_all(rig, tool, wanted)
    after = _counters(rig)
    metrics = _between(rig, before, after)
    for number, generator in enumerate(rig.load_generators):
        name = generator.address.name
        mine = [result for (g, _), result in zip(wanted, results, strict=True) if g == number]
        part = merged(mine)
        threads = sum(threads_of(tool, load) for g, load in wanted if g == number)
        metrics[name] = replace(
            metrics[name],
            load_cpu=_load_cpu(part, threads, before[name], after[name]),
            lag_ms=part.lag_ms,
            clock_step_s=part.clock_step_s,
            p99_ms=part.histogram.percentile_ms(99) if part.requests else None,
        )
    return Measurement(merged(results), metrics)


def idle(rig: Rig, seconds: float) -> dict[str, HostMetrics]:
    """What the hosts do for some time without our load."""
    before = _counters(rig)
    time.sleep(seconds)
    return _between(rig, before, _counters(rig))


def _counters(rig: Rig) -> dict[str, Counters]:
    def read(host: Host) -> Counters:
        return read_counters(host, processes=_ours(rig.cluster, host.address) is not None)

    return rig.on_all(read)


def _between(
    rig: Rig, before: Mapping[str, Counters], after: Mapping[str, Counters]
) -> dict[str, HostMetrics]:
    metrics: dict[str, HostMetrics] = {}
    for address in rig.cluster.hosts:
        name = address.name
        try:
            metrics[name] = between(before[name], after[name], _ours(rig.cluster, address))
        except ValueError as error:
            raise UnreachableError(name, f"was started anew meanwhile: {error}") from error
    return metrics


def _ours(cluster: Cluster, address: HostAddress) -> tuple[str, ...] | None:
    """The programs of a host that carry the load, None where others are not looked for.

    That is on a backend whose application nobody named, and in a lab's guest: there is nothing else
    in it, the machine that carries it out is looked at, and emulated it would take some 0.1 s.
    """
    if address.role == "backend" and not cluster.programs:
        return None
    if address.role == "load-balancer" and cluster.emulation:
        return None
    return (*SERVERS, *cluster.programs)


def _load_cpu(result: LoadResult, threads: int, before: Counters, after: Counters) -> float | None:
    """The share that the load tool used of what its threads could: one processor each, and no
    more than the host has. None where it is not known.
    """
    host_s = (after.cpu_total - before.cpu_total) / TICKS_PER_S
    possible_s = min(threads * result.run_s, host_s)
    return None if result.cpu_s is None or possible_s <= 0 else result.cpu_s / possible_s


def _run_all(rig: Rig, tool: LoadTool, wanted: Sequence[Stream]) -> list[LoadResult]:
    """The result of each stream. Several begin at the same time, by each generator's own clock."""
    if len(wanted) > 1 and tool.name == "engine":
        offsets, begin = clock_offsets(rig), time.time() + START_IN_S
        names = [g.address.name for g in rig.load_generators]
        wanted = [starting_at(one, begin + offsets[names[one[0]]]) for one in wanted]
    with ThreadPoolExecutor(len(wanted)) as pool:
        running = [pool.submit(_run, rig.load_generators[g], tool, load) for g, load in wanted]
        return [future.result() for future in running]


def _run(generator: Host, tool: LoadTool, load: Load) -> LoadResult:
    seconds = planned_run_s(tool, load) + START_IN_S
    # The load ends by itself, even when our connection is gone and nobody reads its output.
    limit = f"{seconds + LOAD_GRACE_S:.0f}"
    words = ["timeout", limit, "sh", "-c", command(tool, load, load_directory(generator))]
    done = generator.run(shlex.join(words), timeout_s=seconds + LOAD_GRACE_S + 10)
    name = generator.address.name
    if done.exit_code > KILLED:
        raise LoadKilledError(
            name,
            f"{tool.name} was ended by signal {done.exit_code - KILLED} while it sent the load",
        )
    if done.exit_code != 0:
        raise CommandError(name, f"{tool.name} ended with {done.exit_code}: {done.said}")
    return parse_output(done.stdout, tool, load)
