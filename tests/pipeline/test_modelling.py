"""What models are given: each configuration once."""

import math
from typing import Any

import numpy as np
import pytest

from fakes import FakeBench, probe_of
from intop.domain.configuration import DEFAULT, Configuration
from intop.domain.results import Training
from intop.domain.trial import PlannedTrial
from intop.pipeline import modelling
from intop.pipeline.measuring import measure_plan

KEY = "net.ipv4.tcp_fin_timeout"
ONE, OTHER = Configuration({KEY: "30"}), Configuration({KEY: "45"})


@pytest.fixture(name="measured")
def _measured(bench: FakeBench) -> FakeBench:
    """The default three times, one configuration twice, once disturbed, and another one once."""
    order = [DEFAULT, ONE, OTHER, DEFAULT, ONE, ONE, DEFAULT]
    latencies = [1_000, 400, 2_000, 1_000, 1_600, 1, 1_000]
    plan = [
        PlannedTrial(index=n, role="design", configuration=configuration)
        for n, configuration in enumerate(order)
    ]
    bench.latency = lambda p: latencies[p.index]
    retries = bench.task.context.study.budget.retries
    bench.statuses = [*("ok",) * 5, "disturbed", "ok", *("disturbed",) * retries]
    bench.task.store.put(bench.task.subject, probe_of({KEY: "60"}))
    measure_plan(bench.task, "collect", lambda _: plan)
    return bench


def test_training_has_one_sample_of_each_configuration(
    measured: FakeBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[Any] = []
    monkeypatch.setattr(modelling, "train_all", lambda *args, **_: given.extend(args) or [])
    training = modelling.train(measured.task)
    _, features, logs, groups = given
    assert (3, 3) == (len(features), len(set(groups)))
    assert [DEFAULT.digest, ONE.digest, OTHER.digest] == list(groups)
    # 0.8 ms is the geometric mean of 0.4 and 1.6.
    assert [0, math.log(0.8), math.log(2)] == pytest.approx(list(logs), abs=1e-3)
    assert (6, 3) == (training.trials, training.configurations)


def test_a_search_fits_its_models_to_the_same(
    measured: FakeBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    class EnoughError(Exception):
        """What was to be seen was seen."""

    def fit(_: object, features: np.ndarray, logs: np.ndarray, __: int) -> None:
        assert 3 == len(features)
        assert [0, math.log(0.8), math.log(2)] == pytest.approx(list(logs), abs=1e-3)
        raise EnoughError

    monkeypatch.setattr(modelling, "fit_trees", fit)
    training = Training(keys=(KEY,), fitted=(), errors=(), trials=6, configurations=3)
    measured.task.store.put(measured.task.subject, training)
    with pytest.raises(EnoughError):
        modelling.search(measured.task)
