"""The search of a model for its best configurations, by one algorithm or another."""

import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from intop.domain.configuration import Configuration
from intop.domain.encoding import Matrix
from intop.domain.search import Candidate, Convergence
from intop.domain.space import Space
from intop.learn.searching.annealing import annealing
from intop.learn.searching.evolution import evolution
from intop.learn.searching.genetic import genetic
from intop.learn.searching.run import EndedError, Predict, Run, first_population
from intop.learn.searching.swarm import swarm


def random_search(run: Run) -> None:
    """Populations drawn evenly from the cube of genes: what every algorithm has to beat."""
    rng = np.random.default_rng(run.seed)
    run.scores(run.first)
    while True:
        run.scores_unless_stalled(rng.random(run.first.shape))


ALGORITHMS: Mapping[str, Callable[[Run], None]] = {
    "genetic": genetic,
    "annealing": annealing,
    "swarm": swarm,
    "evolution": evolution,
    "random": random_search,
}
"""Algorithms by name. Each proposes genes until its run has ended."""


@dataclass(frozen=True, kw_only=True)
class SearchResult:
    """Different candidates, the most promising first, and how the search went."""

    candidates: tuple[Candidate, ...]
    convergence: Convergence


def search(
    space: Space,
    predict: Predict,
    *,
    seed: int,
    algorithm: str = "genetic",
    model: str = "ensemble",
    population: int = 200,
    generations: int = 100,
    patience: int = 15,
    keep: int = 2000,
    start: Matrix | None = None,
    exclude: Collection[Configuration] = (),
) -> SearchResult:
    """Search the configurations with the lowest predicted latency, at most `keep`.

    `start`: genes (m, columns) that join the first population, such as those of the best trials;
    at most half of it. `exclude`: configurations that are not to be returned (the search itself
    may pass through them). Generation 0 is the first population; it ends after `generations`
    more, or when the best has not improved for `patience` of them; every algorithm has the same
    number of predictions. A function of its arguments alone, apart from the time. Raises
    ValueError for a space without parameters, an unknown algorithm, sizes that make no population,
    or predictions that are not finite.
    """
    if not space.columns:
        raise ValueError("the space has no parameter to search over")
    if algorithm not in ALGORITHMS:
        raise ValueError(f"no algorithm {algorithm!r}, only {', '.join(ALGORITHMS)}")
    if population < 5 or generations < 0 or patience < 1 or keep < 1:
        raise ValueError(
            "population must be at least 5, generations 0, patience and keep 1, got "
            f"{population}, {generations}, {patience} and {keep}"
        )
    started = time.perf_counter()
    run = Run(
        space=space,
        predict=predict,
        first=first_population(space, population, start, seed),
        generations=generations,
        patience=patience,
        seed=seed,
    )
    with suppress(EndedError):
        ALGORITHMS[algorithm](run)
    convergence = Convergence(
        model=model,
        best_ms=tuple(float(np.exp(known.log_latency)) for known in run.best),
        converged_at=run.converged_at,
        seconds=time.perf_counter() - started,
        algorithm=algorithm,
        predictions=run.predictions,
        restarts=run.restarts,
    )
    return SearchResult(candidates=_candidates(run, model, keep, exclude), convergence=convergence)


def _candidates(
    run: Run, model: str, keep: int, exclude: Collection[Configuration]
) -> tuple[Candidate, ...]:
    """Return the most promising ones, without the excluded ones."""
    taken = {row.tobytes() for row in run.space.values(list(exclude)) + 0.0}
    ranked = run.ranked(keep + len(taken))
    fresh = [known for known in ranked if known.values.tobytes() not in taken][:keep]
    configurations = run.space.configurations(np.array([known.values for known in fresh]))
    return tuple(
        Candidate(
            configuration=configuration,
            predicted_ms=float(np.exp(known.log_latency)),
            model=model,
            spread=known.spread,
            penalised_ms=None if known.spread == 0 else float(np.exp(known.score)),
        )
        for configuration, known in zip(configurations, fresh, strict=True)
    )
