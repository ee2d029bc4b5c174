"""Constraints of a space: whatever the genes are, what comes out keeps to them."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from builders.small_spaces import (
    REUSE,
    STAMPS,
    VECTOR,
    A,
    B,
    C,
    D,
    choice,
    decoded,
    number,
    numbers,
    random_genes,
    space,
    up_to_100,
)
from intop.domain.configuration import DEFAULT, Configuration
from intop.domain.constraints import Capacity, Constraint, Listing, Order, Requirement
from intop.domain.parameter import Parameter
from intop.domain.space import Space

# Orders -------------------------------------------------------------------------------------------

TEN, HUNDRED = (0, 10), (0, 100)
BOTH = [Order(columns=(A, B)), Order(columns=(B, C))]
CHAIN = [Order(columns=pair) for pair in ((A, B), (B, C), (C, D))]
FOUR = [number(key, TEN) for key in (A, B, C, D)]
ENDS = ("min", "default", "max")
ORDERED = {
    "within a vector": space(
        number(VECTOR, (1, 100), (1, 100), (1, 100)),
        constraints=[Order(columns=tuple(f"{VECTOR}[{n}]" for n in ENDS))],
    ),
    "within a vector, with a gap": space(
        number(VECTOR, (1, 100), (50, 120), scale="log"),
        constraints=[Order(columns=(f"{VECTOR}[min]", f"{VECTOR}[default]"), gap=20)],
    ),
    "between two": space(*FOUR[:2], constraints=CHAIN[:1]),
    "a chain in order": space(*FOUR, constraints=CHAIN),
    "a chain in reverse order": space(*FOUR, constraints=CHAIN[::-1]),
    "a chain with gaps": up_to_100("abc", *(replace(order, gap=30) for order in BOTH)),
    "a chain that narrows upwards": space(
        number(A, HUNDRED), number(B, HUNDRED), number(C, (0, 50)), constraints=BOTH
    ),
    "a chain that narrows downwards": space(
        number(A, (50, 100)), number(B, HUNDRED), number(C, HUNDRED), constraints=BOTH[::-1]
    ),
    "a chain that ends outside": up_to_100("ab", "ab", "bc", c="40"),
    "a chain that begins outside": up_to_100("bc", "ab", "bc", a="40"),
    "a chain with a link outside": up_to_100("ac", "ab", "bc", b="40"),
    "a link outside, in one order": up_to_100("ac", Order(columns=(A, B, C), gap=5), b="40"),
    "two above one": up_to_100("abc", "ab", "ac"),
    "two below one": up_to_100("abc", "ac", Order(columns=(B, C), gap=7)),
}


@pytest.mark.parametrize("case", ORDERED)
def test_whatever_the_genes_the_orders_hold(case: str) -> None:
    one = ORDERED[case]
    for values in decoded(one):
        for order in one.constraints:
            assert isinstance(order, Order)
            for a, b in pairwise(numbers(values, one.defaults, n) for n in order.columns):
                assert a + order.gap <= b, values


@pytest.mark.parametrize("case", ORDERED)
def test_ordered_values_stay_in_range_and_are_still_varied(case: str) -> None:
    one = ORDERED[case]
    values = one.decode(random_genes(one))
    for index, column in enumerate(one.columns):
        assert column.component is not None
        assert column.component.low <= values[:, index].min()
        assert values[:, index].max() <= column.component.high
        assert len(np.unique(values[:, index])) > 5


@pytest.mark.parametrize("case", ORDERED)
def test_feasible_values_come_back_from_their_genes_unchanged(case: str) -> None:
    one = ORDERED[case]
    values = one.decode(random_genes(one))
    assert np.array_equal(values, one.decode(one.genes(values)))


def test_values_that_are_in_order_are_not_moved() -> None:
    one = ORDERED["a chain in order"]
    values = np.array([[1.0, 3.0, 3.0, 9.0]])
    assert values.tolist() == one.decode(one.genes(values)).tolist()


@pytest.mark.parametrize(
    ("parameters", "order", "defaults"),
    [
        ((number(A, (50, 90)), number(B, (0, 40))), Order(columns=(A, B)), {}),
        ((number(A, (0, 10)), number(B, (0, 10))), Order(columns=(A, B), gap=11), {}),
        ((number(A, (50, 90)),), Order(columns=(A, B)), {"b": "40"}),
        ((number(B, (0, 40)),), Order(columns=(A, B)), {"a": "41"}),
    ],
)
def test_an_order_that_nothing_can_meet_is_named(
    parameters: tuple[Parameter, ...], order: Order, defaults: dict[str, str]
) -> None:
    with pytest.raises(ValueError, match=f"no configuration meets: {A} <= {B}"):
        space(*parameters, constraints=[order], **defaults)


@pytest.mark.parametrize(
    "constraint",
    [
        Order(columns=(A, B)),
        Order(columns=(C, D)),
        Requirement(key=C, values=("1",), needs=D, to_be=("1",)),
    ],
)
def test_a_constraint_with_unknown_or_no_partners_here_does_nothing(constraint: Constraint) -> None:
    one = space(number(A, (0, 9)), constraints=[constraint], c="9", d="1")
    assert {str(n) for n in range(10)} == {values[A] for values in decoded(one)}


# Requirements -------------------------------------------------------------------------------------

NEEDS = Requirement(key=REUSE, values=("1",), needs=STAMPS, to_be=("1", "2"))


def with_reuse(*parameters: Parameter, **defaults: str) -> Space:
    return Space(parameters, (NEEDS,), {REUSE: "2", STAMPS: "1", **defaults})


ANY_REUSE, ANY_STAMPS = choice(REUSE, "0", "1", "2"), choice(STAMPS, "0", "1", "2")
REQUIRING = {
    "both inside": with_reuse(ANY_REUSE, ANY_STAMPS),
    "the needed one can only be wrong": with_reuse(ANY_REUSE, choice(STAMPS, "0", "3")),
    "the needed one is outside and right": with_reuse(ANY_REUSE),
    "the needed one is outside and wrong": with_reuse(ANY_REUSE, **{STAMPS: "0"}),
    "the needing one is outside and idle": with_reuse(ANY_STAMPS),
    "the needing one is outside and active": with_reuse(ANY_STAMPS, **{REUSE: "1"}),
}


@pytest.mark.parametrize("case", REQUIRING)
def test_whatever_the_genes_the_requirement_holds(case: str) -> None:
    one = REQUIRING[case]
    for values in decoded(one):
        held = {**one.defaults, **values}
        assert held[REUSE] != "1" or held[STAMPS] in ("1", "2")


@pytest.mark.parametrize(
    ("case", "key", "expected"),
    [
        ("both inside", REUSE, {"0", "1", "2"}),
        ("both inside", STAMPS, {"0", "1", "2"}),
        ("the needed one can only be wrong", REUSE, {"0", "2"}),
        ("the needed one is outside and right", REUSE, {"0", "1", "2"}),
        ("the needed one is outside and wrong", REUSE, {"0", "2"}),
        ("the needing one is outside and idle", STAMPS, {"0", "1", "2"}),
        ("the needing one is outside and active", STAMPS, {"1", "2"}),
    ],
)
def test_a_requirement_leaves_what_it_does_not_forbid(
    case: str, key: str, expected: set[str]
) -> None:
    assert {values[key] for values in decoded(REQUIRING[case])} == expected


def test_keys_that_only_go_together_are_one_group() -> None:
    order = Order(columns=(A, B), gap=1)
    result = up_to_100("abc", order, a="10", b="20", c="5")
    apart = Configuration({A: "15", B: "18", C: "5"})
    assert result.together(apart, DEFAULT) == [{A}, {B}]
    together = Configuration({A: "30", B: "40", C: "6"})
    assert result.together(together, DEFAULT) == [{C}, {A, B}]
    assert (order,) == result.broken(Configuration({A: "30"}))
    assert result.broken(together) == ()


def test_a_required_partner_goes_with_what_needs_it() -> None:
    requirement = Requirement(key=REUSE, values=("1",), needs=STAMPS, to_be=("1",))
    result = space(choice(REUSE, "0", "1"), choice(STAMPS, "0", "1"), constraints=[requirement])
    both = Configuration({REUSE: "1", STAMPS: "1"})
    assert result.together(both, DEFAULT) == [{REUSE, STAMPS}]


LISTED = Listing(columns=(A, B, C), rows=((1, 1, 5), (1000, 1, 5), (1000, 9, 5), (1, 9, 8)))


def test_a_listing_leaves_the_nearest_of_its_rows() -> None:
    parameters = (number(A, (1, 1000), scale="log"), number(B, (1, 9)), number(C, (5, 8)))
    whole = Space(parameters, (LISTED,), {A: "1", B: "1", C: "5"})
    genes = np.random.default_rng(1).random((200, 3))
    values = whole.decode(genes)
    assert {tuple(row) for row in values} == set(LISTED.rows)
    assert np.array_equal(values, whole.decode(whole.genes(values)))
    # By places in the ranges: a thousand is far from a hundred, and near to five hundred.
    near = whole.decode(whole.genes(np.array([[500.0, 2, 5], [20, 2, 5], [20, 9, 8]])))
    assert near.tolist() == [[1000, 1, 5], [1, 1, 5], [1, 9, 8]]
    assert whole.broken(Configuration({B: "1"})) == ()
    assert whole.broken(Configuration({B: "9"})) == (LISTED,)


def test_a_listing_holds_beside_the_defaults_of_what_is_not_varied() -> None:
    parameters = (number(A, (1, 1000)), number(B, (1, 9)), number(C, (5, 8)))
    part = Space(parameters, (LISTED,), {A: "1", B: "1", C: "5"}).restricted([A, B])
    values = part.decode(np.random.default_rng(1).random((200, 2)))
    assert {tuple(row) for row in values} == {(1, 1), (1000, 1), (1000, 9)}
    with pytest.raises(ValueError, match="no listed row"):
        Space(parameters[:2], (LISTED,), {A: "1", B: "1", C: "6"})


# Capacities ---------------------------------------------------------------------------------------

ROOM = Capacity(count=A, size=B, held=C)


def buffers(*keys: str, constraints: Sequence[Constraint] = (ROOM,), **defaults: str) -> Space:
    ranges = {A: (2, 16), B: (4, 64), C: (4, 256), D: (4, 64)}
    made = tuple(number(key, ranges[key], scale="log") for key in keys or (A, B, C))
    held = {A: "8", B: "4", C: "8", D: "4"} | {f"net.core.{k}": v for k, v in defaults.items()}
    return Space(made, tuple(constraints), held)


@pytest.mark.parametrize("keys", [(A, B, C), (A,), (B,), (C,), (A, C), (B, C), (A, B)])
def test_what_is_held_fits_into_all_pieces_but_one(keys: tuple[str, ...]) -> None:
    of = buffers(*keys, c="28")
    values = of.decode(random_genes(of, 300))
    for configuration in of.configurations(values):
        assert of.broken(configuration) == ()


def test_more_pieces_come_before_larger_ones() -> None:
    of = buffers()
    values = of._repaired(np.array([[2.0, 4.0, 60.0], [2.0, 4.0, 240.0], [5.0, 60.0, 240.0]]))
    assert values.tolist() == [[16, 4, 60], [16, 16, 240], [5, 60, 240]]


def test_orders_and_capacities_hold_together() -> None:
    orders = [Order(columns=(B, C)), Order(columns=(D, C)), Capacity(count=A, size=B, held=D)]
    for keys in ((A, B, C, D), (C, D), (D,), (B, D), (A, D)):
        of = buffers(*keys, constraints=[ROOM, *orders])
        for configuration in of.configurations(of.decode(random_genes(of, 300))):
            assert of.broken(configuration) == ()


def test_a_capacity_that_nothing_can_meet() -> None:
    with pytest.raises(ValueError, match=r"net.core.c <= \(net.core.a - 1\) x net.core.b"):
        buffers(A, c="4000")


def test_a_follower_bounds_nothing_from_outside() -> None:
    order = Order(columns=(D, C))
    bound = buffers(D, constraints=[order])
    free = Space(bound.parameters, bound.constraints, bound.defaults, frozenset({C}))
    ends = np.array([[1.0]])
    assert bound.decode(ends)[0, 0] == 8
    assert free.decode(ends)[0, 0] == 64
    assert free.broken(Configuration({D: "64"})) == ()
    assert (order,) == bound.broken(Configuration({D: "64"}))
    inside = Space(buffers(C, D).parameters, (order,), bound.defaults, frozenset({C}))
    assert free.parameters == inside.restricted([D]).parameters
    assert inside.restricted([D]).decode(ends)[0, 0] == 64
