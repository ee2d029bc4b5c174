import numpy as np
import pytest

from intop.learn import preprocess
from samples import table


def test_a_bow_is_as_relevant_as_a_line() -> None:
    rng = np.random.default_rng(1)
    features = rng.random((80, 4))
    features[:, 3] = 0.5
    target = 6 * (features[:, 0] - 0.5) ** 2 + features[:, 1] + rng.normal(0, 0.05, 80)
    bow, line, nothing, constant = preprocess.relevance(features, target)
    assert min(bow, line) > 5 * nothing
    assert constant == 0


@pytest.mark.parametrize(("percent", "variance", "width"), [(100, 0.0, 6), (50, 0.0, 3)])
def test_keeps_the_share_of_features_that_is_asked_for(
    percent: int, variance: float, width: int
) -> None:
    assert _width(percent, variance) == width


def test_pca_condenses() -> None:
    assert _width(100, 0.8) < 6


def _width(percent: int, variance: float) -> int:
    """How many columns reach the regressor, of six in which three are copies."""
    from sklearn.dummy import DummyRegressor

    rng = np.random.default_rng(2)
    half = rng.random((40, 3))
    features = np.hstack([half, half + rng.normal(0, 0.01, half.shape)])
    samples = table(features, rng.random(40))
    pipeline = preprocess.pipeline(
        samples.variables, DummyRegressor(), {"kept_percent": percent, "pca_variance": variance}
    )
    pipeline.fit(samples.values, samples.log_target)
    return int(pipeline[:-1].transform(features).shape[1])
