"""Encoding: values of a configuration as the numbers that models see."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from intop.domain.parameter import Scale

Matrix = NDArray[np.float64]


OWN_SHARE = 0.1
"""Of a number's places, for the host's own value where that is outside of the range."""


@dataclass(frozen=True, kw_only=True)
class Variable:
    """One number of a configuration, as models know it.

    `key` is the parameter's (a column's, in a foreign table), `name` has the component too. A
    number has a range from `low` to `high` on its `scale`; a name has `choices`, and its number is
    the index of one of them. `own` is the host's own value if that is outside the range, such as 0
    for a feature that is switched off. It is one more possible value. Raises ValueError for a range
    that is none on its scale.
    """

    name: str
    key: str
    low: float = 0.0
    high: float = 1.0
    scale: Scale = "linear"
    choices: tuple[str, ...] = ()
    own: float | None = None

    def __post_init__(self) -> None:
        if not self.choices and not self.low < self.high:
            raise ValueError(f"{self.name}: {self.low:g} to {self.high:g} is no range")
        if self.scale == "log" and self.low <= 0:
            raise ValueError(f"{self.name}: {self.low:g} has no place on a logarithmic scale")

    @property
    def features(self) -> tuple[str, ...]:
        """Names of its features: one for each choice where there are more than two."""
        if len(self.choices) > 2:
            return tuple(f"{self.name}={choice}" for choice in self.choices)
        return (self.name,)

    def has(self, number: float) -> bool:
        """Whether a number is in the range, or the host's own."""
        return self.low <= number <= self.high or number == self.own

    def place(self, numbers: Matrix) -> Matrix:
        """Places of numbers in the range, from 0 to 1. Numbers outside it get the nearer end.

        The host's own number stands at the end on its side: at 0 if it is below the range, at 1 if
        it is above. OWN_SHARE of the places next to it are its own, and the range has the others.
        """
        inside = np.clip(numbers, self.low, self.high)
        if self.scale == "log":
            place = np.log(inside / self.low) / np.log(self.high / self.low)
        else:
            place = (inside - self.low) / (self.high - self.low)
        if self.own is not None:
            place = self.beside_own(place)
            place = np.where(numbers == self.own, 1 - self._is_below, place)
        return np.asarray(place, dtype=np.float64)

    def at(self, places: Matrix) -> Matrix:
        """The whole numbers at places from 0 to 1, as `place` has them."""
        inside = places
        if self.own is not None:
            inside = (places - OWN_SHARE * self._is_below) / (1 - OWN_SHARE)
            inside = np.clip(inside, 0.0, 1.0)
        if self.scale == "log":
            numbers = np.rint(self.low * (self.high / self.low) ** inside)
        else:
            numbers = np.rint(self.low + inside * (self.high - self.low))
        if self.own is not None:
            is_own = places < OWN_SHARE if self._is_below else places > 1 - OWN_SHARE
            numbers = np.where(is_own, self.own, numbers)
        return np.asarray(numbers, dtype=np.float64)

    def beside_own(self, places: Matrix) -> Matrix:
        """Places in the range, as they are where the host's own value has one as well."""
        if self.own is None:
            return places
        return np.asarray(OWN_SHARE * self._is_below + (1 - OWN_SHARE) * places)

    @property
    def _is_below(self) -> bool:
        """Whether the host's own number is below the range."""
        return self.own is not None and self.own < self.low

    def told_as(self, other: "Variable", numbers: Matrix, unheard: float) -> Matrix:
        """Numbers (n,) as `other` has them, whose choices may be others, or in another order.

        A choice that it does not have becomes `unheard`.
        """
        if self.choices == other.choices:
            return numbers
        known = [
            float(other.choices.index(c)) if c in other.choices else unheard for c in self.choices
        ]
        return np.asarray(np.array(known)[numbers.astype(int)], dtype=np.float64)

    def encode(self, numbers: Matrix) -> Matrix:
        """Features (n, f) of numbers (n,)."""
        if len(self.choices) > 2:
            is_chosen = numbers[:, None] == np.arange(len(self.choices))
            return np.asarray(is_chosen, dtype=np.float64)
        return numbers[:, None] if self.choices else self.place(numbers)[:, None]


def encode(variables: Sequence[Variable], values: Matrix) -> Matrix:
    """Features (n, features) for values (n, variables)."""
    blocks = [v.encode(values[:, index]) for index, v in enumerate(variables)]
    return np.hstack(blocks) if blocks else np.empty((len(values), 0))
