"""All stages after one another: what is said between them."""

from dataclasses import replace

import pytest

from fakes import FakeBench
from intop.domain.results import Verdict
from intop.run.context import Task
from intop.stages import tune
from samples import VERDICT, ranking, search, training


@pytest.mark.parametrize(("ratio_low", "told"), [(2.0, True), (0.9, False)])
def test_a_gain_is_told_before_it_is_explained(
    bench: FakeBench, monkeypatch: pytest.MonkeyPatch, ratio_low: float, told: bool
) -> None:
    task, verdict = bench.task, replace(VERDICT, ratio_low=ratio_low)
    for result in (ranking(), training(), search(), verdict):
        task.store.put(task.subject, result)
    heard: list[str] = []

    def explain(_: Task) -> Verdict:
        heard.append(bench.told.getvalue())
        return verdict

    monkeypatch.setattr(tune, "explain", explain)
    (found,) = tune.tune(task.context, lambda _: None)
    assert found.verdict == verdict
    assert [f"{task.title}: gain: {verdict.gain}" in said for said in heard] == [True] * told
