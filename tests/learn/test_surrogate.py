import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from intop.domain.results import FittedFamily
from intop.domain.space import Matrix, Space
from intop.learn.design import latin_hypercube
from intop.learn.surrogate import FAMILIES, fit, fit_trees, predicted

TREES = ("RFR", "CatBoost", "LightGBM", "XGBoost")


def with_defaults(*names: str) -> list[FittedFamily]:
    return [
        FittedFamily(
            family=name,
            hyperparameters={"early_stopping": False, **FAMILIES[name].defaults},
            inner_score=0.0,
        )
        for name in names
    ]


def test_there_are_the_six_families_of_the_method() -> None:
    assert list(FAMILIES) == ["DNN", "SVR", "RFR", "CatBoost", "LightGBM", "XGBoost"]
    assert tuple(name for name, family in FAMILIES.items() if family.is_tree) == TREES


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("rows", [5, 12, 60])
@pytest.mark.parametrize("draw", [0, 1, 2])
def test_every_family_fits_few_rows_in_silence(
    name: str,
    rows: int,
    draw: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    recwarn: pytest.WarningsRecorder,
) -> None:
    import optuna

    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(rows)
    features = rng.random((rows, 20))
    features[:, 5:9] = features[:, 5:9] > 0.5
    features[:, 9:15] = 1.0
    log_p99 = 3 + features[:, 0] + rng.normal(0, 0.1, rows)
    family = FAMILIES[name]
    distributions = optuna.samplers.RandomSampler(seed=draw)
    study = optuna.create_study(sampler=distributions)
    capfd.readouterr()
    hyperparameters = family.suggest(study.ask(), rows)
    guesses = predicted(fit(family.build(hyperparameters, 1), features, log_p99), features)
    assert guesses.shape == (rows,)
    assert np.all(np.isfinite(guesses))
    assert capfd.readouterr() == ("", "")
    assert list(tmp_path.iterdir()) == []
    assert [str(w.message) for w in recwarn] == []


@pytest.mark.parametrize("name", FAMILIES)
def test_every_family_learns_what_is_easy(
    name: str, space: Space, log_p99: Callable[[Matrix], Matrix]
) -> None:
    features = space.encode(space.values(latin_hypercube(space, 200, seed=1)))
    truth = log_p99(features)
    (found,) = with_defaults(name)
    model = fit(FAMILIES[name].build(found.hyperparameters, 1), features[:140], truth[:140])
    error = predicted(model, features[140:]) - truth[140:]
    assert np.var(error) < 0.4 * np.var(truth)


def test_a_network_stops_early_only_where_rows_can_be_spared() -> None:
    import optuna

    trial = optuna.create_study().ask()
    assert FAMILIES["DNN"].suggest(trial, 40)["early_stopping"] is False
    assert FAMILIES["DNN"].suggest(trial, 400)["early_stopping"] is True


def test_the_ensemble_is_the_mean_of_the_tree_families() -> None:
    rng = np.random.default_rng(1)
    features, log_p99 = rng.random((40, 6)), rng.random(40)
    predictor = fit_trees(with_defaults(*FAMILIES), features, log_p99, seed=1)
    each = predictor.each(features)
    assert tuple(each) == TREES
    assert predictor(features) == pytest.approx(np.mean([each[t] for t in TREES], axis=0))
    assert predictor.only("RFR")(features) == pytest.approx(each["RFR"])
    with pytest.raises(ValueError, match="no model of family SVR"):
        predictor.only("SVR")


def test_the_same_seed_gives_the_same_ensemble() -> None:
    rng = np.random.default_rng(1)
    features, log_p99 = rng.random((40, 6)), rng.random(40)
    first, second = (fit_trees(with_defaults(*TREES), features, log_p99, seed=3) for _ in "ab")
    assert np.array_equal(first(features), second(features))


def test_an_ensemble_without_trees_is_refused() -> None:
    with pytest.raises(ValueError, match="no tree family"):
        fit_trees(with_defaults("SVR"), np.ones((5, 1)), np.ones(5), seed=1)


def test_importing_loads_no_heavy_library() -> None:
    script = (
        "import sys, intop.learn.design, intop.learn.screening, intop.learn.tuning,"
        " intop.learn.genetic, intop.learn.finalists, intop.learn.components;"
        "heavy = 'scipy sklearn optuna joblib deap catboost lightgbm xgboost pandas';"
        "print([name for name in heavy.split() if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.stdout.strip(), done.stderr) == ("[]", "")
