"""The space of the whole catalogue: its constraints hold, and it goes to genes and back."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from builders.small_spaces import random_genes
from builders.trials import FACTS
from intop.config.catalogue import Catalogue, load_catalogue
from intop.domain.configuration import Configuration
from intop.domain.constraints import Constraint, Exclusion, Order, Requirement
from intop.domain.parameter import Parameter
from intop.domain.probing import Probe, Reading, space_of
from intop.domain.space import Space

CATALOGUE = Path(__file__).parents[2] / "configs" / "parameters.toml"


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
        return sum(key in configuration.values for key in constraint.keys) <= 1

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
    assert len(values) > 2000
    names = {p.key: p for p in everything.parameters}
    judged = judged_by_its_own(everything)
    for configuration in everything.configurations(values):
        assert broken(judged, configuration) == []
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
    assert (features.min(), features.max()) == (0.0, 1.0)


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
            assert broken(judged, configuration) == []


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
