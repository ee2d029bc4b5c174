"""The encoder, as a step of scikit-learn's. Loaded late: scikit-learn takes a second."""

from collections.abc import Sequence
from typing import Self

from sklearn.base import BaseEstimator, TransformerMixin

from intop.domain.encoding import Matrix, Variable, encode


class Encoder(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Values (n, variables) to features (n, f), as `encode`. There is nothing to learn for it."""

    def __init__(self, variables: Sequence[Variable]) -> None:
        self.variables = variables

    def fit(self, values: Matrix, _target: object = None) -> Self:
        """Nothing but what scikit-learn asks of a fitted step."""
        self.n_features_in_ = values.shape[1]
        return self

    def transform(self, values: Matrix) -> Matrix:
        """Features (n, f). Raises ValueError for another number of columns."""
        if values.shape[1] != len(self.variables):
            raise ValueError(f"{values.shape[1]} columns for {len(self.variables)} variables")
        return encode(self.variables, values)
