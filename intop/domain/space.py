"""Spaces: which configurations are feasible on a probed host, and how they become numbers.

Three forms of the same configurations, one row each:

genes     (n, columns)   floats in [0, 1), what designs and the genetic search produce
values    (n, columns)   the kernel's numbers; for names the index of the choice
features  (n, features)  what models see: numbers by their place in the range (0 to 1, on the
                         parameter's scale), booleans as 0 or 1, choices one column each

`decode` leads from genes to feasible values, `encode` from values to features. All of it is
vectorised, so that a whole population is one call.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from intop.domain.configuration import Configuration
from intop.domain.parameter import Component, Parameter, normalised

Matrix = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Order:
    """Numbers that never decrease from one to the next, by at least `gap` (kernel's unit).

    `columns` are names such as `net.ipv4.tcp_rmem[min]`, or the key itself for an integer.
    """

    columns: tuple[str, ...]
    gap: int = 0
    why: str = ""


@dataclass(frozen=True, kw_only=True)
class Requirement:
    """When `key` has one of `values`, `needs` must have one of `to_be`."""

    key: str
    values: tuple[str, ...]
    needs: str
    to_be: tuple[str, ...]
    why: str = ""


@dataclass(frozen=True, kw_only=True)
class Exclusion:
    """Paired keys: writing one makes the kernel zero the other, so a space holds one of them."""

    keys: tuple[str, ...]
    why: str = ""


Constraint = Order | Requirement | Exclusion


@dataclass(frozen=True)
class Column:
    """One number of a configuration: a component of a numeric parameter, or a choice's index."""

    parameter: Parameter
    component: Component | None

    @property
    def name(self) -> str:
        if self.component is None or not self.component.name:
            return self.parameter.key
        return f"{self.parameter.key}[{self.component.name}]"


def parameter_columns(parameter: Parameter) -> tuple[Column, ...]:
    """The columns of one parameter, in the order in which the kernel prints them."""
    if parameter.is_numeric:
        return tuple(Column(parameter, component) for component in parameter.components)
    return (Column(parameter, None),)


@dataclass(frozen=True)
class Space:
    """Parameters with their constraints, and the defaults that were read on the host.

    A constraint whose partner is not among the parameters holds against the partner's default,
    so that a space cut down to a few parameters stays feasible. Raises ValueError for a
    parameter without a default, or constraints that no configuration can meet.
    """

    parameters: tuple[Parameter, ...]
    constraints: tuple[Constraint, ...]
    defaults: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        missing = [p.key for p in self.parameters if p.key not in self.defaults]
        if missing:
            raise ValueError(f"no default is known for {', '.join(missing)}")
        infeasible = self._violations(self.decode(np.full((1, len(self.columns)), 0.5)))
        if infeasible:
            raise ValueError(f"no configuration meets: {'; '.join(infeasible)}")

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """What `genes` and `values` have as columns."""
        return tuple(c for parameter in self.parameters for c in parameter_columns(parameter))

    @cached_property
    def _position(self) -> dict[str, int]:
        return {column.name: index for index, column in enumerate(self.columns)}

    @cached_property
    def feature_names(self) -> tuple[str, ...]:
        """What `encode` returns as columns."""
        names: list[str] = []
        for column in self.columns:
            choices = column.parameter.choices
            names += [f"{column.name}={c}" for c in choices] if len(choices) > 2 else [column.name]
        return tuple(names)

    @cached_property
    def feature_keys(self) -> tuple[str, ...]:
        """For each feature the key of its parameter."""
        keys: list[str] = []
        for column in self.columns:
            choices = column.parameter.choices
            keys += [column.parameter.key] * (len(choices) if len(choices) > 2 else 1)
        return tuple(keys)

    def restricted(self, keys: Iterable[str]) -> "Space":
        """The space of only these parameters; the others stay at their defaults."""
        wanted = set(keys)
        if unknown := wanted - {p.key for p in self.parameters}:
            raise ValueError(f"not in the space: {', '.join(sorted(unknown))}")
        chosen = tuple(p for p in self.parameters if p.key in wanted)
        return Space(chosen, self.constraints, self.defaults)

    def decode(self, genes: Matrix) -> Matrix:
        """Feasible values (n, columns) for genes (n, columns) in [0, 1]."""
        values = np.empty_like(genes, dtype=np.float64)
        for index, column in enumerate(self.columns):
            gene = np.clip(genes[:, index], 0.0, 1.0)
            if (component := column.component) is None:
                count = len(column.parameter.choices)
                values[:, index] = np.minimum(np.floor(gene * count), count - 1)
            elif column.parameter.scale == "log":
                ratio = component.high / component.low
                values[:, index] = np.rint(component.low * ratio**gene)
            else:
                values[:, index] = np.rint(component.low + gene * (component.high - component.low))
        return self._repaired(values)

    def genes(self, values: Matrix) -> Matrix:
        """Genes that `decode` to these values; numbers outside of the range are clipped."""
        genes = np.empty_like(values, dtype=np.float64)
        for index, column in enumerate(self.columns):
            if column.component is None:
                genes[:, index] = (values[:, index] + 0.5) / len(column.parameter.choices)
            else:
                genes[:, index] = _place(column, values[:, index])
        return genes

    def encode(self, values: Matrix) -> Matrix:
        """Features (n, features) for values (n, columns)."""
        blocks: list[Matrix] = []
        for index, column in enumerate(self.columns):
            count = len(column.parameter.choices)
            if column.component is not None:
                blocks.append(_place(column, values[:, index])[:, None])
            elif count > 2:
                blocks.append((values[:, index][:, None] == np.arange(count)).astype(np.float64))
            else:
                blocks.append(values[:, index][:, None])
        return np.hstack(blocks) if blocks else np.empty((len(values), 0))

    def configurations(self, values: Matrix) -> list[Configuration]:
        """The configurations of values (n, columns), one a row."""
        return [self._configuration(row) for row in values]

    def values(self, configurations: Sequence[Configuration]) -> Matrix:
        """Values (n, columns); a parameter that a configuration does not name has its default.

        A default that is none of the choices counts as the first one.
        """
        rows = [
            [number for p in self.parameters for number in self._numbers(p, configuration)]
            for configuration in configurations
        ]
        return np.array(rows, dtype=np.float64).reshape(len(rows), len(self.columns))

    def _configuration(self, row: NDArray[np.float64]) -> Configuration:
        result: dict[str, str] = {}
        position = 0
        for parameter in self.parameters:
            if parameter.is_numeric:
                end = position + len(parameter.components)
                result[parameter.key] = " ".join(str(int(v)) for v in row[position:end])
                position = end
            else:
                result[parameter.key] = parameter.choices[int(row[position])]
                position += 1
        return Configuration(result)

    def _numbers(self, parameter: Parameter, configuration: Configuration) -> list[float]:
        text = configuration.values.get(parameter.key, self.defaults[parameter.key])
        if parameter.is_numeric:
            return [float(part) for part in text.split()]
        text = normalised(text)
        return [float(parameter.choices.index(text)) if text in parameter.choices else 0.0]

    def _repaired(self, values: Matrix) -> Matrix:
        """Values moved as little as needed to meet every constraint."""
        # A chain of orders (a <= b, b <= c) may need one pass for each of its links.
        for _ in range(len(self.constraints) + 1):
            before = values.copy()
            for constraint in self.constraints:
                if isinstance(constraint, Order):
                    self._put_in_order(values, constraint)
                elif isinstance(constraint, Requirement):
                    self._meet(values, constraint)
            if np.array_equal(before, values):
                break
        return values

    def _put_in_order(self, values: Matrix, order: Order) -> None:
        names = order.columns
        bounds = [self._bounds(name) for name in names]
        if any(b is None for b in bounds):
            return
        known = [b for b in bounds if b is not None]
        # Forward: each at least its predecessor. Backward: each at most its successor allows.
        floor: Matrix | float = -np.inf
        for name, (low, high) in zip(names, known, strict=True):
            if name in self._position:
                column = self._position[name]
                values[:, column] = np.clip(np.maximum(values[:, column], floor), low, high)
                floor = values[:, column] + order.gap
            else:
                floor = low + order.gap
        ceiling: Matrix | float = np.inf
        for name, (low, _high) in zip(reversed(names), reversed(known), strict=True):
            if name in self._position:
                column = self._position[name]
                values[:, column] = np.maximum(np.minimum(values[:, column], ceiling), low)
                ceiling = values[:, column] - order.gap
            else:
                ceiling = low - order.gap

    def _bounds(self, name: str) -> tuple[float, float] | None:
        """The range of a column, the default of a parameter outside of the space, or None."""
        if name in self._position:
            component = self.columns[self._position[name]].component
            return None if component is None else (component.low, component.high)
        # Only plain integers can be partners from outside: a vector is in a space as a whole.
        default = self.defaults.get(name)
        return None if default is None else (float(default), float(default))

    def _meet(self, values: Matrix, requirement: Requirement) -> None:
        if requirement.key not in self._position:
            return
        column = self._position[requirement.key]
        choices = self.columns[column].parameter.choices
        wanted = [choices.index(v) for v in requirement.values if v in choices]
        active = np.isin(values[:, column], wanted)
        if requirement.needs in self._position:
            partner = self._position[requirement.needs]
            options = self.columns[partner].parameter.choices
            good = [options.index(v) for v in requirement.to_be if v in options]
            if good:
                bad = active & ~np.isin(values[:, partner], good)
                values[bad, partner] = good[0]
                return
        elif self.defaults.get(requirement.needs) in (None, *requirement.to_be):
            return
        others = [i for i in range(len(choices)) if i not in wanted]
        if others:
            values[active, column] = others[0]

    def _violations(self, values: Matrix) -> list[str]:
        """The orders that a repaired row still breaks; a message for each."""
        broken = []
        for constraint in self.constraints:
            if not isinstance(constraint, Order):
                continue
            ends = [self._ends(values, name) for name in constraint.columns]
            pairs = [(a, b) for a, b in zip(ends, ends[1:], strict=False) if a is not None]
            if any(b is not None and a is not None and a + constraint.gap > b for a, b in pairs):
                inside = [n for n in constraint.columns if n in self._position]
                if inside:
                    broken.append(" <= ".join(constraint.columns))
        return broken

    def _ends(self, values: Matrix, name: str) -> float | None:
        if name in self._position:
            return float(values[0, self._position[name]])
        bounds = self._bounds(name)
        return None if bounds is None else bounds[0]


def _place(column: Column, numbers: Matrix) -> Matrix:
    """Where numbers stand in a column's range: 0 at the low end, 1 at the high end."""
    component = column.component
    if component is None:
        raise ValueError(f"{column.name} has no range")
    inside = np.clip(numbers, component.low, component.high)
    if column.parameter.scale == "log":
        place = np.log(inside / component.low) / np.log(component.high / component.low)
    else:
        place = (inside - component.low) / (component.high - component.low)
    return np.asarray(place, dtype=np.float64)
