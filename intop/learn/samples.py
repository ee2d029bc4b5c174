"""Samples: what models are trained on, one row for each configuration."""

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import median

import numpy as np
from numpy.typing import NDArray

from intop.domain.encoding import Matrix, Variable

Vector = NDArray[np.float64]
Rows = NDArray[np.intp]


@dataclass(frozen=True, kw_only=True)
class Samples:
    """Configurations with the measurements of each.

    Raises ValueError for different lengths, a row without a trial, and a target that has no
    logarithm.
    """

    variables: tuple[Variable, ...]
    values: Matrix
    """Values in units of the kernel or of a foreign table (n, variables)."""
    measured: tuple[tuple[float, ...], ...]
    """The positive values of the target (P99 in ms, or a table's) of each row's trials."""
    lent: int = 0
    """The number of last rows that are another stage's, with changes of other parameters, too.

    Models learn from them, and are not judged by them.
    """

    def __post_init__(self) -> None:
        if self.values.shape != (len(self.measured), len(self.variables)):
            raise ValueError(
                f"{len(self.measured)} rows of {len(self.variables)} variables don't have the "
                f"shape {self.values.shape}"
            )
        if not all(self.measured):
            raise ValueError("each configuration needs a trial at least")
        if not all(math.isfinite(v) and v > 0 for trials in self.measured for v in trials):
            raise ValueError("every value of the target must be a positive number")

    def __len__(self) -> int:
        return len(self.measured)

    @property
    def own(self) -> "Samples":
        """The rows that are not lent."""
        return self.rows(range(len(self) - self.lent)) if self.lent else self

    def lending(self, lent: "Samples") -> "Samples":
        """Return these rows, and those of samples of the same variables as lent ones."""
        if not len(lent):
            return self
        return Samples(
            variables=self.variables,
            values=np.vstack([self.values, lent.values]),
            measured=self.measured + lent.measured,
            lent=self.lent + len(lent),
        )

    @cached_property
    def log_target(self) -> Vector:
        """The median of the logarithms of each row's trials (n,): what models learn.

        A median, since trials on a lossy link have modes, a retransmission more or less, and one
        that stalled is not to move it. Of one or two trials it is their geometric mean.
        """
        return np.array([median(map(math.log, trials)) for trials in self.measured])

    @cached_property
    def digest(self) -> str:
        """A name that tells these samples from all others."""
        known = hashlib.sha256(repr((self.variables, self.measured, self.lent)).encode())
        known.update(np.ascontiguousarray(self.values).tobytes())
        return known.hexdigest()

    def part(self, most: int, seed: int) -> "Samples":
        """Return at most so many of the rows, drawn at random."""
        if len(self) <= most:
            return self
        return self.rows(
            np.sort(np.random.default_rng(seed).choice(len(self), most, replace=False))
        )

    def rows(self, which: Rows | Sequence[int]) -> "Samples":
        """Return these rows alone, in this order, in which the lent ones have to be the last."""
        chosen = np.asarray(which, dtype=np.intp)
        part = Samples(
            variables=self.variables,
            values=self.values[chosen],
            measured=tuple(self.measured[n] for n in which),
            lent=int(np.sum(chosen >= len(self) - self.lent)),
        )
        # A search takes parts hundreds of times: their medians are known already.
        part.__dict__["log_target"] = self.log_target[chosen]
        return part


@dataclass(frozen=True)
class Fold:
    """One split of the rows; in the one that is for use rather than judged, none is held out."""

    training: Rows
    held_out: Rows


def split(count: int, folds: int, seed: int) -> list[Fold]:
    """Return at most `folds` of them, each of which holds out about as many rows as the others."""
    from sklearn.model_selection import KFold

    splitter = KFold(n_splits=min(folds, count), shuffle=True, random_state=seed % 2**32)
    return [Fold(train, test) for train, test in splitter.split(np.empty(count))]


def everything(count: int) -> Fold:
    """Return all rows, and none held out."""
    rows = np.arange(count)
    return Fold(rows, rows[:0])
