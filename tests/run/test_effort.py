"""What trials and models are reckoned to take, beside what they took."""

from dataclasses import replace

import pytest

from builders.shipped_studies import lab_study
from intop.config.study import load_study
from intop.resources import shipped
from intop.run.effort import AROUND_S, RETRIED, search, training, trial

LAB = lab_study().budget
PAPER = load_study(shipped("configs") / "paper.toml").budget


def test_a_trial_is_its_load_and_what_is_done_around_it() -> None:
    """Trials of 2 s took 2.5 s on each of the lab's two replicas."""
    assert pytest.approx(trial("lab", 2, 150, LAB).likely_s) == RETRIED * 2.4
    assert 0.9 < trial("lab", 2, 150, LAB).likely_s / 2.5 < 1.1
    assert AROUND_S["lab"] < AROUND_S["guest"] < AROUND_S["own"]


def test_where_time_wait_may_have_to_pass_that_is_the_most() -> None:
    own = trial("own", 41, 10_000, PAPER)
    few = trial("own", 41, 100, PAPER)
    assert own.likely_s == few.likely_s < few.most_s < own.most_s
    short = trial("own", 41, 10_000, replace(PAPER, settle_limit_s=10))
    assert few.most_s < short.most_s < own.most_s


def test_the_training_of_the_lab_takes_what_it_took() -> None:
    """93 s were measured with two processes, and 36 configurations."""
    result = training(40, LAB, 2)
    assert 0.75 < result.likely_s / 93 < 1.25
    assert result.likely_s < result.most_s
    assert result.likely_s == pytest.approx(2 * training(40, LAB, 4).likely_s)
    assert result.likely_s < training(500, LAB, 2).likely_s


def test_no_search_for_hyperparameters_outlasts_its_limit() -> None:
    slow = replace(PAPER, tuning_trials=100_000, tuning_timeout_s=10)
    limit = (PAPER.folds * PAPER.repeats + 1) * (7 * 10)
    fits = training(500, replace(slow, tuning_timeout_s=1e-9), 1)
    assert limit == pytest.approx(training(500, slow, 1).likely_s - fits.likely_s)
    assert 2 * limit == pytest.approx(training(500, slow, 1).most_s - fits.most_s)


def test_more_candidates_take_longer() -> None:
    assert search(LAB).likely_s < search(PAPER).likely_s < search(PAPER).most_s
