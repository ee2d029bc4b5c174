"""Encoding: values of a configuration as the numbers that models see."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from intop.deferred import Deferred
from intop.domain.parameter import Scale

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Matrix = NDArray[np.float64]
else:
    np = Deferred("numpy")

OWN_SHARE = 0.1
"""The share of places for the host's own value, where that is outside of the range."""


@dataclass(frozen=True, kw_only=True)
class Variable:
    """One number of a configuration, as models know it.

    Raises ValueError for a range that is none on its scale.
    """

    name: str
    """The key, with the component in brackets where there are several."""
    key: str
    """The parameter's key, or the name of a foreign table's column."""
    low: float = 0.0
    high: float = 1.0
    """The ends of a number's range."""
    scale: Scale = "linear"
    choices: tuple[str, ...] = ()
    """The choices; with any, the number is the index of one of them."""
    own: float | None = None
    """The host's own value if that is outside the range, as 0 for a feature that is off."""

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
        """Return whether a number is in the range, or the host's own."""
        return self.low <= number <= self.high or number == self.own

    def place(self, numbers: "Matrix") -> "Matrix":
        """Return places of numbers in the range, from 0 to 1. Numbers outside get the nearer end.

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

    def at(self, places: "Matrix") -> "Matrix":
        """Return the whole numbers at places from 0 to 1, as `place` has them."""
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

    def beside_own(self, places: "Matrix") -> "Matrix":
        """Return places in the range, moved where the host's own value has a place as well."""
        if self.own is None:
            return places
        return np.asarray(OWN_SHARE * self._is_below + (1 - OWN_SHARE) * places)

    @property
    def _is_below(self) -> bool:
        """Whether the host's own number is below the range."""
        return self.own is not None and self.own < self.low

    def in_terms_of(self, variable: "Variable", numbers: "Matrix", unheard: float) -> "Matrix":
        """Return numbers (n,) as a variable with other choices, or another order, has them.

        A choice that it does not have becomes `unheard`.
        """
        if self.choices == variable.choices:
            return numbers
        theirs = variable.choices
        known = [float(theirs.index(c)) if c in theirs else unheard for c in self.choices]
        return np.asarray(np.array(known)[numbers.astype(int)], dtype=np.float64)

    def encode(self, numbers: "Matrix") -> "Matrix":
        """Return features (n, f) of numbers (n,)."""
        if len(self.choices) > 2:
            is_chosen = numbers[:, None] == np.arange(len(self.choices))
            return np.asarray(is_chosen, dtype=np.float64)
        return numbers[:, None] if self.choices else self.place(numbers)[:, None]


def encode(variables: Sequence[Variable], values: "Matrix") -> "Matrix":
    """Return features (n, features) for values (n, variables)."""
    blocks = [v.encode(values[:, index]) for index, v in enumerate(variables)]
    return np.hstack(blocks) if blocks else np.empty((len(values), 0))


def __getattr__(name: str) -> Any:
    """Return `Matrix`, which needs numpy, for those who ask for it at run time."""
    if name == "Matrix":
        from numpy.typing import NDArray

        return NDArray[np.float64]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
