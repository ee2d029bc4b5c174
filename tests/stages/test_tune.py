"""All stages after one another: what is said between them."""

from dataclasses import replace

import pytest

from fakes import FakeTestbed, probe_of
from intop.run.stage import AnyStage
from intop.stages import tune
from intop.stages.explain import Explain
from samples import VERDICT, ranking, search, training


@pytest.mark.parametrize(("ratio_low", "told"), [(2.0, True), (0.9, False)])
def test_a_gain_is_told_before_it_is_explained(
    testbed: FakeTestbed, monkeypatch: pytest.MonkeyPatch, ratio_low: float, told: bool
) -> None:
    task, verdict = testbed.task, replace(VERDICT, ratio_low=ratio_low)
    probe = probe_of({"net.core.somaxconn": "4096", "net.ipv4.tcp_rmem": "4096 131072 6291456"})
    for result in (ranking(), training(), search(), verdict, probe):
        task.store.put(task.subject, result)
    heard: list[str] = []

    def execute(stage: AnyStage) -> None:
        assert isinstance(stage, Explain)
        heard.append(testbed.told.getvalue())

    monkeypatch.setattr(tune, "execute", execute)
    begun: list[str] = []
    (found,) = tune.tune(task.context, lambda _: None, lambda _, stage: begun.append(stage))
    assert found.verdict == verdict
    assert [f"{task.title}: gain: {verdict.gain}" in said for said in heard] == [True] * told
    assert ["explain"] * told == begun
