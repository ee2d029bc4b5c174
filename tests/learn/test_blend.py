import numpy as np
import pytest

from intop.learn.blend import Blend


def test_weight_goes_to_what_misses_less() -> None:
    rng = np.random.default_rng(1)
    features = rng.normal(0, 1, (60, 3))
    smooth = Blend(trees=30).fit(features, features.sum(axis=1))
    steps = Blend(trees=30).fit(features, np.sign(features[:, 0]) * (1 + (features[:, 1] > 0.3)))
    assert smooth.weights_[0] > 0.99
    assert steps.weights_[1] > 0.99


def test_both_are_in_what_is_predicted() -> None:
    rng = np.random.default_rng(2)
    features, target = rng.normal(0, 1, (40, 3)), rng.normal(0, 1, 40)
    model = Blend(trees=30).fit(features, target)
    process, forest = (one.predict(features) for one in model.models_)
    share, other = model.weights_
    assert share + other == pytest.approx(1)
    assert model.predict(features) == pytest.approx(share * process + other * forest)


def test_a_constant_is_predicted_as_it_is() -> None:
    features = np.random.default_rng(3).normal(0, 1, (9, 4))
    model = Blend(trees=30).fit(features, np.full(9, 2.5))
    assert model.predict(features) == pytest.approx(np.full(9, 2.5))
