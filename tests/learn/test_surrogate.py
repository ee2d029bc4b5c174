import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from builders.trials import table
from intop.domain.encoding import Matrix
from intop.domain.space import Space
from intop.domain.training import FittedFamily
from intop.learn import surrogate as surrogates
from intop.learn.design import latin_hypercube
from intop.learn.families import FAMILIES, INTOP_FAMILIES
from intop.learn.surrogate import fit, fit_trees, held_out, predicted, surrogate

TREES = ("RFR", "CatBoost", "LightGBM", "XGBoost")
SVR = dict(FAMILIES["SVR"].defaults) | {"kept_percent": 100}


def with_defaults(*names: str) -> list[FittedFamily]:
    return [
        FittedFamily(
            family=name,
            hyperparameters=dict(FAMILIES[name].defaults),
            inner_score=0.0,
        )
        for name in names
    ]


def test_there_are_the_six_families_of_the_method() -> None:
    assert [family.name for family in INTOP_FAMILIES] == [
        "DNN",
        "SVR",
        "RFR",
        "CatBoost",
        "LightGBM",
        "XGBoost",
    ]
    assert tuple(family.name for family in INTOP_FAMILIES if family.is_tree) == TREES


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("rows", [5, 60])
@pytest.mark.parametrize("draw", [0, 1])
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
    values = rng.random((rows, 20))
    values[:, 5:9] = values[:, 5:9] > 0.5
    values[:, 9:15] = 1.0
    samples = table(values, 3 + values[:, 0] + rng.normal(0, 0.1, rows))
    family = FAMILIES[name]
    distributions = optuna.samplers.RandomSampler(seed=draw)
    study = optuna.create_study(sampler=distributions)
    capfd.readouterr()
    hyperparameters = family.suggest(study.ask())
    model = fit(family.build(samples.variables, hyperparameters, 1), samples)
    guesses = predicted(model, values)
    assert guesses.shape == (rows,)
    assert np.all(np.isfinite(guesses))
    assert capfd.readouterr() == ("", "")
    assert list(tmp_path.iterdir()) == []
    assert [str(w.message) for w in recwarn] == []


@pytest.mark.parametrize("name", FAMILIES)
def test_every_family_learns_what_is_easy(
    name: str, space: Space, log_latency: Callable[[Matrix], Matrix]
) -> None:
    features = space.encode(space.values(latin_hypercube(space, 200, seed=1)))
    samples = table(features, log_latency(features))
    (result,) = with_defaults(name)
    model = fit(
        FAMILIES[name].build(samples.variables, result.hyperparameters, 1),
        samples.rows(range(140)),
    )
    held_out = samples.rows(range(140, 200))
    error = predicted(model, held_out.values) - held_out.log_target
    assert np.var(error) < 0.4 * np.var(samples.log_target)


def test_the_ensemble_is_the_mean_of_the_tree_families() -> None:
    rng = np.random.default_rng(1)
    samples = table(rng.random((40, 6)), rng.random(40))
    predictor = fit_trees(with_defaults("SVR", *TREES), samples, seed=1)
    each = predictor.each(samples.values)
    assert tuple(each) == TREES
    assert predictor(samples.values) == pytest.approx(np.mean([each[t] for t in TREES], axis=0))
    assert predictor.only("RFR")(samples.values) == pytest.approx(each["RFR"])
    with pytest.raises(ValueError, match="no model of family SVR"):
        predictor.only("SVR")


def test_a_predictor_says_what_the_models_pipelines_say() -> None:
    rng = np.random.default_rng(1)
    samples = table(rng.random((40, 6)), rng.random(40))
    result = with_defaults(*TREES)
    result[0].hyperparameters["kept_percent"] = 50
    # Ours never have a PCA; a saved model may.
    result[1].hyperparameters["pca_variance"] = 0.8
    predictor = fit_trees(result, samples, seed=1)
    values = rng.random((30, 6))
    for name, output in predictor.each(values).items():
        assert output == pytest.approx(predicted(predictor.models[name], values), rel=1e-12)
    members = predictor.members(values)
    assert members["RFR"].shape == (100, 30)
    assert {members[name].shape for name in TREES[1:]} == {(1, 30)}


def test_the_same_seed_gives_the_same_ensemble() -> None:
    rng = np.random.default_rng(1)
    samples = table(rng.random((40, 6)), rng.random(40))
    first, second = (fit_trees(with_defaults(*TREES), samples, seed=3) for _ in "ab")
    assert np.array_equal(first(samples.values), second(samples.values))


def test_an_ensemble_without_trees_is_refused() -> None:
    with pytest.raises(ValueError, match="no tree family"):
        fit_trees(with_defaults("SVR"), table(np.ones((5, 1)), np.ones(5)), seed=1)


# Intervals ----------------------------------------------------------------------------------------


def noisy(rows: int, seed: int) -> tuple[Matrix, Matrix]:
    """Three numbers, and a log target with noise of its own."""
    rng = np.random.default_rng(seed)
    values = rng.random((rows, 3))
    return values, 3 + 2 * values[:, 0] - values[:, 1] + rng.normal(0, 0.2, rows)


@pytest.mark.parametrize(("level", "least", "most"), [(0.8, 0.7, 0.92), (0.95, 0.88, 1.0)])
def test_intervals_hold_about_as_many_as_they_say(level: float, least: float, most: float) -> None:
    model = surrogate("SVR", SVR, table(*noisy(100, 1)), 1)
    values, truth = noisy(1000, 2)
    low, high = model.interval(values, level)
    assert least < np.mean((low <= truth) & (truth <= high)) < most


def test_an_interval_holds_its_prediction_and_those_of_lower_levels() -> None:
    model = surrogate("SVR", SVR, table(*noisy(40, 1)), 1)
    values, _ = noisy(50, 2)
    wide, narrow, here = model.interval(values, 0.95), model.interval(values, 0.5), model(values)
    assert np.all((wide[0] <= narrow[0]) & (narrow[0] <= here))
    assert np.all((wide[1] >= narrow[1]) & (narrow[1] >= here))
    assert np.mean(wide[1] - wide[0]) > 1.5 * np.mean(narrow[1] - narrow[0])


def test_intervals_are_wider_where_models_disagree() -> None:
    """Nothing was measured between 0.3 and 1, where a line and a bow go apart."""
    rng = np.random.default_rng(1)
    values = np.vstack([0.3 * rng.random((60, 3)), [[0.0, 0, 0], [1.0, 1, 1]]])
    samples = table(values, 3 + 2 * values[:, 0] + rng.normal(0, 0.05, 62))
    low, high = surrogate("SVR", SVR, samples, 1).interval(
        np.array([[0.15, 0.15, 0.15], [1.0, 0.0, 1.0]]), 0.9
    )
    near, far = high - low
    assert far > 1.2 * near


def test_predictions_that_never_differ_have_an_interval() -> None:
    samples = table(np.random.default_rng(1).random((12, 2)), np.full(12, 3.0))
    low, high = surrogate("SVR", SVR, samples, 1).interval(samples.values, 0.9)
    assert np.all(low <= 3.0 + 1e-9)
    assert np.all(high >= 3.0 - 1e-9)
    assert np.all(high - low < 0.1)


def test_few_rows_give_a_finite_interval() -> None:
    model = surrogate("SVR", SVR, table(*noisy(4, 1)), 1)
    low, high = model.interval(noisy(9, 2)[0], 0.99)
    assert np.all(np.isfinite(low) & np.isfinite(high))


def test_neither_many_rows_nor_many_predictions_change_what_an_interval_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    samples, (values, _) = table(*noisy(200, 1)), noisy(30, 2)
    whole = surrogate("SVR", SVR, samples, 1)
    expected = whole.interval(values, 0.9)
    monkeypatch.setattr(surrogates, "LARGEST_BLOCK", 400)
    assert np.allclose(whole.interval(values, 0.9), expected, rtol=1e-9)
    monkeypatch.setattr(surrogates, "MOST_MISSES", 100)
    thinned = surrogate("SVR", SVR, samples, 1)
    assert thinned.unseen.shape == (100, 20)
    assert np.abs(np.subtract(thinned.interval(values, 0.9), expected)).mean() < 0.05
    monkeypatch.setattr(surrogates, "MANY_ROWS", 199)
    assert surrogate("SVR", SVR, samples, 1).unseen.shape == (100, 10)


# Held out -----------------------------------------------------------------------------------------


def few_trees() -> list[FittedFamily]:
    fitted = with_defaults("RFR", "CatBoost")
    for family in fitted:
        family.hyperparameters["trees"] = 20
    return fitted


def test_rows_are_told_by_models_that_lack_them() -> None:
    """A row that is unlike all others can't be known without it."""
    values = np.random.default_rng(1).random((24, 2))
    target = np.where(values[:, 0] > 0.5, 2.0, 0.0)
    target[5] = 9.0
    output: list[str] = []
    guesses = held_out(few_trees(), table(values, target), folds=3, seed=1, progress=output.append)
    assert guesses[5] < 4
    others = np.delete(np.arange(24), 5)
    assert np.mean(np.abs(guesses - target)[others]) < 1
    assert output == ["fold 1", "fold 2", "fold 3"]


def test_a_target_that_never_varies_in_a_fold_is_no_obstacle() -> None:
    values = np.random.default_rng(1).random((12, 2))
    target = np.ones(12)
    target[3] = 2.0
    guesses = held_out(few_trees(), table(values, target), folds=12, seed=1)
    assert guesses[3] == pytest.approx(1.0)
    assert np.all(np.isfinite(guesses))


def test_importing_loads_no_heavy_library() -> None:
    script = (
        "import sys, intop.learn.design, intop.learn.screening, intop.learn.tuning,"
        " intop.learn.searching.search, intop.learn.candidates, intop.learn.ceiling,"
        " intop.learn.components, intop.learn.active, intop.learn.searching.pareto;"
        "heavy = 'scipy sklearn optuna joblib deap catboost lightgbm xgboost pandas';"
        "print([name for name in heavy.split() if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.stdout.strip(), done.stderr) == ("[]", "")
