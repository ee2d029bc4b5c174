"""One measurement: the cluster under load, its counters before and after it."""

import shlex
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from intop.domain.cluster import Cluster, HostAddress
from intop.domain.counters import HostCounters
from intop.domain.trial import HostMetrics
from intop.domain.workload import Workload
from intop.errors import CommandError, LoadKilledError, UnreachableError
from intop.hosts.host import Host
from intop.hosts.load.streams import Stream, merged, starting_at, streams
from intop.hosts.load.tools import command, parse_output, planned_run_s, sent_s, threads_of
from intop.hosts.load.types import Load, LoadResult, LoadTool
from intop.hosts.metrics import Counters, between
from intop.hosts.processes import TICKS_PER_S
from intop.hosts.reader import Reading, Wanted, series
from intop.hosts.rig import Rig, clock_offsets, load_directory
from intop.hosts.sockets import port_of

if TYPE_CHECKING:
    from intop.domain.recording import Slots

POINTS = 10
"""Points of the series of a trial's counters; the last one is the reading after the load."""
LOAD_GRACE_S = 60
START_IN_S = 1.0
"""The time in which several streams are started before they begin together."""
LATE = "--start-at has passed"
"""The engine's words where its machine was too busy to begin with the other streams."""
KILLED = 128
"""A shell adds to it the number of the signal that ended a command."""

PROGRAMS = ("nginx", "sshd", "sshd-session", "sshd-auth")
"""The programs that a load keeps busy on any cluster; what our commands use is sshd's, too."""


@dataclass(frozen=True)
class Measurement:
    """A load that ran to its end, or was pruned, with the metrics and counters of its hosts."""

    result: LoadResult
    metrics: dict[str, HostMetrics]
    counters: dict[str, HostCounters]


def measure(
    rig: Rig,
    tool: LoadTool,
    workload: Workload,
    *,
    seed: int,
    prune_above_ms: float | None = None,
    expected: Mapping[str, str] = {},
    slots: "Slots | None" = None,
    points: int = POINTS,
    footprint: bool = False,
) -> Measurement:
    """Load at the workload's rate, from all load generators.

    Counters are read before the load and after it, and have `points` in all. With `footprint` the
    footprint of the load balancer's nginx is also read, after the load. `expected` are the names of
    `ExpectedAnswers`. `slots` are the requests of recorded arrivals. The load ends as soon as its
    P99 is certainly above `prune_above_ms`, where the tool can tell.

    Raises:
        CommandError: A host's answer makes no sense, or the load tool fails.
        LoadOutputError: The load tool's output is not its own.
        LoadKilledError: The load was ended by a signal, or began too late.
    """
    wanted = streams(
        workload,
        rig.cluster,
        seed=seed,
        prune_above_ms=prune_above_ms,
        expected=expected,
        slots=slots,
    )
    _put_slots(rig, wanted)
    # All points shall lie within the load, also where nothing is pending at its end.
    step_s = max(sent_s(tool, load) for _, load in wanted) / points
    before = _read(rig, points - 1, step_s)
    results = _run_all(rig, tool, wanted, step_s)
    after = _read(rig, footprint=footprint)
    metrics = _between(rig, before, after)
    for number, generator in enumerate(rig.load_generators):
        name = generator.address.name
        mine = [result for (g, _), result in zip(wanted, results, strict=True) if g == number]
        part = merged(mine)
        threads = sum(threads_of(tool, load) for g, load in wanted if g == number)
        metrics[name] = replace(
            metrics[name],
            load_cpu=_load_cpu(part, threads, before[name].counters, after[name].counters),
            lag_ms=part.lag_ms,
            clock_step_s=part.clock_step_s,
            p99_ms=part.histogram.percentile_ms(99) if part.requests else None,
        )
    counters = {name: series(before[name].now, reading) for name, reading in after.items()}
    return Measurement(merged(results), metrics, counters)


def _put_slots(rig: Rig, wanted: Sequence[Stream]) -> None:
    """Put the requests of recorded arrivals on the load generators, a file for each stream."""
    for number, generator in enumerate(rig.load_generators):
        loads = [load for g, load in wanted if g == number and load.arrivals == "recorded"]
        if files := {load.slots_file: load.slots for load in loads}:
            generator.put(load_directory(generator), files)


def idle(rig: Rig, seconds: float) -> dict[str, HostMetrics]:
    """Return the hosts' metrics of some time without our load."""
    before = _read(rig)
    time.sleep(seconds)
    return _between(rig, before, _read(rig))


def _read(
    rig: Rig, points: int = 0, step_s: float = 0.0, *, footprint: bool = False
) -> dict[str, Reading]:
    """Return all hosts' readings by name, in the cluster's order; that many samples follow."""
    balancer = rig.load_balancer.address
    wanted: dict[str, Wanted] = {}
    # The load balancer first: it lists the processes of its machine, as root.
    for address in sorted(rig.cluster.hosts, key=lambda address: address != balancer):
        # On an emulated machine each sample is felt in what is measured, and `ss` takes 0.3 s.
        is_spared = address == balancer and bool(rig.cluster.emulation)
        lists_sockets = address.role != "backend" and not is_spared
        wanted[address.name] = Wanted(
            processes=_ours(rig.cluster, address) is not None,
            footprint=footprint and address == balancer,
            port=port_of(rig.cluster) if lists_sockets else None,
            stub_status=rig.cluster.stub_status if address == balancer and not is_spared else "",
            points=0 if is_spared else points,
            step_s=step_s,
        )
    readings = rig.readers.read(wanted)
    return {address.name: readings[address.name] for address in rig.cluster.hosts}


def _between(
    rig: Rig, before: Mapping[str, Reading], after: Mapping[str, Reading]
) -> dict[str, HostMetrics]:
    metrics: dict[str, HostMetrics] = {}
    for address in rig.cluster.hosts:
        name = address.name
        both = before[name].counters, after[name].counters
        try:
            metrics[name] = between(*both, _ours(rig.cluster, address))
        except ValueError as error:
            raise UnreachableError(name, f"was started anew meanwhile: {error}") from error
        if (held := after[name].footprint) is not None:
            metrics[name] = replace(
                metrics[name],
                server_memory_mib=held.memory_mib,
                server_files=held.files,
                server_started_s=held.started_s,
                files=held.host_files,
            )
    return metrics


def _ours(cluster: Cluster, address: HostAddress) -> tuple[str, ...] | None:
    """Return the programs of a host that carry the load, None where others are not looked for.

    That is on a backend whose application nobody named, and in a lab's guest: there is nothing else
    in it, the machine that carries it out is looked at, and emulated it would take some 0.1 s.
    """
    if address.role == "backend" and not cluster.programs:
        return None
    if address.role == "load-balancer" and cluster.emulation:
        return None
    return (*PROGRAMS, *cluster.server.programs, *cluster.programs)


def _load_cpu(result: LoadResult, threads: int, before: Counters, after: Counters) -> float | None:
    """Return the share that the load tool used of the CPU time that its threads could use.

    That is one processor each, and no more than the host has. None where it is not known.
    """
    host_s = (after.cpu_total - before.cpu_total) / TICKS_PER_S
    possible_s = min(threads * result.run_s, host_s)
    return None if result.cpu_s is None or possible_s <= 0 else result.cpu_s / possible_s


def _run_all(rig: Rig, tool: LoadTool, wanted: Sequence[Stream], step_s: float) -> list[LoadResult]:
    """Return the result of each stream. Several begin at the same time, by each generator's clock.

    Meanwhile, every `step_s`, the hosts' samples are worked out: afterwards that would be felt as
    a part of the trial.
    """
    if len(wanted) > 1 and tool.name == "engine":
        offsets, begin = clock_offsets(rig), time.time() + START_IN_S
        names = [g.address.name for g in rig.load_generators]
        wanted = [starting_at(stream, begin + offsets[names[stream[0]]]) for stream in wanted]
    with ThreadPoolExecutor(len(wanted)) as pool:
        running = [pool.submit(_run, rig.load_generators[g], tool, load) for g, load in wanted]
        while wait(running, timeout=step_s).not_done:
            rig.readers.follow()
        return [future.result() for future in running]


def _run(generator: Host, tool: LoadTool, load: Load) -> LoadResult:
    seconds = planned_run_s(tool, load) + START_IN_S
    # The load ends by itself, even when our connection is gone and nobody reads its output.
    limit = f"{seconds + LOAD_GRACE_S:.0f}"
    cpus = generator.address.load_cpus
    pinned = ["taskset", "-c", cpus] if cpus else []
    words = ["timeout", limit, *pinned, "sh", "-c", command(tool, load, load_directory(generator))]
    done = generator.run(shlex.join(words), timeout_s=seconds + LOAD_GRACE_S + 10)
    name = generator.address.name
    if done.exit_code > KILLED:
        raise LoadKilledError(
            name,
            f"{tool.name} was ended by signal {done.exit_code - KILLED} while it sent the load",
        )
    if done.exit_code != 0 and LATE in done.message:
        raise LoadKilledError(name, f"{tool.name} began too late to send the load: {done.message}")
    if done.exit_code != 0:
        raise CommandError(name, f"{tool.name} ended with {done.exit_code}: {done.message}")
    return parse_output(done.stdout, tool, load)
