import numpy as np
import pytest

from intop.domain.encoding import Matrix, Variable
from intop.learn.families.network import DNN
from intop.learn.parallel import one_thread
from intop.learn.preprocess import ALL_FEATURES
from intop.learn.samples import Samples, Vector
from intop.learn.surrogate import fit, predicted

SMALL = {**DNN.defaults, **ALL_FEATURES}


def samples(values: Matrix, log_target: Vector) -> Samples:
    return Samples(
        variables=tuple(Variable(name=f"v{n}", key=f"v{n}") for n in range(values.shape[1])),
        values=values,
        measured=tuple((float(v),) for v in np.exp(log_target)),
    )


def guesses(training: Samples, values: Matrix, seed: int = 1) -> Vector:
    with one_thread():
        return predicted(fit(DNN.build(training.variables, SMALL, seed), training), values)


def test_learns_an_interaction_that_no_line_can() -> None:
    from sklearn.linear_model import LinearRegression

    values = np.random.default_rng(1).random((160, 4))
    truth = 4 * (values[:, 0] - 0.5) * (values[:, 1] - 0.5)
    error = guesses(samples(values[:80], truth[:80]), values[80:]) - truth[80:]
    line = LinearRegression().fit(values[:80], truth[:80]).predict(values[80:]) - truth[80:]
    assert np.mean(line**2) > 0.8 * np.var(truth[80:])
    assert np.mean(error**2) < 0.3 * np.var(truth[80:])


def test_stops_early_on_noise_and_late_on_what_can_be_learned() -> None:
    rng = np.random.default_rng(2)
    values, noise = rng.random((60, 8)), rng.normal(0, 1, 60)
    assert iterations(samples(values, noise)) <= 20
    assert iterations(samples(values, np.sin(5 * values[:, 0]))) >= 40
    # Noise learned by heart would be said of other rows, too.
    assert np.std(guesses(samples(values, noise), rng.random((60, 8)))) < 0.8


def iterations(training: Samples) -> int:
    """How many the networks have learned for."""
    with one_thread():
        model = fit(DNN.build(training.variables, SMALL, 1), training)
    return int(model.named_steps["model"].regressor_.iterations_)


@pytest.mark.parametrize("rows", [3, 5])
def test_few_rows_in_silence(
    rows: int, capfd: pytest.CaptureFixture[str], recwarn: pytest.WarningsRecorder
) -> None:
    rng = np.random.default_rng(rows)
    values = rng.random((rows, 6))
    values[:, 2:4] = 1.0
    assert np.all(np.isfinite(guesses(samples(values, rng.normal(3, 1, rows)), values)))
    assert capfd.readouterr() == ("", "")
    assert [str(w.message) for w in recwarn] == []


def test_where_nothing_varies_it_says_what_was_measured() -> None:
    values = np.ones((8, 3))
    target = np.random.default_rng(3).normal(3, 1, 8)
    assert guesses(samples(values, target), values) == pytest.approx(target.mean(), abs=0.5)
    values = np.random.default_rng(4).random((8, 3))
    assert guesses(samples(values, np.full(8, 3.0)), values) == pytest.approx(3.0, abs=1e-3)


def test_the_seed_decides() -> None:
    rng = np.random.default_rng(5)
    training = samples(rng.random((20, 3)), rng.normal(3, 1, 20))
    first = guesses(training, training.values)
    assert np.array_equal(first, guesses(training, training.values))
    assert not np.array_equal(first, guesses(training, training.values, seed=2))
