"""What a workload asks for."""

from dataclasses import replace
from typing import Any

import pytest

from intop.domain.workload import ALIKE, Arrivals, Clients, Recording, Workload

SLT = Workload(
    name="slt",
    kind="slt",
    rate_rps=10,
    connections=2,
    threads=1,
    duration_s=1,
    warmup_s=0,
    timeout_s=2,
)


def test_static_load_asks_for_the_clusters_paths_unless_it_has_its_own() -> None:
    assert SLT.asked(("/a", "/b"), "/dynamic") == ("/a", "/b")
    assert replace(SLT, paths=("/large",)).asked(("/a", "/b"), "/dynamic") == ("/large",)


def test_dynamic_load_asks_for_the_dynamic_path() -> None:
    assert replace(SLT, name="dlt", kind="dlt").asked(("/a", "/b"), "/dynamic") == ("/dynamic",)


@pytest.mark.parametrize(
    ("arrivals", "clients", "expected"),
    [
        ("constant", (ALIKE,), ""),
        ("poisson", (ALIKE,), "poisson arrivals"),
        ("recorded", (ALIKE,), "recorded arrivals (0a1b2c3d)"),
        ("constant", (Clients(think_ms=5),), "think_ms=5"),
        (
            "poisson",
            (Clients(requests_per_connection=2, lifetimes="geometric"),),
            "poisson arrivals; requests_per_connection=2, lifetimes=geometric",
        ),
        (
            "constant",
            (Clients(name="a", share=0.75), Clients(name="b", share=0.25, connections=9)),
            "name=a, share=0.75; name=b, share=0.25, connections=9",
        ),
    ],
)
def test_what_differs_from_the_usual_traffic_is_said(
    arrivals: Arrivals, clients: tuple[Clients, ...], expected: str
) -> None:
    recording = Recording(path="a", seconds=60, requests=600, digest="0a1b2c3d")
    load = replace(SLT, arrivals=arrivals, clients=clients, recording=recording)
    assert load.traffic == expected


@pytest.mark.parametrize(
    "changes",
    [
        {"requests_per_connection": 3},
        {"lifetimes": "geometric"},
        {"think_ms": 3},
        {"read_kb_per_s": 3},
        {"tls_resume": True},
        {"http": "2"},
        {"http": "2", "streams_per_connection": 3},
        {"headers": ("A: b",)},
        {"method": "POST"},
        {"body_bytes": 3},
        {"source": "192.0.2.1"},
        {"connections": 3},
    ],
    ids=str,
)
def test_every_way_that_clients_differ_is_other_traffic(changes: dict[str, Any]) -> None:
    """Else trials of both would be compared."""
    assert "" == SLT.traffic != replace(SLT, clients=(Clients(**changes),)).traffic


def test_headers_are_told_apart() -> None:
    two, one = (replace(SLT, clients=(Clients(headers=h),)) for h in (("A: b", "C: d"), ("A: b",)))
    assert (two.traffic, one.traffic) == ("headers=A: b|C: d", "headers=A: b")


@pytest.mark.parametrize(
    ("scheme", "of_cluster", "expected"),
    [
        ("", "http://10.0.0.1:8080", "http://10.0.0.1:8080"),
        ("http", "http://10.0.0.1:8080", "http://10.0.0.1:8080"),
        ("https", "http://10.0.0.1:8080", "https://10.0.0.1"),
        ("http", "https://[fd00::1]:443", "http://[fd00::1]"),
    ],
)
def test_a_scheme_is_at_its_usual_port(scheme: Any, of_cluster: str, expected: str) -> None:
    its_own = replace(SLT, scheme=scheme)
    assert (expected, scheme) == (its_own.url(of_cluster), its_own.traffic)


def test_the_traffic_has_no_secret_of_a_header() -> None:
    clients = Clients(headers=("Authorization: Bearer geheim", "Accept: */*"), method="PUT")
    assert f"{clients}" == "headers=Authorization: ***|Accept: */*, method=PUT"
