"""What models learn where a study asks for a component in place of P99."""

from dataclasses import replace
from typing import Any, Literal

import pytest

from benchmarks.campaign import measured
from builders.testbeds import FakeTestbed, probe_of
from intop.campaign import collected
from intop.campaign.search.stage import search
from intop.campaign.train import stage as train
from intop.domain.configuration import Configuration
from intop.domain.training import Training
from intop.domain.trial import PlannedTrial
from intop.errors import IncomparableError, IntopError, UsageError
from intop.learn import components, tuning
from intop.run.context import Task

KEY = "net.ipv4.tcp_fin_timeout"


def with_trials(testbed: FakeTestbed, trials: int) -> FakeTestbed:
    """Every second trial is a replicate of the one before it; the third one fails."""
    plan = [
        PlannedTrial(index=n, role="design", configuration=Configuration({KEY: f"{20 + n // 2}"}))
        for n in range(trials)
    ]
    testbed.latency = lambda p: 1_000 + 100 * p.index
    testbed.statuses = ["ok", "ok", "failed"]
    testbed.task.store.put(testbed.task.subject, probe_of({KEY: "60"}))
    measured(testbed.task, "collect", plan)
    return testbed


def asking(task: Task, objective: Literal["p99", "component"]) -> Task:
    study = replace(task.context.study, objective=objective)
    return replace(task, context=replace(task.context, study=study))


def test_each_trial_counts_as_what_its_component_says(
    testbed: FakeTestbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = asking(with_trials(testbed, 6).task, "component")
    monkeypatch.setattr(components, "p99_equivalent", lambda _: [1.0, 2.0, 4.0, 5.0, 6.0])
    _, samples, _ = collected.collected_samples(task)
    assert samples.measured == ((1.0, 2.0), (4.0,), (5.0, 6.0))


def test_training_says_what_was_learned_and_has_the_components(
    testbed: FakeTestbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tuning, "train_all", lambda *_, **__: [])
    task = with_trials(testbed, 12).task
    result = train.train(asking(task, "component"))
    assert (result.objective, result.target) == ("component", "P99 equivalent")
    assert result.components is not None
    # All requests of these trials took as long, so all latencies are one.
    assert (
        result.components.trials,
        len(result.components.groups[0]),
        result.components.needed,
    ) == (11, 5, 1)
    assert result == task.store.get(task.subject, Training)
    result = train.train(task)
    assert (result.objective, result.target) == ("p99", "P99")


def test_models_of_another_objective_are_not_searched(
    testbed: FakeTestbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tuning, "train_all", lambda *_, **__: [])
    task = with_trials(testbed, 12).task
    train.train(task)
    with pytest.raises(
        UsageError, match=r"learned the objective 'p99', and .* asks for 'component'"
    ):
        search(asking(task, "component"))


def test_trials_of_another_objective_are_not_learned(testbed: FakeTestbed) -> None:
    task = with_trials(testbed, 12).task
    other = replace(task, workload=replace(task.workload, judged_by="P90"))
    with pytest.raises(
        IncomparableError, match=r"trials are judged by P99, and .* is P90 by now.*tune --new"
    ):
        train.train(other)


def test_a_component_that_cannot_be_told_is_refused_by_file(testbed: FakeTestbed) -> None:
    task: Any = asking(with_trials(testbed, 6).task, "component")
    with pytest.raises(IntopError, match=r'x86 slt: .*10 trials.*Set objective = "p99" in'):
        train.train(task)
