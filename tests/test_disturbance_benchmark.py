"""The benchmark of disturbance: its hog, which trials were beside it, and what it finds wrong."""

import subprocess
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from benchmarks import disturbance
from intop.domain.trial import Status, Trial
from samples import trial

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
BUSY = [(NOON.timestamp(), NOON.timestamp() + 60)]


def attempt(second: float, status: Status = "ok") -> Trial:
    """One of two seconds, that began so long after noon."""
    started = datetime.fromtimestamp(NOON.timestamp() + second, UTC).isoformat(timespec="seconds")
    return replace(trial(status=status), started_at=started, seconds=2.0)


def found(p99s: dict[str, float], attempts: Sequence[Trial] = ()) -> disturbance.Found:
    by_round = {name: {(1, 1): p99} for name, p99 in p99s.items()}
    return disturbance.Found(attempts=attempts, p99s=by_round, seconds=120.0, busy=BUSY)


QUIET = {name: float(place) for place, name in enumerate(disturbance.LADDER, start=1)}
SEEN = [attempt(second, "disturbed") for second in range(0, 57, 2)]


@pytest.mark.parametrize(
    ("second", "place"),
    [(-10, "without"), (-2, "partly"), (0, "beside"), (57, "beside"), (58, "partly")],
)
def test_a_trial_is_beside_the_hog_where_that_is_beyond_doubt(second: float, place: str) -> None:
    assert place == disturbance.place_of(attempt(second), BUSY)


def test_disturbed_trials_are_counted_by_where_they_were() -> None:
    made = [attempt(10, "disturbed"), attempt(20), attempt(58, "disturbed"), attempt(90)]
    counted = found(QUIET, made).flagged()
    assert {"beside": (1, 2), "partly": (1, 1), "without": (0, 1)} == counted


def test_all_configurations_are_different_and_the_first_is_the_default() -> None:
    made = list(disturbance.configurations().values())
    assert made[0].is_default
    assert len({c.digest for c in made}) == len(disturbance.WAITS_MS) == 12


def test_the_hog_is_ended_with_the_campaign(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[subprocess.Popen[bytes]] = []

    class Seen(subprocess.Popen[bytes]):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            started.append(self)

    monkeypatch.setattr(subprocess, "Popen", Seen)
    with disturbance.Neighbour(iter([(60.0, 0.0)])) as neighbour:
        while not started:
            time.sleep(0.01)
        assert started[0].poll() is None
    assert started[0].poll() is not None
    ((began, ended),) = neighbour.busy
    assert 0 <= ended - began < 60


def test_the_same_ranking_is_well_also_where_p99s_moved() -> None:
    hog = found({name: 1.3 * p99 for name, p99 in QUIET.items()}, SEEN)
    assert not disturbance.problems({"quiet": found(QUIET), "hog": hog}, 0.9)


def test_another_ranking_is_named() -> None:
    hog = found(dict(zip(QUIET, reversed(QUIET.values()), strict=True)), SEEN)
    assert disturbance.problems({"quiet": found(QUIET), "hog": hog}, 0.9) == [
        "Spearman's correlation is -1.000, less than 0.9"
    ]


def test_a_configuration_without_a_usable_trial_is_named() -> None:
    last = list(QUIET)[-1]
    hog = found({name: p99 for name, p99 in QUIET.items() if name != last}, SEEN)
    assert disturbance.problems({"quiet": found(QUIET), "hog": hog}, 0.9) == [f"not ranked: {last}"]


def test_trials_beside_the_hog_that_went_unseen_are_named() -> None:
    hog = found(QUIET, [attempt(10), attempt(20, "disturbed")])
    assert disturbance.problems({"quiet": found(QUIET), "hog": hog}, 0.9) == [
        "1 of 2 trials beside the hog were taken for disturbed"
    ]
