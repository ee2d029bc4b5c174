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
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from intop.domain.configuration import Configuration
from intop.domain.encoding import Matrix, Variable, encode
from intop.domain.parameter import Component, Parameter, normalised

if TYPE_CHECKING:
    from scipy.spatial import KDTree


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


@dataclass(frozen=True, kw_only=True)
class Listing:
    """The only numbers that these columns have together, a row each (kernel's unit).

    It makes a space of what a table has, of which nothing else was measured.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[int, ...], ...]
    why: str = ""


@dataclass(frozen=True, kw_only=True)
class Capacity:
    """What `held` is fits into all but one of `count` pieces of `size`: (count - 1) size >= held.

    nginx asks that of its buffers (`proxy_busy_buffers_size`). All three are keys of integers.
    """

    count: str
    size: str
    held: str
    why: str = ""

    @property
    def columns(self) -> tuple[str, ...]:
        """The numbers that it is about."""
        return (self.count, self.size, self.held)


Constraint = Order | Requirement | Exclusion | Listing | Capacity


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
    """The columns of one parameter, in the order in which the kernel prints them."""
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
                raise ValueError(f"no configuration meets: {_told(capacity)}")
        _ = self._listed

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """What `genes` and `values` have as columns."""
        found = (c for parameter in self.parameters for c in parameter_columns(parameter))
        return tuple(replace(c, own=self._own(c)) for c in found)

    def _own(self, column: Column) -> float | None:
        """The host's own number, where its range doesn't have that and nothing else hangs on it.

        One of several components can't be left out of a configuration, nor what a constraint moves.
        """
        component, key = column.component, column.parameter.key
        if component is None or component.name or key in self._constrained:
            return None
        number = float(self.defaults[key])
        return None if component.low <= number <= component.high else number

    @cached_property
    def _constrained(self) -> frozenset[str]:
        return frozenset(key for c in self.constraints for key in _keys_of(c))

    @cached_property
    def _position(self) -> dict[str, int]:
        return {column.name: index for index, column in enumerate(self.columns)}

    @cached_property
    def variables(self) -> tuple[Variable, ...]:
        """The columns as models know them."""
        return tuple(column.variable for column in self.columns)

    @cached_property
    def feature_names(self) -> tuple[str, ...]:
        """What `encode` returns as columns."""
        return tuple(name for variable in self.variables for name in variable.features)

    @cached_property
    def feature_keys(self) -> tuple[str, ...]:
        """For each feature the key of its parameter."""
        return tuple(variable.key for variable in self.variables for _ in variable.features)

    def restricted(self, keys: Iterable[str]) -> "Space":
        """The space of only these parameters; the others stay at their defaults."""
        wanted = set(keys)
        if unknown := wanted - {p.key for p in self.parameters}:
            raise ValueError(f"not in the space: {', '.join(sorted(unknown))}")
        chosen = tuple(p for p in self.parameters if p.key in wanted)
        return Space(chosen, self.constraints, self.defaults, self.followers)

    def joined(self, other: "Space") -> "Space":
        """One space of both, whose keys are others: sysctls and nginx's directives."""
        return Space(
            (*self.parameters, *other.parameters),
            (*self.constraints, *other.constraints),
            {**self.defaults, **other.defaults},
            self.followers | other.followers,
        )

    def broken(self, configuration: Configuration) -> tuple[Constraint, ...]:
        """The orders and requirements that a configuration does not meet.

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

        def is_met(constraint: Constraint) -> bool:
            if isinstance(constraint, Order):
                known = [numbers[name] for name in constraint.columns if name in numbers]
                return all(a + constraint.gap <= b for a, b in pairwise(known))
            if isinstance(constraint, Requirement):
                needed = values.get(constraint.needs)
                active = values.get(constraint.key) in constraint.values
                return not active or needed is None or needed in constraint.to_be
            if isinstance(constraint, Listing):
                row = tuple(numbers[name] for name in constraint.columns if name in numbers)
                return len(row) < len(constraint.columns) or row in constraint.rows
            if isinstance(constraint, Capacity) and set(constraint.columns) <= set(numbers):
                count, size, held = (numbers[name] for name in constraint.columns)
                return (count - 1) * size >= held
            return True

        return tuple(c for c in self.constraints if not is_met(c))

    def together(self, configuration: Configuration, base: Configuration) -> list[set[str]]:
        """The keys that two configurations differ in, in groups that only change together.

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
            partners = [key for key in _keys_of(constraint) if key in keys]
            mixtures = (
                mixture(configuration, base, chosen)
                for count in range(1, len(partners))
                for chosen in combinations(partners, count)
            )
            if any(constraint in self.broken(m) for m in mixtures) and constraint not in accepted:
                joined = [group for group in groups if group & set(partners)]
                groups = [group for group in groups if group not in joined] + [set().union(*joined)]
        return groups

    def decode(self, genes: Matrix) -> Matrix:
        """Feasible values (n, columns) for genes (n, columns) in [0, 1]."""
        values = np.empty_like(genes, dtype=np.float64)
        for index, column in enumerate(self.columns):
            gene = np.clip(genes[:, index], 0.0, 1.0)
            if column.component is None:
                count = len(column.parameter.choices)
                values[:, index] = np.minimum(np.floor(gene * count), count - 1)
            else:
                values[:, index] = column.variable.at(gene)
        return self._repaired(values)

    def genes(self, values: Matrix) -> Matrix:
        """Genes that `decode` to these values.

        A number outside of the range is clipped, if it is not the host's own.
        """
        genes = np.empty_like(values, dtype=np.float64)
        for index, column in enumerate(self.columns):
            if column.component is None:
                genes[:, index] = (values[:, index] + 0.5) / len(column.parameter.choices)
            else:
                genes[:, index] = column.variable.place(values[:, index])
        return genes

    def encode(self, values: Matrix) -> Matrix:
        """Features (n, features) for values (n, columns)."""
        return encode(self.variables, values)

    def configurations(self, values: Matrix) -> list[Configuration]:
        """The configurations of values (n, columns), one a row.

        What has the host's own value, and no other of its range, is not named.
        """
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

    def _repaired(self, values: Matrix) -> Matrix:
        """Values moved as little as needed to meet every constraint."""
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

    def _put_in_order(self, values: Matrix, order: Order) -> None:
        # Within their reach, raising each to its predecessor never gets beyond a successor.
        floor: Matrix | float = -np.inf
        for name, (low, high) in zip(order.columns, self._reaches(order), strict=True):
            if name in self._position:
                column = self._position[name]
                values[:, column] = np.maximum(np.clip(values[:, column], low, high), floor)
                floor = values[:, column] + order.gap
            else:
                floor = low + order.gap

    @cached_property
    def _capacities(self) -> tuple[Capacity, ...]:
        """Those that concern this space, and of which every partner is known."""
        return tuple(
            c
            for c in self.constraints
            if isinstance(c, Capacity)
            and any(name in self._position for name in c.columns)
            and all(self._bounds(name) is not None for name in c.columns)
        )

    def _range(self, name: str) -> tuple[float, float]:
        """What a column can be, as far as orders and capacities allow."""
        if name in self._reach:
            return self._reach[name]
        bounds = self._bounds(name)
        return (-np.inf, np.inf) if bounds is None else bounds

    def _make_room(self, values: Matrix, capacity: Capacity) -> None:
        """More pieces first, then larger ones, as far as both may go, then less that is held."""

        def of(name: str) -> Matrix:
            if name in self._position:
                return values[:, self._position[name]]
            return np.full(len(values), self._range(name)[0])

        lacks = (of(capacity.count) - 1) * of(capacity.size) < of(capacity.held)
        for name, other in ((capacity.count, capacity.size), (capacity.size, capacity.count)):
            if name in self._position:
                less = 1 if other == capacity.count else 0
                needed = np.ceil(of(capacity.held) / (of(other) - less)) + (1 - less)
                enough = np.clip(np.maximum(of(name), needed), None, self._range(name)[1])
                values[:, self._position[name]] = np.where(lacks, enough, of(name))
        if capacity.held in self._position:
            room = (of(capacity.count) - 1) * of(capacity.size)
            values[:, self._position[capacity.held]] = np.minimum(of(capacity.held), room)

    @cached_property
    def _orders(self) -> tuple[Order, ...]:
        """The orders that concern this space, and of which every partner is known."""
        return tuple(
            c
            for c in self.constraints
            if isinstance(c, Order)
            and any(name in self._position for name in c.columns)
            and all(self._bounds(name) is not None for name in c.columns)
        )

    @cached_property
    def _reach(self) -> dict[str, tuple[float, float]]:
        """What each column in an order can be: its range, as far as its partners allow."""
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
        """The range of a column, the default of a parameter outside of the space, or None."""
        if name in self._position:
            component = self.columns[self._position[name]].component
            return None if component is None else (component.low, component.high)
        # Only plain integers can be partners from outside: a vector is in a space as a whole.
        default = None if name in self.followers else self.defaults.get(name)
        return None if default is None else (float(default), float(default))

    @cached_property
    def _listed(self) -> "list[tuple[list[int], Matrix, KDTree]]":
        """By listing: its columns here, its rows that have the others' defaults, their places."""
        listings = [c for c in self.constraints if isinstance(c, Listing)]
        if not listings:
            return []
        from scipy.spatial import KDTree

        found: list[tuple[list[int], Matrix, KDTree]] = []
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
            found.append((columns, rows, KDTree(self._places(columns, rows))))
        return found

    def _places(self, columns: Sequence[int], values: Matrix) -> Matrix:
        """Where values (n, columns) of these columns stand in their ranges."""
        places = [self.variables[c].place(values[:, n]) for n, c in enumerate(columns)]
        return np.column_stack(places)

    def _meet(self, values: Matrix, requirement: Requirement) -> None:
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
        others = [i for i in range(len(choices)) if i not in wanted]
        if column is not None and others:
            values[active, column] = others[0]


def mixture(
    configuration: Configuration, base: Configuration, keys: Iterable[str]
) -> Configuration:
    """The base with these keys as the configuration has them."""
    chosen = set(keys)
    ours = {k: v for k, v in configuration.values.items() if k in chosen}
    return Configuration({k: v for k, v in base.values.items() if k not in chosen} | ours)


def _told(capacity: Capacity) -> str:
    return f"{capacity.held} <= ({capacity.count} - 1) x {capacity.size}"


def _keys_of(constraint: Constraint) -> list[str]:
    """The keys that a constraint is about, each once."""
    if isinstance(constraint, Order | Listing | Capacity):
        return list(dict.fromkeys(name.partition("[")[0] for name in constraint.columns))
    if isinstance(constraint, Requirement):
        return list(dict.fromkeys((constraint.key, constraint.needs)))
    return list(constraint.keys)
