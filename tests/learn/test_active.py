from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from builders.small_spaces import number
from builders.trials import table
from intop.domain.configuration import DEFAULT, Configuration
from intop.domain.encoding import Matrix
from intop.domain.space import Space
from intop.learn.active import Pool, Step, best_known, learned, pool, propose
from intop.learn.design import latin_hypercube
from intop.learn.samples import Samples

GRID = np.array([[a, b] for a in np.linspace(0, 1, 15) for b in np.linspace(0, 1, 15)])


def bowl(values: Matrix) -> Matrix:
    """Log target with the lowest value at (0.3, 0.7), steep as latencies are."""
    return np.asarray(4 * (values[:, 0] - 0.3) ** 2 + 6 * (values[:, 1] - 0.7) ** 2)


def whole(values: Matrix, scattered: bool = True) -> Pool:
    return Pool(values=values, scattered=np.full(len(values), scattered))


def stepped(
    samples: Samples, values: Pool, *, count: int, seed: int = 1, fruitless: int = 0, slow: int = 0
) -> Step:
    models = learned(samples, seed=seed)
    return propose(models, values, count=count, fruitless=fruitless, slow=slow)


def start(count: int, seed: int = 1) -> tuple[Samples, Matrix]:
    """So many rows, the first of which has trials that say the same, and all others."""
    order = np.random.default_rng(seed).permutation(len(GRID))
    return exact(GRID[order[:count]]), GRID[order[count:]]


def exact(values: Matrix) -> Samples:
    first, *others = table(values, bowl(values)).measured
    return replace(table(values, bowl(values)), measured=(first * 2, *others))


def searched(at_once: int, budget: int) -> float:
    """The lowest log target after so many measurements."""
    samples, left = start(6)
    while len(samples) < budget:
        step = stepped(samples, whole(left), count=at_once, seed=len(samples))
        taken = np.array([p.values for p in step.proposals])
        values = np.vstack([samples.values, taken])
        left = left[~(left[:, None] == taken).all(axis=2).any(axis=1)]
        samples = exact(values)
    return float(samples.log_target.min())


@pytest.mark.parametrize(("at_once", "budget"), [(1, 20), (4, 18)])
def test_finds_the_lowest_of_225_with_few_measurements(at_once: int, budget: int) -> None:
    assert searched(at_once, budget) == pytest.approx(bowl(GRID).min(), abs=1e-9)


def test_is_a_function_of_its_arguments() -> None:
    samples, left = start(10)
    one, other = (stepped(samples, whole(left), count=3) for _ in range(2))
    assert one.improvement == other.improvement > 0
    assert [p.values.tolist() for p in one.proposals] == [
        p.values.tolist() for p in other.proposals
    ]


def test_a_batch_has_each_row_once_and_spreads() -> None:
    samples, left = start(8)
    step = stepped(samples, whole(left), count=4)
    rows = np.array([p.values for p in step.proposals])
    assert len(np.unique(rows, axis=0)) == 4
    assert (rows[:, None] == left).all(axis=2).any(axis=1).all()
    assert np.ptp(rows, axis=0).min() > 0.1


def test_what_is_known_offers_little() -> None:
    samples, left = start(10)
    much = stepped(samples, whole(left), count=1).improvement
    samples, left = start(100)
    assert stepped(samples, whole(left), count=1).improvement < 0.01 < much


def test_lent_rows_teach_and_are_no_configurations() -> None:
    own, left = start(4)
    lent, _ = start(60, seed=2)
    # Another stage's are a little higher all over.
    lent = replace(lent, measured=tuple((1.1 * trials[0],) for trials in lent.measured))
    both = own.lending(lent)
    lowest = bowl(own.values).min()
    steps = {
        name: stepped(samples, whole(left), count=3)
        for name, samples in {"alone": own, "lent": both}.items()
    }
    first = {name: bowl(step.proposals[0].values[None])[0] for name, step in steps.items()}
    assert first["lent"] < 0.2 * min(lowest, first["alone"])
    assert best_known(own, seed=1) == best_known(both, seed=1) == int(np.argmin(bowl(own.values)))
    # Where replicates are allowed they are of its own rows, and a lent row may be measured itself.
    rows = {row.tobytes() for row in own.values}
    for seed in range(5):
        step = stepped(both, whole(left), count=4, seed=seed)
        assert all(p.values.tobytes() in rows for p in step.proposals if p.reason == "replicate")


def test_a_pool_has_what_is_lent(space: Space) -> None:
    values = space.values(latin_hypercube(space, 12, seed=3))
    measured = tuple((float(n),) for n in range(1, 13))
    everything = Samples(variables=space.variables, values=values, measured=measured)
    own = everything.rows(range(6))
    result = pool(space, learned(own.lending(everything.rows(range(6, 12))), seed=1))
    assert not any((result.values == row).all(axis=1).any() for row in own.values)
    assert len(result.values) > 1_000


def test_a_short_pool_is_proposed_as_a_whole_and_an_empty_one_not() -> None:
    samples, left = start(10)
    assert len(stepped(samples, whole(left[:2]), count=4).proposals) == 2
    step = stepped(samples, whole(left[:0]), count=4)
    assert (step.proposals, step.improvement) == ((), 0.0)


def noisy(count: int, trials: int, seed: int) -> Samples:
    samples, _ = start(count, seed)
    noise = np.random.default_rng(seed).normal(0, 0.3, (count, trials))
    return replace(
        samples, measured=tuple(map(tuple, np.exp(bowl(samples.values)[:, None] + noise)))
    )


def test_the_best_known_is_not_the_luckiest() -> None:
    luckiest, believed = [], []
    for seed in range(8):
        samples = noisy(60, 2, seed)
        truth = bowl(samples.values)
        luckiest.append(truth[int(np.argmin(samples.log_target))])
        believed.append(truth[best_known(samples, seed=1)])
    assert np.mean(believed) < 0.6 * np.mean(luckiest)


def test_where_trials_are_noisy_the_promising_are_measured_again() -> None:
    samples = noisy(100, 2, 1)
    step = stepped(samples, whole(np.array([[0.0, 0.01]])), count=8)
    again = [p.values for p in step.proposals if p.reason == "replicate"]
    assert len(again) >= 2
    assert bowl(np.array(again)).max() < np.median(bowl(samples.values))


def test_where_the_best_is_known_exactly_nothing_is_measured_again() -> None:
    samples, _ = start(100)
    step = stepped(samples, whole(np.array([[0.0, 0.01]])), count=3)
    assert [p.reason for p in step.proposals] == ["uncertainty"]


def test_the_best_known_is_measured_until_it_is_believed() -> None:
    samples = noisy(60, 1, 1)
    best = best_known(samples, seed=1)
    step = stepped(samples, whole(GRID), count=2)
    assert step.proposals[0].reason == "replicate"
    assert samples.values[best].tolist() == step.proposals[0].values.tolist()


def with_bad_rows(samples: Samples, left: Matrix) -> tuple[Pool, Matrix]:
    """A pool of these rows, and of rows beside the worst, which alone are its scattered ones."""
    # Nothing is to be gained or learned there.
    bad = samples.values[np.argsort(-bowl(samples.values))[:9]] + 1e-3
    is_bad = np.arange(len(left) + len(bad)) >= len(left)
    return Pool(values=np.vstack([left, bad]), scattered=is_bad), bad


def among(rows: Matrix, step: Step) -> int:
    """The proposals of a step that are some of these rows."""
    return sum((p.values == rows).all(axis=1).any() for p in step.proposals)


def test_noisy_trials_go_anywhere_where_steps_have_brought_nothing() -> None:
    samples = noisy(100, 2, 1)
    both, bad = with_bad_rows(samples, GRID)
    for count, fruitless, reached in ((4, 0, 0), (4, 1, 0), (4, 2, 1), (8, 2, 2), (4, 9, 1)):
        step = stepped(samples, both, count=count, fruitless=fruitless, slow=fruitless)
        assert count == len(step.proposals)
        assert reached == among(bad, step)


def test_exact_trials_go_anywhere_where_steps_have_brought_little() -> None:
    samples, left = start(60)
    both, bad = with_bad_rows(samples, left)
    reached = [among(bad, stepped(samples, both, count=4, slow=slow)) for slow in range(8)]
    assert reached == [0, 0, 0, 2, 2, 2, 2, 2]


def test_exact_trials_go_nowhere_without_a_reason() -> None:
    samples, left = start(60)
    bad = samples.values[np.argsort(-bowl(samples.values))[:9]] + 1e-3
    step = stepped(samples, whole(np.vstack([left, bad])), count=4)
    assert len(step.proposals) == 4
    assert not any((p.values == bad).all(axis=1).any() for p in step.proposals)


def test_a_forest_has_its_turns_where_the_process_has_brought_nothing() -> None:
    samples, left = start(60)
    models = learned(samples, seed=1)
    # It likes what no process would: the corner that is farthest from the bowl.
    models.__dict__["forest"] = SimpleNamespace(members=lambda rows: {"RFR": -bowl(rows)[None]})
    reached = [
        sum(
            bool(bowl(p.values[None])[0] > 3)
            for p in propose(models, whole(left), count=4, fruitless=fruitless).proposals
        )
        for fruitless in range(5)
    ]
    assert reached == [0, 0, 1, 1, 1]


def test_the_process_is_led_by_tails_where_the_target_is_flat() -> None:
    # Nothing that was measured is better than anything else, but the tails lead to (0.3, 0.7).
    far, near = GRID[bowl(GRID) > 0.5], GRID[bowl(GRID) < 0.2]
    far = far[np.random.default_rng(1).permutation(len(far))]
    tails, left = table(far[:20], bowl(far[:20])), np.vstack([far[20:], near])
    flat = replace(tails, measured=tuple((200.0,) for _ in range(len(tails))))

    def reached(led_by: Samples | None) -> int:
        unknown = whole(left, scattered=False)
        models = learned(flat, tails=led_by, seed=1)
        step = propose(models, unknown, count=4)
        return sum((p.values == near).all(axis=1).any() for p in step.proposals)

    assert reached(tails) > reached(None)
    with pytest.raises(ValueError, match="other rows than the samples"):
        learned(flat, tails=tails.rows(range(19)), seed=1)


def test_a_contradictory_row_is_measured_again() -> None:
    samples, left = noisy(60, 3, 1), start(60)[1]
    odd = int(np.argmin(np.abs(bowl(samples.values) - 1)))
    measured = list(samples.measured)
    measured[odd] = (float(np.exp(-1.0)),)
    step = stepped(replace(samples, measured=tuple(measured)), whole(left), count=2)
    assert step.proposals[0].reason == "replicate"
    assert samples.values[odd].tolist() == step.proposals[0].values.tolist()


def test_a_pool_is_feasible_and_has_nothing_measured(
    space: Space, log_latency: Callable[[Matrix], Matrix]
) -> None:
    rng = np.random.default_rng(1)
    values = np.unique(space.decode(rng.random((30, len(space.columns)))), axis=0)
    samples = Samples(
        variables=space.variables,
        values=values,
        measured=tuple((float(v),) for v in np.exp(log_latency(space.encode(values)))),
    )
    result = pool(space, learned(samples, seed=1))
    rows = result.values
    assert np.array_equal(rows, space.decode(space.genes(rows)))
    assert not {row.tobytes() for row in rows} & {row.tobytes() for row in values + 0.0}
    assert len(rows) == len(np.unique(rows, axis=0)) > 1000
    assert 500 < result.scattered.sum() <= 1000 < len(rows)
    again = pool(space, learned(samples, seed=1))
    assert np.array_equal(rows, again.values)
    assert np.array_equal(result.scattered, again.scattered)
    fewer = result.without(rows[:10])
    assert np.array_equal(fewer.values, rows[10:])
    assert np.array_equal(fewer.scattered, result.scattered[10:])


def test_a_pool_changes_as_many_parameters_as_what_was_measured() -> None:
    """Of forty, of which three were varied at a time."""
    keys = [f"net.core.k{n}" for n in range(40)]
    space = Space(tuple(number(key, (0, 100)) for key in keys), (), dict.fromkeys(keys, "50"))
    rng = np.random.default_rng(1)
    configurations = [
        Configuration({key: str(rng.integers(50)) for key in rng.choice(keys, 3, replace=False)})
        for _ in range(30)
    ]
    samples = Samples(
        variables=space.variables,
        values=space.values([DEFAULT, *configurations]),
        measured=tuple((float(v),) for v in rng.lognormal(1, 0.1, 31)),
    )
    result = pool(space, learned(samples, seed=1))
    changed = np.count_nonzero(result.values != 50, axis=1)
    assert changed[result.scattered].max() <= 3
    assert np.median(changed) <= 9  # a child moves a few more, three times
    # All of them have their turns.
    assert np.count_nonzero(result.values[result.scattered] != 50, axis=0).min() > 20
