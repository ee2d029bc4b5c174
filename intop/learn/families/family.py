"""What all families have in common."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from intop.domain.encoding import Matrix, Variable
from intop.learn import preprocess
from intop.learn.preprocess import Hyperparameters

if TYPE_CHECKING:
    from optuna import Trial


@dataclass(frozen=True, kw_only=True)
class Family:
    """One kind of model.

    `defaults` are hyper-parameters that do well without any search. `suggest_model` draws those
    of the regressor, given the number of rows; `regressor` makes it from them and a seed. One whose
    time grows faster than n·log n learns from `most_rows`, and `growth` says what it grows with.
    `members` gives predictions (members, n) of a fitted regressor for features (n, f), the mean of
    which is its own, without the checks that cost more than a population of trees.
    """

    name: str
    is_tree: bool
    defaults: Mapping[str, float | int | str | bool]
    suggest_model: "Callable[[Trial, int], Hyperparameters]"
    regressor: Callable[[Hyperparameters, int], Any]
    most_rows: int | None = None
    growth: str = ""
    members: Callable[[Any, Matrix], Matrix] | None = None

    def suggest(self, trial: "Trial", rows: int) -> Hyperparameters:
        """All hyper-parameters of the pipeline, for a training set of `rows`."""
        # A tree splits by one feature at a time, and PCA puts an option into many of them.
        chosen = preprocess.suggest(trial, pca=not self.is_tree)
        return {**chosen, **self.suggest_model(trial, rows)}

    def build(
        self, variables: Sequence[Variable], hyperparameters: Hyperparameters, seed: int
    ) -> Any:
        """An unfitted scikit-learn Pipeline from values (n, variables) to the log target (n,)."""
        regressor = self.regressor(hyperparameters, seed)
        if self.most_rows is not None:
            from intop.learn.families.part_of_rows import PartOfRows

            regressor = PartOfRows(regressor, self.most_rows, seed)
        return preprocess.pipeline(variables, regressor, hyperparameters)

    def limit(self, rows: int) -> str | None:
        """A line for the user where it would not learn from all of so many rows."""
        if self.most_rows is None or rows <= self.most_rows:
            return None
        return (
            f"{self.name} learns from {self.most_rows:,} random configurations of {rows:,}: "
            f"its time grows with {self.growth}"
        )


def scaled_target(regressor: Any) -> Any:
    """For models that are not indifferent to the scale of what they predict."""
    from sklearn.compose import TransformedTargetRegressor
    from sklearn.preprocessing import StandardScaler

    return TransformedTargetRegressor(regressor=regressor, transformer=StandardScaler())
