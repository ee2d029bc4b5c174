"""What models are given: each configuration once."""

import math
from collections.abc import Callable
from typing import Any

import pytest

from benchmarks.campaign import measured
from fakes import FakeBench, probe_of
from intop.domain.configuration import DEFAULT, Configuration
from intop.domain.results import TREE_MODELS, FittedFamily, Search, Searches, Training
from intop.domain.trial import PlannedTrial
from intop.learn.families import FAMILIES
from intop.learn.samples import Samples

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
    measured(bench.task, "collect", plan)
    return bench


def test_training_has_one_sample_of_each_configuration(
    measured: FakeBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[Any] = []
    monkeypatch.setattr(modelling, "train_all", lambda *args, **_: given.extend(args) or [])
    training = modelling.train(measured.task)
    _, samples = given
    check(samples)
    assert (6, 3) == (training.trials, training.configurations)
    assert training.ceiling is not None
    assert 2 == training.ceiling.configurations


def check(samples: Samples) -> None:
    """The default, and the two others, each with all of its trials."""
    assert [[60], [30], [45]] == samples.values.tolist()
    assert [3, 2, 1] == [len(trials) for trials in samples.measured]
    # 0.8 ms is the geometric mean of 0.4 and 1.6.
    assert [0, math.log(0.8), math.log(2)] == pytest.approx(samples.log_target, abs=1e-3)


def test_a_killed_training_goes_on_with_what_is_stored(
    measured: FakeBench, monkeypatch: pytest.MonkeyPatch
) -> None:
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

    monkeypatch.setattr(modelling, "train_all", train_all)
    with pytest.raises(KeyboardInterrupt):
        modelling.train(measured.task)
    modelling.train(measured.task)
    assert [None, first] == made


def test_a_search_fits_its_models_to_the_same(
    measured: FakeBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    class EnoughError(Exception):
        """What was to be seen was seen."""

    def fit(_: object, samples: Samples, __: int) -> None:
        check(samples)
        raise EnoughError

    monkeypatch.setattr(modelling, "fit_trees", fit)
    training = Training(keys=(KEY,), fitted=(), errors=(), trials=6, configurations=3)
    measured.task.store.put(measured.task.subject, training)
    with pytest.raises(EnoughError):
        modelling.search(measured.task)


def test_a_search_keeps_each_tree_models_own_winner(measured: FakeBench) -> None:
    """As its own search found it, which is its best prediction, whatever the others say."""
    task = measured.task
    fitted = tuple(
        FittedFamily(family=name, hyperparameters=dict(family.defaults), inner_score=0.0)
        for name, family in FAMILIES.items()
    )
    training = Training(keys=(KEY,), fitted=fitted, errors=(), trials=6, configurations=3)
    task.store.put(task.subject, training)
    found = modelling.search(task)
    assert TREE_MODELS == tuple(winner.model for winner in found.winners)
    assert tuple(name for name, family in FAMILIES.items() if family.is_tree) == TREE_MODELS
    lowest = {run.model: run.best_ms[-1] for run in found.convergences}
    assert [lowest[w.model] for w in found.winners] == [w.predicted_p99_ms for w in found.winners]
    assert {"ensemble"} == {candidate.model for candidate in found.candidates}
    assert found == task.store.get(task.subject, Search)
