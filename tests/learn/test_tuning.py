import math
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from builders.trials import table
from intop.domain.encoding import Matrix
from intop.domain.space import Space
from intop.domain.training import FinishedSearch, FittedFamily, ModelError, SearchRecord, Try
from intop.learn import hyperparameters, tuning, tuning_effort
from intop.learn.accuracy import r_squared
from intop.learn.design import latin_hypercube
from intop.learn.families import FAMILIES
from intop.learn.hyperparameters import best_of, continued, score
from intop.learn.samples import Samples
from intop.learn.tuning import train_all
from intop.learn.tuning_effort import Effort


@pytest.fixture
def samples(space: Space, log_latency: Callable[[Matrix], Matrix]) -> Samples:
    """80 configurations with little noise, one of them measured six times.

    Of 40 configurations, the R² of one and the same model is 0 to 0.7, by the draw.
    """
    values = space.values(latin_hypercube(space, 80, seed=21))
    rng = np.random.default_rng(22)
    truth = log_latency(space.encode(values))
    counts = [6, *[1] * 79]
    return Samples(
        variables=space.variables,
        values=values,
        measured=tuple(
            tuple(np.exp(mean + rng.normal(0, 0.1, count)).tolist())
            for mean, count in zip(truth, counts, strict=True)
        ),
    )


def trained(
    families: list[str], samples: Samples, **wanted: Any
) -> list[tuple[FittedFamily, ModelError]]:
    """In this process, and without the times."""
    names = [field.name for field in fields(Effort) if field.name in wanted]
    effort = {"folds": 4, "trials": 2, "seed": 1} | {name: wanted.pop(name) for name in names}
    result = train_all(families, samples, Effort(**effort), **{"jobs": 1, **wanted})
    return [(fitted, replace(error, seconds=0.0)) for fitted, error in result]


def error_of(family: str, samples: Samples, **wanted: Any) -> ModelError:
    ((_, error),) = trained([family], samples, **wanted)
    return error


def searched(
    family: str, samples: Samples, trials: int, timeout_s: float | None = None, seed: int = 1
) -> FittedFamily:
    return best_of(
        family, continued(family, samples, Effort(trials=trials, timeout_s=timeout_s, seed=seed))
    )


def random_table(rows: int, columns: int, seed: int = 1) -> Samples:
    rng = np.random.default_rng(seed)
    return table(rng.random((rows, columns)), rng.normal(4, 1, rows))


# The error ----------------------------------------------------------------------------------------


@pytest.mark.long
def test_models_learn_from_lent_rows_and_are_not_judged_by_them(samples: Samples) -> None:
    own, other = samples.rows(range(20)), samples.rows(range(20, 80))
    alone, lent = (error_of("CatBoost", one) for one in (own, own.lending(other)))
    assert (len(alone.held_out), len(lent.held_out)) == (20, 20)
    assert alone.trials == lent.trials == 25
    assert [one.measured for one in alone.held_out] == [one.measured for one in lent.held_out]
    assert lent.mape < 0.8 * alone.mape


@pytest.mark.parametrize("family", ["SVR", "LightGBM"])
def test_noise_can_not_be_predicted(family: str) -> None:
    assert error_of(family, random_table(40, 15, seed=5)).r2 <= 0.2


@pytest.mark.parametrize("family", ["SVR", "XGBoost"])
def test_replicates_never_stand_on_both_sides(family: str) -> None:
    from sklearn.model_selection import KFold, cross_val_predict

    # Each configuration has a value that nothing explains, but its replicates share it.
    rng = np.random.default_rng(6)
    values, logs = rng.random((20, 8)), rng.normal(4, 1, (20, 1)) + rng.normal(0, 0.05, (20, 4))
    measured = tuple(tuple(trials) for trials in np.exp(logs).tolist())
    once = table(values, logs[:, 0])
    samples = Samples(variables=once.variables, values=values, measured=measured)
    error = error_of(family, samples)
    assert error.trials == 80
    assert len(error.held_out) == 20
    assert error.r2 <= 0.2

    # The same model, judged trial by trial, seems nearly perfect: the trap is real.
    trials = table(np.repeat(values, 4, axis=0), logs.ravel())
    model = FAMILIES["RFR"].build(trials.variables, dict(FAMILIES["RFR"].defaults), 1)
    leaky = cross_val_predict(
        model, trials.values, trials.log_target, cv=KFold(4, shuffle=True, random_state=1)
    )
    assert np.var(leaky - trials.log_target) < 0.3 * np.var(trials.log_target)


def test_what_is_there_is_predicted(samples: Samples) -> None:
    ((_, error),) = train_all(
        ["LightGBM"], samples, Effort(folds=3, trials=1, seed=1, level=0.8), jobs=1
    )
    assert error.family == "LightGBM"
    assert error.trials == 85
    assert error.r2 > 0.4
    assert error.spearman > 0.6
    assert 0 < error.mape < 100
    assert error.seconds > 0
    # Each configuration once, against the median of its trials.
    measured = np.array([one.measured for one in error.held_out])
    assert sorted(measured) == pytest.approx(sorted(np.exp(samples.log_target)))
    guesses = np.array([one.predicted for one in error.held_out])
    assert error.mape == pytest.approx(100 * np.mean(np.abs(guesses - measured) / measured))
    assert all(one.low <= one.predicted <= one.high for one in error.held_out)
    inside = [one.low <= one.measured <= one.high for one in error.held_out]
    assert (error.level, error.coverage) == (0.8, np.mean(inside))
    assert 0.6 < np.mean(inside) < 0.97
    picked = measured[np.argmin(guesses)]
    assert error.regret == pytest.approx(100 * (picked / measured.min() - 1))


def test_repeats_draw_the_folds_anew() -> None:
    samples = random_table(20, 3)
    once, other = (error_of("SVR", samples, trials=1, seed=seed) for seed in (1, 2))
    both = error_of("SVR", samples, trials=1, seed=1, repeats=2)
    assert len(both.held_out) == 40
    assert both.held_out[:20] == once.held_out
    assert sorted(h.measured for h in both.held_out[20:]) == sorted(
        h.measured for h in once.held_out
    )
    assert both.held_out[20:] != once.held_out
    assert other.held_out != once.held_out
    r2 = [
        r_squared(*(np.log([getattr(h, name) for h in part]) for name in ("measured", "predicted")))
        for part in (both.held_out[:20], both.held_out[20:])
    ]
    assert both.r2 == pytest.approx(np.mean(r2))


def test_a_constant_p99_has_no_variance_to_explain() -> None:
    samples = table(np.random.default_rng(1).random((12, 3)), np.full(12, 3.0))
    error = error_of("SVR", samples, folds=3, trials=1)
    assert (error.r2, error.spearman) == (0.0, 0.0)
    assert error.mape == pytest.approx(0, abs=1e-6)
    assert error.regret == 0


# The search ---------------------------------------------------------------------------------------


SLOW = ("DNN", "Blend")


@pytest.mark.parametrize(
    "family",
    [pytest.param(f, marks=pytest.mark.long) if f in SLOW else f for f in FAMILIES],
)
def test_a_search_is_no_worse_than_the_defaults_and_depends_on_the_seed_only(
    family: str, samples: Samples
) -> None:
    defaults = searched(family, samples, 1, seed=4)
    first = searched(family, samples, 2, seed=4)
    assert first == searched(family, samples, 2, seed=4)
    assert first.inner_score <= defaults.inner_score
    assert FAMILIES[family].defaults.items() <= defaults.hyperparameters.items()


def test_a_timeout_ends_a_search_after_its_first_try(samples: Samples) -> None:
    fitted = searched("SVR", samples, 100_000, 0.001)
    assert FAMILIES["SVR"].defaults.items() <= fitted.hyperparameters.items()


def test_a_search_ends_where_only_noise_is_left(samples: Samples) -> None:
    assert len(continued("SVR", samples, Effort(trials=5, seed=1, enough=100.0))) == 1
    assert len(continued("SVR", samples, Effort(trials=5, seed=1, enough=0.0))) == 5


def test_what_is_worse_than_most_is_given_up(
    samples: Samples, monkeypatch: pytest.MonkeyPatch
) -> None:
    fits: list[object] = []
    fit = hyperparameters.fit
    monkeypatch.setattr(hyperparameters, "fit", lambda *args: fits.append(args) or fit(*args))
    searched("SVR", samples, tuning_effort.UNPRUNED_TRIES)
    whole = len(fits)
    assert whole == tuning_effort.UNPRUNED_TRIES * tuning_effort.INNER_FOLDS
    searched("SVR", samples, 20)
    assert whole < len(fits) - whole < 20 * tuning_effort.INNER_FOLDS


def test_a_model_that_ran_away_has_the_worst_score() -> None:
    measured = np.array([1.0, 2.0])
    assert score(measured, np.array([1.0, 4.0])) == pytest.approx(1)
    assert score(measured, np.array([1.0, np.nan])) == math.inf
    assert score(measured, np.array([1.0, np.inf])) == math.inf


def test_optuna_keeps_the_callers_verbosity(samples: Samples) -> None:
    import optuna

    before = optuna.logging.get_verbosity()
    searched("SVR", samples, 1)
    assert optuna.logging.get_verbosity() == before


# All of it ----------------------------------------------------------------------------------------


def test_all_families_in_parallel_give_what_each_gives_alone(
    samples: Samples,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    families = ["LightGBM", "SVR"]
    done: list[str] = []
    both = trained(families, samples, folds=3, seed=2, jobs=2, progress=done.append)
    # 3 folds, and all rows.
    assert sorted(done) == sorted(families * 4)
    for family, (fitted, error) in zip(families, both, strict=True):
        assert [(fitted, error)] == trained([family], samples, folds=3, seed=2)
        assert fitted == searched(family, samples, 2, seed=2)
    assert capfd.readouterr() == ("", "")
    assert list(tmp_path.iterdir()) == []


class Kept:
    """Records in memory, in place of the store's; the `most` of them end the process."""

    def __init__(self, most: float = math.inf) -> None:
        self.most = most
        self.rows: list[tuple[str, SearchRecord]] = []
        self.seen = 0

    def new(self, fingerprint: str) -> list[SearchRecord]:
        result = [record for name, record in self.rows[self.seen :] if name == fingerprint]
        self.seen = len(self.rows)
        return result

    def add(self, fingerprint: str, records: Sequence[SearchRecord]) -> None:
        self.rows += [(fingerprint, record) for record in records]
        if len(self.rows) >= self.most:
            raise KilledError

    def again(self) -> "Kept":
        """As the next process finds them."""
        result = Kept()
        result.rows = self.rows
        return result

    @property
    def ends(self) -> int:
        return sum(isinstance(record.known, FinishedSearch) for _, record in self.rows)

    @property
    def tries(self) -> int:
        return len(self.rows) - self.ends


class KilledError(Exception):
    """In place of a signal."""


@pytest.mark.parametrize("most", [1, 3, 8, 20])
def test_a_training_killed_anywhere_goes_on_and_comes_to_the_same(
    most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tuning, "SLICE_S", 0.0)
    samples, families = random_table(20, 3), ["SVR", "LightGBM"]
    wanted: dict[str, Any] = {"folds": 2, "trials": 3}
    undisturbed = trained(families, samples, **wanted)
    killed = Kept(most)
    done: list[str] = []
    begun: list[tuple[int, int]] = []
    with pytest.raises(KilledError):
        trained(families, samples, **wanted, records=killed)
    assert most <= len(killed.rows) <= most + 1
    tried: list[object] = []
    once = hyperparameters.fit
    monkeypatch.setattr(hyperparameters, "fit", lambda *args: tried.append(args) or once(*args))
    resumed = killed.again()
    before, ended = killed.tries, killed.ends
    assert undisturbed == trained(
        families,
        samples,
        **wanted,
        records=resumed,
        begin=lambda total, earlier: begun.append((total, earlier)),
        progress=done.append,
    )
    # 2 families, of which each is searched in 2 folds and on all rows.
    assert (resumed.ends, resumed.tries) == (6, 18)
    # Nothing that was stored is fitted again; fewer than UNPRUNED_TRIES tries are never pruned.
    assert len(tried) == (18 - before) * tuning_effort.INNER_FOLDS
    assert begun == [(6, ended)]
    assert len(done) == 6 - ended
    # What has ended altogether is there at once.
    tried.clear()
    assert undisturbed == trained(families, samples, **wanted, records=resumed.again())
    assert tried == []


def test_a_pruned_search_goes_on_as_it_would_have() -> None:
    samples = random_table(30, 3)
    effort = Effort(trials=20, seed=1)
    whole = continued("SVR", samples, effort)
    assert 0 < sum(one.pruned for one in whole) < 20
    for cut in (1, 7, 13, 19):
        again = continued("SVR", samples, effort, whole[:cut])
        assert untimed(whole) == untimed(again)
    parts: list[Try] = []
    while len(parts) < 20:
        more = continued("SVR", samples, effort, parts, slice_s=0.0)
        assert len(parts) + 1 == len(more)
        parts = more
    assert untimed(whole) == untimed(parts)


def untimed(tries: Sequence[Try]) -> list[Try]:
    return [replace(one, seconds=0.0) for one in tries]


def test_two_trainings_at_once_share_their_searches(monkeypatch: pytest.MonkeyPatch) -> None:
    samples = random_table(20, 3)
    wanted: dict[str, Any] = {"folds": 4, "trials": 1}
    alone = trained(["SVR"], samples, **wanted)
    made: list[object] = []
    advanced = tuning._advanced
    monkeypatch.setattr(tuning, "_advanced", lambda *args: made.append(args) or advanced(*args))
    one = Kept()

    class Other(Kept):
        """Whose first record is there when the other process has made all of them."""

        def add(self, fingerprint: str, records: Sequence[SearchRecord]) -> None:
            if not one.ends:
                trained(["SVR"], samples, **wanted, records=one)
                self.rows = one.rows
                return
            super().add(fingerprint, records)

    assert alone == trained(["SVR"], samples, **wanted, records=Other())
    # 5 searches, of which both made one.
    assert len(made) == 6
    assert one.ends == 5


@pytest.mark.parametrize(
    "other", [{"trials": 2}, {"seed": 2}, {"folds": 3}, {"level": 0.8}, {"timeout_s": 9.0}, {}]
)
def test_searches_of_something_else_are_not_used(
    other: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    samples, kept = random_table(8, 2), Kept()
    wanted: dict[str, Any] = {"folds": 2, "trials": 1}
    trained(["SVR"], samples, **wanted, records=kept)
    assert kept.ends == 3
    if not other:
        samples = random_table(8, 2, seed=2)
    trained(["SVR"], samples, **wanted | other, records=kept.again())
    ends = kept.ends
    assert ends == 3 + 1 + other.get("folds", 2)
    monkeypatch.setattr(tuning, "code_fingerprint", lambda: "another")
    trained(["SVR"], samples, **wanted, records=kept.again())
    assert kept.ends == ends + 3
    assert len({fingerprint for fingerprint, _ in kept.rows}) == 3


def test_says_how_many_configurations_it_needs() -> None:
    few = table(np.ones((3, 2)), np.ones(3))
    with pytest.raises(ValueError, match="3 configurations are too few to tune SVR; at least 4"):
        searched("SVR", few, 1)
    with pytest.raises(ValueError, match=r"3 configurations are too few to evaluate .* at least 5"):
        trained(["SVR"], few, folds=5)
    with pytest.raises(ValueError, match="in 2 folds; at least 8"):
        trained(["SVR"], few, folds=2)
    with pytest.raises(ValueError, match="at least 2 folds, got 1"):
        trained(["SVR"], few, folds=1)


@pytest.mark.parametrize(("folds", "fewest"), [(2, 8), (3, 6), (4, 6), (5, 5), (10, 5)])
def test_the_least_number_of_configurations_is_enough(folds: int, fewest: int) -> None:
    error = error_of("SVR", random_table(fewest, 3), folds=folds, trials=1)
    assert error.trials == fewest
