"""What models are given: each configuration once."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from collected import check, collect
from fakes import FakeTestbed
from intop.domain.training import Searches
from intop.errors import ResultMissingError
from intop.stages import train


def test_training_has_one_sample_of_each_configuration(
    testbed: FakeTestbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    collect(testbed)
    given: list[Any] = []
    monkeypatch.setattr(train, "train_all", lambda *args, **_: given.extend(args) or [])
    training = train.train(testbed.task)
    _, samples = given
    check(samples)
    assert (6, 3) == (training.trials, training.configurations)
    assert training.ceiling is not None
    assert 2 == training.ceiling.configurations
    assert training.ceiling.scale is not None  # told by the trials' latencies


def test_a_killed_training_goes_on_with_what_is_stored(
    testbed: FakeTestbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    collect(testbed)
    made: list[Searches | None] = []
    first = Searches(fingerprint="first")

    def train_all(
        *_: object, kept: Searches | None, keep: Callable[[Searches], None], **__: object
    ) -> list[object]:
        made.append(kept)
        keep(first)
        if len(made) == 1:
            raise KeyboardInterrupt
        return []

    monkeypatch.setattr(train, "train_all", train_all)
    with pytest.raises(KeyboardInterrupt):
        train.train(testbed.task)
    train.train(testbed.task)
    assert [None, first] == made


def test_a_training_without_trials_makes_no_folder_for_its_models(
    testbed: FakeTestbed, tmp_path: Path
) -> None:
    with pytest.raises(ResultMissingError):
        train.train(testbed.task, tmp_path / "models")
    assert not (tmp_path / "models").exists()
