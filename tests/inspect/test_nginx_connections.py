"""Ports to backends and conntrack's table, held against a load."""

from typing import Any

import pytest

from intop.domain.workload import Clients, Workload
from intop.hosts.connection_limits import ConnectionLimits, connection_limits, parse_limits
from intop.inspect.nginx_connections import limit_warnings
from kit.local_host import LocalHost

DEBIAN = ConnectionLimits(ports=28_232)
FULL = "raise net.netfilter.nf_conntrack_max there"


def load(**changes: Any) -> Workload:
    values: dict[str, Any] = {"name": "slt", "kind": "slt", "rate_rps": 100.0, "connections": 10}
    values |= {"threads": 1, "duration_s": 8, "warmup_s": 1, "timeout_s": 10}
    return Workload(**(values | changes))


def told(limits: ConnectionLimits, its_load: Workload, *, is_kept: bool = True) -> str:
    return "\n".join(limit_warnings(limits, [its_load], backends=2, is_kept=is_kept))


def tracked(now: int, most: int, seconds: int | None = None) -> ConnectionLimits:
    return ConnectionLimits(tracked=now, tracked_most=most, tracked_s=seconds)


SHORT = (Clients(requests_per_connection=2),)


@pytest.mark.parametrize(
    ("limits", "changes", "is_kept", "expected"),
    [
        (DEBIAN, {}, False, ""),
        (DEBIAN, {"rate_rps": 1_000}, True, ""),
        (DEBIAN, {"rate_rps": 900}, False, ""),
        (DEBIAN, {"rate_rps": 1_000}, False,
         "each request opens a connection to a backend, 500/s to each, and its 28,232 local"),
        (ConnectionLimits(ports=28_232, reuses_ports=True), {"rate_rps": 1_000}, False, ""),
        (DEBIAN, {"connections": 60_000}, True,
         "it has 28,232 local ports to each backend, and the load's connections may be 30,000"),
        (ConnectionLimits(), {"rate_rps": 1e6}, False, ""),
        # All of them are reserved.
        (ConnectionLimits(ports=0), {}, True, "it has 0 local ports to each backend"),
        (DEBIAN, {"rate_rps": 1e6}, False, "28,232 local ports last for 0.056 s where"),
        (tracked(100, 262_144), {}, True, ""),
        (tracked(230_000, 262_144), {}, True,
         f"conntrack follows 230,000 of at most 262,144 connections already: {FULL}"),
        (tracked(100, 10_000), {"connections": 6_000}, True,
         "conntrack follows 100 of at most 10,000 connections, and the load adds up to 12,000"),
        (tracked(100, 10_000), {"clients": SHORT}, True, ""),
        (tracked(100, 10_000), {"clients": SHORT}, False, "and the load adds up to 18,020"),
        (tracked(100, 10_000, 30), {"clients": SHORT}, False, ""),
    ],
)  # fmt: skip
def test_a_load_that_runs_out_of_ports_or_table_is_foreseen(
    limits: ConnectionLimits, changes: dict[str, Any], is_kept: bool, expected: str
) -> None:
    text = told(limits, load(**changes), is_kept=is_kept)
    assert expected in text
    assert bool(expected) == bool(text)


def test_what_a_host_says_is_read() -> None:
    text = "ports 32768 60999\nreserved 8080,40000-40009,60990-61010\nreuse 1\n"
    text += "tracked 12\ntracked_most 65536\ntracked_s 120\n"
    expected = ConnectionLimits(
        ports=28_232 - 20, reuses_ports=True, tracked=12, tracked_most=65_536, tracked_s=120
    )
    assert parse_limits(text) == expected
    assert ConnectionLimits() == parse_limits("")
    assert ConnectionLimits(ports=10) == parse_limits("ports 1 10\nreserved \nreuse 2\n")


@pytest.mark.parametrize(
    "text", ["ports 1", "ports 9 1", "ports 1 99999", "tracked x", "ports a b"]
)
def test_what_makes_no_sense_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_limits(f"{text}\n")


def test_a_real_host_has_ports() -> None:
    assert 0 < (connection_limits(LocalHost()).ports or 0) < 65_536
