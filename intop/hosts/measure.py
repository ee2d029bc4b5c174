"""One measurement: put the cluster under load, read what happened."""

import shlex
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace

from intop.domain.cluster import Cluster, HostAddress
from intop.domain.trial import HostMetrics
from intop.domain.workload import Workload
from intop.errors import CommandError, LoadKilledError, UnreachableError
from intop.hosts.host import Host
from intop.hosts.load import (
    Load,
    LoadResult,
    LoadTool,
    command,
    parse_output,
    planned_run_s,
    threads_of,
)
from intop.hosts.metrics import TICKS_PER_S, Counters, between, read_counters
from intop.hosts.rig import Rig

LOAD_GRACE_S = 60
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
    rig: Rig, tool: LoadTool, workload: Workload, *, seed: int, prune_above_ms: float | None = None
) -> Measurement:
    """Warm up, then load at the constant rate.

    Raises CommandError, LoadOutputError, or LoadKilledError. The load ends as soon as its P99 is
    certainly above `prune_above_ms`, where the tool can tell.
    """
    counted = replace(_load(rig, workload, workload.counted_s, seed), prune_above_ms=prune_above_ms)
    if tool.name == "wrk" and workload.warmup_s > 0:
        # wrk2 needs none: it does not count its calibration.
        warmup = _load(rig, workload, workload.warmup_s, seed + 1)
        _run(rig, tool, warmup)

    before = _counters(rig)
    text = _run(rig, tool, counted)
    after = _counters(rig)
    result = parse_output(text, tool, counted)
    metrics = _between(rig, before, after)
    name = rig.load_generator.address.name
    load_cpu = _load_cpu(result, threads_of(tool, counted), before[name], after[name])
    metrics[name] = replace(metrics[name], load_cpu=load_cpu)
    return Measurement(result, metrics)


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
    possible_s = min(threads * result.run_duration_s, host_s)
    return None if result.cpu_s is None or possible_s <= 0 else result.cpu_s / possible_s


def _load(rig: Rig, workload: Workload, duration_s: float, seed: int) -> Load:
    return Load(
        script=workload.name,
        url=rig.cluster.url,
        rate_rps=workload.rate_rps,
        connections=workload.connections,
        threads=workload.threads,
        duration_s=duration_s,
        seed=seed % 2**32,
        timeout_s=workload.timeout_s,
        dynamic_path=rig.cluster.dynamic_path,
    )


def _run(rig: Rig, tool: LoadTool, load: Load) -> str:
    seconds = planned_run_s(tool, load)
    # The load ends by itself, even when our connection is gone and nobody reads its output.
    limit = str(seconds + LOAD_GRACE_S)
    words = ["timeout", limit, "sh", "-c", command(tool, load, rig.load_directory)]
    done = rig.load_generator.run(shlex.join(words), timeout_s=seconds + LOAD_GRACE_S + 10)
    if done.exit_code > KILLED:
        raise LoadKilledError(
            rig.load_generator.address.name,
            f"{tool.name} was ended by signal {done.exit_code - KILLED} while it sent the load",
        )
    if done.exit_code != 0:
        raise CommandError(
            rig.load_generator.address.name, f"{tool.name} ended with {done.exit_code}: {done.said}"
        )
    return done.stdout
