"""Which design a screening should have: alternatives on the made-up clusters of made_up.py.

    python -m benchmarks.screening_designs        with seeds that benchmarks/screening.py has not

All designs have 100 trials. All but sequential bifurcation are judged by the product's own tests
(`intop.learn.effects.screening`), so that only the configurations differ. Prints Markdown.
"""

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from math import log
from statistics import fmean

import numpy as np

from benchmarks.made_up import MadeUp, issue, like_lab
from intop.domain.configuration import Configuration
from intop.domain.encoding import Matrix
from intop.domain.ranking import Screening
from intop.domain.trial import PlannedTrial
from intop.learn.design import latin_hypercube, screening_design
from intop.learn.effects import screening

TRIALS, BATCH = 100, 10
FIRST = 60
"""Trials before an adaptive design looks."""
NOISE = 0.1
"""The sd of log P99 that sequential bifurcation knows. Other designs estimate it."""
CLEAR = 3.0
"""Standard errors beyond which it takes a group's effect for one."""

CLUSTERS: dict[str, Callable[[int], MadeUp]] = {
    "the issue's": issue,
    "the lab's shape": like_lab,
    "the issue's, noise 0.3": partial(issue, noise=0.3),
}


@dataclass
class Bench:
    """A made-up cluster that counts its trials."""

    made: MadeUp
    seed: int
    count: int = 0

    def measure(self, configuration: Configuration) -> tuple[float, float]:
        """The logarithms of P99 and of the tail."""
        planned = PlannedTrial(index=self.count, role="design", configuration=configuration)
        self.count += 1
        shot = self.made.answer(planned, "screen")
        return log(shot.p99_ms), log(shot.tail_ms)

    def screened(
        self, configurations: list[Configuration], responses: tuple[str, ...] = ("P99", "tail")
    ) -> Screening:
        """What the product says of these, each measured once."""
        return self.judged(
            configurations, np.array([self.measure(c) for c in configurations]), responses
        )

    def judged(
        self,
        configurations: list[Configuration],
        measured: Matrix,
        responses: tuple[str, ...] = ("P99", "tail"),
    ) -> Screening:
        """What the product says of measured ones."""
        space = self.made.offer.space
        known = dict(zip(("P99", "tail"), measured.T, strict=True))
        return screening(
            space.variables,
            space.values(configurations),
            {name: known[name] for name in responses},
            seed=self.seed,
        )


Chosen = tuple[str, ...]
Design = Callable[[Bench], Chosen]


def hypercube(bench: Bench) -> Chosen:
    """A sliced Latin hypercube, as screenings had it before."""
    space = bench.made.offer.space
    return bench.screened(latin_hypercube(space, TRIALS, seed=bench.seed, batch=BATCH)).keys(
        "chosen"
    )


def three_levels(bench: Bench) -> Chosen:
    """What the product does."""
    return bench.screened(_three_levels(bench, TRIALS)).keys("chosen")


def all_at_once(bench: Bench) -> Chosen:
    """Three levels, and all parameters vary in each configuration, as screenings had it before."""
    return _varied(bench, len(bench.made.offer.space.parameters))


def twenty_at_once(bench: Bench) -> Chosen:
    """Three levels, and about twenty parameters vary in each configuration."""
    return _varied(bench, 20)


def _varied(bench: Bench, varied: int) -> Chosen:
    space = bench.made.offer.space
    design = screening_design(space, TRIALS, seed=bench.seed, batch=BATCH, varied=varied)
    return bench.screened(design).keys("chosen")


def by_p99_alone(bench: Bench) -> Chosen:
    """The same configurations, and P99 as the only response."""
    return bench.screened(_three_levels(bench, TRIALS), ("P99",)).keys("chosen")


def by_tail_alone(bench: Bench) -> Chosen:
    """The same configurations, and the tail as the only response."""
    return bench.screened(_three_levels(bench, TRIALS), ("tail",)).keys("chosen")


def foldover(bench: Bench) -> Chosen:
    """Two levels: fifty random configurations and their mirrors (supersaturated, and folded over).

    A choice of several has its two halves as levels.
    """
    space = bench.made.offer.space
    half = np.random.default_rng(bench.seed).permuted(
        np.tile(np.arange(TRIALS // 2) % 2, (len(space.columns), 1)), axis=1
    )
    genes = np.hstack([half, 1 - half]).T.astype(float)
    return bench.screened(space.configurations(space.decode(_jittered(genes, bench)))).keys(
        "chosen"
    )


def replicated(bench: Bench) -> Chosen:
    """Half as many configurations, each measured twice: the mean of both."""
    configurations = _three_levels(bench, TRIALS // 2)
    twice = np.array([[bench.measure(c) for c in configurations] for _ in range(2)])
    return bench.judged(configurations, twice.mean(axis=0)).keys("chosen")


def adaptive(bench: Bench) -> Chosen:
    """After FIRST trials, what is frozen by then stays at its default."""
    space = bench.made.offer.space
    first = _three_levels(bench, FIRST)
    measured = [bench.measure(c) for c in first]
    left = bench.judged(first, np.array(measured)).keys("chosen", "open")
    further = screening_design(
        space.restricted(left), TRIALS - FIRST, seed=bench.seed + 1, batch=BATCH
    )
    measured += [bench.measure(c) for c in further]
    return bench.judged(first + further, np.array(measured)).keys("chosen")


def bifurcation(bench: Bench) -> Chosen:
    """Sequential bifurcation (Bettonvil and Kleijnen, European Journal of Operational Research 96,
    1997, 180-194): the group with the largest effect is halved, as long as there are trials.

    A point k has the first k parameters at their high ends, and is measured twice.
    """
    space = bench.made.offer.space
    keys = [p.key for p in space.parameters]
    owner = np.array([keys.index(c.parameter.key) for c in space.columns])

    def point(k: int) -> float:
        genes = np.where(owner < k, 1.0, 0.0)[None]
        (configuration,) = space.configurations(space.decode(genes))
        return fmean(bench.measure(configuration)[0] for _ in range(2))

    known = {k: point(k) for k in (0, len(keys))}
    groups = {(0, len(keys))}
    while bench.count + 2 <= TRIALS:
        wide = [g for g in groups if g[1] - g[0] > 1 and abs(known[g[1]] - known[g[0]]) > _clear()]
        if not wide:
            break
        low, high = max(wide, key=lambda g: abs(known[g[1]] - known[g[0]]))
        middle = (low + high) // 2
        known[middle] = point(middle)
        groups = groups - {(low, high)} | {(low, middle), (middle, high)}
    return tuple(
        keys[low]
        for low, high in groups
        if high - low == 1 and abs(known[high] - known[low]) > _clear()
    )


def _clear() -> float:
    """Of the difference of two points, each the mean of two trials."""
    return CLEAR * NOISE


def _three_levels(bench: Bench, count: int) -> list[Configuration]:
    return screening_design(bench.made.offer.space, count, seed=bench.seed, batch=BATCH)


def _jittered(genes: Matrix, bench: Bench) -> Matrix:
    """Off the ends by up to a twentieth, so that no two rows are equal."""
    within = 0.05 * np.random.default_rng(bench.seed + 2).random(genes.shape)
    return np.abs(genes - within)


DESIGNS: tuple[Design, ...] = (
    hypercube,
    all_at_once,
    twenty_at_once,
    three_levels,
    by_p99_alone,
    by_tail_alone,
    foldover,
    replicated,
    adaptive,
    bifurcation,
)


def table(seeds: int, designs: Sequence[Design] = DESIGNS) -> Iterator[str]:
    """For each design and cluster: of 8 chosen in the mean and at least, and the wrong ones."""
    yield "| design | " + " | ".join(CLUSTERS) + " |"
    yield "|---|" + "---:|" * len(CLUSTERS)
    for design in designs:
        cells = [design.__name__.replace("_", " ")]
        for made_up in CLUSTERS.values():
            right, wrong = [], 0
            for seed in range(1, seeds + 1):
                made = made_up(seed)
                chosen = set(design(Bench(made, seed)))
                right.append(len(chosen & made.matter))
                wrong += len(chosen - made.matter)
            cells.append(f"{fmean(right):.2f}, {min(right)}; {wrong} of {wrong + sum(right)}")
        yield "| " + " | ".join(cells) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=12, help="from 1 on (12)")
    names = {design.__name__: design for design in DESIGNS}
    parser.add_argument("--only", choices=list(names), nargs="+", default=list(names))
    arguments = parser.parse_args()
    for line in table(arguments.seeds, [names[name] for name in arguments.only]):
        print(line, flush=True)


if __name__ == "__main__":
    main()
