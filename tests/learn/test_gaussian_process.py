from itertools import product

import numpy as np
import pytest
from scipy.optimize import check_grad

from intop.domain.encoding import Matrix
from intop.learn import gaussian_process
from intop.learn.gaussian_process import GaussianProcess

Vector = gaussian_process.Vector
KERNELS = sorted(gaussian_process.KERNELS)


def switches(count: int) -> Matrix:
    """All settings of so many on/off options, as -1 and 1."""
    return np.array(list(product((-1.0, 1.0), repeat=count)))


def halves(features: Matrix, seed: int) -> tuple[Matrix, Matrix]:
    order = np.random.default_rng(seed).permutation(len(features))
    return features[order[: len(order) // 2]], features[order[len(order) // 2 :]]


def test_sees_an_interaction_that_no_line_sees() -> None:
    def truth(options: Matrix) -> Vector:
        return options[:, 0] * options[:, 1] + 0.2 * options[:, 2]

    known, unseen = halves(switches(6), seed=1)
    model = GaussianProcess().fit(known, truth(known))
    assert np.abs(model.predict(unseen) - truth(unseen)).max() < 0.1
    assert model.kernel_ == "smooth"


def test_what_only_some_combinations_do_takes_the_rough_kernel() -> None:
    features = np.repeat(switches(6), 3, axis=0)
    rng = np.random.default_rng(8)
    truth = 3 * features[:, 0] + np.repeat(rng.normal(0, 0.3, 64), 3)
    known = rng.permutation(len(features))[:120]
    model = GaussianProcess().fit(features[known], truth[known] + rng.normal(0, 0.05, 120))
    assert model.kernel_ == "rough"


def test_what_has_no_effect_gets_a_long_scale() -> None:
    known, _ = halves(switches(7), seed=2)
    model = GaussianProcess().fit(known, known[:, 3] + known[:, 5] * known[:, 3])
    scales = np.exp(model.mode_[:-2])
    assert min(np.delete(scales, [3, 5])) > 5 * max(scales[[3, 5]])


def test_rows_where_noise_is_large_do_not_blur_the_others() -> None:
    rng = np.random.default_rng(9)
    features = switches(7)
    truth = features[:, 0] + 0.1 * features[:, 1] * features[:, 2]
    quiet = features[:, 0] < 0
    measured = truth + rng.normal(0, np.where(quiet, 0.01, 0.5))
    even = GaussianProcess()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gaussian_process, "ROUNDS", 0)
        even.fit(features, measured)
    error, even_error = (
        np.abs(model.predict(features) - truth)[quiet].mean()
        for model in (GaussianProcess().fit(features, measured), even)
    )
    assert error < 0.5 * even_error


def test_noise_is_not_learned() -> None:
    rng = np.random.default_rng(3)
    features, noise = rng.random((50, 6)), rng.normal(0, 1, 50)
    assert np.std(GaussianProcess().fit(features, noise).predict(rng.random((50, 6)))) < 0.5


@pytest.mark.parametrize("scales", [1, 3])
@pytest.mark.parametrize("kernel", KERNELS)
def test_slopes_are_those_of_the_evidence(kernel: str, scales: int) -> None:
    rng = np.random.default_rng(4)
    features, target = rng.normal(0, 1, (12, 3)), rng.normal(0, 1, 12)
    given = (features, target, rng.random(12), gaussian_process.KERNELS[kernel])
    guess = np.array([*[0.3, -0.2, 0.8][:scales], 0.5, -2.0])
    away = check_grad(
        lambda g: gaussian_process._evidence(g, *given)[0],
        lambda g: gaussian_process._evidence(g, *given)[1],
        guess,
    )
    assert away < 1e-4


@pytest.mark.parametrize("rows", [1, 2, 9])
def test_a_constant_is_predicted_as_it_is(rows: int) -> None:
    features = np.random.default_rng(5).normal(0, 1, (rows, 4))
    assert GaussianProcess().fit(features, np.full(rows, 2.5)).predict(features) == pytest.approx(
        np.full(rows, 2.5)
    )


def test_of_many_rows_some_are_enough_for_the_mode(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gaussian_process, "MODE_ROWS", 20)
    features = np.random.default_rng(6).normal(0, 1, (40, 2))
    target = features[:, 0] + features[:, 1]
    model = GaussianProcess(seed=1).fit(features, target)
    assert model.places_.shape == (40, 2)
    assert np.abs(model.predict(features) - target).max() < 0.2
    again = GaussianProcess(seed=1).fit(features, target)
    assert np.array_equal(again.predict(features), model.predict(features))


def test_many_features_share_a_scale(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gaussian_process, "MOST_SCALES", 4)
    features = np.random.default_rng(7).normal(0, 1, (60, 5))
    model = GaussianProcess().fit(features[:40], features[:40].sum(axis=1))
    assert model.mode_.shape == (3,)
    assert np.abs(model.predict(features[40:]) - features[40:].sum(axis=1)).max() < 0.3
