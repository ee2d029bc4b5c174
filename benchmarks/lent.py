"""Do models gain by the screening's trials? The product's stages on made-up clusters.

    python -m benchmarks.lent

Each cluster of benchmarks/made_up.py is screened once. Then two campaigns go on from the same
choice of parameters, with the budget of configs/lab.toml. One of them has the screening's trials,
and its models learn from them. The other one has the choice only. Both are judged by the true P99,
which a made-up cluster can tell:

error      how far the tree models, with their own defaults, miss log P99 on average, for HELD_OUT
           configurations that fill the space. The median miss is taken out, since only differences
           between configurations matter.
refined    the gain of the configuration that the refinement takes for the best
searched   the gain of the search's first candidate

A gain is the default's P99 divided by the configuration's. Prints Markdown. The same seeds give the
same table.
"""

import argparse
import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from statistics import fmean, stdev

import numpy as np

from benchmarks.campaign import MAIN, scenario
from benchmarks.made_up import MadeUp, issue, like_lab
from benchmarks.recorded import Onward, campaign
from intop.domain.configuration import DEFAULT
from intop.domain.training import TREE_MODELS, FittedFamily, Training
from intop.learn.design import latin_hypercube
from intop.learn.families import FAMILIES
from intop.learn.surrogate import fit_trees
from intop.run.context import Task
from intop.run.executor import execute
from intop.stages.collect import Collect
from intop.stages.collected import learned_samples
from intop.stages.screen import screen
from intop.stages.search import search

SEEDS = tuple(range(9201, 9217))
"""Of the made-up clusters. Nothing was chosen by them; other seeds are for that."""
HELD_OUT = 500
POPULATION, GENERATIONS = 60, 30
"""Of the search: less than a study's, so that all takes minutes."""

BEDS: dict[str, Callable[[int], MadeUp]] = {
    "in the shape of the lab: 8 of 80": like_lab,
    "8 of 100, noise 0.3": partial(issue, noise=0.3),
}


@dataclass(frozen=True)
class Came:
    """What one campaign came to; gains are logarithms."""

    error: float
    refined: float
    searched: float


def budgeted(made: MadeUp) -> MadeUp:
    """The same cluster with the lab study's budget."""
    lab = scenario(MAIN).budget
    offer = made.offer.with_budget(
        screen_trials=lab.screen_trials,
        screen_stable=0,
        keep=lab.keep,
        collect_trials=lab.collect_trials,
        refine_trials=lab.refine_trials,
        sentinel_every=lab.sentinel_every,
        population=POPULATION,
        generations=GENERATIONS,
    )
    return replace(made, offer=offer)


def went_on(made: MadeUp, task: Task) -> Came:
    """Collect, refine and search, after a screening."""
    execute(Collect(task))
    refined = execute(Onward(task))
    space, samples, _ = learned_samples(task)
    fitted = tuple(
        FittedFamily(
            family=name, hyperparameters=dict(FAMILIES[name].defaults), inner_score=math.nan
        )
        for name in TREE_MODELS
    )
    keys = tuple(p.key for p in space.parameters)
    task.store.put(
        task.subject,
        Training(
            keys=keys, fitted=fitted, errors=(), trials=0, configurations=0, lent=samples.lent
        ),
    )
    values = space.values(latin_hypercube(space, HELD_OUT, seed=task.seed("held out")))
    truth = np.array([made.truth(one) for one in space.configurations(values)])
    misses = fit_trees(fitted, samples, task.seed("models"))(values) - truth
    default = made.truth(DEFAULT)
    return Came(
        error=float(np.mean(np.abs(misses - np.median(misses)))),
        refined=default - made.truth(refined.best.configuration),
        searched=default - made.truth(search(task).candidates[0].configuration),
    )


def both(bed: str, seed: int) -> tuple[Came, Came]:
    """The campaigns with the screening's trials, and without them."""
    made = budgeted(BEDS[bed](seed))
    with campaign(made.offer, made.answer) as task:
        ranking = screen(task)
        having = went_on(made, task)
    with campaign(made.offer, made.answer) as task:
        task.store.put(task.subject, ranking)
        return having, went_on(made, task)


def table(seeds: Sequence[int], jobs: int) -> Iterator[str]:
    """A row for each bed and campaign, and the difference of the two with its standard error."""
    yield "| cluster | models learn from | error of log P99 | gain, refined | gain, searched |"
    yield "|---|---|---:|---:|---:|"
    with ProcessPoolExecutor(jobs) if jobs > 1 else nullcontext() as pool:
        for bed in BEDS:
            each = pool.map if pool else map
            found = list(each(partial(both, bed), seeds))
            for words, which in (("screening, too", 0), ("collection alone", 1)):
                came = [pair[which] for pair in found]
                yield (
                    f"| {bed} | {words} | {fmean(c.error for c in came):.3f} | "
                    f"{math.exp(fmean(c.refined for c in came)):.2f} | "
                    f"{math.exp(fmean(c.searched for c in came)):.2f} |"
                )
            ratios = [
                _difference([getattr(a, name) - getattr(b, name) for a, b in found])
                for name in ("error", "refined", "searched")
            ]
            yield f"| | difference (logarithms, ± standard error) | {' | '.join(ratios)} |"


def _difference(values: Sequence[float]) -> str:
    return f"{fmean(values):+.3f} ± {stdev(values) / math.sqrt(len(values)):.3f}"


def main() -> None:
    parser = argparse.ArgumentParser(description="Models with and without the screening's trials.")
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS)
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    for line in table(arguments.seeds, arguments.jobs):
        print(line, flush=True)


if __name__ == "__main__":
    main()
