"""Constraints: what must hold between the values of a configuration."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True, kw_only=True)
class Order:
    """Numbers that never decrease from one to the next."""

    columns: tuple[str, ...]
    """Names such as `net.ipv4.tcp_rmem[min]`, or the key itself for an integer."""
    gap: int = 0
    """The least difference of neighbours, in the kernel's unit."""
    why: str = ""


@dataclass(frozen=True, kw_only=True)
class Requirement:
    """A requirement: when `key` has one of `values`, `needs` must have one of `to_be`."""

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
    """A held amount fits into all but one of several pieces: (count - 1) size >= held.

    nginx asks that of its buffers (`proxy_busy_buffers_size`). All three are keys of integers.
    """

    count: str
    size: str
    held: str
    why: str = ""

    @property
    def columns(self) -> tuple[str, ...]:
        """The keys of all three numbers."""
        return (self.count, self.size, self.held)

    def __str__(self) -> str:
        return f"{self.held} <= ({self.count} - 1) x {self.size}"


Constraint = Order | Requirement | Exclusion | Listing | Capacity


def is_met(constraint: Constraint, values: Mapping[str, str], numbers: Mapping[str, float]) -> bool:
    """Return whether values by key, and numbers by column, meet a constraint.

    Nothing is known of a value that is missing. An exclusion is always met: a space holds one of
    its keys.
    """
    if isinstance(constraint, Order):
        known = [numbers[name] for name in constraint.columns if name in numbers]
        return all(a + constraint.gap <= b for a, b in pairwise(known))
    if isinstance(constraint, Requirement):
        needed = values.get(constraint.needs)
        active = values.get(constraint.key) in constraint.values
        return not active or needed is None or needed in constraint.to_be
    if isinstance(constraint, Exclusion) or not set(constraint.columns) <= set(numbers):
        return True
    row = tuple(numbers[name] for name in constraint.columns)
    if isinstance(constraint, Listing):
        return row in constraint.rows
    count, size, held = row
    return (count - 1) * size >= held


def keys_of(constraint: Constraint) -> list[str]:
    """Return the keys that a constraint is about, each once."""
    if isinstance(constraint, Requirement):
        return list(dict.fromkeys((constraint.key, constraint.needs)))
    if isinstance(constraint, Exclusion):
        return list(constraint.keys)
    return list(dict.fromkeys(name.partition("[")[0] for name in constraint.columns))
