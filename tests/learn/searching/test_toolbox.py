"""DEAP's toolbox, with a whole generation at once."""

import numpy as np

from intop.domain.encoding import Matrix
from intop.domain.space import Space
from intop.learn.searching.operators import CROSSOVERS, MUTATIONS
from intop.learn.searching.toolbox import generation_toolbox, offspring


def test_a_population_keeps_its_genes_and_has_no_fitness_yet(space: Space) -> None:
    rng = np.random.default_rng(1)
    genes = rng.random((5, len(space.columns)))
    herd = generation_toolbox(space, 2, rng).population(genes)
    assert genes.tolist() == [list(individual) for individual in herd]
    assert not any(individual.fitness.valid for individual in herd)
    for individual, costs in zip(herd, [(1, 1), (1, 2), (2, 0), (0, 9), (1, 1)], strict=True):
        individual.fitness.values = costs
    # Lower costs are better, and each individual has its own.
    assert sorted(range(5), key=lambda n: herd[n].fitness, reverse=True) == [3, 0, 4, 1, 2]


def test_a_generation_is_evaluated_by_one_call(space: Space) -> None:
    rng = np.random.default_rng(1)
    toolbox = generation_toolbox(space, 1, rng)
    genes = rng.random((7, len(space.columns)))
    calls: list[Matrix] = []

    def evaluate(generation: Matrix) -> list[tuple[float]]:
        calls.append(generation)
        return [(row[0],) for row in generation.tolist()]

    toolbox.register("evaluate", evaluate)
    fitnesses = toolbox.map(toolbox.evaluate, toolbox.population(genes))
    assert genes[:, 0].tolist() == [values[0] for values in fitnesses]
    assert [genes.tolist()] == [call.tolist() for call in calls]


def test_each_parent_of_an_odd_herd_has_a_child_that_is_no_copy(space: Space) -> None:
    rng = np.random.default_rng(1)
    toolbox = generation_toolbox(space, 1, rng)
    parents = toolbox.population(rng.random((31, len(space.columns))))
    before = np.array(parents)
    for _ in range(20):
        children, crossing, changing = offspring(toolbox, parents, CROSSOVERS, MUTATIONS, rng)
        assert 31 == len(children) == len(crossing) == len(changing)
        assert np.all((crossing != 0) | (changing != 0))
        assert crossing[-1] == 0
        genes = np.array(children)
        assert np.all((genes >= 0) & (genes <= 1))
        assert not any(child.fitness.valid for child in children)
    assert np.array_equal(before, np.array(parents))
