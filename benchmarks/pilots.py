"""What a pilot's choice is worth, where the truth is known: simulated.

A trial's log P99 is normal, with an sd that falls as one over the square root of the duration, or
that no duration lowers. Prints a table in Markdown: how often each duration is chosen, and how
often it seems to resolve the 1.25 that was wanted, and in truth doesn't even resolve 1.35. Takes
some seconds.
"""

import argparse
import math
import random
from collections import Counter
from collections.abc import Callable
from statistics import stdev

from intop.domain.duration import chosen, half_width, stalled
from intop.domain.pilot import Pilot, TriedDuration

LADDER = (2, 4, 8, 16, 32)
WANTED, PAIRS, LEVEL, LOOKS = 1.25, 10, 0.95, 2
OVERHEAD_S = 0.2
BLUNT = 1.35
FALLING = (0.15, 0.3, 0.5, 0.8)
STAYING = (0.15, 0.3)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=4000, help="of each pilot (4000)")
    runs = parser.parse_args().runs
    ladder = ", ".join(map(str, LADDER))
    print(
        f"| sd at {LADDER[0]} s | longer | trials | chosen: {ladder} s | seemed reached "
        f"| of those, in truth above {BLUNT} |\n|---:|---|---:|---|---:|---:|"
    )
    for sds, name in ((FALLING, "sd falls"), (STAYING, "sd stays")):
        for sd in sds:
            for trials in (5, 10):
                print(row(sd, name, trials, runs), flush=True)


def row(sd: float, name: str, trials: int, runs: int) -> str:
    """One row of the table."""
    rng = random.Random(f"{sd} {name} {trials}")

    def true_sd(duration_s: int) -> float:
        return sd * math.sqrt(LADDER[0] / duration_s) if name == "sd falls" else sd

    found = [piloted(rng, true_sd, trials) for _ in range(runs)]
    counts = Counter(one.duration_s for one in found)
    shares = ", ".join(f"{counts[d] / runs:.0%}" for d in LADDER)
    reached = [one for one in found if one.reached]
    missed = sum(resolution(true_sd(one.duration_s)) > BLUNT for one in reached)
    told = f"{missed / len(reached):.0%}" if reached else "-"
    return f"| {sd} | {name} | {trials} | {shares} | {len(reached) / runs:.0%} | {told} |"


def piloted(rng: random.Random, true_sd: Callable[[int], float], trials: int) -> Pilot:
    """A pilot as `intop pilot` makes it."""
    tried: list[TriedDuration] = []
    for duration_s in LADDER:
        spread = true_sd(duration_s)
        tried.append(simulated(duration_s, stdev(rng.gauss(0, spread) for _ in range(trials))))
        if tried[-1].resolution <= WANTED or stalled(tried):
            break
    return chosen(tried, shortest_s=LADDER[0], wanted=WANTED, pairs=PAIRS, level=LEVEL)


def simulated(duration_s: int, sd: float) -> TriedDuration:
    """A duration with what the choice goes by; the rest is left empty."""
    return TriedDuration(
        duration_s=duration_s,
        requests=0,
        trials=0,
        p99_ms=0.0,
        sd=sd,
        sd_low=0.0,
        sd_high=0.0,
        resolution=resolution(sd),
        resolution_low=0.0,
        resolution_high=0.0,
        pairs_needed=None,
        seconds=duration_s + OVERHEAD_S,
    )


def resolution(sd: float) -> float:
    """Of a verdict, where trials scatter so."""
    return math.exp(UNIT * sd)


UNIT = half_width(1.0, PAIRS, level=LEVEL, look_count=LOOKS)

if __name__ == "__main__":
    main()
