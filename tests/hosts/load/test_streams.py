"""One load as streams, by load generators and classes of clients, and their results as one."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from builders.trials import cluster
from intop.domain.cluster import Cluster, HostAddress
from intop.domain.histogram import Histogram, Statistic
from intop.domain.recording import Slots
from intop.domain.workload import Clients, Workload
from intop.hosts.load.streams import merged, starting_at, streams
from intop.hosts.load.types import Load, LoadResult

WORKLOAD = Workload(
    name="slt",
    kind="slt",
    rate_rps=1000,
    connections=64,
    threads=4,
    duration_s=20,
    warmup_s=2,
    timeout_s=5,
    arrivals="poisson",
)
PEOPLE = Clients(name="people", share=0.75, think_ms=20)
BOTS = Clients(name="bots", share=0.25, requests_per_connection=1)
TWO_CLASSES = replace(WORKLOAD, clients=(PEOPLE, BOTS))


def with_generators(count: int) -> Cluster:
    more = tuple(
        HostAddress(name=f"lg{n}", role="load-generator", hostname=f"lg{n}")
        for n in range(2, count + 1)
    )
    return cluster(more_generators=more)


def loads(workload: Workload = WORKLOAD, generators: int = 1, **options: Any) -> list[Load]:
    return [load for _, load in streams(workload, with_generators(generators), **options)]


# Sharing out --------------------------------------------------------------------------------------


def test_one_generator_and_one_class_are_one_stream_with_all_of_the_load() -> None:
    (one,) = loads(seed=7)
    expected = Load(
        script="slt",
        url="http://198.18.0.20",
        rate_rps=1000,
        connections=64,
        threads=4,
        duration_s=20,
        seed=7,
        warmup_s=2,
        timeout_s=5,
        dynamic_path="/dynamic",
        arrivals="poisson",
        prune_count=200,
    )
    assert one == expected


@pytest.mark.parametrize("generators", [1, 2, 3])
@pytest.mark.parametrize("workload", [WORKLOAD, TWO_CLASSES], ids=["one class", "two classes"])
def test_there_is_a_stream_for_each_class_on_each_generator(
    workload: Workload, generators: int
) -> None:
    results = streams(workload, with_generators(generators))
    expected = [(g, clients) for clients in workload.clients for g in range(generators)]
    assert [(generator, load.clients) for generator, load in results] == expected
    count = len(results)
    assert [(n, count) for n in range(count)] == [(one.stream, one.streams) for _, one in results]


@pytest.mark.parametrize("generators", [1, 2, 3, 7])
def test_rates_are_shares_and_add_up(generators: int) -> None:
    results = loads(TWO_CLASSES, generators)
    assert pytest.approx(math.fsum(one.rate_rps for one in results)) == 1000
    people = [one.rate_rps for one in results if one.clients == PEOPLE]
    assert [pytest.approx(750 / generators)] * generators == people


@pytest.mark.parametrize(
    ("connections", "generators", "expected"),
    [
        (64, 1, [64]),
        (64, 2, [32, 32]),
        (64, 3, [22, 21, 21]),
        (5, 3, [2, 2, 1]),
        (2, 3, [1, 1, 1]),
    ],
)
def test_connections_are_shared_out_as_evenly_as_whole_numbers_go(
    connections: int, generators: int, expected: list[int]
) -> None:
    results = loads(replace(WORKLOAD, connections=connections), generators)
    assert [one.connections for one in results] == expected


def test_generators_may_have_shares_of_their_own() -> None:
    """As those of a lab's classes of clients."""
    two = with_generators(2)
    first, second = (replace(two.load_generators[n], share=(0.9, 0.1)[n]) for n in (0, 1))
    uneven = replace(two, load_generator=first, more_generators=(second,))
    results = [load for _, load in streams(TWO_CLASSES, uneven)]
    assert [pytest.approx(one.rate_rps) for one in results] == [675, 75, 225, 25]
    assert [one.connections for one in results] == [43, 5, 14, 2]


@pytest.mark.parametrize(
    ("own", "generators", "expected"),
    [
        ((None, None), 1, [48, 16]),
        ((None, None), 2, [24, 24, 8, 8]),
        ((10, None), 1, [10, 16]),
        ((10, 5), 2, [5, 5, 3, 2]),
    ],
)
def test_a_class_has_its_share_of_the_connections_or_its_own(
    own: tuple[int | None, int | None], generators: int, expected: list[int]
) -> None:
    clients = (replace(PEOPLE, connections=own[0]), replace(BOTS, connections=own[1]))
    results = loads(replace(WORKLOAD, clients=clients), generators)
    assert [one.connections for one in results] == expected


def test_a_class_of_a_small_share_has_a_connection_all_the_same() -> None:
    clients = (replace(PEOPLE, share=0.999), replace(BOTS, share=0.001))
    assert [one.connections for one in loads(replace(WORKLOAD, clients=clients))] == [64, 1]


def test_every_stream_has_a_seed_of_its_own_whatever_the_first_is() -> None:
    assert [one.seed for one in loads(TWO_CLASSES, 2, seed=7)] == [7, 8, 9, 10]
    assert [one.seed for one in loads(TWO_CLASSES, 2, seed=2**32 - 1)] == [2**32 - 1, 0, 1, 2]
    assert [one.seed for one in loads(seed=2**40)] == [2**40 % 2**32]


def test_a_limit_is_the_same_for_all_and_one_percent_of_all_requests() -> None:
    for one in loads(TWO_CLASSES, 2, prune_above_ms=450.0):
        assert (one.prune_above_ms, one.prune_count) == (450.0, 200)
    (small,) = loads(replace(WORKLOAD, rate_rps=149, duration_s=1))
    assert (small.prune_above_ms, small.prune_count) == (None, 1)


@pytest.mark.parametrize(
    ("judged_by", "count"), [("P99.9", 20), ("P99", 200), ("P90", 2000), ("P50", 10_000)]
)
def test_a_limit_is_about_the_latency_that_is_judged(judged_by: Statistic, count: int) -> None:
    (one,) = loads(replace(WORKLOAD, judged_by=judged_by), prune_above_ms=450.0)
    assert one.prune_count == count


SLOTS = Slots(np.array([0, 5, 5, 2_000_000, *range(2_000_001, 2_000_300)]), np.arange(303) % 7)
RECORDED = replace(TWO_CLASSES, arrivals="recorded")


def test_every_recorded_slot_is_in_one_stream_and_one_only() -> None:
    results = loads(RECORDED, 2, slots=SLOTS)
    lines = [line for one in results for line in one.slots.splitlines()]
    assert sorted(lines) == sorted(SLOTS.text().splitlines())
    assert [len(one.slots.splitlines()) for one in results] == pytest.approx(
        [303 * 0.375, 303 * 0.375, 303 * 0.125, 303 * 0.125], abs=3
    )
    assert [one.slots_file for one in results] == [f"slots-{n}.txt" for n in range(4)]


def test_the_limit_of_recorded_slots_is_one_percent_of_the_counted_ones() -> None:
    assert {one.prune_count for one in loads(RECORDED, 2, slots=SLOTS)} == {3}
    assert {one.slots for one in loads(RECORDED, 2)} == {""}


def test_answers_are_checked_by_class() -> None:
    results = loads(TWO_CLASSES, 2, expected={"bots": "expected-1.txt", "others": "x"})
    assert [one.expected_file for one in results] == ["", "", "expected-1.txt", "expected-1.txt"]
    assert [one.expected_file for one in loads(expected={"": "e"})] == ["e"]


def test_streams_can_be_told_when_to_begin() -> None:
    (first, *_) = streams(WORKLOAD, with_generators(2))
    assert (first[0], replace(first[1], start_at=5.5)) == starting_at(first, 5.5)


# Putting together ---------------------------------------------------------------------------------


def result(*pairs: tuple[int, int], **changes: Any) -> LoadResult:
    histogram = Histogram.from_pairs(pairs)
    values: dict[str, Any] = {
        "requests": histogram.total,
        "duration_s": 20.0,
        "run_s": 22.0,
        "bytes": 1000,
        "errors": {},
        "histogram": histogram,
        "achieved_rps": histogram.total / 20,
        "offered_rps": histogram.total / 16,
        "cpu_s": 1.5,
        "lag_ms": 0.1,
        "clock_step_s": 0.0,
    }
    return LoadResult(**(values | changes))


def test_one_stream_is_its_own_result() -> None:
    one = result((900, 5), stopped_after_s=3.0, uncounted=2)
    assert one is merged([one])


def test_results_add_up_exactly() -> None:
    one = result((900, 60), (5000, 3), errors={"timeout": 2}, bytes=10, uncounted=1)
    other = result((900, 40), (70_000, 7), errors={"timeout": 1, "refused": 4}, bytes=20)
    third = result((1, 1), uncounted=5)
    expected = LoadResult(
        requests=111,
        duration_s=20.0,
        run_s=22.0,
        bytes=1030,
        errors={"timeout": 3, "refused": 4},
        histogram=Histogram.from_pairs([(1, 1), (900, 100), (5000, 3), (70_000, 7)]),
        achieved_rps=pytest.approx(111 / 20),  # type: ignore[arg-type]
        offered_rps=pytest.approx(111 / 16),  # type: ignore[arg-type]
        cpu_s=4.5,
        lag_ms=0.1,
        clock_step_s=0.0,
        uncounted=6,
    )
    assert merged([one, other, third]) == expected


def test_the_order_of_the_streams_does_not_matter() -> None:
    some = [result((900 + 100 * n, n + 1), errors={f"kind {n}": n}) for n in range(4)]
    assert merged(some) == merged(some[::-1])


def test_times_are_those_of_the_longest_and_lateness_that_of_the_latest() -> None:
    one = result((900, 1), duration_s=1.0, run_s=3.0, lag_ms=0.2, clock_step_s=-2.0)
    other = result((900, 1), duration_s=2.0, run_s=2.5, lag_ms=7.0, clock_step_s=1.5)
    results = merged([one, other])
    assert (
        results.duration_s,
        results.run_s,
        results.lag_ms,
        results.clock_step_s,
    ) == (2.0, 3.0, 7.0, -2.0)


@pytest.mark.parametrize(
    ("stopped", "expected"), [((None, None), None), ((5.0, None), 5.0), ((5.0, 3.0), 3.0)]
)
def test_a_load_is_stopped_where_one_of_its_streams_is(
    stopped: tuple[float | None, float | None], expected: float | None
) -> None:
    results = merged([result((900, 1), stopped_after_s=after) for after in stopped])
    assert results.stopped_after_s == expected


def test_what_one_stream_does_not_know_is_not_made_up() -> None:
    results = merged(
        [result((900, 1)), result((900, 1), cpu_s=None, lag_ms=None, clock_step_s=None)]
    )
    assert (results.cpu_s, results.lag_ms, results.clock_step_s) == (None, 0.1, 0.0)
    nothing = result((900, 1), cpu_s=None, lag_ms=None, clock_step_s=None)
    results = merged([nothing, nothing])
    assert (results.cpu_s, results.lag_ms, results.clock_step_s) == (None, None, None)
