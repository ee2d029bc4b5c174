import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from builders.trials import table
from intop.domain.encoding import Matrix, Variable
from intop.learn.posterior import log_gain, posterior, scaled, scatter
from intop.learn.samples import Samples

RNG = np.random.default_rng(1)
PLACES = RNG.random((30, 2))


def hill(values: Matrix) -> Matrix:
    return np.asarray(np.sin(3 * values[:, 0]) + values[:, 1] ** 2)


def repeated(values: Matrix, logs: list[list[float]]) -> Samples:
    samples = table(values, np.zeros(len(values)))
    return Samples(
        variables=samples.variables,
        values=values,
        measured=tuple(tuple(np.exp(trials)) for trials in logs),
    )


def test_without_noise_it_knows_what_it_has_seen_and_doubts_what_is_far() -> None:
    model = posterior(table(PLACES[:15], hill(PLACES[:15])), 1)
    mean, spread = model(PLACES)
    assert np.abs(mean - hill(PLACES))[:15].max() < 0.01
    assert np.abs(mean - hill(PLACES))[15:].max() < 0.2
    assert spread[:15].max() < spread[15:].max()
    far = model(np.array([[0.5, 0.5]]))[1] < model(np.array([[0.0, 1.0]]))[1]
    assert far.all()


def test_covariances_agree_with_variances() -> None:
    model = posterior(table(PLACES, hill(PLACES)), 1)
    elsewhere = RNG.random((5, 2))
    outlook = model.about(elsewhere)
    own = [outlook.covariance(n)[n] for n in range(5)]
    assert own == pytest.approx(outlook.spread**2, abs=1e-9)
    assert outlook.covariance(1)[3] == pytest.approx(outlook.covariance(3)[1])


def test_replicates_say_how_noisy_a_trial_is() -> None:
    noise = np.random.default_rng(2).normal(0, 0.3, (30, 3))
    logs = [[float(h + e) for e in es] for h, es in zip(hill(PLACES), noise, strict=True)]
    samples = repeated(PLACES, logs)
    single, shares = scatter(samples)
    assert 0.2 < np.sqrt(single) < 0.4
    assert 0.3 < shares.min() < 1 < shares.max() < 3
    model = posterior(samples, 1)
    assert 0.2 < np.sqrt(model.noise) < 0.4
    assert model.noises == pytest.approx(model.noise * shares / 3)
    # So a luckier row is not believed to be as good as it looks.
    lowest = int(np.argmin(samples.log_target))
    assert model(PLACES)[0][lowest] > samples.log_target[lowest]


def test_measured_once_each_row_is_as_noisy_as_the_others() -> None:
    assert (
        scatter(table(PLACES, hill(PLACES)))[0],
        scatter(table(PLACES, hill(PLACES)))[1].tolist(),
    ) == (0.0, [1.0] * 30)


def test_features_have_one_unit_whatever_is_at_hand() -> None:
    variables = (
        Variable(name="n", key="n", low=1, high=100, scale="log"),
        Variable(name="b", key="b", choices=("0", "1")),
        Variable(name="c", key="c", choices=("x", "y", "z", "w")),
    )
    every = np.array([[10 ** (2 * n / 999), n % 2, n % 4] for n in range(1000)])
    assert scaled(variables, every).std(axis=0) == pytest.approx(1, abs=0.01)


def test_a_constant_target_is_learned() -> None:
    mean, spread = posterior(table(PLACES, np.zeros(30)), 1)(PLACES)
    assert mean == pytest.approx(0, abs=1e-6)
    assert np.isfinite(spread).all()


def test_gain_is_the_mean_of_what_is_below() -> None:
    for mean in (-1.0, 0.0, 0.9, 2.0, 4.0):
        expected, _ = quad(lambda x: (0.5 - x) * norm.pdf(x, mean, 0.4), -10, 0.5, epsabs=0)  # noqa: B023
        assert log_gain(0.5, np.array([mean]), np.array([0.4])) == pytest.approx(np.log(expected))


def test_far_rows_still_differ() -> None:
    z = np.array([1.0, 20, 500, 999, 1001, 1e4])
    gains = log_gain(0.0, z, np.ones(6))
    assert np.isfinite(gains).all()
    assert (np.diff(gains) < 0).all()
    # Both forms of the tail agree where one follows the other.
    assert gains[3] + 0.5 * 999**2 == pytest.approx(gains[4] + 0.5 * 1001**2, abs=0.02)
