"""Whether a replica that grows slower by 20 % is found by its sentinels, and how often falsely.

Terms, as committed before the first run. 20 campaigns of 2 replicas with 20 sentinels each (seeds
1 to 20), one of them slower by 20 % from the 11th on, and 20 campaigns without (seeds 101 to 120).
The load is simulated: a sentinel's latency is log-normal around 100 ms, about a level that both
replicas share and that wanders by 2 % from one sentinel to the next. `replica_drift` looks after
each round, as a campaign would. Found means: the slower replica is named, after at most 8 of its
sentinels since the change, and nobody before. False means: any replica is named at any time. Met
means: 20 of 20 found, and at most 1 of 20 false. Standard deviations of a sentinel of 0.01, 0.02,
0.03, 0.05, 0.1 and 0.2 say what noise that takes.
"""

import numpy as np

from intop.domain.replica_drift import ReplicaDrift, replica_drift

CAMPAIGNS, ROUNDS, CHANGE, WITHIN = 20, 20, 10, 8
SLOWER, WANDERS = 1.2, 0.02
DEVIATIONS = (0.01, 0.02, 0.03, 0.05, 0.1, 0.2)


def main() -> None:
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
