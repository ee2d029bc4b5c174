"""What an explanation tries first, by models that were fitted to real rows."""

import random
from dataclasses import replace

import pytest

from benchmarks.campaign import measured
from builders.explaining import latency, with_few_rounds
from builders.results import VERDICT
from builders.testbeds import FakeTestbed, probe_of
from builders.trials import training
from intop.domain.configuration import DEFAULT, Configuration
from intop.domain.explanation import Explanation, Promised
from intop.domain.training import FittedFamily
from intop.domain.trial import PlannedTrial
from intop.explain.stage import explain
from intop.learn.families import FAMILIES

DEFAULTS = {
    "net.core.somaxconn": "4096",
    "net.ipv4.tcp_comp_sack_nr": "44",
    "net.ipv4.tcp_fin_timeout": "60",
    "net.ipv4.tcp_keepalive_time": "7200",
    "net.ipv4.tcp_reordering": "3",
    "net.ipv4.tcp_retries2": "15",
}
WINNER = {
    "net.core.somaxconn": "1024",
    "net.ipv4.tcp_comp_sack_nr": "0",
    "net.ipv4.tcp_fin_timeout": "30",
    "net.ipv4.tcp_keepalive_time": "600",
    "net.ipv4.tcp_reordering": "100",
    "net.ipv4.tcp_retries2": "8",
}
STRONG, WEAK = "net.ipv4.tcp_reordering", "net.ipv4.tcp_comp_sack_nr"
FACTORS = {STRONG: 0.3, WEAK: 0.6}


@pytest.fixture
def won(testbed: FakeTestbed) -> FakeTestbed:
    """Some fifty configurations with any of the winner's changes, and a verdict of gain."""
    with_few_rounds(testbed)
    task = testbed.task
    rng = random.Random(1)
    drawn = [{k: v for k, v in WINNER.items() if rng.random() < 0.5} for _ in range(50)]
    configurations = [DEFAULT, *map(Configuration, drawn)]
    testbed.latency = latency(WINNER, FACTORS, 0.05)
    task.store.put(task.subject, probe_of(DEFAULTS))
    plan = [
        PlannedTrial(index=n, role="design", configuration=one)
        for n, one in enumerate(configurations)
    ]
    measured(task, "collect", plan)
    task.store.put(task.subject, replace(VERDICT, configuration=Configuration(WINNER)))
    testbed.measured = []
    return testbed


def learned(testbed: FakeTestbed, family: str) -> None:
    defaults = dict(FAMILIES[family].defaults)
    fitted = FittedFamily(family=family, hyperparameters=defaults, inner_score=0.0)
    testbed.task.store.put(testbed.task.subject, training(keys=tuple(DEFAULTS), fitted=(fitted,)))


def explained(testbed: FakeTestbed) -> tuple[Explanation, Promised | None]:
    result = explain(testbed.task)
    assert isinstance(result, Explanation)
    return result, testbed.task.store.get(testbed.task.subject, Promised)


def test_what_models_promise_is_tried_first_and_the_others_are_not_looked_at(
    won: FakeTestbed,
) -> None:
    learned(won, "RFR")
    result, promised = explained(won)
    assert promised is not None
    assert list(promised.order[:2]) == [STRONG, WEAK]
    assert list(result.keys) == [STRONG, WEAK]
    assert all(one.missed for one in result.contributions[:2])
    assert not any(one.left_out or one.alone for one in result.contributions[2:])
    assert {one.dropped for one in result.contributions[2:]} == {
        "the 2 changes of which the models expect most keep the gain"
    }


@pytest.mark.parametrize("family", ["", "DNN"])
def test_without_models_of_trees_all_changes_are_looked_at(won: FakeTestbed, family: str) -> None:
    if family:
        learned(won, family)
    result, promised = explained(won)
    assert Promised(order=()) == promised
    assert set(result.keys) == {STRONG, WEAK}
    assert all(one.left_out and one.alone for one in result.contributions)


def test_models_that_are_trained_again_do_not_change_an_explanation(won: FakeTestbed) -> None:
    learned(won, "RFR")
    won.dies_after = 15
    with pytest.raises(KeyboardInterrupt):
        explain(won.task)
    won.dies_after = None
    learned(won, "DNN")
    result, promised = explained(won)
    assert promised is not None
    assert list(promised.order[:2]) == [STRONG, WEAK]
    assert list(result.keys) == [STRONG, WEAK]
