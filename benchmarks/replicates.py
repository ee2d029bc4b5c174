"""How often the truly best of 32 configurations is found, by how 8 replicates are allotted.

Simulated, in some 20 seconds, with the allocation that `intop collect` uses. True means of log P99
and the trials about them are normal; which is the best measured, geometric means say, as in `intop
verify`. Prints how often it is the truly best one, and how much higher its true P99 is.
"""

import random
from collections.abc import Callable

import numpy as np

from intop.domain.configuration import Configuration
from intop.domain.replicates import Measured, variances
from intop.learn.allocation import next_batch
from intop.stages.collect import BATCH

Rule = Callable[[list[Measured], int, random.Random], list[int]]

SEED, RUNS = 7, 2000
CONFIGURATIONS, REPLICATES = 32, 8

NOISE = ((0.8, 0.2, 0.0), (0.8, 0.3, 0.0), (0.8, 0.3, 0.5), (0.4, 0.3, 0.0), (0.2, 0.3, 0.0))
"""Standard deviations of log P99: of the true means, of a trial, and of the log of the latter."""


def at_random(measured: list[Measured], size: int, rng: random.Random) -> list[int]:
    return rng.sample(range(len(measured)), size)


def the_best(measured: list[Measured], size: int, _: random.Random) -> list[int]:
    return sorted(range(len(measured)), key=lambda n: measured[n].mean_log)[:size]


def by_ocba(measured: list[Measured], size: int, _: random.Random) -> list[int]:
    counts = [len(m.p99_ms) for m in measured]
    return next_batch([m.mean_log for m in measured], variances(measured), counts, size)


RULES: dict[str, tuple[Rule, int]] = {
    "none": (by_ocba, 0),
    "8 at random": (at_random, REPLICATES),
    "the best 8": (the_best, REPLICATES),
    "OCBA, 8 at once": (by_ocba, REPLICATES),
    f"OCBA, batches of {BATCH}": (by_ocba, BATCH),
    "OCBA, batches of 2": (by_ocba, 2),
}
"""How replicates are allotted, and how many at once; 0 is none at all."""


def one_run(
    rule: Rule, size: int, noise: tuple[float, float, float], rng: np.random.Generator
) -> tuple[bool, float]:
    """Whether the best measured is the truly best, and how much higher its true log P99 is."""
    spread, sd, unequal = noise
    means = rng.normal(0, spread, CONFIGURATIONS)
    sds = sd * np.exp(rng.normal(0, unequal, CONFIGURATIONS))

    def trial(which: int) -> tuple[float, ...]:
        return (float(np.exp(rng.normal(means[which], sds[which]))),)

    made = [Measured(configuration=Configuration(), p99_ms=trial(n)) for n in range(CONFIGURATIONS)]
    order = random.Random(int(rng.integers(2**32)))
    for _ in range(REPLICATES // size if size else 0):
        for n in rule(made, size, order):
            p99_ms = made[n].p99_ms + trial(n)
            made[n] = Measured(configuration=Configuration(), p99_ms=p99_ms)
    chosen = min(range(CONFIGURATIONS), key=lambda n: made[n].mean_log)
    best = float(means.min())
    return bool(means[chosen] == best), float(means[chosen]) - best


def found(name: str, noise: tuple[float, float, float], runs: int = RUNS) -> tuple[float, float]:
    """The share of runs that find the best, and the mean of how much higher log P99 is."""
    rule, size = RULES[name]
    rng = np.random.default_rng(SEED)
    outcomes = [one_run(rule, size, noise, rng) for _ in range(runs)]
    hits, losses = zip(*outcomes, strict=True)
    return float(np.mean(hits)), float(np.mean(losses))


def main() -> None:
    heads = [f"{m:g}, {s:g}{', unequal' if u else ''}" for m, s, u in NOISE]
    print(f"| replicates | {' | '.join(heads)} |\n|---|{'---:|' * len(NOISE)}")
    for name in RULES:
        cells = []
        for noise in NOISE:
            hit, loss = found(name, noise)
            cells.append(f"{100 * hit:.0f} % ({100 * np.expm1(loss):.0f} %)")
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
