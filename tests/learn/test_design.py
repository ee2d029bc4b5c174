from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from intop.domain.configuration import DEFAULT, Configuration
from intop.domain.parameter import Parameter
from intop.domain.space import Space
from intop.learn.design import latin_hypercube, screening_design, sparse


def test_gives_as_many_different_feasible_configurations_as_asked(
    space: Space, is_feasible: Callable[[Configuration], bool]
) -> None:
    design = latin_hypercube(space, 150, seed=1)
    assert len(design) == 150
    assert len({configuration.digest for configuration in design}) == 150
    assert all(is_feasible(configuration) for configuration in design)


def test_an_unconstrained_number_has_one_value_in_each_stratum(space: Space) -> None:
    design = latin_hypercube(space, 20, seed=2)
    column = space.feature_names.index("net.core.netdev_budget")
    places = space.encode(space.values(design))[:, column]
    # Rounding to whole numbers may move a value to the edge of its stratum.
    assert np.sort(places) == pytest.approx((np.arange(20) + 0.5) / 20, abs=0.5 / 20 + 0.001)


def test_each_batch_has_one_value_in_each_of_its_strata_and_so_have_all(space: Space) -> None:
    design = latin_hypercube(space, 20, seed=2, batch=5)
    column = space.feature_names.index("net.core.netdev_budget")
    places = space.encode(space.values(design))[:, column]
    assert len({configuration.digest for configuration in design}) == 20
    assert np.sort(places) == pytest.approx((np.arange(20) + 0.5) / 20, abs=0.5 / 20 + 0.001)
    for batch in places.reshape(4, 5):
        assert np.sort(batch) == pytest.approx((np.arange(5) + 0.5) / 5, abs=0.5 / 5 + 0.001)


def test_the_last_batch_may_be_smaller(space: Space) -> None:
    assert len(latin_hypercube(space, 13, seed=2, batch=5)) == 13


def test_equal_rows_are_replaced(space: Space) -> None:
    small = space.restricted(["net.ipv4.tcp_sack", "net.ipv4.tcp_fin_timeout"])
    design = latin_hypercube(small, 200, seed=3)
    assert len({configuration.digest for configuration in design}) == 200


def test_a_small_space_gives_all_that_it_has(space: Space) -> None:
    tiny = space.restricted(["net.ipv4.tcp_tw_reuse", "net.ipv4.tcp_timestamps"])
    design = latin_hypercube(tiny, 50, seed=4)
    # Reuse without time stamps is forbidden, which leaves three of four.
    assert len(design) == 3


def test_the_seed_decides(space: Space) -> None:
    assert latin_hypercube(space, 9, seed=5) == latin_hypercube(space, 9, seed=5)
    assert latin_hypercube(space, 9, seed=5) != latin_hypercube(space, 9, seed=6)


def test_none_and_fewer_than_none(space: Space) -> None:
    assert latin_hypercube(space, 0, seed=1) == []
    with pytest.raises(ValueError, match="got -1"):
        latin_hypercube(space, -1, seed=1)


# Screening ----------------------------------------------------------------------------------------


def test_a_screening_has_three_levels_of_each_number_equally_often(space: Space) -> None:
    design = screening_design(space, 30, seed=2, batch=10)
    column = space.feature_names.index("net.core.netdev_budget")
    places = space.encode(space.values(design))[:, column]
    assert np.all(np.min(np.abs(places[:, None] - [0.05, 0.5, 0.95]), axis=1) < 0.052)
    levels = np.rint(2 * places).reshape(3, 10)
    assert len({configuration.digest for configuration in design}) == 30
    for batch in levels:
        assert set(np.bincount(batch.astype(int), minlength=3)) <= {2, 3, 4}
    assert all(8 <= count <= 12 for count in np.bincount(levels.astype(int).ravel()))


def test_of_a_large_space_some_vary_each_time_and_all_of_them_equally_often() -> None:
    keys = [f"k{n:02}" for n in range(80)]
    made = Parameter(
        key="",
        kind="choice",
        unit="",
        scope="namespace",
        risk="low",
        mechanism="none",
        document="none",
        choices=("a", "b", "c"),
    )
    large = Space(tuple(replace(made, key=k) for k in keys), (), dict.fromkeys(keys, "b"))
    design = screening_design(large, 40, seed=1, batch=8, varied=20)
    assert all(8 <= len(c.values) <= 32 for c in design)
    assert {value for c in design for value in c.values.values()} == {"a", "c"}
    for key in keys:
        count = [sum(key in c.values for c in design[n : n + 8]) for n in range(0, 40, 8)]
        assert set(count) <= {1, 2, 3}
        assert sum(count) == 10


def test_each_of_many_choices_comes_about_as_often_as_each_of_few(space: Space) -> None:
    few = next(p for p in space.parameters if len(p.choices) == 3)
    many = replace(few, key="many", choices=tuple("abcdefghijkl"))
    others = [replace(few, key=f"few {n}") for n in range(39)]
    keys = {p.key: p.choices[0] for p in (many, *others)}
    design = screening_design(Space((many, *others), (), keys), 66, seed=1, batch=11, varied=10)
    counts = Counter(c.values["many"] for c in design if "many" in c.values)
    assert set("bcdefghijkl") == set(counts)
    assert pytest.approx(sum(counts.values())) == 66
    assert max(sum(p.key in c.values for c in design) for p in others) < 2 * 66 / 4


def test_what_only_changes_with_another_varies_with_it(
    space: Space, is_feasible: Callable[[Configuration], bool]
) -> None:
    design = screening_design(space, 60, seed=1, batch=6, varied=3)
    whole = [Configuration({**space.defaults, **c.values}) for c in design]
    assert all(is_feasible(c) for c in whole)
    assert 4 > sum(len(c.values) for c in design) / 60 >= 3


def test_a_screening_is_feasible_and_follows_its_seed(
    space: Space, is_feasible: Callable[[Configuration], bool]
) -> None:
    design = screening_design(space, 40, seed=3, batch=4)
    assert all(is_feasible(configuration) for configuration in design)
    assert design == screening_design(space, 40, seed=3, batch=4)
    assert design != screening_design(space, 40, seed=4, batch=4)


# Open parameters ----------------------------------------------------------------------------------


def test_open_parameters_take_turns_the_likelier_ones_more_often(
    space: Space, is_feasible: Callable[[Configuration], bool]
) -> None:
    design = latin_hypercube(space, 60, seed=1)
    keys = [p.key for p in space.parameters]
    likely, *others = keys[1:]
    result = sparse(space, design, {likely: 0.9} | dict.fromkeys(others, 0.05), 2, seed=1)
    counts = {key: sum(key in c.values for c in result) for key in keys}
    assert 60 == len(result) == counts[keys[0]]
    assert counts[likely] > max(counts[key] for key in others)
    assert all(counts[key] for key in others)
    for before, after in zip(design, result, strict=True):
        assert after.values.items() <= before.values.items()
        assert is_feasible(Configuration({**space.defaults, **after.values}))
    assert 1 < np.mean([len(c.values) for c in result]) - 1 < 3
    assert result == sparse(space, design, {likely: 0.9} | dict.fromkeys(others, 0.05), 2, seed=1)


@pytest.mark.parametrize("seed", range(20))
def test_each_open_parameter_has_a_turn_where_there_are_places_enough(
    space: Space, seed: int
) -> None:
    keys = [p.key for p in space.parameters]
    likely, *others = keys[1:]
    priors = {likely: 0.9} | dict.fromkeys(others, 0.01)
    count = len(others)
    result = sparse(space, latin_hypercube(space, count, seed=1), priors, 2, seed=seed)
    counts = {key: sum(key in c.values for c in result) for key in priors}
    assert all(counts.values())
    assert counts[likely] > 1


def test_a_likely_parameter_gives_up_half_of_its_turns_at_most(space: Space) -> None:
    """Even where there are more open parameters than places."""
    likely, *others = (p.key for p in space.parameters)
    assert len(others) > 8
    design = latin_hypercube(space, 8, seed=1)
    result = sparse(space, design, {likely: 1.0} | dict.fromkeys(others, 1e-9), 1, seed=1)
    assert sum(likely in c.values for c in result) == 4
    assert len({key for c in result for key in c.values} - {likely}) == 4


def test_what_only_changes_together_is_left_out_together(space: Space) -> None:
    design = latin_hypercube(space, 60, seed=1)
    priors = {p.key: 0.1 for p in space.parameters}
    for before, after in zip(design, sparse(space, design, priors, 3, seed=5), strict=True):
        for group in space.together(before, DEFAULT):
            assert group <= set(after.values) or not group & set(after.values)


def test_few_open_parameters_are_all_varied(space: Space) -> None:
    design = latin_hypercube(space, 5, seed=1)
    priors = {p.key: 0.1 for p in space.parameters[:3]}
    assert design == sparse(space, design, priors, 3, seed=1)
