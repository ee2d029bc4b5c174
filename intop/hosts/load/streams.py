"""The streams of a workload, and their results merged.

There is one stream for each class of clients on each load generator. Streams of a constant rate lie
evenly between each other, and Poisson streams add up to a Poisson stream. Recorded slots are shared
out, each to one stream. So the sum of them is the load that one generator would send.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from intop.domain.cluster import Cluster
from intop.domain.histogram import Histogram, slower_share
from intop.domain.workload import Workload
from intop.hosts.load.types import Load, LoadResult

if TYPE_CHECKING:
    from intop.domain.recording import Slots

Stream = tuple[int, Load]
"""The number of a load generator, from 0 on, and its load."""


def streams(
    workload: Workload,
    cluster: Cluster,
    *,
    seed: int = 0,
    prune_above_ms: float | None = None,
    expected: Mapping[str, str] = {},
    slots: "Slots | None" = None,
) -> tuple[Stream, ...]:
    """Return the streams of all the cluster's load generators.

    Each generator has its share of rate and connections, at least one connection to each stream.
    `expected` names, by class of clients, the file by which its answers are checked.
    `slots` are all requests of recorded arrivals.
    """
    shares = cluster.load_shares
    places = [(clients, *place) for clients in workload.clients for place in enumerate(shares)]
    parts = slots.shared([clients.share * share for clients, _, share in places]) if slots else None
    result: list[Stream] = []
    for number, (clients, generator, share) in enumerate(places):
        connections = clients.connections or round(workload.connections * clients.share)
        load = Load(
            script=workload.kind,
            own_script=workload.own_script,
            url=cluster.url,
            rate_rps=workload.rate_rps * clients.share * share,
            connections=max(1, in_whole_numbers(connections, shares)[generator]),
            threads=workload.threads,
            duration_s=workload.counted_s,
            warmup_s=workload.warmup_s,
            seed=(seed + number) % 2**32,
            timeout_s=workload.timeout_s,
            dynamic_path=cluster.dynamic_path,
            only_path=workload.only_path,
            arrivals=workload.arrivals,
            slots=parts[number].text() if parts else "",
            clients=clients,
            stream=number,
            streams=len(places),
            expected_file=expected.get(clients.name, ""),
            prune_above_ms=prune_above_ms,
            prune_count=_prune_count(workload, slots),
        )
        result.append((generator, load))
    return tuple(result)


def in_whole_numbers(total: int, shares: Sequence[float]) -> list[int]:
    """Share out a total: what is left after rounding down goes to the largest remainders.

    The shares add up to 1.
    """
    # Less than a ten-thousandth is the error of a share such as 1/3, and no remainder.
    exact = [total * share for share in shares]
    whole = [math.floor(value + 1e-4) for value in exact]
    order = sorted(range(len(shares)), key=lambda n: round(whole[n] - exact[n], 4))
    for number in order[: total - sum(whole)]:
        whole[number] += 1
    return whole


def _prune_count(workload: Workload, slots: "Slots | None") -> int:
    """Return how many requests may be late without the judged percentile being certainly so.

    That is 1 % of all for P99. By the nearest rank, P99 is above a limit when more than
    N - ceil(0.99 N) of N latencies are. Each stream counts its own, so that many streams prune late
    or, below P90, never.
    """
    due = workload.rate_rps * workload.counted_s
    if slots is not None:
        due = slots.due_from(1e6 * workload.warmup_s)
    return math.floor(round(slower_share(workload.judged_by) * due, 6))


def starting_at(stream: Stream, start_at: float) -> Stream:
    """Return the same stream, which begins at a time of its generator's own clock, in s."""
    generator, load = stream
    return generator, replace(load, start_at=start_at)


def merged(results: Sequence[LoadResult]) -> LoadResult:
    """Return the results of all streams as that of one load. Histograms add up exactly.

    Times are those of the longest stream, lateness is that of the latest.
    """
    if len(results) == 1:
        return results[0]
    errors: Counter[str] = Counter()
    for result in results:
        errors.update(result.errors)
    cpu = [r.cpu_s for r in results if r.cpu_s is not None]
    lags = [r.lag_ms for r in results if r.lag_ms is not None]
    steps = [r.clock_step_s for r in results if r.clock_step_s is not None]
    stopped = [r.stopped_after_s for r in results if r.stopped_after_s is not None]
    return LoadResult(
        requests=sum(r.requests for r in results),
        duration_s=max(r.duration_s for r in results),
        run_s=max(r.run_s for r in results),
        bytes=sum(r.bytes for r in results),
        errors=dict(errors),
        histogram=Histogram.merge(*(r.histogram for r in results)),
        achieved_rps=math.fsum(r.achieved_rps for r in results),
        offered_rps=math.fsum(r.offered_rps for r in results),
        cpu_s=math.fsum(cpu) if len(cpu) == len(results) else None,
        stopped_after_s=min(stopped, default=None),
        lag_ms=max(lags, default=None),
        clock_step_s=max(steps, key=abs, default=None),
        uncounted=sum(r.uncounted for r in results),
    )
