"""What the engine sends, and when, to a server that does everything wrong."""

import socket
import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from intop.domain.recording import Slots
from intop.domain.workload import Clients
from intop.hosts.load.streams import merged
from intop.hosts.load.types import Load
from kit.crooked_server import CrookedServer
from kit.engine import load, run, share_above

# What is sent ------------------------------------------------------------------------------------


def test_requests_are_sent_at_constant_slots_whatever_the_answers_take(
    server: CrookedServer, directory: Path
) -> None:
    result = run(load(server, "/ok?ms=30"), directory)
    assert (result.requests, result.errors) == (200, {})
    assert result.achieved_rps == pytest.approx(200, abs=12)  # those of the last 30 ms come late
    begun = sorted(one.at for one in server.asked)
    gaps = [after - before for before, after in pairwise(begun)]
    assert statistics.median(gaps) == pytest.approx(0.005, abs=0.0015)
    assert result.histogram.percentile_ms(1) >= 30
    assert len({one.path for one in server.asked}) == 200


def test_poisson_arrivals_have_exponential_gaps(server: CrookedServer, directory: Path) -> None:
    its_load = load(server, rate_rps=500, duration_s=4, arrivals="poisson")
    result = run(its_load, directory)
    assert result.requests == pytest.approx(2000, abs=5 * 2000**0.5)
    again = run(replace(its_load, seed=8), directory)
    assert again.requests != result.requests
    # They are not quite as many as were asked for, which is no fault of the server.
    assert result.offered_rps == pytest.approx(result.requests / 4)
    begun = sorted(one.at for one in server.asked[: result.requests])
    gaps = [after - before for before, after in pairwise(begun)]
    # A constant rate has 1 here, an exponential distribution ln 2. The machine's own pauses, after
    # which requests come in bunches, make it less.
    assert 0.5 < statistics.median(gaps) / statistics.mean(gaps) < 0.8


SLOTS = [(0, 2), (20_000, 1), (20_000, 3), (300_000, 1), (900_000, 2)]
"""Due times (us) and paths."""


def recorded(server: CrookedServer, directory: Path, **changes: Any) -> Load:
    """A load of SLOTS with its files: paths by number, of which one has twice the weight."""
    names = ["/ok?file=1", "/ok?file=1", "/ok?file=2", "/ok?file=3"]
    (directory / "paths.txt").write_text("".join(f"{name}\n" for name in names))
    slots = "".join(f"{due_us} {path}\n" for due_us, path in SLOTS)
    its_load = load(server, script="slt", **{"arrivals": "recorded", "slots": slots} | changes)
    (directory / its_load.slots_file).write_text(its_load.slots)
    return its_load


def test_recorded_requests_are_sent_at_their_times_with_their_paths(
    server: CrookedServer, directory: Path
) -> None:
    result = run(recorded(server, directory), directory)
    assert (result.requests, result.errors, result.offered_rps) == (5, {}, 5)
    asked = sorted(server.asked, key=lambda one: one.at)
    for one, (due_us, _) in zip(asked, SLOTS, strict=True):
        assert one.at - asked[0].at == pytest.approx(due_us / 1e6, abs=0.02)
    # Two are due at once, on connections of their own.
    asked[1:3] = sorted(asked[1:3], key=lambda one: one.path)
    assert [one.path for one in asked] == [f"/ok?file={path}" for _, path in SLOTS]


def test_a_warm_up_of_recorded_requests_is_not_counted(
    server: CrookedServer, directory: Path
) -> None:
    result = run(recorded(server, directory, warmup_s=0.25, duration_s=0.5), directory)
    # The last one is due after the end.
    assert (result.requests, len(server.asked)) == (1, 4)
    assert result.offered_rps == pytest.approx(2)


def test_a_burst_at_the_end_misses_no_rate(server: CrookedServer, directory: Path) -> None:
    slots = "0 1\n" + "950000 1\n" * 4
    its_load = recorded(server, directory, slots=slots, only_path="/ok?ms=300")
    result = run(its_load, directory)
    assert (result.requests, result.errors) == (5, {})
    assert result.achieved_rps == result.offered_rps == 5
    assert {one.path for one in server.asked} == {"/ok?ms=300"}


def test_requests_that_time_out_in_the_queue_leave_their_paths_to_nobody(
    server: CrookedServer, directory: Path
) -> None:
    (directory / "paths.txt").write_text("/ok?ms=2000\n/ok?file=2\n/ok?file=3\n")
    slots = "0 1\n0 2\n700000 3\n"
    own: dict[str, Any] = {"script": "slt", "arrivals": "recorded", "slots": slots}
    its_load = load(server, connections=1, timeout_s=0.3, **own)
    (directory / its_load.slots_file).write_text(slots)
    result = run(its_load, directory)
    assert (result.requests, result.errors) == (3, {"timeout": 2})
    assert [one.path for one in server.asked] == ["/ok?ms=2000", "/ok?file=3"]


def test_streams_of_recorded_requests_are_together_what_one_would_send(
    server: CrookedServer, directory: Path
) -> None:
    slots = Slots(np.sort(np.random.default_rng(1).integers(0, 2_000_000, 300)), np.arange(300) % 3)
    parts, begin = slots.shared([0.5, 0.3, 0.2]), time.time() + 2
    loads = [
        recorded(
            server, directory, slots=part.text(), duration_s=2, stream=n, streams=3, start_at=begin
        )
        for n, part in enumerate(parts)
    ]
    with ThreadPoolExecutor(3) as pool:
        result = merged(list(pool.map(lambda one: run(one, directory), loads)))
    assert (result.requests, result.errors) == (300, {})
    asked = sorted(server.asked, key=lambda one: one.at)
    lateness = [
        one.at - asked[0].at - (due_us - slots.due_us[0]) / 1e6
        for one, due_us in zip(asked, slots.due_us, strict=True)
    ]
    assert np.quantile(np.abs(lateness), 0.9) < 0.05
    paths = [one.path for one in asked]
    assert {path: paths.count(path) for path in paths} == {f"/ok?file={n}": 100 for n in (1, 2, 3)}


def test_a_closed_loop_asks_again_once_it_has_an_answer(
    server: CrookedServer, directory: Path
) -> None:
    """8 connections to a server that takes 50 ms: 160 requests a second, whatever the rate says."""
    its_load = load(
        server, "/ok?ms=50", arrivals="closed", connections=8, duration_s=2, warmup_s=0.5
    )
    result = run(its_load, directory)
    assert {kind: n for kind, n in result.errors.items() if kind != "pending"} == {}
    assert len(server.of_connection()) == 8
    assert result.requests == result.histogram.total
    # As many as a connection can take one after the other, and the last one of each.
    assert 0.7 * 320 < result.requests <= 320 + 8
    assert result.achieved_rps == pytest.approx(result.requests / 2, abs=8)
    assert result.offered_rps == 0
    assert result.histogram.percentile_ms(1) >= 50
    assert result.lag_ms == 0.0


def test_a_closed_loop_of_refusals_comes_to_an_end(directory: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # nobody listens there
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        closed: dict[str, Any] = {"arrivals": "closed", "connections": 4, "duration_s": 1}
        result = run(load(SimpleNamespace(url=url), **closed), directory)  # type: ignore[arg-type]
    assert 0 < result.errors["refused"] == result.requests


@pytest.mark.parametrize("requests", [1, 5])
def test_a_connection_carries_so_many_requests_and_the_server_closes_it(
    requests: int, server: CrookedServer, directory: Path
) -> None:
    result = run(load(server, clients=Clients(requests_per_connection=requests)), directory)
    assert result.errors == {}
    carried = [len(asked) for asked in server.of_connection().values()]
    assert {requests} == set(carried[:-16])
    lasts = [asked[-1] for asked in server.of_connection().values() if len(asked) == requests]
    assert all(one.headers["connection"] == "close" for one in lasts)
    assert 200 // requests == pytest.approx(len(carried), abs=16)


def test_geometric_lifetimes_have_their_mean(server: CrookedServer, directory: Path) -> None:
    clients = Clients(requests_per_connection=4, lifetimes="geometric")
    result = run(load(server, rate_rps=500, duration_s=2, clients=clients), directory)
    assert result.errors == {}
    carried = [len(asked) for asked in server.of_connection().values()]
    # 250 connections or so; the standard deviation of a lifetime is 3.5.
    assert 3.2 < statistics.mean(carried) < 4.9
    assert {1, 2, 3, 4} < set(carried)
    assert max(carried) > 8


def test_a_connection_is_idle_for_the_think_time(server: CrookedServer, directory: Path) -> None:
    clients = Clients(think_ms=100)
    run(load(server, rate_rps=50, clients=clients), directory)
    for asked in server.of_connection().values():
        for before, after in pairwise(asked):
            assert after.at - before.ended_at > 0.098


def test_connections_that_think_are_missed(server: CrookedServer, directory: Path) -> None:
    # 4 connections that rest for 100 ms carry 40 requests a second.
    result = run(load(server, connections=4, clients=Clients(think_ms=100)), directory)
    assert 30 < result.achieved_rps < 50
    assert share_above(result.histogram, 200) > 0.5


def test_slow_readers_take_their_time(server: CrookedServer, directory: Path) -> None:
    # 200 KB at 400 KB/s.
    its_load = load(server, "/large", rate_rps=5, clients=Clients(read_kb_per_s=400))
    result = run(its_load, directory)
    assert result.errors == {}
    assert result.histogram.percentile_ms(10) > 400
    assert result.histogram.max_ms < 2000


def test_requests_have_headers_method_and_body(server: CrookedServer, directory: Path) -> None:
    headers = ("Accept-Encoding: gzip, br", "Host: shop.example")
    clients = Clients(method="POST", body_bytes=100_000, headers=headers)
    result = run(load(server, rate_rps=20, clients=clients), directory)
    assert result.errors == {}
    assert {(one.method, one.body) for one in server.asked} == {("POST", b"x" * 100_000)}
    actual = {(a.headers["accept-encoding"], a.headers["host"]) for a in server.asked}
    assert actual == {("gzip, br", "shop.example")}


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS", "DELETE", "PURGE", "PROPFIND"])
@pytest.mark.parametrize("body_bytes", [0, 10])
def test_other_methods_are_answered(
    server: CrookedServer, directory: Path, method: str, body_bytes: int
) -> None:
    """Those that a study may name; HEAD has no body, neither there nor back."""
    clients = Clients(method=method, body_bytes=0 if method == "HEAD" else body_bytes)
    result = run(load(server, rate_rps=20, clients=clients), directory)
    assert result.errors == {}
    assert {method} == {one.method for one in server.asked}


def test_connections_come_from_the_source_address(server: CrookedServer, directory: Path) -> None:
    run(load(server, rate_rps=20, clients=Clients(source="127.0.0.77")), directory)
    assert {one.peer for one in server.asked} == {"127.0.0.77"}


def test_a_warm_up_is_sent_on_the_same_connections_and_not_counted(
    server: CrookedServer, directory: Path
) -> None:
    result = run(load(server, warmup_s=1), directory)
    assert result.requests == 200
    assert len(server.asked) == 400
    assert len(server.of_connection()) == 16
    assert result.run_s == pytest.approx(2, abs=0.5)


@pytest.mark.parametrize(("warmup_s", "reached"), [(1, 200), (0, 140)])
def test_answers_under_way_at_the_end_miss_no_rate_where_a_warm_up_has_as_many(
    warmup_s: int, reached: int, server: CrookedServer, directory: Path
) -> None:
    its_load = load(server, "/ok?ms=300", connections=100, warmup_s=warmup_s)
    result = run(its_load, directory)
    assert (result.requests, result.errors) == (200, {})
    assert result.achieved_rps == pytest.approx(reached, abs=20)


def test_slt_asks_for_one_path_only(server: CrookedServer, directory: Path) -> None:
    (directory / "paths.txt").write_text("/ok?file=0\n/ok?file=1\n")
    result = run(load(server, script="slt", only_path="/ok?file=2"), directory)
    assert result.errors == {}
    assert {one.path for one in server.asked} == {"/ok?file=2"}


def test_slt_asks_for_all_paths_alike(server: CrookedServer, directory: Path) -> None:
    (directory / "paths.txt").write_text("/ok\n/chunked\n/nothing\n/ok?x=1\n")
    result = run(load(server, script="slt", rate_rps=400), directory)
    assert (result.requests, result.errors) == (400, {})
    counts = [sum(a.path == path for a in server.asked) for path in ("/ok", "/chunked", "/nothing")]
    assert all(60 < count < 140 for count in counts)
