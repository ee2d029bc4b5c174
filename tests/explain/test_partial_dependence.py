"""Curves of dependence: predicted along a kept key, and measured beside it."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from benchmarks.campaign import measured
from builders.results import VERDICT
from builders.testbeds import FakeTestbed, probe_of
from builders.trials import training, trial
from intop.domain.configuration import DEFAULT, Configuration
from intop.domain.explanation import Contribution, Explanation, Kept
from intop.domain.stats import Interval
from intop.domain.training import Training
from intop.domain.trial import PlannedTrial
from intop.explain import models
from intop.learn import surrogate

KEY, OTHER = "net.ipv4.tcp_fin_timeout", "net.core.somaxconn"
WINNER = Configuration({KEY: "30", OTHER: "64"})
RATIO = Interval(2.0, 1.5, 3.0)
TRIALS = [trial(WINNER, 1_000), trial(Configuration({OTHER: "64"}), 2_000), trial(DEFAULT, 1_500)]
FOUND = Explanation(
    winner=WINNER,
    minimal=Configuration({KEY: "30"}),
    contributions=(Contribution(keys=(KEY,), before=("60",), after=("30",)),),
    interactions=(),
    same=(),
    verdict=VERDICT,
    kept=Kept(share=1, low=1, high=1, full=RATIO, smaller=RATIO, rounds=3),
    offer=None,
    level=0.95,
    trials=3,
)
TRAINING = training(keys=(KEY, OTHER))


@pytest.fixture
def collected(testbed: FakeTestbed) -> FakeTestbed:
    testbed.task.store.put(testbed.task.subject, probe_of({KEY: "60", OTHER: "4096"}))
    plan = [
        PlannedTrial(index=n, role="design", configuration=c)
        for n, c in enumerate((DEFAULT, WINNER))
    ]
    measured(testbed.task, "collect", plan)
    return testbed


def test_a_curve_is_predicted_about_the_winner(
    collected: FakeTestbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []

    def predictor(values: Any) -> Any:
        asked.append(values)
        return np.zeros(len(values))

    monkeypatch.setattr(surrogate, "fit_trees", lambda *_: predictor)
    collected.task.store.put(collected.task.subject, TRAINING)
    (curve,), message = models.curves(collected.task, FOUND, TRIALS)
    assert message == ""
    assert curve.name == KEY
    assert {p.judged_ms for p in curve.predicted} == {1.0}
    assert [(p.value, p.judged_ms) for p in curve.measured] == [(30, 1), (60, 2)]
    assert {p.value for p in curve.elsewhere} == {30, 60}
    (values,) = asked
    assert [set(column) for column in values.T if len(set(column)) == 1] == [{64.0}]


@pytest.mark.parametrize(
    ("training", "why"),
    [
        (None, "there are no models. Run: intop train --arch x86 --workload slt"),
        (replace(TRAINING, objective="component"), 'set objective = "p99"'),
        (TRAINING, "no tree family"),
    ],
)
def test_without_models_it_says_why(
    collected: FakeTestbed, training: Training | None, why: str
) -> None:
    if training is not None:
        collected.task.store.put(collected.task.subject, training)
    made, message = models.curves(collected.task, FOUND, TRIALS)
    assert made == ()
    assert why in message
