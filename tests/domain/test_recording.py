"""The windows of a recording that a trial plays, and their shares among streams."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from builders.recordings import HOUR_S, PATHS, busy_hour, recording, words_of
from intop.domain.recording import (
    MOST_WINDOWS,
    Slots,
    Words,
    paths_of,
    times_us,
    trial_slots,
    windows,
)
from intop.domain.workload import Recording, Workload

HOUR, WORDS = busy_hour()
LOAD = Workload(
    name="slt",
    kind="slt",
    rate_rps=HOUR.rate_rps,
    connections=8,
    duration_s=10,
    warmup_s=1,
    arrivals="recorded",
    recording=HOUR,
)


def played(
    number: int = 1,
    seed: int = 7,
    *,
    words: Words = WORDS,
    of: Recording = HOUR,
    **changes: Any,
) -> Slots:
    return trial_slots(words, of, replace(LOAD, **changes), seed=seed, number=number)


def counted(slots: Slots, duration_s: float = 10) -> NDArray[np.int64]:
    """The due times after the warm-up."""
    return slots.due_us[slots.due_us >= 1_000_000] - 1_000_000


# Windows ------------------------------------------------------------------------------------------


def test_equal_seeds_and_numbers_play_equal_windows_and_others_do_not() -> None:
    one, same = played(), played()
    assert (one.due_us.tolist(), one.paths.tolist()) == (same.due_us.tolist(), same.paths.tolist())
    for other in (played(2), played(seed=8)):
        assert one.due_us.tolist() != other.due_us.tolist()


@pytest.mark.parametrize("count", [1, 5, MOST_WINDOWS])
@pytest.mark.parametrize("rounds", [1, 3, 10, 25, 40])
def test_each_stratum_has_a_window_and_rounds_fill_it_evenly(count: int, rounds: int) -> None:
    begins = np.array([windows(HOUR_S, 10, count, seed=3, number=n) for n in range(1, rounds + 1)])
    places = begins * count / HOUR_S - np.arange(count)
    assert places.min() >= 0
    assert places.max() < 1
    for own in np.sort(places, axis=0).T:
        gaps = np.diff([*own, own[0] + 1])
        # Steps of the golden ratio leave no larger gap: the limit is 1 + 2 / sqrt(5).
        assert gaps.max() <= 1.9 / rounds


def test_strata_have_windows_that_do_not_move_together() -> None:
    begins = windows(HOUR_S, 10, 10, seed=3, number=1)
    assert np.std(np.array(begins) % 360) > 36


@pytest.mark.parametrize(("duration_s", "count"), [(1, 1), (5, 5), (10, 10), (30, 10)])
def test_a_window_is_a_second_or_longer(duration_s: int, count: int) -> None:
    slots = played(duration_s=duration_s, warmup_s=0)
    assert slots.due_us.max() < duration_s * 1e6
    begins = windows(HOUR_S, duration_s, count, seed=7, number=1)
    length_us = duration_s * 1e6 / count
    for n, begin in enumerate(begins):
        own = (slots.due_us >= n * length_us) & (slots.due_us < (n + 1) * length_us)
        inside = (times_us(WORDS) >= begin * 1e6) & (times_us(WORDS) < begin * 1e6 + length_us)
        assert abs(int(own.sum()) - int(inside.sum())) <= 1


def test_the_warm_up_comes_before_the_first_window() -> None:
    slots = played(warmup_s=2)
    begin_us = windows(HOUR_S, 10, 10, seed=7, number=1)[0] * 1e6
    before = times_us(WORDS)
    before = before[(before >= begin_us - 2e6) & (before < begin_us)]
    warm = slots.due_us[slots.due_us < 2_000_000]
    assert warm.tolist() == pytest.approx((before - (begin_us - 2e6)).tolist(), abs=2)


# Representation -----------------------------------------------------------------------------------


def dispersion(times: NDArray[np.int64], length_us: int, width_us: int) -> float:
    """The variance of counts over their mean."""
    counts = np.bincount(times // width_us, minlength=length_us // width_us)
    return float(counts.var() / counts.mean())


def test_rounds_have_the_rate_the_mix_and_the_bursts_of_the_hour() -> None:
    trials = [played(number) for number in range(1, 21)]
    times = [counted(trial) for trial in trials]
    assert np.mean([len(each) for each in times]) / 10 == pytest.approx(HOUR.rate_rps, rel=0.05)
    paths = np.concatenate([trial.paths for trial in trials])
    own = np.bincount(paths, minlength=PATHS) / len(paths)
    whole = np.bincount(paths_of(WORDS), minlength=PATHS) / len(WORDS)
    assert own == pytest.approx(whole, abs=0.03)
    for width_us in (100_000, 500_000):
        joined = np.concatenate([each + n * 10_000_000 for n, each in enumerate(times)])
        expected = dispersion(times_us(WORDS), int(HOUR_S * 1e6), width_us)
        assert expected > 3
        assert dispersion(joined, 200_000_000, width_us) == pytest.approx(expected, rel=0.15)


def test_a_trial_is_nearer_to_the_hour_than_one_window_of_its_length() -> None:
    draws = np.random.default_rng(1)
    grows_us = (draws.uniform(0, 1, 100_000) ** 0.5 * HOUR_S * 1e6).astype(np.int64)
    words = words_of(grows_us, np.zeros(len(grows_us), np.int64))
    hour = recording(words)
    numbers = range(1, 41)
    own = [len(counted(played(n, words=words, of=hour, rate_rps=hour.rate_rps))) for n in numbers]
    begins = draws.uniform(0, HOUR_S - 10, 40) * 1e6
    single = np.searchsorted(times_us(words), [begins, begins + 10_000_000])
    assert np.std(own) < 0.3 * np.std(single[1] - single[0])
    assert np.mean(own) == pytest.approx(10 * hour.rate_rps, rel=0.03)


# Loops, cuts and rates ----------------------------------------------------------------------------

SHORT_US = np.array([0, 1, 250_000, 250_000, 900_000, 3_999_999])
SHORT_WORDS = words_of(SHORT_US, np.array([0, 1, 2, 3, 0, 1]))
SHORT = recording(SHORT_WORDS, seconds=4)


@pytest.mark.parametrize(("duration_s", "laps"), [(4, 1), (8, 2), (40, 10)])
def test_a_short_recording_is_looped_and_each_lap_has_every_request_once(
    duration_s: int, laps: int
) -> None:
    slots = played(words=SHORT_WORDS, of=SHORT, rate_rps=1.5, duration_s=duration_s, warmup_s=0)
    assert len(slots.due_us) == 6 * laps
    assert np.bincount(slots.paths).tolist() == [2 * laps, 2 * laps, laps, laps]
    begin_us = round(windows(4, duration_s, 10, seed=7, number=1)[0] * 1e6)
    expected = sorted((SHORT_US - begin_us) % 4_000_000)
    assert slots.due_us[:6].tolist() == expected


@pytest.mark.parametrize("factor", [0.1, 2.0, 7.5])
def test_at_another_rate_time_runs_faster_or_slower(factor: float) -> None:
    slots = [played(n, rate_rps=factor * HOUR.rate_rps) for n in range(1, 11)]
    due = [len(counted(each)) / 10 for each in slots]
    assert np.mean(due) == pytest.approx(factor * HOUR.rate_rps, rel=0.15)
    begin_us = windows(HOUR_S, 10 * factor, 10, seed=7, number=1)[0] * 1e6
    own = times_us(WORDS)
    own = own[(own >= begin_us) & (own < begin_us + 1e6 * factor)]
    first = counted(slots[0])
    first = first[first < 1_000_000]
    assert first.tolist() == pytest.approx(((own - begin_us) / factor).tolist(), abs=3)


def test_slots_never_go_backwards_and_lie_within_the_trial() -> None:
    for number in range(50):
        slots = played(number, duration_s=7, rate_rps=33.3)
        assert (np.diff(slots.due_us) >= 0).all()
        assert slots.due_us.min() >= 0
        assert slots.due_us.max() < 8_000_000


# Streams ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "shares", [(1.0,), (0.5, 0.5), (1 / 3, 1 / 3, 1 / 3), (0.675, 0.225, 0.075, 0.025), (0.1,) * 10]
)
def test_streams_have_all_slots_once_by_their_shares(shares: Sequence[float]) -> None:
    slots = played(duration_s=30)
    parts = slots.shared(shares)
    joined = sorted(pair for part in parts for pair in zip(part.due_us, part.paths, strict=True))
    assert joined == sorted(zip(slots.due_us, slots.paths, strict=True))
    for part, share in zip(parts, shares, strict=True):
        assert (np.diff(part.due_us) >= 0).all()
        assert abs(len(part.due_us) - share * len(slots.due_us)) <= 3


def test_the_engines_file_counts_paths_from_one() -> None:
    slots = Slots(np.array([0, 5, 5]), np.array([0, 3, 1]))
    assert slots.text() == "0 1\n5 4\n5 2\n"
    assert (slots.due_from(0), slots.due_from(5), slots.due_from(6)) == (3, 2, 0)
