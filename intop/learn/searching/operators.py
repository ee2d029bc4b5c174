"""The operators of the evolutionary searches, on genes in [0, 1]: numbers and names apart."""

import random
from collections.abc import Iterator, MutableSequence, Sequence
from contextlib import contextmanager

Genes = MutableSequence[float]


def mate(one: Genes, other: Genes, *, numbers: list[int], names: list[int]) -> tuple[Genes, Genes]:
    """Swaps genes, or blends numbers and swaps names: half-way between names lies nothing."""
    from deap import tools

    if random.random() < 0.5:
        tools.cxUniform(one, other, indpb=0.5)
        return one, other
    _put(numbers, (one, other), tools.cxBlend(*_parts(numbers, one, other), alpha=0.3))
    _put(names, (one, other), tools.cxUniform(*_parts(names, one, other), indpb=0.5))
    return one, other


def _parts(places: list[int], *individuals: Genes) -> list[list[float]]:
    return [[individual[i] for i in places] for individual in individuals]


def _put(places: list[int], individuals: Sequence[Genes], parts: Sequence[list[float]]) -> None:
    for individual, part in zip(individuals, parts, strict=True):
        for place, gene in zip(places, part, strict=True):
            individual[place] = gene


def mutate(individual: Genes, *, numbers: list[int]) -> tuple[Genes]:
    """Moves some numbers by a little, or draws some genes of any kind anew."""
    from deap import tools

    count = len(individual)
    if numbers and random.random() < 0.5:
        # From a third of the range down to fine tuning, so that no schedule is needed.
        sigma = 10 ** random.uniform(-2.5, -0.5)
        chance = min(0.5, 2 / len(numbers))
        moved = tools.mutGaussian(*_parts(numbers, individual), mu=0, sigma=sigma, indpb=chance)
        _put(numbers, (individual,), moved)
        return (individual,)
    for place in range(count):
        if random.random() < 1.5 / count:
            individual[place] = random.random()
    return (individual,)


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """DEAP draws from the global generator of `random`: seeded here, given back as it was."""
    state = random.getstate()
    random.seed(seed)
    try:
        yield
    finally:
        random.setstate(state)
