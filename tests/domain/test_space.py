"""Spaces: whatever the genes are, what comes out can be written to the kernel."""

import numpy as np
import pytest

from builders.small_spaces import (
    VECTOR,
    A,
    B,
    C,
    D,
    choice,
    decoded,
    number,
    random_genes,
    space,
    up_to_100,
)
from intop.domain.configuration import DEFAULT, Configuration
from intop.domain.constraints import Capacity, Constraint, Order
from intop.domain.parameter import Scale
from intop.domain.space import Space

# Ranges -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", ["linear", "log"])
def test_the_ends_of_the_genes_are_the_ends_of_the_range(scale: Scale) -> None:
    one = space(number(A, (3, 1_000_003), scale=scale))
    assert one.decode(np.array([[0.0], [1.0]])).tolist() == [[3.0], [1_000_003.0]]


def test_the_middle_is_the_arithmetic_or_the_geometric_mean() -> None:
    one = space(number(A, (10, 1000)), number(B, (10, 1000), scale="log"))
    assert one.decode(np.array([[0.5, 0.5]])).tolist() == [[505.0, 100.0]]


def test_genes_outside_of_0_to_1_count_as_its_ends() -> None:
    one = space(number(A, (3, 9)), choice(B, "x", "y"))
    assert one.decode(np.array([[-1.0, -0.1], [2.0, 1.1]])).tolist() == [[3.0, 0.0], [9.0, 1.0]]


def test_every_choice_has_an_equal_share_of_the_genes() -> None:
    one = space(choice(A, "x", "y", "z"))
    values = one.decode(np.linspace(0, 1, 301)[:, None])[:, 0]
    assert [int((values == n).sum()) for n in range(3)] == [100, 100, 101]


# Encoding -----------------------------------------------------------------------------------------

MIXED = space(
    number(VECTOR, (1, 100), (1, 100), (1, 100), scale="log"),
    number(A, (0, 10)),
    choice(B, "0", "1"),
    choice(C, "cubic", "reno", "bbr"),
)


def test_names_of_columns_and_features() -> None:
    vector = tuple(f"{VECTOR}[{n}]" for n in ("min", "default", "max"))
    assert (*vector, A, B, C) == tuple(column.name for column in MIXED.columns)
    assert (*vector, A, B, f"{C}=cubic", f"{C}=reno", f"{C}=bbr") == MIXED.feature_names
    assert MIXED.feature_keys == (VECTOR, VECTOR, VECTOR, A, B, C, C, C)


def test_features_are_places_in_the_range_booleans_and_one_column_for_each_choice() -> None:
    features = MIXED.encode(np.array([[1.0, 10.0, 100.0, 5.0, 1.0, 2.0]]))
    assert pytest.approx(features[0].tolist()) == [0.0, 0.5, 1.0, 0.5, 1.0, 0.0, 0.0, 1.0]


def test_features_lie_between_0_and_1_and_choices_are_one_hot() -> None:
    values = MIXED.decode(random_genes(MIXED))
    features = MIXED.encode(values)
    assert (len(values), len(MIXED.feature_names)) == features.shape
    assert (features.min(), features.max()) == (0.0, 1.0)
    assert np.all(features[:, -3:].sum(axis=1) == 1.0)


def test_configurations_and_values_round_trip() -> None:
    values = MIXED.decode(random_genes(MIXED))
    configurations = MIXED.configurations(values)
    assert np.array_equal(values, MIXED.values(configurations))
    assert configurations == MIXED.configurations(MIXED.values(configurations))


def test_a_configuration_is_written_as_the_kernel_prints_it() -> None:
    made = MIXED.configurations(np.array([[1.0, 10.0, 100.0, 5.0, 1.0, 2.0]]))
    assert [Configuration({VECTOR: "1 10 100", A: "5", B: "1", C: "bbr"})] == made


def test_what_a_configuration_does_not_name_is_at_its_default() -> None:
    one = Space(MIXED.parameters, (), {VECTOR: "2\t3\t4", A: "7", B: "1", C: "reno"})
    assert one.values([DEFAULT]).tolist() == [[2.0, 3.0, 4.0, 7.0, 1.0, 1.0]]
    assert one.values([Configuration({A: "0"})]).tolist() == [[2.0, 3.0, 4.0, 0.0, 1.0, 1.0]]


def test_a_default_out_of_range_is_a_value_of_its_own() -> None:
    parameters = (number(A, (10, 20)), number(B, (1, 100), scale="log"), choice(C, "x", "y", "z"))
    one = Space(parameters, (), {A: "99", B: "0", C: "unknown"})
    values = one.values([DEFAULT])
    assert values.tolist() == [[99.0, 0.0, 0.0]]
    assert one.encode(values).tolist() == [[1.0, 0.0, 1.0, 0.0, 0.0]]
    assert one.decode(one.genes(values)).tolist() == [[99.0, 0.0, 0.0]]
    assert [c.values for c in one.configurations(values)] == [{C: "x"}]
    ends = np.array([[20.0, 1.0, 0.0], [10.0, 100.0, 0.0]])
    assert ends.tolist() == one.decode(one.genes(ends)).tolist()
    assert one.encode(ends)[:, :2].tolist() == [[0.9, 0.1], [0.0, 1.0]]
    everywhere = np.linspace(0, 1, 101)[:, None].repeat(3, axis=1)
    for values, own, allowed in zip(
        one.decode(everywhere).T, (99, 0), (range(10, 21), range(1, 101)), strict=False
    ):
        assert 0.05 < np.mean(values == own) < 0.15
        assert {own, *allowed} >= set(values) >= {own, allowed[0], allowed[-1]}


@pytest.mark.parametrize(
    "constraints", [(Order(columns=(A, B)),), (Capacity(count=A, size=B, held=D),)]
)
def test_a_default_out_of_range_is_clipped_where_something_hangs_on_it(
    constraints: tuple[Constraint, ...],
) -> None:
    parameters = (number(A, (10, 20)), number(B, (15, 100), scale="log"))
    one = Space(parameters, constraints, {A: "0", B: "100", D: "1"})
    values = one.values([DEFAULT])
    assert values.tolist() == [[0.0, 100.0]]
    assert one.decode(one.genes(values)).tolist() == [[10.0, 100.0]]


def test_a_default_out_of_range_stays_with_the_others_of_its_vector() -> None:
    one = Space(MIXED.parameters, (), {VECTOR: "0 0 0", A: "7", B: "1", C: "reno"})
    decoded = one.decode(one.genes(one.values([DEFAULT])))
    assert VECTOR in one.configurations(decoded)[0].values


def test_no_parameters_and_no_rows_are_fine() -> None:
    none = space()
    assert none.encode(none.decode(np.empty((3, 0)))).shape == (3, 0)
    assert none.configurations(np.empty((3, 0))) == 3 * [DEFAULT]
    assert MIXED.values([]).shape == (0, 6)
    assert MIXED.encode(MIXED.values([])).shape == (0, 8)


# Parts of a space ---------------------------------------------------------------------------------


def test_restricted_keeps_the_order_of_the_parameters_and_the_defaults() -> None:
    part = MIXED.restricted([C, A])
    assert [p.key for p in part.parameters] == [A, C]
    assert MIXED.defaults == part.defaults


def test_restricted_names_what_is_not_in_the_space() -> None:
    with pytest.raises(ValueError, match=r"not in the space: net\.core\.x, net\.core\.y"):
        MIXED.restricted(["net.core.y", A, "net.core.x"])


def test_a_parameter_without_a_default_is_named() -> None:
    with pytest.raises(ValueError, match=f"no default is known for {A}, {B}"):
        Space((number(A, (0, 1)), number(B, (0, 1))), (), {})


def test_restricted_values_fit_the_defaults_of_what_was_left_out() -> None:
    order = Order(columns=(B, C), gap=10)
    whole = up_to_100("abc", "ab", order, a="20", b="30", c="60")
    assert extent(whole.restricted([A]), A) == (0, 30)
    assert extent(whole.restricted([B]), B) == (20, 50)
    assert extent(whole.restricted([C]), C) == (40, 100)
    assert extent(whole.restricted([A, B]), A) == (0, 50)


def extent(of: Space, key: str) -> tuple[int, int]:
    result = [int(values[key]) for values in decoded(of)]
    return min(result), max(result)
