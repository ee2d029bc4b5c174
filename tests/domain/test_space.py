"""Spaces: whatever the genes are, what comes out can be written to the kernel."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from intop.config.catalogue import Catalogue, load_catalogue
from intop.domain.configuration import DEFAULT, Configuration
from intop.domain.parameter import Component, Kind, Parameter, Scale
from intop.domain.probing import Probe, Reading, space_of
from intop.domain.space import (
    Capacity,
    Constraint,
    Exclusion,
    Listing,
    Matrix,
    Order,
    Requirement,
    Space,
)
from samples import FACTS

A, B, C, D = (f"net.core.{letter}" for letter in "abcd")
VECTOR = "net.ipv4.tcp_rmem"
REUSE, STAMPS = "net.ipv4.tcp_tw_reuse", "net.ipv4.tcp_timestamps"
CATALOGUE = Path(__file__).parents[2] / "configs" / "parameters.toml"


COMMON: dict[str, Any] = {"unit": "", "scope": "namespace", "risk": "low"}
COMMON |= {"mechanism": "test", "document": "test"}


def number(key: str, *ranges: tuple[int, int], scale: Scale = "linear") -> Parameter:
    names = [""] if len(ranges) == 1 else ["min", "default", "max"][: len(ranges)]
    components = tuple(
        Component(name=name, low=low, high=high)
        for name, (low, high) in zip(names, ranges, strict=True)
    )
    kind: Kind = "integer" if len(ranges) == 1 else "vector"
    return Parameter(key=key, kind=kind, components=components, scale=scale, **COMMON)


def choice(key: str, *choices: str) -> Parameter:
    return Parameter(key=key, kind="choice", choices=choices, **COMMON)


def up_to_100(keys: str, *orders: str | Order, **defaults: str) -> Space:
    """Numbers by letter from 0 to 100; `ab` is an order of two."""
    made = [
        order if isinstance(order, Order) else Order(columns=tuple(f"net.core.{k}" for k in order))
        for order in orders
    ]
    parameters = [number(f"net.core.{key}", (0, 100)) for key in keys]
    return space(*parameters, constraints=made, **defaults)


def space(*parameters: Parameter, constraints: Sequence[Constraint] = (), **defaults: str) -> Space:
    """A space whose defaults are the low ends or first choices, unless they are said by letter."""
    known = {p.key: " ".join(str(c.low) for c in p.components) or p.choices[0] for p in parameters}
    said = {f"net.core.{letter}": value for letter, value in defaults.items()}
    return Space(parameters, tuple(constraints), known | said)


def random_genes(of: Space, count: int = 500, seed: int = 1) -> Matrix:
    """Random genes, and all the corners that are all alike."""
    rng = np.random.default_rng(seed)
    genes = rng.random((count, len(of.columns)))
    extremes = rng.integers(0, 2, (count, len(of.columns))).astype(np.float64)
    return np.vstack([genes, extremes, np.zeros_like(genes[:1]), np.ones_like(genes[:1])])


def decoded(of: Space, seed: int = 1) -> list[Mapping[str, str]]:
    return [c.values for c in of.configurations(of.decode(random_genes(of, seed=seed)))]


def numbers(values: Mapping[str, str], defaults: Mapping[str, str], name: str) -> int:
    """The number of a column, such as `net.ipv4.tcp_rmem[max]`, as it would be in the kernel."""
    key, _, component = name.partition("[")
    parts = (values.get(key) or defaults[key]).split()
    if not component:
        return int(parts[0])
    return int(parts[{"min": 0, "default": 1, "max": 2, "first": 0, "last": 1}[component[:-1]]])


# Ranges -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", ["linear", "log"])
def test_the_ends_of_the_genes_are_the_ends_of_the_range(scale: Scale) -> None:
    one = space(number(A, (3, 1_000_003), scale=scale))
    assert [[3.0], [1_000_003.0]] == one.decode(np.array([[0.0], [1.0]])).tolist()


def test_the_middle_is_the_arithmetic_or_the_geometric_mean() -> None:
    one = space(number(A, (10, 1000)), number(B, (10, 1000), scale="log"))
    assert [[505.0, 100.0]] == one.decode(np.array([[0.5, 0.5]])).tolist()


def test_genes_outside_of_0_to_1_count_as_its_ends() -> None:
    one = space(number(A, (3, 9)), choice(B, "x", "y"))
    assert [[3.0, 0.0], [9.0, 1.0]] == one.decode(np.array([[-1.0, -0.1], [2.0, 1.1]])).tolist()


def test_every_choice_has_an_equal_share_of_the_genes() -> None:
    one = space(choice(A, "x", "y", "z"))
    values = one.decode(np.linspace(0, 1, 301)[:, None])[:, 0]
    assert [100, 100, 101] == [int((values == n).sum()) for n in range(3)]


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
        assert 5 < len(np.unique(values[:, index]))


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
    assert expected == {values[key] for values in decoded(REQUIRING[case])}


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
    assert (VECTOR, VECTOR, VECTOR, A, B, C, C, C) == MIXED.feature_keys


def test_features_are_places_in_the_range_booleans_and_one_column_for_each_choice() -> None:
    features = MIXED.encode(np.array([[1.0, 10.0, 100.0, 5.0, 1.0, 2.0]]))
    assert [0.0, 0.5, 1.0, 0.5, 1.0, 0.0, 0.0, 1.0] == pytest.approx(features[0].tolist())


def test_features_lie_between_0_and_1_and_choices_are_one_hot() -> None:
    values = MIXED.decode(random_genes(MIXED))
    features = MIXED.encode(values)
    assert (len(values), len(MIXED.feature_names)) == features.shape
    assert (0.0, 1.0) == (features.min(), features.max())
    assert np.all(1.0 == features[:, -3:].sum(axis=1))


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
    assert [[2.0, 3.0, 4.0, 7.0, 1.0, 1.0]] == one.values([DEFAULT]).tolist()
    assert [[2.0, 3.0, 4.0, 0.0, 1.0, 1.0]] == one.values([Configuration({A: "0"})]).tolist()


def test_a_default_out_of_range_is_a_value_of_its_own() -> None:
    parameters = (number(A, (10, 20)), number(B, (1, 100), scale="log"), choice(C, "x", "y", "z"))
    one = Space(parameters, (), {A: "99", B: "0", C: "unknown"})
    values = one.values([DEFAULT])
    assert [[99.0, 0.0, 0.0]] == values.tolist()
    assert [[1.0, 0.0, 1.0, 0.0, 0.0]] == one.encode(values).tolist()
    assert [[99.0, 0.0, 0.0]] == one.decode(one.genes(values)).tolist()
    assert [{C: "x"}] == [c.values for c in one.configurations(values)]
    ends = np.array([[20.0, 1.0, 0.0], [10.0, 100.0, 0.0]])
    assert ends.tolist() == one.decode(one.genes(ends)).tolist()
    assert [[0.9, 0.1], [0.0, 1.0]] == one.encode(ends)[:, :2].tolist()
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
    assert [[0.0, 100.0]] == values.tolist()
    assert [[10.0, 100.0]] == one.decode(one.genes(values)).tolist()


def test_a_default_out_of_range_stays_with_the_others_of_its_vector() -> None:
    one = Space(MIXED.parameters, (), {VECTOR: "0 0 0", A: "7", B: "1", C: "reno"})
    decoded = one.decode(one.genes(one.values([DEFAULT])))
    assert VECTOR in one.configurations(decoded)[0].values


def test_no_parameters_and_no_rows_are_fine() -> None:
    none = space()
    assert (3, 0) == none.encode(none.decode(np.empty((3, 0)))).shape
    assert 3 * [DEFAULT] == none.configurations(np.empty((3, 0)))
    assert (0, 6) == MIXED.values([]).shape
    assert (0, 8) == MIXED.encode(MIXED.values([])).shape


# Parts of a space ---------------------------------------------------------------------------------


def test_restricted_keeps_the_order_of_the_parameters_and_the_defaults() -> None:
    part = MIXED.restricted([C, A])
    assert [A, C] == [p.key for p in part.parameters]
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
    assert (0, 30) == extent(whole.restricted([A]), A)
    assert (20, 50) == extent(whole.restricted([B]), B)
    assert (40, 100) == extent(whole.restricted([C]), C)
    assert (0, 50) == extent(whole.restricted([A, B]), A)


def extent(of: Space, key: str) -> tuple[int, int]:
    found = [int(values[key]) for values in decoded(of)]
    return min(found), max(found)


# The catalogue that comes with intop --------------------------------------------------------------


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    return load_catalogue(CATALOGUE)


@pytest.fixture(scope="module")
def everything(catalogue: Catalogue) -> Space:
    """The space of a machine that offers every parameter, with defaults at random."""
    return of_a_machine(catalogue, {})


def of_a_machine(catalogue: Catalogue, own: Mapping[str, str]) -> Space:
    """What a machine offers that has these values, and else some at random."""
    rng = np.random.default_rng(7)
    readings = {p.key: Reading("writable", a_value(p, rng)) for p in catalogue.parameters}
    readings |= {
        p.key: Reading("writable", own[p.key]) for p in catalogue.parameters if p.key in own
    }
    for p in catalogue.parameters:
        for key in (p.choices_from, p.choices_from_in_namespace):
            if key is not None:
                readings[key] = Reading("readable", " ".join(p.choices))
    probe = Probe(facts=FACTS, readings=readings)
    return space_of(catalogue.parameters, catalogue.constraints, probe, max_risk="high").space


def a_value(parameter: Parameter, rng: np.random.Generator) -> str:
    if parameter.choices:
        return parameter.choices[-1]
    place = rng.random()
    if parameter.ram_fraction and any(c.own_floor for c in parameter.components):
        place = 0  # no host has more of it than its memory allows
    return " ".join(str(round(c.low + place * (c.high - c.low))) for c in parameter.components)


def broken(of: Space, configuration: Configuration) -> list[Constraint]:
    """The constraints that a configuration breaks, said a second time and on its texts."""
    held = {**of.defaults, **configuration.values}
    vectors = {p.key: [c.name for c in p.components] for p in of.parameters}

    def value_of(name: str) -> int:
        key, _, component = name.partition("[")
        position = vectors[key].index(component[:-1]) if component else 0
        return int(held[key].split()[position])

    def is_met(constraint: Constraint) -> bool:
        if isinstance(constraint, Order):
            pairs = pairwise(value_of(name) for name in constraint.columns)
            return all(a + constraint.gap <= b for a, b in pairs)
        if isinstance(constraint, Requirement):
            active = held[constraint.key] in constraint.values
            return not active or held[constraint.needs] in constraint.to_be
        return 1 >= sum(key in configuration.values for key in constraint.keys)

    return [c for c in of.constraints if not is_met(c)]


def judged_by_its_own(of: Space) -> Space:
    """Without the orders of which nothing is inside: what the host has there is its own affair."""
    inside = {column.name for column in of.columns}
    kept = [c for c in of.constraints if not isinstance(c, Order) or set(c.columns) & inside]
    return replace(of, constraints=tuple(kept))


def test_2000_random_configurations_of_the_whole_catalogue_are_feasible(
    catalogue: Catalogue, everything: Space
) -> None:
    pairs = [c for c in catalogue.constraints if isinstance(c, Exclusion)]
    inert = [p for p in catalogue.parameters if p.presence.inert_since]
    assert len(catalogue.parameters) - len(pairs) - len(inert) == len(everything.parameters)
    values = everything.decode(random_genes(everything, 1000))
    assert 2000 < len(values)
    names = {p.key: p for p in everything.parameters}
    judged = judged_by_its_own(everything)
    for configuration in everything.configurations(values):
        assert [] == broken(judged, configuration)
        for key, text in configuration.values.items():
            parameter = names[key]
            if parameter.choices:
                assert text in parameter.choices
            else:
                for part, component in zip(text.split(), parameter.components, strict=True):
                    assert component.low <= int(part) <= component.high


def test_the_whole_catalogue_goes_to_genes_and_back(everything: Space) -> None:
    values = everything.decode(random_genes(everything, 1000, seed=2))
    assert np.array_equal(values, everything.decode(everything.genes(values)))
    assert np.array_equal(values, everything.values(everything.configurations(values)))
    features = everything.encode(values)
    assert (len(values), len(everything.feature_names)) == features.shape
    assert len(everything.feature_keys) == len(set(everything.feature_names))
    assert (0.0, 1.0) == (features.min(), features.max())


@pytest.mark.parametrize("seed", range(5))
def test_parts_of_the_catalogue_are_feasible_against_the_kernels_defaults(
    catalogue: Catalogue, seed: int
) -> None:
    whole = of_a_machine(catalogue, KERNEL_DEFAULTS)
    rng = np.random.default_rng(seed)
    keys = [p.key for p in whole.parameters]
    for _ in range(20):
        part = whole.restricted(rng.choice(keys, size=14, replace=False))
        judged = judged_by_its_own(part)
        for configuration in part.configurations(part.decode(random_genes(part, 20, seed))):
            assert [] == broken(judged, configuration)


def test_each_parameter_alone_is_feasible_against_the_kernels_defaults(
    catalogue: Catalogue,
) -> None:
    whole = of_a_machine(catalogue, KERNEL_DEFAULTS)
    for parameter in whole.parameters:
        assert whole.restricted([parameter.key]).columns


KERNEL_DEFAULTS = {
    f"net.{ip}.neigh.default.gc_thresh{n}": value
    for ip in ("ipv4", "ipv6")
    for n, value in enumerate(("128", "512", "1024"), 1)
}
KERNEL_DEFAULTS |= dict.fromkeys(
    (f"net.core.{way}mem_{end}" for way in "rw" for end in ("default", "max")), "212992"
)
KERNEL_DEFAULTS |= {
    "net.ipv4.tcp_retries1": "3", "net.ipv4.tcp_retries2": "15", "net.ipv4.tcp_reordering": "3",
    "net.ipv4.tcp_max_reordering": "300", "net.ipv4.tcp_mtu_probe_floor": "48",
    "net.ipv4.tcp_base_mss": "1024", "net.ipv4.tcp_tw_reuse": "2", "net.ipv4.tcp_timestamps": "1",
    "vm.dirty_background_ratio": "10", "vm.dirty_ratio": "20",
    "vm.dirty_background_bytes": "0", "vm.dirty_bytes": "0",
    "kernel.sched_min_granularity_ns": "3000000", "kernel.sched_latency_ns": "24000000",
    "kernel.numa_balancing_scan_period_min_ms": "1000",
    "kernel.numa_balancing_scan_period_max_ms": "60000",
}  # fmt: skip
"""Of the keys that constraints are about; `sysctl -a` of Linux 6.18, kernel.* of Linux 5.10."""


def test_keys_that_only_go_together_are_one_group() -> None:
    order = Order(columns=(A, B), gap=1)
    found = up_to_100("abc", order, a="10", b="20", c="5")
    apart = Configuration({A: "15", B: "18", C: "5"})
    assert [{A}, {B}] == found.together(apart, DEFAULT)
    together = Configuration({A: "30", B: "40", C: "6"})
    assert [{C}, {A, B}] == found.together(together, DEFAULT)
    assert (order,) == found.broken(Configuration({A: "30"}))
    assert () == found.broken(together)


def test_a_required_partner_goes_with_what_needs_it() -> None:
    requirement = Requirement(key=REUSE, values=("1",), needs=STAMPS, to_be=("1",))
    found = space(choice(REUSE, "0", "1"), choice(STAMPS, "0", "1"), constraints=[requirement])
    both = Configuration({REUSE: "1", STAMPS: "1"})
    assert [{REUSE, STAMPS}] == found.together(both, DEFAULT)


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
    assert [[1000, 1, 5], [1, 1, 5], [1, 9, 8]] == near.tolist()
    assert () == whole.broken(Configuration({B: "1"}))
    assert (LISTED,) == whole.broken(Configuration({B: "9"}))


def test_a_listing_holds_beside_the_defaults_of_what_is_not_varied() -> None:
    parameters = (number(A, (1, 1000)), number(B, (1, 9)), number(C, (5, 8)))
    part = Space(parameters, (LISTED,), {A: "1", B: "1", C: "5"}).restricted([A, B])
    values = part.decode(np.random.default_rng(1).random((200, 2)))
    assert {(1, 1), (1000, 1), (1000, 9)} == {tuple(row) for row in values}
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
        assert () == of.broken(configuration)


def test_more_pieces_come_before_larger_ones() -> None:
    of = buffers()
    values = of._repaired(np.array([[2.0, 4.0, 60.0], [2.0, 4.0, 240.0], [5.0, 60.0, 240.0]]))
    assert [[16, 4, 60], [16, 16, 240], [5, 60, 240]] == values.tolist()


def test_orders_and_capacities_hold_together() -> None:
    orders = [Order(columns=(B, C)), Order(columns=(D, C)), Capacity(count=A, size=B, held=D)]
    for keys in ((A, B, C, D), (C, D), (D,), (B, D), (A, D)):
        of = buffers(*keys, constraints=[ROOM, *orders])
        for configuration in of.configurations(of.decode(random_genes(of, 300))):
            assert () == of.broken(configuration)


def test_a_capacity_that_nothing_can_meet() -> None:
    with pytest.raises(ValueError, match=r"net.core.c <= \(net.core.a - 1\) x net.core.b"):
        buffers(A, c="4000")


def test_a_follower_bounds_nothing_from_outside() -> None:
    order = Order(columns=(D, C))
    bound = buffers(D, constraints=[order])
    free = Space(bound.parameters, bound.constraints, bound.defaults, frozenset({C}))
    ends = np.array([[1.0]])
    assert 8 == bound.decode(ends)[0, 0]
    assert 64 == free.decode(ends)[0, 0]
    assert () == free.broken(Configuration({D: "64"}))
    assert (order,) == bound.broken(Configuration({D: "64"}))
    inside = Space(buffers(C, D).parameters, (order,), bound.defaults, frozenset({C}))
    assert free.parameters == inside.restricted([D]).parameters
    assert 64 == inside.restricted([D]).decode(ends)[0, 0]
