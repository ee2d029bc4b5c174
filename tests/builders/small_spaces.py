"""Spaces of a few parameters by letters, and what random genes come to in them."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from intop.domain.constraints import Constraint, Order
from intop.domain.encoding import Matrix
from intop.domain.parameter import Component, Kind, Parameter, Scale
from intop.domain.space import Space

A, B, C, D = (f"net.core.{letter}" for letter in "abcd")
VECTOR = "net.ipv4.tcp_rmem"
REUSE, STAMPS = "net.ipv4.tcp_tw_reuse", "net.ipv4.tcp_timestamps"


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
    output = {f"net.core.{letter}": value for letter, value in defaults.items()}
    return Space(parameters, tuple(constraints), known | output)


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
