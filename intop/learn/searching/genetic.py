"""The global search: a genetic algorithm over the surrogates.

Individuals are lists of genes in [0, 1]. `Space.decode` makes every one of them feasible, and the
whole population is predicted in one call a generation.
"""

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from intop.domain.configuration import Configuration
from intop.domain.encoding import Matrix
from intop.domain.results import Candidate, Convergence
from intop.domain.space import Space
from intop.learn.design import stratified_genes
from intop.learn.searching.operators import mate, mutate, seeded

Predict = Callable[[Matrix], NDArray[np.float64]]
"""Values (n, columns) to log P99 (n,)."""

CROSSOVER_CHANCE = 0.7
MUTATION_CHANCE = 0.5
TOURNAMENT = 3
ELITE_SHARE = 0.02
IMPROVEMENT = 0.001
"""In log P99: a gain of less than 0.1 % is no reason to go on."""
MOST_REMEMBERED = 20_000


@dataclass(frozen=True, kw_only=True)
class SearchResult:
    """Different candidates, the best predicted first, and how the search went."""

    candidates: tuple[Candidate, ...]
    convergence: Convergence


class _Individual(list[float]):
    """Genes with DEAP's fitness (log P99, lower is better)."""

    fitness: Any


@dataclass(frozen=True)
class _Memory:
    """Every configuration that was predicted: bytes of its values -> (log P99, values)."""

    seen: dict[bytes, tuple[float, NDArray[np.float64]]]

    def add(self, values: Matrix, predicted: NDArray[np.float64]) -> None:
        for row, log_p99 in zip(values, predicted.tolist(), strict=True):
            self.seen.setdefault(row.tobytes(), (log_p99, row))

    def best(self, count: int) -> list[tuple[float, NDArray[np.float64]]]:
        """The `count` lowest; of equals the one that was found first."""
        return sorted(self.seen.values(), key=lambda entry: entry[0])[:count]

    def forget_but(self, count: int) -> None:
        kept = self.best(count)
        self.seen.clear()
        self.seen.update((row.tobytes(), (log_p99, row)) for log_p99, row in kept)


def search(
    space: Space,
    predict: Predict,
    *,
    seed: int,
    model: str = "ensemble",
    population: int = 200,
    generations: int = 100,
    patience: int = 15,
    keep: int = 2000,
    start: Matrix | None = None,
    exclude: Collection[Configuration] = (),
) -> SearchResult:
    """The configurations with the lowest predicted P99, at most `keep`.

    `start`: genes (m, columns) that join the first population, such as those of the best trials;
    at most half of it. `exclude`: configurations that are not to be returned (the search itself
    may pass through them). Generation 0 is the first population; it ends after `generations`
    more, or when the best has not improved for `patience` of them. Raises ValueError for a space
    without parameters, sizes that make no population, or predictions that are not finite.
    """
    if not space.columns:
        raise ValueError("the space has no parameter to search over")
    if population < 4 or generations < 0 or patience < 1 or keep < 1:
        raise ValueError(
            "population must be at least 4, generations 0, patience and keep 1, got "
            f"{population}, {generations}, {patience} and {keep}"
        )
    started = time.perf_counter()
    memory = _Memory({})
    with seeded(seed):
        best = _evolve(
            space, predict, memory, _first(space, population, start, seed), generations, patience
        )
    converged_at = _last_improvement(best)
    taken = {row.tobytes() for row in space.values(list(exclude)) + 0.0}
    ranked = memory.best(keep + len(taken))
    fresh = [entry for entry in ranked if entry[1].tobytes() not in taken][:keep]
    configurations = space.configurations(np.array([row for _, row in fresh]))
    return SearchResult(
        candidates=tuple(
            Candidate(configuration=c, predicted_p99_ms=float(np.exp(log_p99)), model=model)
            for c, (log_p99, _) in zip(configurations, fresh, strict=True)
        ),
        convergence=Convergence(
            model=model,
            best_ms=tuple(float(np.exp(b)) for b in best),
            converged_at=converged_at,
            seconds=time.perf_counter() - started,
        ),
    )


def _first(space: Space, population: int, start: Matrix | None, seed: int) -> Matrix:
    """Genes (population, columns) of generation 0: what was given, and a design that fills up."""
    columns = len(space.columns)
    given = np.empty((0, columns)) if start is None else start[: population // 2]
    if given.ndim != 2 or given.shape[1] != columns:
        raise ValueError(f"start must have {columns} columns, got the shape {given.shape}")
    rng = np.random.default_rng(seed)
    return np.vstack([given, stratified_genes(columns, population - len(given), rng)])


def _evolve(
    space: Space,
    predict: Predict,
    memory: _Memory,
    first: Matrix,
    generations: int,
    patience: int,
) -> list[float]:
    """The best log P99 so far, after each generation."""
    from deap import algorithms, tools

    toolbox = _toolbox(space)
    herd = [toolbox.individual(row) for row in first.tolist()]
    _judge(space, predict, memory, herd)
    best = [min(_values(herd))]
    elite = max(1, round(ELITE_SHARE * len(herd)))
    while len(best) <= generations and len(best) - 1 - _last_improvement(best) < patience:
        chosen = toolbox.select(herd, len(herd) - elite)
        children = algorithms.varAnd(chosen, toolbox, CROSSOVER_CHANCE, MUTATION_CHANCE)
        _judge(space, predict, memory, children)
        herd = tools.selBest(herd, elite) + children
        best.append(min(best[-1], *_values(herd)))
    return best


def _last_improvement(best: list[float]) -> int:
    """The generation after which the best improved no more, by more than IMPROVEMENT in all."""
    last = 0
    for generation, log_p99 in enumerate(best):
        if log_p99 < best[last] - IMPROVEMENT:
            last = generation
    return last


def _values(herd: list[_Individual]) -> list[float]:
    return [individual.fitness.values[0] for individual in herd]


def _judge(space: Space, predict: Predict, memory: _Memory, herd: list[_Individual]) -> None:
    """Gives every individual its fitness, all in one prediction."""
    genes = np.clip(np.array(herd), 0.0, 1.0)
    # Adding 0.0 turns -0.0 into 0.0, so that equal configurations have equal bytes.
    values = space.decode(genes) + 0.0
    predicted = np.asarray(predict(values), dtype=np.float64)
    if predicted.shape != (len(herd),) or not np.all(np.isfinite(predicted)):
        raise ValueError(
            f"predict must give {len(herd)} finite numbers, got the shape {predicted.shape}"
        )
    for individual, row, log_p99 in zip(herd, genes.tolist(), predicted.tolist(), strict=True):
        individual[:] = row
        individual.fitness.values = (log_p99,)
    memory.add(values, predicted)
    if len(memory.seen) > MOST_REMEMBERED:
        memory.forget_but(MOST_REMEMBERED // 2)


def _toolbox(space: Space) -> Any:
    """DEAP's operators, registered under the names that its algorithms look for."""
    from deap import base, tools

    # What DEAP's `creator` would put into a module of its own, once for the whole process.
    fitness = type("LogP99", (base.Fitness,), {"weights": (-1.0,)})
    numbers = [i for i, column in enumerate(space.columns) if column.component is not None]
    names = [i for i, column in enumerate(space.columns) if column.component is None]

    def individual(genes: list[float]) -> _Individual:
        made = _Individual(genes)
        made.fitness = fitness()
        return made

    def clone(original: _Individual) -> _Individual:
        # A tenth of the time of the deep copy that DEAP makes otherwise.
        twin = individual(original)
        twin.fitness.wvalues = original.fitness.wvalues
        return twin

    toolbox = base.Toolbox()
    toolbox.register("individual", individual)
    toolbox.register("clone", clone)
    toolbox.register("select", tools.selTournament, tournsize=TOURNAMENT)
    toolbox.register("mate", mate, numbers=numbers, names=names)
    toolbox.register("mutate", mutate, numbers=numbers)
    return toolbox
