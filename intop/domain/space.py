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
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations, pairwise
from math import inf
from typing import TYPE_CHECKING

from intop.deferred import Deferred
from intop.domain.configuration import Configuration, mixture
from intop.domain.constraints import (
    Capacity,
    Constraint,
    Listing,
    Order,
    Requirement,
    is_met,
    keys_of,
)
from intop.domain.encoding import Variable, encode
from intop.domain.parameter import Component, Parameter, normalised

if TYPE_CHECKING:
    import numpy as np
    from scipy.spatial import KDTree

    from intop.domain.encoding import Matrix
else:
    np = Deferred("numpy")


@dataclass(frozen=True)
class Column:
    """One number of a configuration: a component of a numeric parameter, or a choice's index.

    `own` as in `Variable`.
    """

    parameter: Parameter
    component: Component | None
    own: float | None = None

    @property
    def name(self) -> str:
        """The key, with the component in brackets where there are several."""
        if self.component is None or not self.component.name:
            return self.parameter.key
        return f"{self.parameter.key}[{self.component.name}]"

    @cached_property
    def variable(self) -> Variable:
        """The column as models know it."""
        parameter, component = self.parameter, self.component
        if component is None:
            return Variable(name=self.name, key=parameter.key, choices=parameter.choices)
        return Variable(
            name=self.name,
            key=parameter.key,
            low=component.low,
            high=component.high,
            scale=parameter.scale,
            own=self.own,
        )


def parameter_columns(parameter: Parameter) -> tuple[Column, ...]:
    """Return the columns of a parameter, in the order in which the kernel prints them."""
    if parameter.is_numeric:
        return tuple(Column(parameter, component) for component in parameter.components)
    return (Column(parameter, None),)


@dataclass(frozen=True)
class Space:
    """Parameters with their constraints, and the defaults that were read on the host.

    A constraint whose partner is not among the parameters holds against the partner's default,
    so that a space cut down to a few parameters stays feasible. `followers` are keys whose defaults
    follow other values: they are no such partners. Raises ValueError for a parameter without a
    default, or constraints that no configuration can meet.
    """

    parameters: tuple[Parameter, ...]
    constraints: tuple[Constraint, ...]
    defaults: Mapping[str, str] = field(default_factory=dict)
    followers: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        missing = [p.key for p in self.parameters if p.key not in self.defaults]
        if missing:
            raise ValueError(f"no default is known for {', '.join(missing)}")
        unmet = [o for o in self._orders if any(low > high for low, high in self._reaches(o))]
        if unmet:
            orders = "; ".join(" <= ".join(o.columns) for o in unmet)
            raise ValueError(f"no configuration meets: {orders}")
        for capacity in self._capacities:
            (_, count), (_, size), (held, _) = (self._range(name) for name in capacity.columns)
            if (count - 1) * size < held:
                raise ValueError(f"no configuration meets: {capacity}")
        _ = self._listed

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """The columns of `genes` and `values`."""
        columns = (c for parameter in self.parameters for c in parameter_columns(parameter))
        return tuple(replace(c, own=self._own(c)) for c in columns)

    def _own(self, column: Column) -> float | None:
        """Return the host's own number outside of the range, if nothing else hangs on it.

        One of several components can't be left out of a configuration, nor what a constraint moves.
        """
        component, key = column.component, column.parameter.key
        if component is None or component.name or key in self._constrained:
            return None
        number = float(self.defaults[key])
        return None if component.low <= number <= component.high else number

    @cached_property
    def _constrained(self) -> frozenset[str]:
        return frozenset(key for c in self.constraints for key in keys_of(c))

    @cached_property
    def _position(self) -> dict[str, int]:
        return {column.name: index for index, column in enumerate(self.columns)}

    @cached_property
    def variables(self) -> tuple[Variable, ...]:
        """The columns as models know them."""
        return tuple(column.variable for column in self.columns)

    @cached_property
    def feature_names(self) -> tuple[str, ...]:
        """The names of the columns that `encode` returns."""
        return tuple(name for variable in self.variables for name in variable.features)

    @cached_property
    def feature_keys(self) -> tuple[str, ...]:
        """The key of each feature's parameter."""
        return tuple(variable.key for variable in self.variables for _ in variable.features)

    @property
    def listed(self) -> "Matrix | None":
        """All feasible values (n, columns), where one listing has every column; else None."""
        for columns, rows, _ in self._listed:
            if len(columns) == len(self.columns):
                return np.asarray(rows[:, np.argsort(columns)])
        return None

    def restricted(self, keys: Iterable[str]) -> "Space":
        """Return the space of only these parameters; the others stay at their defaults."""
        wanted = set(keys)
        if unknown := wanted - {p.key for p in self.parameters}:
            raise ValueError(f"not in the space: {', '.join(sorted(unknown))}")
        chosen = tuple(p for p in self.parameters if p.key in wanted)
        return Space(chosen, self.constraints, self.defaults, self.followers)

    def joined(self, space: "Space") -> "Space":
        """Return the space of both, which have no key in common: sysctls and directives."""
        return Space(
            (*self.parameters, *space.parameters),
            (*self.constraints, *space.constraints),
            {**self.defaults, **space.defaults},
            self.followers | space.followers,
        )

    def broken(self, configuration: Configuration) -> tuple[Constraint, ...]:
        """Return the constraints that a configuration does not meet.

        A key that it does not name has its default; of one without a default nothing is known.
        """
        known = {k: v for k, v in self.defaults.items() if k not in self.followers}
        values = {**known, **configuration.values}
        numbers = {
            column.name: int(part)
            for p in self.parameters
            if p.is_numeric and p.key in values
            for column, part in zip(parameter_columns(p), values[p.key].split(), strict=True)
        }
        # Only plain integers can be partners from outside: a vector is in a space as a whole.
        numbers = {k: int(v) for k, v in values.items() if v.lstrip("-").isdecimal()} | numbers
        return tuple(c for c in self.constraints if not is_met(c, values, numbers))

    def together(self, configuration: Configuration, base: Configuration) -> list[set[str]]:
        """Return the keys that two configurations differ in, in groups that change together.

        Any mixture of groups from either configuration meets what both of them meet. Keys are in
        one group when a constraint between them is broken by a mixture.
        """
        defaults = self.defaults
        keys = [
            key
            for key in sorted({*configuration.values, *base.values})
            if configuration.values.get(key, defaults.get(key))
            != base.values.get(key, defaults.get(key))
        ]
        groups = [{key} for key in keys]
        accepted = {*self.broken(configuration), *self.broken(base)}
        for constraint in self.constraints:
            partners = [key for key in keys_of(constraint) if key in keys]
            mixtures = (
                mixture(configuration, base, chosen)
                for count in range(1, len(partners))
                for chosen in combinations(partners, count)
            )
            if any(constraint in self.broken(m) for m in mixtures) and constraint not in accepted:
                joined = [group for group in groups if group & set(partners)]
                groups = [group for group in groups if group not in joined] + [set().union(*joined)]
        return groups

    def decode(self, genes: "Matrix") -> "Matrix":
        """Return feasible values (n, columns) for genes (n, columns) in [0, 1]."""
        values = np.empty_like(genes, dtype=np.float64)
        for index, column in enumerate(self.columns):
            gene = np.clip(genes[:, index], 0.0, 1.0)
            if column.component is None:
                count = len(column.parameter.choices)
                values[:, index] = np.minimum(np.floor(gene * count), count - 1)
            else:
                values[:, index] = column.variable.at(gene)
        return self._repaired(values)

    def genes(self, values: "Matrix") -> "Matrix":
        """Return genes that `decode` to these values.

        A number outside of the range is clipped, if it is not the host's own.
        """
        genes = np.empty_like(values, dtype=np.float64)
        for index, column in enumerate(self.columns):
            if column.component is None:
                genes[:, index] = (values[:, index] + 0.5) / len(column.parameter.choices)
            else:
                genes[:, index] = column.variable.place(values[:, index])
        return genes

    def encode(self, values: "Matrix") -> "Matrix":
        """Return features (n, features) for values (n, columns)."""
        return encode(self.variables, values)

    def configurations(self, values: "Matrix") -> list[Configuration]:
        """Return the configurations of values (n, columns), one a row.

        What has the host's own value, and no other of its range, is not named.
        """
        return [self._configuration(row) for row in values]

    def values(self, configurations: Sequence[Configuration]) -> "Matrix":
        """Return values (n, columns), with defaults for what a configuration does not name.

        A default that is none of the choices counts as the first one.
        """
        rows = [
            [number for p in self.parameters for number in self._numbers(p, configuration)]
            for configuration in configurations
        ]
        return np.array(rows, dtype=np.float64).reshape(len(rows), len(self.columns))

    def _configuration(self, row: "Matrix") -> Configuration:
        result: dict[str, str] = {}
        position = 0
        for parameter in self.parameters:
            if parameter.is_numeric:
                end = position + len(parameter.components)
                if row[position] != self.columns[position].own:
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

    def _repaired(self, values: "Matrix") -> "Matrix":
        """Return values moved as little as needed to meet every constraint."""
        # A chain of orders (a <= b, b <= c) may need one pass for each of its links.
        for _ in range(len(self.constraints) + 1):
            before = values.copy()
            for order in self._orders:
                self._put_in_order(values, order)
            for constraint in self.constraints:
                if isinstance(constraint, Requirement):
                    self._meet(values, constraint)
            for capacity in self._capacities:
                self._make_room(values, capacity)
            for columns, rows, tree in self._listed:
                values[:, columns] = rows[tree.query(self._places(columns, values[:, columns]))[1]]
            if np.array_equal(before, values):
                break
        return values

    def _put_in_order(self, values: "Matrix", order: Order) -> None:
        # Within their reach, raising each to its predecessor never gets beyond a successor.
        floor: Matrix | float = -inf
        for name, (low, high) in zip(order.columns, self._reaches(order), strict=True):
            if name in self._position:
                column = self._position[name]
                values[:, column] = np.maximum(np.clip(values[:, column], low, high), floor)
                floor = values[:, column] + order.gap
            else:
                floor = low + order.gap

    @cached_property
    def _orders(self) -> tuple[Order, ...]:
        return tuple(c for c in self.constraints if isinstance(c, Order) and self._concerns(c))

    @cached_property
    def _capacities(self) -> tuple[Capacity, ...]:
        return tuple(c for c in self.constraints if isinstance(c, Capacity) and self._concerns(c))

    def _concerns(self, constraint: Order | Capacity) -> bool:
        """Return whether a constraint is about this space, with every partner known."""
        names = constraint.columns
        is_ours = any(name in self._position for name in names)
        return is_ours and all(self._bounds(name) is not None for name in names)

    def _range(self, name: str) -> tuple[float, float]:
        """Return the range of a column, as far as orders and capacities allow."""
        if name in self._reach:
            return self._reach[name]
        bounds = self._bounds(name)
        return (-inf, inf) if bounds is None else bounds

    def _make_room(self, values: "Matrix", capacity: Capacity) -> None:
        """More pieces first, then larger ones, as far as both may go, then less that is held."""

        def of(name: str) -> "Matrix":
            if name in self._position:
                return values[:, self._position[name]]
            return np.full(len(values), self._range(name)[0])

        lacks = (of(capacity.count) - 1) * of(capacity.size) < of(capacity.held)
        for name, partner in ((capacity.count, capacity.size), (capacity.size, capacity.count)):
            if name in self._position:
                less = 1 if partner == capacity.count else 0
                needed = np.ceil(of(capacity.held) / (of(partner) - less)) + (1 - less)
                enough = np.clip(np.maximum(of(name), needed), None, self._range(name)[1])
                values[:, self._position[name]] = np.where(lacks, enough, of(name))
        if capacity.held in self._position:
            room = (of(capacity.count) - 1) * of(capacity.size)
            values[:, self._position[capacity.held]] = np.minimum(of(capacity.held), room)

    @cached_property
    def _reach(self) -> dict[str, tuple[float, float]]:
        """The range of each column in an order or capacity, as far as its partners allow."""
        names = dict.fromkeys(
            [name for order in self._orders for name in order.columns]
            + [name for capacity in self._capacities for name in capacity.columns]
        )
        reach = {name: bounds for name in names if (bounds := self._bounds(name)) is not None}
        # A chain of orders (a <= b, b <= c) may need one pass for each of its links.
        for _ in range(len(self._orders) + len(self._capacities)):
            for capacity in self._capacities:
                (_, count), (_, size), (low, high) = (reach[name] for name in capacity.columns)
                reach[capacity.held] = low, min(high, (count - 1) * size)
            for order in self._orders:
                for a, b in pairwise(order.columns):
                    reach[b] = max(reach[b][0], reach[a][0] + order.gap), reach[b][1]
                for b, a in pairwise(reversed(order.columns)):
                    reach[a] = reach[a][0], min(reach[a][1], reach[b][1] - order.gap)
        return reach

    def _reaches(self, order: Order) -> list[tuple[float, float]]:
        return [self._reach[name] for name in order.columns]

    def _bounds(self, name: str) -> tuple[float, float] | None:
        """Return a column's range, the default of a parameter outside of the space, or None."""
        if name in self._position:
            component = self.columns[self._position[name]].component
            return None if component is None else (component.low, component.high)
        # Only plain integers can be partners from outside: a vector is in a space as a whole.
        default = None if name in self.followers else self.defaults.get(name)
        return None if default is None else (float(default), float(default))

    @cached_property
    def _listed(self) -> "list[tuple[list[int], Matrix, KDTree]]":
        """Each listing's columns, its rows with the defaults of other columns, and their places."""
        listings = [c for c in self.constraints if isinstance(c, Listing)]
        if not listings:
            return []
        from scipy.spatial import KDTree

        trees: list[tuple[list[int], Matrix, KDTree]] = []
        for listing in listings:
            rows = np.array(listing.rows, dtype=np.float64)
            here = [n for n, name in enumerate(listing.columns) if name in self._position]
            for place, name in enumerate(listing.columns):
                if name not in self._position:
                    rows = rows[rows[:, place] == float(self.defaults[name])]
            if not here:
                continue
            if not len(rows):
                raise ValueError("no listed row has the defaults of the parameters left out")
            columns = [self._position[listing.columns[n]] for n in here]
            rows = rows[:, here]
            trees.append((columns, rows, KDTree(self._places(columns, rows))))
        return trees

    def _places(self, columns: Sequence[int], values: "Matrix") -> "Matrix":
        """Return where values (n, columns) of these columns stand in their ranges."""
        places = [self.variables[c].place(values[:, n]) for n, c in enumerate(columns)]
        return np.column_stack(places)

    def _meet(self, values: "Matrix", requirement: Requirement) -> None:
        column = self._position.get(requirement.key)
        choices = () if column is None else self.columns[column].parameter.choices
        wanted = [choices.index(v) for v in requirement.values if v in choices]
        if column is not None:
            active = np.isin(values[:, column], wanted)
        elif self.defaults.get(requirement.key) in requirement.values:
            active = np.full(len(values), fill_value=True)
        else:
            return
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
        inactive_choices = [i for i in range(len(choices)) if i not in wanted]
        if column is not None and inactive_choices:
            values[active, column] = inactive_choices[0]
