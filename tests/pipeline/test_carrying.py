"""Trials on several replicas at once, with benches that say what each comes to."""

import threading
from dataclasses import dataclass, field
from typing import Any

import pytest

from fakes import FakeBench
from intop.domain.configuration import DEFAULT
from intop.domain.trial import PlannedTrial, Trial
from intop.errors import BaselineError
from intop.run.cluster_testbed import _block
from intop.run.measuring import _turn, carry_out
from samples import places

PATIENCE_S = 60


def two(bench: FakeBench) -> list[FakeBench]:
    return [bench, FakeBench(bench.task, name="other", told=bench.told)]


def carried(benches: Any, due: list[PlannedTrial]) -> dict[int, Trial]:
    task = benches[0].task
    task.store.write_plan(task.subject, "collect", due)
    made: dict[int, Trial] = {}
    carry_out(benches, "collect", due, made, max_failures=2)
    return made


def test_replicas_take_turns(bench: FakeBench) -> None:
    made = carried(two(bench), places(5))
    assert ["lb", "other", "lb", "other", "lb"] == [made[n].replica for n in range(5)]
    stored = bench.task.store.trials(bench.task.subject, "collect")
    assert ["lb", "other", "lb", "other", "lb"] == [
        t.replica for t in sorted(stored, key=lambda t: t.planned.index)
    ]


def test_all_arms_of_a_round_are_measured_on_the_same_replica(bench: FakeBench) -> None:
    made = carried(two(bench), places(6, rounds=True))
    assert ["other", "other", "lb", "lb", "other", "other"] == [made[n].replica for n in range(6)]


@pytest.mark.parametrize(
    ("coordinates", "words", "turn"),
    [
        ({}, "trial 7", 7),
        ({"arm": "random 1"}, "trial 7", 7),
        ({"arm": "tuned", "round": 4}, "4", 4),
        ({"arm": "tuned", "round": 4, "series": 12}, "12.4", 4),
        ({"step": 2, "reason": "promise"}, "2.7", 7),
        ({"duration_s": 14}, "8", 8),
    ],
)
def test_a_campaign_that_has_begun_keeps_its_loads_and_replicas(
    coordinates: dict[str, Any], words: str, turn: int
) -> None:
    """As they were when a label said where a trial belongs: its words are in the seeds."""
    planned = PlannedTrial(index=7, role="design", configuration=DEFAULT, **coordinates)
    assert (words, turn) == (_block(planned), _turn(planned))


def test_a_disturbed_trial_is_measured_again_on_the_same_replica(bench: FakeBench) -> None:
    benches = two(bench)
    benches[1].statuses = ["disturbed"]
    made = carried(benches, places(4))
    assert [[0, 2], [1, 3, 1]] == [b.measured for b in benches]
    assert (1, "other", "ok") == (made[1].attempt, made[1].replica, made[1].status)
    assert [0, 1] == [b.waited for b in benches]


@dataclass
class Meeting(FakeBench):
    """A bench that goes on when all others have come as far."""

    barrier: threading.Barrier = field(default_factory=lambda: threading.Barrier(2))

    def trial(
        self, planned: PlannedTrial, stage: Any, attempt: int, prune_above_ms: float | None = None
    ) -> Trial:
        self.barrier.wait(PATIENCE_S)
        return super().trial(planned, stage, attempt, prune_above_ms)


def test_they_are_measured_at_the_same_time(bench: FakeBench) -> None:
    barrier = threading.Barrier(2)
    benches = [Meeting(bench.task, name=name, barrier=barrier) for name in ("one", "two")]
    assert 6 == len(carried(benches, places(6)))


@dataclass
class Long(FakeBench):
    """A bench whose trials last until it is told to abort them."""

    begun: threading.Event = field(default_factory=threading.Event)
    told_to_end: threading.Event = field(default_factory=threading.Event)

    def trial(
        self, planned: PlannedTrial, stage: Any, attempt: int, prune_above_ms: float | None = None
    ) -> Trial:
        self.begun.set()
        assert self.told_to_end.wait(PATIENCE_S)
        return super().trial(planned, stage, attempt, prune_above_ms)

    def abort(self) -> None:
        super().abort()
        self.told_to_end.set()


@dataclass
class Stopped(FakeBench):
    """A bench that is stopped as by Ctrl-C, once the other one is at work."""

    other: Long | None = None

    def trial(
        self, planned: PlannedTrial, stage: Any, attempt: int, prune_above_ms: float | None = None
    ) -> Trial:
        assert self.other is not None
        assert self.other.begun.wait(PATIENCE_S)
        raise KeyboardInterrupt


def test_what_is_under_way_elsewhere_is_aborted_and_not_stored(bench: FakeBench) -> None:
    long = Long(bench.task, name="long")
    with pytest.raises(KeyboardInterrupt):
        carried([Stopped(bench.task, other=long), long], places(4))
    assert long.aborted
    assert [] == bench.task.store.trials(bench.task.subject, "collect")


def test_a_failed_default_stops_all_replicas(bench: FakeBench) -> None:
    default = PlannedTrial(index=0, role="baseline", configuration=DEFAULT)
    benches = two(bench)
    benches[0].statuses = ["failed"]
    with pytest.raises(BaselineError):
        carried(benches, [default, *places(40)[1:]])
    assert len(benches[1].measured) < 20
