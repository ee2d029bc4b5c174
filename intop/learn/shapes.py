"""Shapes of effects, and the part of a response that they explain."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np

from intop.domain.encoding import Matrix, Variable
from intop.domain.stats import student_quantile
from intop.learn.samples import Rows, Vector

ENTERS = 0.0005
"""The p-value of Student's t below which a shape is taken to explain part of the response. With
hundreds of shapes the best of those that explain nothing has a low one, too: they would stand in
for the parameter that is tested, and hide what it does."""

MOST_SHAPES = 20
"""Shapes that explain the response together, at most, and at most a third of the configurations."""

CLIP = 1.5
"""Robust standard deviations beyond which a residual counts as no farther away. Some trials meet a
time-out or an overload, which says nothing of their configuration."""

CLIP_ROUNDS = 5

KNOTS = (0.25, 0.75)
"""The places of a range where steps are looked for. One at its middle looks like a slope."""


@dataclass(frozen=True)
class Shapes:
    """The forms that an effect may have."""

    keys: tuple[str, ...]
    columns: Matrix
    """Each goes from 0 to 1 over a range (n, shapes)."""
    owner: Rows
    """The index of each shape's parameter in `keys` (shapes,)."""

    @classmethod
    def of(cls, variables: Sequence[Variable], values: Matrix) -> "Shapes":
        """Return the shapes of values (n, variables)."""
        keys = tuple(dict.fromkeys(v.key for v in variables))
        columns, owner = [], []
        for variable, numbers in zip(variables, values.T, strict=True):
            shapes = _shapes(variable, numbers)
            columns += shapes
            owner += [keys.index(variable.key)] * len(shapes)
        matrix = np.array(columns, dtype=np.float64).reshape(len(columns), len(values)).T
        return cls(keys, matrix, np.array(owner, dtype=np.intp))

    @cached_property
    def standard(self) -> Matrix:
        """The columns with mean 0 and length 1; 0 where a column is the same everywhere."""
        return scaled(self.columns - self.columns.mean(axis=0))


def _shapes(variable: Variable, numbers: Vector) -> list[Vector]:
    """Return a slope, a bow about the middle, and steps of a number; each choice of a name.

    One of the steps is from the host's own value to any other, where it is outside of the range.
    """
    if variable.choices:
        count = len(variable.choices)
        return [
            np.asarray(numbers == n, dtype=np.float64) for n in range(count if count > 2 else 1)
        ]
    place = variable.place(numbers)
    steps = [np.asarray(place > knot, dtype=np.float64) for knot in KNOTS]
    if variable.own is not None:
        steps.append(np.asarray(numbers != variable.own, dtype=np.float64))
    return [place, 4 * (place - 0.5) ** 2, *steps]


def scaled(columns: Matrix) -> Matrix:
    """Return columns (n, shapes) of length 1; 0 where a column has none."""
    lengths = np.linalg.norm(columns, axis=0)
    return np.asarray(columns / np.where(lengths > 1e-9, lengths, np.inf))


@dataclass(frozen=True)
class Fit:
    """The part of a response that shapes explain."""

    picked: tuple[int, ...]
    basis: Matrix
    """Orthonormal (n, 1 + picked)."""
    clipped: Vector
    """The response with its residuals clipped (n,), see CLIP."""
    inside: float
    """The share of the residuals that are not clipped."""

    @classmethod
    def on(cls, picked: tuple[int, ...], basis: Matrix, response: Vector) -> "Fit":
        """Return the fit of a response (n,) on an orthonormal basis (n, 1 + picked)."""
        clipped = _clipped(basis, response)
        inside = np.isclose(clipped, response, rtol=0, atol=1e-9)
        return cls(picked, basis, clipped, max(0.1, float(np.mean(inside))))

    @property
    def rest(self) -> Vector:
        """The residuals (n,)."""
        return np.asarray(self.clipped - self.basis @ (self.basis.T @ self.clipped))

    def first_share(self, shapes: Shapes) -> float:
        """Return the share of the clipped response's variance that the first shape explains."""
        centred = self.clipped - self.clipped.mean()
        return float((centred @ shapes.standard[:, self.picked[0]]) ** 2 / (centred @ centred))

    def without(self, shapes: Shapes, key: int) -> Matrix:
        """Return a basis of the shapes that were picked of other parameters."""
        kept_shapes = [n for n in self.picked if shapes.owner[n] != key]
        if len(kept_shapes) == len(self.picked):
            return self.basis
        constant = np.ones((len(self.clipped), 1))
        basis, _ = np.linalg.qr(np.hstack([constant, shapes.standard[:, kept_shapes]]))
        return np.asarray(basis)


def explained(shapes: Shapes, response: Vector, without: int | None = None) -> Fit:
    """Pick shapes one after the other, each the one that explains most of what is left.

    Orthogonal matching pursuit (Pati, Rezaiifar and Krishnaprasad, 1993), on clipped residuals.
    `without` is a parameter that may explain nothing.
    """
    count = len(response)
    allowed = shapes.owner != without
    basis = np.full((count, 1), 1 / math.sqrt(count))
    fit = Fit.on((), basis, response)
    while len(fit.picked) < min(MOST_SHAPES, count // 3):
        left = shapes.standard - fit.basis @ (fit.basis.T @ shapes.standard)
        lengths = np.linalg.norm(left, axis=0)
        # What is nearly the same as what was picked before would only fit noise.
        usable = allowed & (lengths > 0.3)
        length = float(np.linalg.norm(fit.rest))
        if not usable.any() or length < 1e-9:
            break
        correlations = np.abs(fit.rest @ left) / np.where(usable, lengths, np.inf)
        best = int(correlations.argmax())
        correlation = min(float(correlations[best]) / length, 1 - 1e-12)
        freedom = count - len(fit.picked) - 2
        if correlation * math.sqrt(freedom / (1 - correlation**2)) < _enters(freedom):
            break
        basis = np.hstack([fit.basis, (left[:, best] / lengths[best])[:, None]])
        fit = Fit.on((*fit.picked, best), basis, response)
    return fit


@cache
def _enters(freedom: int) -> float:
    """Student's t of a shape that enters."""
    return student_quantile(1 - ENTERS, freedom)


def _clipped(basis: Matrix, response: Vector) -> Vector:
    """Return the response (n,) with clipped residuals.

    By CLIP_ROUNDS rounds of Huber's pseudo-values (Annals of Statistics 1, 1973, 799-821).
    """
    pseudo = response
    for _ in range(CLIP_ROUNDS):
        fitted = basis @ (basis.T @ pseudo)
        left = response - fitted
        reach = CLIP * 1.4826 * float(np.median(np.abs(left - np.median(left))))
        if reach <= 0:
            break
        pseudo = fitted + np.clip(left, -reach, reach)
    return np.asarray(pseudo)
