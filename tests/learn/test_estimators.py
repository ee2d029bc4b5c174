"""The estimators on their own, with scikit-learn's interface."""

import numpy as np
import pytest
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import LinearRegression
from sklearn.neighbors import KNeighborsRegressor

from builders.trials import table
from intop.domain.encoding import Matrix
from intop.learn.estimators import APART, STRETCHES, Blend, PartOfRows, pipeline, relevance
from intop.learn.families import DNN
from intop.learn.parallel import one_thread
from intop.learn.samples import Samples, Vector
from intop.learn.surrogate import fit, predicted

# Before every regressor ---------------------------------------------------------------------------


def test_a_bow_is_as_relevant_as_a_line() -> None:
    rng = np.random.default_rng(1)
    features = rng.random((80, 4))
    features[:, 3] = 0.5
    target = 6 * (features[:, 0] - 0.5) ** 2 + features[:, 1] + rng.normal(0, 0.05, 80)
    bow, line, nothing, constant = relevance(features, target)
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
    rng = np.random.default_rng(2)
    half = rng.random((40, 3))
    features = np.hstack([half, half + rng.normal(0, 0.01, half.shape)])
    samples = table(features, rng.random(40))
    fitted = pipeline(samples.variables, DummyRegressor(), percent, variance)
    fitted.fit(samples.values, samples.log_target)
    return int(fitted[:-1].transform(features).shape[1])


# A part of the rows -------------------------------------------------------------------------------


@pytest.mark.parametrize(("rows", "learned"), [(8, 8), (10, 10), (30, 10)])
def test_learns_from_a_part_of_more_rows_than_it_can_take(rows: int, learned: int) -> None:
    places = np.arange(float(rows))
    nearest = PartOfRows(KNeighborsRegressor(1), most=10, seed=1).fit(places[:, None], places)
    known = nearest.predict(places[:, None]) == places
    assert learned == known.sum()


# Networks -----------------------------------------------------------------------------------------


def guesses(training: Samples, values: Matrix, seed: int = 1) -> Vector:
    with one_thread():
        return predicted(fit(DNN.build(training.variables, DNN.defaults, seed), training), values)


def test_learns_an_interaction_that_no_line_can() -> None:
    values = np.random.default_rng(1).random((160, 4))
    truth = 4 * (values[:, 0] - 0.5) * (values[:, 1] - 0.5)
    error = guesses(table(values[:80], truth[:80]), values[80:]) - truth[80:]
    line = LinearRegression().fit(values[:80], truth[:80]).predict(values[80:]) - truth[80:]
    assert np.mean(line**2) > 0.8 * np.var(truth[80:])
    assert np.mean(error**2) < 0.3 * np.var(truth[80:])


def test_stops_early_on_noise_and_late_on_what_can_be_learned() -> None:
    rng = np.random.default_rng(2)
    values, noise = rng.random((60, 8)), rng.normal(0, 1, 60)
    assert iterations(table(values, noise)) <= 20
    assert iterations(table(values, np.sin(5 * values[:, 0]))) >= 40
    # Noise learned by heart would be said of other rows, too.
    assert np.std(guesses(table(values, noise), rng.random((60, 8)))) < 0.8


def iterations(training: Samples) -> int:
    """How many the networks have learned for."""
    with one_thread():
        model = fit(DNN.build(training.variables, DNN.defaults, 1), training)
    return sum(STRETCHES[: model.named_steps["model"].regressor_.looks_])


@pytest.mark.parametrize("rows", [3, 5])
def test_few_rows_in_silence(
    rows: int, capfd: pytest.CaptureFixture[str], recwarn: pytest.WarningsRecorder
) -> None:
    rng = np.random.default_rng(rows)
    values = rng.random((rows, 6))
    values[:, 2:4] = 1.0
    assert np.all(np.isfinite(guesses(table(values, rng.normal(3, 1, rows)), values)))
    assert capfd.readouterr() == ("", "")
    assert [str(w.message) for w in recwarn] == []


def test_where_nothing_varies_it_says_what_was_measured() -> None:
    values = np.ones((8, 3))
    target = np.random.default_rng(3).normal(3, 1, 8)
    assert guesses(table(values, target), values) == pytest.approx(target.mean(), abs=0.5)
    values = np.random.default_rng(4).random((8, 3))
    assert guesses(table(values, np.full(8, 3.0)), values) == pytest.approx(3.0, abs=1e-3)


def test_the_seed_decides() -> None:
    rng = np.random.default_rng(5)
    training = table(rng.random((20, 3)), rng.normal(3, 1, 20))
    first = guesses(training, training.values)
    assert np.array_equal(first, guesses(training, training.values))
    assert not np.array_equal(first, guesses(training, training.values, seed=2))


# A process and a forest ---------------------------------------------------------------------------


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
    process, forest = (part.predict(features) for part in model.models_)
    share, other = model.weights_
    assert share + other == pytest.approx(1)
    assert model.predict(features) == pytest.approx(share * process + other * forest)


def test_where_a_process_is_far_from_the_trees_the_median_of_three_is_predicted() -> None:
    rng = np.random.default_rng(4)
    features = rng.normal(0, 1, (40, 3))
    model = Blend(trees=30).fit(features, features.sum(axis=1))
    process, forest = (part.predict(features) for part in model.models_)
    usual = model.predict(features)
    assert usual == pytest.approx(model.weights_ @ np.array([process, forest]))
    model.reach_ = 0.0
    median = np.median([process, forest, model.guard_.predict(features)], axis=0)
    assert median == pytest.approx(model.predict(features))
    assert not np.allclose(usual, median)


def test_where_nothing_is_missed_trees_have_to_be_a_standard_deviation_away() -> None:
    rng = np.random.default_rng(5)
    features = rng.integers(0, 2, (60, 1)).astype(np.float64)
    model = Blend(trees=30).fit(features, 2 * features[:, 0] - 1)
    assert model.reach_ == APART


def test_a_constant_is_predicted_as_it_is() -> None:
    features = np.random.default_rng(3).normal(0, 1, (9, 4))
    model = Blend(trees=30).fit(features, np.full(9, 2.5))
    assert model.predict(features) == pytest.approx(np.full(9, 2.5))
