import random
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from intop.domain.configuration import Configuration
from intop.domain.encoding import Matrix
from intop.domain.space import Space
from intop.learn.design import latin_hypercube
from intop.learn.fitness import Estimate
from intop.learn.searching.genetic import _Rates
from intop.learn.searching.operators import crossed, mutated
from intop.learn.searching.search import ALGORITHMS, SearchResult, search

small_search = partial(search, population=30, generations=8)


@pytest.fixture
def bowl(space: Space) -> Callable[[Matrix], Matrix]:
    """A smooth log P99 with its lowest value, 2.0, at a feasible configuration."""
    genes = np.random.default_rng(31).random((1, len(space.columns)))
    lowest = space.encode(space.decode(genes))[0]
    return lambda values: 2.0 + ((space.encode(values) - lowest) ** 2).sum(axis=1)


def without_time(result: SearchResult) -> SearchResult:
    return replace(result, convergence=replace(result.convergence, seconds=0.0))


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_finds_a_known_optimum(space: Space, bowl: Callable[[Matrix], Matrix], seed: int) -> None:
    result = search(space, bowl, seed=seed)
    assert result.candidates[0].predicted_ms == pytest.approx(np.exp(2.0), rel=0.03)


def test_every_configuration_is_feasible_and_new(
    space: Space,
    log_latency: Callable[[Matrix], Matrix],
    is_feasible: Callable[[Configuration], bool],
) -> None:
    candidates = search(
        space,
        lambda v: log_latency(space.encode(v)),
        seed=1,
        keep=100_000,
        patience=100,
        generations=20,
    ).candidates
    assert len(candidates) > 1000
    assert all(is_feasible(candidate.configuration) for candidate in candidates)
    assert len({c.configuration.digest for c in candidates}) == len(candidates)


def test_candidates_come_in_the_order_of_their_own_prediction(
    space: Space, bowl: Callable[[Matrix], Matrix]
) -> None:
    result = small_search(space, bowl, seed=1, model="XGBoost", keep=25)
    assert len(result.candidates) == 25
    words = [candidate.predicted_ms for candidate in result.candidates]
    assert words == sorted(words)
    values = space.values([candidate.configuration for candidate in result.candidates])
    assert words == pytest.approx(np.exp(bowl(values)).tolist())
    assert {candidate.model for candidate in result.candidates} == {"XGBoost"}


def test_convergence_tells_how_the_best_fell(
    space: Space, bowl: Callable[[Matrix], Matrix]
) -> None:
    result = search(space, bowl, seed=1, model="RFR", patience=5, generations=500)
    history = result.convergence
    assert history.model == "RFR"
    assert list(history.best_ms) == sorted(history.best_ms, reverse=True)
    assert history.best_ms[-1] == result.candidates[0].predicted_ms
    # A restart that found nothing better ended it, not the number of generations.
    assert history.restarts >= 1
    assert history.converged_at < len(history.best_ms) - 1 < 500
    assert history.predictions == 200 * len(history.best_ms)
    assert history.algorithm == "genetic"
    assert history.best_ms[history.converged_at] == pytest.approx(history.best_ms[-1], rel=0.0011)


def test_without_anything_to_find_it_ends_after_its_patience(space: Space) -> None:
    result = search(space, lambda v: np.full(len(v), 3.0), seed=1, patience=4)
    # The restart's first population is a generation, too.
    assert len(result.convergence.best_ms) == 5 + 5
    assert (result.convergence.converged_at, result.convergence.restarts) == (0, 1)


def test_one_prediction_for_each_generation(space: Space, bowl: Callable[[Matrix], Matrix]) -> None:
    calls: list[int] = []

    def counted(values: Matrix) -> Matrix:
        calls.append(len(values))
        return bowl(values)

    result = small_search(space, counted, seed=1, patience=50)
    assert len(calls) == len(result.convergence.best_ms) == 9
    assert set(calls) == {30}


def test_the_seed_decides_and_the_callers_generator_is_left_alone(
    space: Space, bowl: Callable[[Matrix], Matrix]
) -> None:
    random.seed(1)
    state = random.getstate()
    first = small_search(space, bowl, seed=7)
    assert random.getstate() == state
    random.seed(2)
    assert without_time(small_search(space, bowl, seed=7)) == without_time(first)
    assert without_time(small_search(space, bowl, seed=8)) != without_time(first)


def test_a_given_start_is_where_it_begins(space: Space, bowl: Callable[[Matrix], Matrix]) -> None:
    lowest = space.decode(np.random.default_rng(31).random((1, len(space.columns))))
    result = small_search(space, bowl, seed=1, start=space.genes(lowest))
    assert result.convergence.best_ms[0] == pytest.approx(np.exp(2.0), rel=1e-6)
    with pytest.raises(ValueError, match=r"start must have 17 columns, got the shape \(1, 3\)"):
        search(space, bowl, seed=1, start=np.ones((1, 3)))


def test_excluded_configurations_do_not_come_back(
    space: Space, bowl: Callable[[Matrix], Matrix]
) -> None:
    first = small_search(space, bowl, seed=1, keep=10)
    measured = [candidate.configuration for candidate in first.candidates[:4]]
    second = small_search(space, bowl, seed=1, keep=6, exclude=measured)
    assert second.candidates == first.candidates[4:]


def test_a_space_of_names_only_can_be_searched(space: Space) -> None:
    names = space.restricted(["net.ipv4.tcp_congestion_control", "net.ipv4.tcp_sack"])
    result = small_search(names, lambda v: names.encode(v).sum(axis=1), seed=1)
    # All three are possible: what bbr needs is the default of a parameter outside of the space.
    assert len(result.candidates) == 6
    assert result.candidates[0].configuration.values["net.ipv4.tcp_sack"] == "0"


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda v: np.full(len(v), np.nan), "finite numbers"),
        (lambda _: np.ones(3), r"30 finite numbers, got the shape \(3,\)"),
    ],
)
def test_a_broken_prediction_is_refused(
    space: Space, answer: Callable[[Matrix], Matrix], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        small_search(space, answer, seed=1)


def test_sizes_that_make_no_search_are_refused(
    space: Space, bowl: Callable[[Matrix], Matrix]
) -> None:
    with pytest.raises(ValueError, match="population must be at least 5"):
        search(space, bowl, seed=1, population=4)
    with pytest.raises(ValueError, match="no algorithm 'magic', only genetic, annealing"):
        search(space, bowl, seed=1, algorithm="magic")
    with pytest.raises(ValueError, match="no parameter"):
        search(space.restricted([]), bowl, seed=1)


@pytest.mark.filterwarnings("error")
def test_says_and_writes_nothing(
    space: Space,
    bowl: Callable[[Matrix], Matrix],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    for seed in (1, 2):
        small_search(space, bowl, seed=seed)
    assert capfd.readouterr() == ("", "")
    assert list(tmp_path.iterdir()) == []


def test_a_large_search_goes_through_all_its_generations(space: Space) -> None:
    weights = np.linspace(0, 1, len(space.feature_names))
    result = search(space, lambda v: space.encode(v) @ weights, seed=1, patience=1000)
    assert len(result.convergence.best_ms) == 101


def test_the_memory_forgets_the_worst_first(
    space: Space, bowl: Callable[[Matrix], Matrix], monkeypatch: pytest.MonkeyPatch
) -> None:
    everything = small_search(space, bowl, seed=1, keep=5)
    monkeypatch.setattr("intop.learn.searching.run.MOST_REMEMBERED", 60)
    assert without_time(small_search(space, bowl, seed=1, keep=5)) == without_time(everything)


def test_measured_trials_can_be_the_start(space: Space, bowl: Callable[[Matrix], Matrix]) -> None:
    design = latin_hypercube(space, 100, seed=1)
    result = small_search(space, bowl, seed=1, start=space.genes(space.values(design)))
    assert result.candidates


@pytest.mark.parametrize(
    ("seed", "lowest_ms", "generations", "restarts"),
    [(1, 7.767901, 32, 1), (2, 8.166170, 30, 1), (3, 7.767901, 39, 2), (5, 7.767901, 40, 3)],
)
def test_a_seed_finds_what_recorded_campaigns_found_with_it(
    space: Space,
    bowl: Callable[[Matrix], Matrix],
    seed: int,
    lowest_ms: float,
    generations: int,
    restarts: int,
) -> None:
    """Recorded when DEAP gave the selection alone; steps of 0.05 make many equal predictions."""
    result = search(
        space, lambda v: np.round(20 * bowl(v)) / 20, seed=seed, population=31, patience=3
    )
    history = result.convergence
    assert lowest_ms == pytest.approx(history.best_ms[-1], rel=1e-6)
    assert (generations, restarts) == (len(history.best_ms), history.restarts)


# All algorithms -----------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_algorithm_spends_the_same_and_follows_its_seed(
    space: Space,
    bowl: Callable[[Matrix], Matrix],
    is_feasible: Callable[[Configuration], bool],
    algorithm: str,
) -> None:
    predicted: list[int] = []

    def counted(values: Matrix) -> Matrix:
        predicted.append(len(values))
        return bowl(values)

    again = partial(small_search, space, seed=3, algorithm=algorithm, patience=50)
    result = again(counted)
    history = result.convergence
    assert sum(predicted) == history.predictions == 30 * 9
    assert (len(history.best_ms), history.algorithm) == (9, algorithm)
    assert history.best_ms[-1] == min(history.best_ms) == result.candidates[0].predicted_ms
    assert history.best_ms[-1] < history.best_ms[0]
    assert all(is_feasible(candidate.configuration) for candidate in result.candidates)
    assert without_time(again(bowl)) == without_time(result)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_algorithm_ends_where_nothing_gets_better(space: Space, algorithm: str) -> None:
    result = small_search(
        space, lambda v: np.full(len(v), 3.0), seed=1, patience=2, algorithm=algorithm
    )
    assert 3 <= len(result.convergence.best_ms) <= 6


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_algorithm_refuses_a_broken_prediction(space: Space, algorithm: str) -> None:
    def later_broken(values: Matrix) -> Matrix:
        words.append(np.full(len(values), np.nan if words else 1.0))
        return words[-1]

    words: list[Matrix] = []
    with pytest.raises(ValueError, match="finite numbers"):
        small_search(space, later_broken, seed=1, algorithm=algorithm)


@pytest.mark.parametrize("algorithm", ["annealing", "swarm", "evolution", "genetic"])
def test_what_learns_from_predictions_finds_more_than_chance(
    space: Space, bowl: Callable[[Matrix], Matrix], algorithm: str
) -> None:
    def best(name: str) -> float:
        asked = {"population": 40, "generations": 20, "patience": 100}
        return search(space, bowl, seed=1, algorithm=name, **asked).convergence.best_ms[-1]

    assert best(algorithm) < best("random")


def test_uncertain_configurations_rank_lower_and_show_their_prediction(
    space: Space, bowl: Callable[[Matrix], Matrix]
) -> None:
    def unsure(values: Matrix) -> Estimate:
        log_latency = bowl(values)
        spread = space.genes(values)[:, 0]
        return Estimate(log_latency, spread, log_latency + 2 * spread)

    results = small_search(space, unsure, seed=1, keep=30)
    values = space.values([candidate.configuration for candidate in results.candidates])
    words = unsure(values)
    ranks = [candidate.rank_ms for candidate in results.candidates]
    assert ranks == sorted(ranks) == pytest.approx(np.exp(words.score).tolist())
    assert [c.predicted_ms for c in results.candidates] == pytest.approx(np.exp(words.log_latency))
    assert [c.spread for c in results.candidates] == pytest.approx(words.spread)
    assert results.convergence.best_ms[-1] == results.candidates[0].predicted_ms


# The operators of the genetic algorithm -----------------------------------------------------------


def test_what_succeeds_is_done_more_often_and_nothing_never() -> None:
    rates = _Rates([0.4, 0.3, 0.3])
    used = np.repeat([0, 1, 2], 50)
    for _ in range(60):
        rates.learn(used, used == 2)
    assert rates.chances == pytest.approx([0.1, 0.1, 0.8], abs=0.001)
    for _ in range(200):
        rates.learn(used, used < 0)
    assert rates.chances == pytest.approx([1 / 3] * 3, abs=0.01)


def test_crossing_mixes_its_pair_and_blends_no_names() -> None:
    numbers = np.array([True, True, False, False])
    parents = np.array([[0.2] * 4, [0.3] * 4, [0.6] * 4, [0.9] * 4, [0.5] * 4])
    rng = np.random.default_rng(1)
    for _ in range(20):
        children = crossed(parents, np.array([1, 2, 1, 2, 0]), numbers, rng)
        assert set(children[[0, 2]].ravel().round(9).tolist()) <= {0.2, 0.6}
        assert set(children[[1, 3], 2:].ravel().round(9).tolist()) <= {0.3, 0.9}
        assert children[1, :2] + children[3, :2] == pytest.approx([1.2, 1.2])
        assert children[4].tolist() == [0.5] * 4


def test_mutation_moves_numbers_only_or_draws_anew() -> None:
    numbers = np.array([True] * 5 + [False] * 5)
    genes = np.full((300, 10), 0.5)
    changing = np.repeat([0, 1, 2], 100)
    changed = mutated(genes, changing, numbers, np.random.default_rng(1)) != genes
    assert not changed[:100].any()
    assert changed[100:200, :5].mean() == pytest.approx(0.4, abs=0.1)
    assert not changed[100:200, 5:].any()
    assert changed[200:].mean() == pytest.approx(0.15, abs=0.05)
