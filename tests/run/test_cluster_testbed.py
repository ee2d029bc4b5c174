"""What a place of a plan says of its load, without hosts."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from fakes import FakeTestbed
from intop.domain.configuration import DEFAULT
from intop.domain.trial import PlannedTrial
from intop.domain.workload import Workload
from intop.errors import CommandError
from intop.run import cluster_testbed
from intop.run.cluster_testbed import ClusterTestbed, load_words
from samples import CONDITIONS

NOTHING: Any = None


@pytest.mark.parametrize(
    ("coordinates", "rate_rps", "duration_s"),
    [
        ({}, 150, 2),
        ({"rate_rps": 75.0}, 75.0, 2),
        ({"duration_s": 7}, 150, 7),
        ({"rate_rps": 225.0, "duration_s": 1}, 225.0, 1),
    ],
)
def test_a_trial_has_the_rate_and_duration_of_its_place(
    testbed: FakeTestbed,
    monkeypatch: pytest.MonkeyPatch,
    coordinates: dict[str, Any],
    rate_rps: float,
    duration_s: int,
) -> None:
    asked: list[Workload] = []

    def measure(_rig: Any, _tool: Any, workload: Workload, **_: Any) -> Any:
        asked.append(workload)
        raise CommandError("lg", "that is all")

    monkeypatch.setattr(cluster_testbed, "measure", measure)
    monkeypatch.setattr(cluster_testbed, "settle", lambda *_, **__: "")
    balancer = SimpleNamespace(address=SimpleNamespace(name="lb"))
    conditions = replace(CONDITIONS, rate_rps=150, duration_s=2)
    ready = ClusterTestbed(
        task=testbed.task,
        rig=SimpleNamespace(load_balancer=balancer),  # type: ignore[arg-type]
        tool=NOTHING,
        guard=SimpleNamespace(apply=lambda _: None),  # type: ignore[arg-type]
        probe=NOTHING,
        probed=NOTHING,
        conditions=conditions,
    )
    planned = PlannedTrial(index=0, role="sentinel", configuration=DEFAULT, **coordinates)
    found = ready.trial(planned, "rates", 0)
    assert [(rate_rps, duration_s)] == [(w.rate_rps, w.duration_s) for w in asked]
    assert (rate_rps, duration_s) == (found.conditions.rate_rps, found.conditions.duration_s)


def test_both_sides_at_a_rate_have_the_same_load_as_all_of_their_round() -> None:
    one, other = (
        PlannedTrial(
            index=index,
            role="finalist",
            configuration=DEFAULT,
            arm=arm,
            round=3,
            series=2,
            rate_rps=rate,
        )
        for index, arm, rate in ((0, "tuned", 75.0), (1, "default", 150.0))
    )
    assert "2.3" == load_words(one) == load_words(other)
    assert (3, (2, 3)) == (one.turn, other.block)
