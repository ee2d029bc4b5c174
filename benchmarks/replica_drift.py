"""Whether a replica that grows slower, or disturbs another one, is found, and how often falsely.

    python -m benchmarks.replica_drift
    python -m benchmarks.replica_drift --looks     how strict INDEPENDENT has to be

Terms of the drift, as committed before the first run. 20 campaigns of 2 replicas with 20 sentinels
each (seeds 1 to 20), one of them slower by 20 % from the 11th on, and 20 campaigns without (seeds
101 to 120). The load is simulated: a sentinel's latency is log-normal around 100 ms, about a level
that both replicas share and that wanders by 2 % from one sentinel to the next. `replica_drift`
looks after each round, as a campaign would. Found means: the slower replica is named, after at most
8 of its sentinels since the change, and nobody before. False means: any replica is named at any
time. Met means: 20 of 20 found, and at most 1 of 20 false. Standard deviations of a sentinel of
0.01 to 0.2 say what noise that takes.

Terms of the disturbance. Two replicas with 20 sentinels of 10 s each, one a minute. The first
replica has load all the time until its 10th sentinel, and none afterwards; the second one is slower
by 20 % beside it, in 20 campaigns (seeds 201 to 220), and is not in 20 others (seeds 301 to 320).
Levels don't wander. Found means: the first replica is named as disturbing the second one, after at
most 8 sentinels without its load. False and met as above.
"""

import argparse

import numpy as np
from scipy import stats

from intop.domain.replica_disturbance import Sentinel, Span, replica_disturbance
from intop.domain.replica_drift import (
    AFTER,
    BEFORE,
    FALSE_ALARMS,
    INDEPENDENT,
    LATEST,
    NORMAL,
    ODD,
    ReplicaDrift,
    replica_drift,
)

CAMPAIGNS, ROUNDS, CHANGE, WITHIN = 20, 20, 10, 8
SLOWER, WANDERS = 1.2, 0.02
DEVIATIONS = (0.01, 0.02, 0.03, 0.04, 0.05, 0.1, 0.2)
SIMULATED, LOOKS = 2000, 50


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--looks", action="store_true", help="simulate campaigns without a change")
    if parser.parse_args().looks:
        print_looks()
    else:
        print_drift()
        print_disturbance()


def print_drift() -> None:
    print("| sd of a sentinel | found | median sentinels until found | false, without a change |")
    print("|---:|---:|---:|---:|")
    for sd in DEVIATIONS:
        slowed = [alarm(campaign(n, sd, SLOWER)) for n in range(1, 1 + CAMPAIGNS)]
        after = [
            at - CHANGE
            for at, drift in filter(None, slowed)
            if drift.replica == "two" and 0 < at - CHANGE <= WITHIN
        ]
        false = sum(alarm(campaign(n, sd, 1)) is not None for n in range(101, 101 + CAMPAIGNS))
        until = f"{np.median(after):.1f}" if after else "-"
        print(f"| {sd} | {len(after)} of {CAMPAIGNS} | {until} | {false} of {CAMPAIGNS} |")


def print_disturbance() -> None:
    print("\n| sd of a sentinel | disturbing one found | false, without a disturbance |")
    print("|---:|---:|---:|")
    for sd in DEVIATIONS:
        disturbed = [disturbs(n, sd, SLOWER) for n in range(201, 201 + CAMPAIGNS)]
        found = sum(at is not None and 0 < at - CHANGE <= WITHIN for at in disturbed)
        false = sum(disturbs(n, sd, 1) is not None for n in range(301, 301 + CAMPAIGNS))
        print(f"| {sd} | {found} of {CAMPAIGNS} | {false} of {CAMPAIGNS} |")


def disturbs(seed: int, sd: float, slower: float) -> int | None:
    """After how many rounds a replica is named first; 0 for the wrong one."""
    rng = np.random.default_rng(seed)
    latencies = 100 * np.exp(rng.normal(0, sd, (2, ROUNDS)))
    latencies[1, :CHANGE] *= slower
    spans: list[Span] = [(60.0 * n, 60.0 * n + 10) for n in range(ROUNDS)]
    for rounds in range(1, ROUNDS + 1):
        sentinels = {
            name: [
                Sentinel(latency_ms=float(ms), span=span)
                for ms, span in zip(row[:rounds], spans, strict=False)
            ]
            for name, row in zip(("one", "two"), latencies, strict=True)
        }
        loads: dict[str, list[Span]] = {"one": [(0.0, 60.0 * CHANGE)], "two": spans[:rounds]}
        if found := replica_disturbance(sentinels, loads):
            return rounds if found.replica == "one" else 0
    return None


def print_looks() -> None:
    print("| replicas | independent tests a replica | false alarms with INDEPENDENT |")
    print("|---:|---:|---:|")
    for replicas in (2, 3, 5):
        noise = np.random.default_rng(replicas).normal(size=(replicas, SIMULATED, LOOKS))
        others = (noise.sum(0) - noise) / (replicas - 1)
        series = 1 if replicas == 2 else replicas
        lowest = np.min([lowest_p(row) for row in (noise - others)[:series]], axis=0)
        tests = FALSE_ALARMS / np.quantile(lowest, FALSE_ALARMS) / series
        false = np.mean(lowest * INDEPENDENT * series <= FALSE_ALARMS)
        print(f"| {replicas} | {tests:.0f} | {100 * false:.1f} % |")


def lowest_p(values: np.ndarray) -> np.ndarray:
    """Of each campaign (row): the lowest p-value of `replica_drift`, over all rounds and places."""
    lowest = np.ones(len(values))
    for rounds in range(BEFORE + AFTER, LOOKS + 1):
        for place in range(max(BEFORE, rounds - LATEST), rounds - AFTER + 1):
            before, after = drawn_in_rows(values[:, :place]), values[:, place:rounds]
            within = before.var(1) * place + after.var(1) * (rounds - place)
            error = np.sqrt(within / (rounds - 2) * (1 / place + 1 / (rounds - place)))
            t = np.abs(after.mean(1) - before.mean(1)) / error
            lowest = np.minimum(lowest, 2 * stats.t.sf(t, rounds - 2))
    return lowest


def drawn_in_rows(values: np.ndarray) -> np.ndarray:
    """`drawn_in` of each row."""
    middle = np.median(values, axis=1, keepdims=True)
    reach = ODD * NORMAL * np.median(np.abs(values - middle), axis=1, keepdims=True)
    return np.clip(values, middle - reach, middle + reach)


def campaign(seed: int, sd: float, slower: float) -> dict[str, list[float]]:
    """The sentinels' latencies (ms) on both replicas."""
    rng = np.random.default_rng(seed)
    level = np.log(100) + np.cumsum(rng.normal(0, WANDERS, ROUNDS))
    logs = level + rng.normal(0, sd, (2, ROUNDS))
    logs[1, CHANGE:] += np.log(slower)
    return dict(zip(("one", "two"), np.exp(logs).tolist(), strict=True))


def alarm(sentinels: dict[str, list[float]]) -> tuple[int, ReplicaDrift] | None:
    """After how many rounds a replica is named first, and which."""
    for rounds in range(1, ROUNDS + 1):
        found = replica_drift({name: values[:rounds] for name, values in sentinels.items()})
        if found is not None:
            return rounds, found
    return None


if __name__ == "__main__":
    main()
