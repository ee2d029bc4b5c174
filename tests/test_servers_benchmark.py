"""The chart of servers: what is measured, and what is made of it; the trials are made up."""

from argparse import Namespace
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import servers
from benchmarks.servers import AGAIN, ORDER, POINTS, ROUNDS, draw, study_of, tables, unmet
from intop.domain.cluster import ONLY_PROXIES, LabSpec
from intop.domain.server import SERVERS, ServerName
from intop.domain.trial import Trial
from intop.stages.sweep import Request
from samples import METRICS, trial

BUSY = {"lg": replace(METRICS, load_cpu=0.95), "lb": replace(METRICS, memory_mib=12.5, cpu=0.5)}
CALM = {**BUSY, "lg": replace(METRICS, load_cpu=0.4)}


def made(metrics: dict, rate: float, **changes: object) -> list[Trial]:  # type: ignore[type-arg]
    trials = [(n, trial(p99_us=n * 250)) for n in (1, 2, 4)]
    return [replace(t, metrics=metrics, achieved_rps=rate + n, **changes) for n, t in trials]


ROWS = [
    ("nginx", {10: made(BUSY, 1000.0), 20: made(CALM, 1500.0)}),
    (AGAIN, {10: made(CALM, 900.0), 20: made(CALM, 1400.0, status="overloaded", detail="slow")}),
]


def test_every_server_is_measured_at_twelve_points_in_three_rounds() -> None:
    assert set(ORDER) == set(SERVERS)
    workload = study_of("nginx", "nginx", Namespace(seconds=3, max_foreign_cores=1)).workloads
    request = Request(axis="connections", loop="closed", points=POINTS, rounds=ROUNDS)
    points = list(request.points_for(workload["slt"]))
    assert 12 <= len(points)
    assert (10, 1000) == (points[0], points[-1])
    assert 3 <= ROUNDS


@pytest.mark.parametrize("name", ORDER)
def test_one_serves_the_page_itself_unless_it_has_no_files(name: ServerName) -> None:
    study = study_of(name, name, Namespace(seconds=3, max_foreign_cores=1))
    ((spec,),) = study.clusters.values()
    assert isinstance(spec, LabSpec)
    assert (name, name not in ONLY_PROXIES) == (spec.server.name, spec.balancing.serves_files)
    assert (servers.PAGE,) == study.workloads["slt"].paths


def test_the_tables_have_a_column_for_each_and_mark_where_the_load_was_busy() -> None:
    lines = list(tables(ROWS))
    assert "| connections | nginx | nginx again |" in lines
    assert "| 10 | 1,002* (1,001 to 1,004) | 902 (901 to 904) |" in lines
    (p99,) = [line for line in lines if line.startswith("| 10 | 0.5 (")]
    assert p99.count("0.5 (") == 2
    assert "| 20 | 12.5 | 12.5 |" in lines
    assert "| 20 | 50 | 50 |" in lines


def test_a_point_that_lacks_a_trial_or_failed_is_told() -> None:
    (line,) = unmet(ROWS, 3)
    assert line.startswith("nginx again at 20 connections: 0 of 3 trials are usable without")
    assert "slow" in line
    assert [2, 0] == [len(unmet(ROWS[:1], rounds)) for rounds in (4, 3)]


def test_it_is_drawn(tmp_path: Path) -> None:
    draw(ROWS, tmp_path / "servers.svg")
    text = (tmp_path / "servers.svg").read_text()
    for word in ("nginx again", "requests/s", "P99 in ms", "memory in MiB", "connections"):
        assert word in text
