from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from intop.domain.campaign_status import (
    Place,
    StageStatus,
    SubjectStatus,
    lowest,
    pace_s,
)
from intop.domain.configuration import DEFAULT, Configuration

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


def place(n: int, *, at_s: float | None = None, **changes: object) -> Place:
    made = Place(
        stage="collect",
        index=n,
        role="design",
        configuration=Configuration({"net.core.somaxconn": str(n)}) if n else DEFAULT,
    )
    if at_s is not None:
        started = (BEGIN + timedelta(seconds=at_s)).isoformat()
        made = replace(
            made, status="ok", attempts=1, started_at=started, seconds=2.5, judged_ms=10.0
        )
    return replace(made, **changes)


def test_a_place_is_done_once_it_is_not_measured_again() -> None:
    assert not place(1).is_done(2)
    assert place(1, at_s=0).is_done(2)
    assert place(1, at_s=0, status="failed").is_done(2)
    assert not place(1, at_s=0, status="disturbed", attempts=2).is_done(2)
    assert place(1, at_s=0, status="disturbed", attempts=3).is_done(2)


def test_the_pace_leaves_pauses_out() -> None:
    steady = [place(n, at_s=3.0 * n) for n in range(6)]
    assert pace_s(steady) == 3.0
    later = [place(n, at_s=3600 + 3.0 * n) for n in range(6)]
    assert pace_s(steady + later) == 3.0
    assert pace_s([*steady, place(9)]) == 3.0


def test_few_trials_have_no_pace() -> None:
    assert pace_s([]) is None
    assert pace_s([place(n, at_s=3.0 * n) for n in range(3)]) is None


def test_two_replicas_are_twice_as_quick() -> None:
    both = [place(2 * n + m, at_s=3.0 * n) for n in range(8) for m in range(2)]
    assert pytest.approx(pace_s(both)) == 1.4


def test_the_lowest_is_told_with_how_many_it_was_chosen_from() -> None:
    made = [
        place(0, at_s=0, judged_ms=40.0),
        place(1, at_s=1, judged_ms=10.0),
        place(1, at_s=2, judged_ms=40.0),
        place(2, at_s=3, judged_ms=25.0),
        place(3, at_s=4, judged_ms=1.0, status="disturbed"),
        place(4, at_s=4, judged_ms=None, status="failed"),
    ]
    best = lowest(made)
    assert best is not None
    assert (best.judged_ms, best.trials, best.configurations) == (pytest.approx(20.0), 2, 2)
    assert (best.default_ms, best.default_trials) == (pytest.approx(40.0), 1)
    assert not best.by_models


def test_without_a_configuration_there_is_no_best() -> None:
    assert lowest([place(0, at_s=0)]) is None


def test_what_is_left_is_the_sum_of_what_is_not_done() -> None:
    done = StageStatus(name="screen", state="done", trials=8, done=6, left_s=4.0)
    runs = StageStatus(name="collect", state="begun", trials=8, done=6, left_s=4.0)
    comes = StageStatus(name="refine", state="to come", trials=5, left_s=10.0)
    subject = SubjectStatus(
        arch="x86",
        workload="slt",
        stages=(done, runs, comes),
        trial_s=2.0,
        measured_in=1,
        best=None,
        verdict=None,
    )
    assert (done.left, runs.left, comes.left) == (0, 2, 5)
    assert subject.left_s == 14.0
    assert subject.most_s is None
    computes = StageStatus(name="train", state="to come", left_s=60.0, most_s=180.0)
    alone = replace(subject, stages=(computes,))
    assert (alone.left_s, alone.most_s) == (60.0, 180.0)
    assert runs == subject.current
    unknown = replace(subject, stages=(runs, replace(comes, left_s=None)))
    assert unknown.left_s is None
