"""Trials on several replicas at once, with testbeds that say what each comes to."""

import threading
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from builders import trials as samples
from builders.testbeds import FakeTestbed
from builders.trials import places
from intop.campaign.collect.stage import Collect
from intop.domain.configuration import DEFAULT
from intop.domain.trial import PlannedTrial, Trial
from intop.errors import BaselineError
from intop.run.attempt import load_words
from intop.run.measuring import is_settled, measure

PATIENCE_S = 60


def two(testbed: FakeTestbed) -> list[FakeTestbed]:
    return [testbed, FakeTestbed(testbed.task, name="other", output=testbed.output)]


def made_on(testbeds: Any, due: list[PlannedTrial]) -> dict[int, Trial]:
    task = testbeds[0].task
    task.store.write_plan(task.subject, "collect", due)
    made: dict[int, Trial] = {}
    measure(testbeds, Collect(task), due, made)
    return made


def test_replicas_take_turns(testbed: FakeTestbed) -> None:
    made = made_on(two(testbed), places(5))
    assert [made[n].replica for n in range(5)] == ["lb", "other", "lb", "other", "lb"]
    stored = testbed.task.store.trials(testbed.task.subject, "collect")
    assert [t.replica for t in sorted(stored, key=lambda t: t.planned.index)] == [
        "lb",
        "other",
        "lb",
        "other",
        "lb",
    ]


def test_all_arms_of_a_round_are_measured_on_the_same_replica(testbed: FakeTestbed) -> None:
    made = made_on(two(testbed), places(6, rounds=True))
    assert [made[n].replica for n in range(6)] == ["other", "other", "lb", "lb", "other", "other"]


@pytest.mark.parametrize(
    ("coordinates", "words", "turn"),
    [
        ({}, "trial 7", 7),
        ({"arm": "random 1"}, "trial 7", 7),
        ({"arm": "tuned", "round": 4}, "4", 4),
        ({"arm": "tuned", "round": 4, "series": 12}, "12.4", 4),
        ({"step": 2, "reason": "promise"}, "2.7", 7),
        ({"duration_s": 14}, "8", 8),
        ({"arm": "tuned", "round": 4, "rate_rps": 75.0}, "4", 4),
    ],
)
def test_a_campaign_that_has_begun_keeps_its_loads_and_replicas(
    coordinates: dict[str, Any], words: str, turn: int
) -> None:
    """As they were when a label said where a trial belongs: its words are in the seeds."""
    planned = PlannedTrial(index=7, role="design", configuration=DEFAULT, **coordinates)
    assert (words, turn) == (load_words(planned), planned.turn)


@pytest.mark.parametrize(("rate_rps", "settled"), [(None, False), (75.0, True)])
def test_a_default_that_failed_is_tried_again_but_not_at_another_rate(
    testbed: FakeTestbed, rate_rps: float | None, settled: bool
) -> None:
    planned = PlannedTrial(index=0, role="sentinel", configuration=DEFAULT, rate_rps=rate_rps)
    failed = replace(samples.trial(status="failed"), planned=planned)
    stage = Collect.begin(testbed.task)
    assert settled == is_settled(stage, failed, {0: failed})
    disturbed = replace(failed, status="disturbed")
    assert not is_settled(stage, disturbed, {0: disturbed})


def test_a_disturbed_trial_is_measured_again_on_the_same_replica(testbed: FakeTestbed) -> None:
    testbeds = two(testbed)
    testbeds[1].statuses = ["disturbed"]
    made = made_on(testbeds, places(4))
    assert [one.measured for one in testbeds] == [[0, 2], [1, 3, 1]]
    assert (made[1].attempt, made[1].replica, made[1].status) == (1, "other", "ok")
    assert [one.waited for one in testbeds] == [0, 1]


@dataclass
class Meeting(FakeTestbed):
    """A testbed that goes on when all others have come as far."""

    barrier: threading.Barrier = field(default_factory=lambda: threading.Barrier(2))

    def trial(
        self, planned: PlannedTrial, stage: Any, attempt: int, prune_above_ms: float | None = None
    ) -> Trial:
        self.barrier.wait(PATIENCE_S)
        return super().trial(planned, stage, attempt, prune_above_ms)


def test_they_are_measured_at_the_same_time(testbed: FakeTestbed) -> None:
    barrier = threading.Barrier(2)
    testbeds = [Meeting(testbed.task, name=name, barrier=barrier) for name in ("one", "two")]
    assert len(made_on(testbeds, places(6))) == 6


@dataclass
class Long(FakeTestbed):
    """A testbed whose trials last until it is told to abort them."""

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
class Stopped(FakeTestbed):
    """A testbed that is stopped as by Ctrl-C, once the other one is at work."""

    other: Long | None = None

    def trial(
        self, planned: PlannedTrial, stage: Any, attempt: int, prune_above_ms: float | None = None
    ) -> Trial:
        assert self.other is not None
        assert self.other.begun.wait(PATIENCE_S)
        raise KeyboardInterrupt


def test_what_is_under_way_elsewhere_is_aborted_and_not_stored(testbed: FakeTestbed) -> None:
    long = Long(testbed.task, name="long")
    with pytest.raises(KeyboardInterrupt):
        made_on([Stopped(testbed.task, other=long), long], places(4))
    assert long.aborted
    assert testbed.task.store.trials(testbed.task.subject, "collect") == []


def test_a_failed_default_stops_all_replicas(testbed: FakeTestbed) -> None:
    default = PlannedTrial(index=0, role="baseline", configuration=DEFAULT)
    testbeds = two(testbed)
    testbeds[0].statuses = ["failed"]
    with pytest.raises(BaselineError):
        made_on(testbeds, [default, *places(40)[1:]])
    assert len(testbeds[1].measured) < 20
