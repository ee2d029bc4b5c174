from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from intop.domain.space import Matrix, Space
from intop.learn.design import latin_hypercube
from intop.learn.surrogate import FAMILIES
from intop.learn.tuning import evaluate, train_all, tune

Trials = tuple[Matrix, Matrix, list[str]]


@pytest.fixture
def trials(space: Space, log_p99: Callable[[Matrix], Matrix]) -> Trials:
    """80 configurations with little noise, one of them measured six times.

    Of 40 configurations, the R² of one and the same model is 0 to 0.7, by the draw.
    """
    design = latin_hypercube(space, 80, seed=21)
    rows = [*design, *[design[0]] * 5]
    features = space.encode(space.values(rows))
    noise = np.random.default_rng(22).normal(0, 0.1, len(rows))
    return features, log_p99(features) + noise, [c.digest for c in rows]


@pytest.mark.parametrize("family", ["SVR", "RFR", "LightGBM"])
def test_noise_can_not_be_predicted(family: str) -> None:
    rng = np.random.default_rng(5)
    features, log_p99 = rng.random((40, 15)), rng.normal(4, 1, 40)
    error = evaluate(
        family, features, log_p99, range(40), folds=4, trials=3, timeout_s=None, seed=1
    )
    assert error.r2 <= 0.2


@pytest.mark.parametrize("family", ["SVR", "RFR", "XGBoost"])
def test_replicates_never_stand_on_both_sides(family: str) -> None:
    from sklearn.model_selection import KFold, cross_val_predict

    rng = np.random.default_rng(6)
    groups = np.repeat(np.arange(20), 4)
    features = rng.random((20, 8))[groups]
    # Each configuration has a value that nothing explains, but its replicates share it.
    log_p99 = rng.normal(4, 1, 20)[groups] + rng.normal(0, 0.05, 80)
    error = evaluate(family, features, log_p99, groups, folds=4, trials=3, timeout_s=None, seed=1)
    assert error.r2 <= 0.2

    # The same model, judged the wrong way, seems nearly perfect: the trap is real.
    model = FAMILIES["RFR"].build(dict(FAMILIES["RFR"].defaults), 1)
    leaky = cross_val_predict(model, features, log_p99, cv=KFold(4, shuffle=True, random_state=1))
    assert np.var(leaky - log_p99) < 0.3 * np.var(log_p99)


def test_what_is_there_is_predicted(trials: Trials) -> None:
    error = evaluate("CatBoost", *trials, folds=4, trials=3, timeout_s=None, seed=1)
    assert error.family == "CatBoost"
    assert error.trials == 85
    assert error.r2 > 0.4
    assert error.spearman > 0.6
    assert 0 < error.mape < 100
    assert error.seconds > 0


@pytest.mark.parametrize("family", FAMILIES)
def test_a_search_is_no_worse_than_the_defaults_and_depends_on_the_seed_only(
    family: str, trials: Trials
) -> None:
    defaults = tune(family, *trials, trials=1, timeout_s=None, seed=4)
    first = tune(family, *trials, trials=4, timeout_s=None, seed=4)
    assert first == tune(family, *trials, trials=4, timeout_s=None, seed=4)
    assert first.inner_score >= defaults.inner_score
    assert FAMILIES[family].defaults.items() <= defaults.hyperparameters.items()


def test_all_families_in_parallel_give_what_each_gives_alone(
    trials: Trials,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    families = ["LightGBM", "SVR"]
    done: list[str] = []
    trained = train_all(
        families,
        *trials,
        folds=3,
        trials=3,
        timeout_s=None,
        seed=2,
        jobs=2,
        progress=done.append,
    )
    assert sorted(done) == families
    assert [fitted.family for fitted, _ in trained] == families
    for family, (fitted, error) in zip(families, trained, strict=True):
        alone = evaluate(family, *trials, folds=3, trials=3, timeout_s=None, seed=2)
        assert replace(error, seconds=0.0) == replace(alone, seconds=0.0)
        assert fitted == tune(family, *trials, trials=3, timeout_s=None, seed=2)
    assert capfd.readouterr() == ("", "")
    assert list(tmp_path.iterdir()) == []


def test_a_timeout_ends_a_search_after_its_first_try(trials: Trials) -> None:
    fitted = tune("SVR", *trials, trials=100_000, timeout_s=0.001, seed=1)
    assert FAMILIES["SVR"].defaults.items() <= fitted.hyperparameters.items()


def test_a_constant_p99_has_no_variance_to_explain() -> None:
    features = np.random.default_rng(1).random((12, 3))
    error = evaluate(
        "SVR", features, np.full(12, 3.0), range(12), folds=3, trials=1, timeout_s=None, seed=1
    )
    assert (error.r2, error.spearman) == (0.0, 0.0)
    assert error.mape == pytest.approx(0, abs=1e-6)


def test_says_how_many_configurations_it_needs() -> None:
    features, log_p99 = np.ones((9, 2)), np.ones(9)
    few = [0, 0, 0, 1, 1, 1, 2, 2, 2]
    with pytest.raises(ValueError, match="3 configurations are too few to tune SVR; at least 4"):
        tune("SVR", features, log_p99, few, trials=1, timeout_s=None, seed=1)
    with pytest.raises(ValueError, match=r"3 configurations are too few to evaluate .* at least 5"):
        evaluate("SVR", features, log_p99, few, folds=5, trials=1, timeout_s=None, seed=1)
    with pytest.raises(ValueError, match="in 2 folds; at least 8"):
        train_all(["SVR"], features, log_p99, few, folds=2, trials=1, timeout_s=None, seed=1)
    with pytest.raises(ValueError, match="at least 2 folds, got 1"):
        evaluate("SVR", features, log_p99, few, folds=1, trials=1, timeout_s=None, seed=1)


@pytest.mark.parametrize(("folds", "fewest"), [(2, 8), (3, 6), (4, 6), (5, 5), (10, 5)])
def test_the_least_number_of_configurations_is_enough(folds: int, fewest: int) -> None:
    rng = np.random.default_rng(1)
    features, log_p99 = rng.random((fewest, 3)), rng.random(fewest)
    error = evaluate(
        "SVR", features, log_p99, range(fewest), folds=folds, trials=1, timeout_s=None, seed=1
    )
    assert error.trials == fewest


def test_unusable_data_is_refused() -> None:
    features = np.ones((8, 2))
    with pytest.raises(ValueError, match="8, 7 and 8 rows"):
        tune("SVR", features, np.ones(7), range(8), trials=1, timeout_s=None, seed=1)
    with pytest.raises(ValueError, match="finite"):
        tune("SVR", features, np.full(8, np.nan), range(8), trials=1, timeout_s=None, seed=1)


def test_optuna_keeps_the_callers_verbosity(trials: Trials) -> None:
    import optuna

    before = optuna.logging.get_verbosity()
    tune("SVR", *trials, trials=1, timeout_s=None, seed=1)
    assert optuna.logging.get_verbosity() == before
