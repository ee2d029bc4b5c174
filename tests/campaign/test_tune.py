"""All stages after one another: what is said between them."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import pytest

from builders.results import VERDICT
from builders.testbeds import FakeTestbed, probe_of
from builders.trials import ranking, search, training
from intop.campaign import tune
from intop.explain.stage import Explain
from intop.run.context import Task
from intop.run.executor import OpenTestbeds
from intop.run.stage import AnyStage


@pytest.mark.parametrize(("ratio_low", "message"), [(2.0, True), (0.9, False)])
def test_a_gain_is_told_before_it_is_explained(
    testbed: FakeTestbed, monkeypatch: pytest.MonkeyPatch, ratio_low: float, message: bool
) -> None:
    task, verdict = testbed.task, replace(VERDICT, ratio_low=ratio_low)
    probe = probe_of({"net.core.somaxconn": "4096", "net.ipv4.tcp_rmem": "4096 131072 6291456"})
    for result in (ranking(), training(), search(), verdict, probe):
        task.store.put(task.subject, result)
    heard: list[str] = []

    def execute(stage: AnyStage, on: OpenTestbeds) -> None:
        del on
        assert isinstance(stage, Explain)
        heard.append(testbed.output.getvalue())

    monkeypatch.setattr(tune, "execute", execute)
    begun: list[str] = []
    (results,) = tune.tune(task.context, lambda _: None, lambda _, stage: begun.append(stage))
    assert results.verdict == verdict
    assert [f"{task.title}: gain: {verdict.gain}" in output for output in heard] == [True] * message
    assert ["explain"] * message == begun


def test_hosts_are_held_from_stage_to_stage_and_given_back_while_models_learn(
    testbed: FakeTestbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[str] = []

    @contextmanager
    def opened(_: Task) -> Iterator[tuple[FakeTestbed, ...]]:
        heard.append("open")
        try:
            yield (testbed,)
        finally:
            heard.append("close")

    task = replace(testbed.task, context=replace(testbed.task.context, testbeds=opened))

    def stub(name: str, measures: bool) -> AnyStage:
        made = SimpleNamespace(
            name=name, measures=measures, task=task, is_left=lambda _: True, begin=lambda _: made
        )
        return cast("AnyStage", made)

    def execute(stage: AnyStage, on: OpenTestbeds) -> None:
        if stage.measures:
            on.of(stage.task)
        heard.append(stage.name)
        if stage.name == "judge":
            raise KeyboardInterrupt

    names = ("screen", "collect", "train", "pick", "judge")
    stages = [stub(name, name != "train") for name in names]
    monkeypatch.setattr(tune, "in_tune", lambda: stages)
    monkeypatch.setattr(tune, "execute", execute)
    with pytest.raises(KeyboardInterrupt):
        tune.tune(task.context, lambda _: None)
    screened = ["open", "screen", "collect", "close", "train"]
    assert [*screened, "open", "pick", "judge", "close"] == heard
