"""What stands before every regressor: encoding, normalisation, feature selection and PCA.

All of them are steps of the regressor's own pipeline, so that they are fitted on training rows
only and their settings are hyper-parameters like any others.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from intop.domain.encoding import Matrix, Variable

if TYPE_CHECKING:
    from optuna import Trial

Hyperparameters = dict[str, float | int | str | bool]

NO_PCA = 0.0
ALL_FEATURES: Hyperparameters = {"kept_percent": 100, "pca_variance": NO_PCA}


def suggest(trial: "Trial", *, pca: bool) -> Hyperparameters:
    """`kept_percent` of the features; `pca_variance`, the share that PCA keeps (0: no PCA).

    Without `pca` there is none to choose.
    """
    shares = (NO_PCA, 0.8, 0.95) if pca else (NO_PCA,)
    return {
        "kept_percent": trial.suggest_categorical("kept_percent", (25, 50, 75, 100)),
        "pca_variance": trial.suggest_categorical("pca_variance", shares),
    }


def pipeline(
    variables: Sequence[Variable], regressor: Any, hyperparameters: Hyperparameters
) -> Any:
    """An unfitted scikit-learn Pipeline from values (n, variables) that ends in `regressor`."""
    from sklearn.decomposition import PCA
    from sklearn.feature_selection import SelectPercentile
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import StandardScaler

    from intop.learn.encoder import Encoder

    variance = float(hyperparameters["pca_variance"])
    condense = "passthrough" if variance == NO_PCA else PCA(variance, svd_solver="full")
    percent = int(hyperparameters["kept_percent"])
    return Pipeline(
        [
            ("encode", Encoder(variables)),
            ("normalise", StandardScaler()),
            ("select", SelectPercentile(relevance, percentile=percent)),
            ("condense", condense),
            ("model", regressor),
        ]
    )


def relevance(features: Matrix, target: NDArray[np.float64]) -> NDArray[np.float64]:
    """How strongly each feature alone acts on the target: the F value of a line or of a bow.

    A line alone would drop a parameter whose best value lies in the middle of its range. A
    constant feature has 0.
    """
    from sklearn.feature_selection import f_regression

    bowed = (features - features.mean(axis=0)) ** 2
    line, _ = f_regression(features, target)
    bow, _ = f_regression(bowed, target)
    return np.asarray(np.maximum(line, bow), dtype=np.float64)
