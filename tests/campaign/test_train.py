"""What models are given: each configuration once."""

import math
from pathlib import Path
from typing import Any

import pytest

from builders.collected import check, collect
from builders.testbeds import FakeTestbed
from intop.campaign.train import stage as train
from intop.domain.training import SearchRecord, SearchRecords, Try
from intop.errors import ResultMissingError
from intop.learn import tuning


def test_training_has_one_sample_of_each_configuration(
    testbed: FakeTestbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    collect(testbed)
    given: list[Any] = []
    monkeypatch.setattr(tuning, "train_all", lambda *args, **_: given.extend(args) or [])
    training = train.train(testbed.task)
    _, samples = given
    check(samples)
    assert (training.trials, training.configurations) == (6, 3)
    assert training.ceiling is not None
    assert training.ceiling.configurations == 2
    assert training.ceiling.scale is not None  # told by the trials' latencies


def test_a_training_has_a_quarter_of_its_trials_time_and_ends_at_noise(
    testbed: FakeTestbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    collect(testbed)
    given: list[Any] = []
    monkeypatch.setattr(tuning, "train_all", lambda *_, effort, **__: given.append(effort) or [])
    training = train.train(testbed.task)
    (effort,) = given
    taken_s = sum(trial.seconds for trial in testbed.task.trials("collect"))
    assert effort.time_s == pytest.approx(0.25 * taken_s)
    assert training.ceiling is not None
    assert effort.enough == pytest.approx(1.2 * math.log1p(training.ceiling.mape / 100))


def test_a_killed_training_goes_on_with_what_is_stored(
    testbed: FakeTestbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    collect(testbed)
    made: list[list[SearchRecord]] = []
    known = Try(number=0, hyperparameters={}, errors=(1.0,), pruned=True, seconds=1.0)
    first = SearchRecord(family="SVR", fold=0, known=known)

    def train_all(*_: object, records: SearchRecords, **__: object) -> list[object]:
        made.append([*records.new("one")])
        records.add("one", [first])
        if len(made) == 1:
            raise KeyboardInterrupt
        return []

    monkeypatch.setattr(tuning, "train_all", train_all)
    with pytest.raises(KeyboardInterrupt):
        train.train(testbed.task)
    train.train(testbed.task)
    assert [[], [first]] == made


def test_a_training_without_trials_makes_no_folder_for_its_models(
    testbed: FakeTestbed, tmp_path: Path
) -> None:
    with pytest.raises(ResultMissingError):
        train.train(testbed.task, tmp_path / "models")
    assert not (tmp_path / "models").exists()
