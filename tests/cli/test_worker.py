"""intop worker: what it serves, and what it refuses."""

import json
import socket
import urllib.request
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest

from builders.shipped_studies import lab_study
from intop.cli.worker import check_studies, spots_of
from intop.document.progress import JsonProgress
from intop.domain.cluster import LabSpec
from intop.domain.job import Spot
from intop.errors import UsageError
from intop.run.worker import Counted, Worker
from intop.run.worker_metrics import serve
from intop.store import opened
from kit.commands import intop

STUDY = """
[study]
name = "{name}"
store = "{store}"
workers = {workers}

[cluster.native]
lab = "nolab"

[workload.slt]
rate_rps = 60
connections = 32
duration_s = 2
"""


def study(folder: Path, name: str = "web", store: str = "w.db", workers: str = "true") -> Path:
    path = folder / f"{name}.toml"
    path.write_text(STUDY.format(name=name, store=store, workers=workers))
    return path


def replicas(**counts: int) -> dict[str, tuple[LabSpec, ...]]:
    return {arch: (LabSpec(name="x", arch="x86"),) * n for arch, n in counts.items()}


def test_all_replicas_of_all_studies_are_served_by_default() -> None:
    web = replace(lab_study(), name="web", clusters=replicas(x86=2, arm=1), workers=True)
    api = replace(web, name="api", clusters=replicas(x86=1))
    check_studies([web, api])
    assert [
        Spot(study="web", arch="x86", replica=0),
        Spot(study="web", arch="x86", replica=1),
        Spot(study="web", arch="arm", replica=0),
        Spot(study="api", arch="x86", replica=0),
    ] == spots_of([web, api], None, ())
    assert [Spot(study="web", arch="x86", replica=1)] == spots_of([web, api], "x86", (2,))
    with pytest.raises(UsageError, match="none of these studies has such a replica"):
        spots_of([web], "arm", (2,))


def test_a_study_that_measures_by_itself_has_no_workers(tmp_path: Path) -> None:
    done = intop("worker", "-c", study(tmp_path, workers="false"))
    assert done.returncode == 2
    assert "web.toml: its commands measure by themselves. Set workers = true in [study]" in (
        done.stderr
    )


def test_studies_of_one_worker_have_one_store(tmp_path: Path) -> None:
    one, two = study(tmp_path), study(tmp_path, "api", "other.db")
    done = intop("worker", "-c", one, "-c", two)
    assert done.returncode == 2
    assert "have different stores: start a worker for each" in done.stderr


def test_a_worker_without_work_ends_when_it_is_told_to(tmp_path: Path) -> None:
    path = study(tmp_path, store=str(tmp_path / "w.db"))
    done = intop("worker", "-c", path, "--until-idle", "0.5", "--log-json", "--name", "one")
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    assert lines[0]["message"] == "one: serves web x86 replica 1"
    assert lines[-1]["message"] == "one: nothing to do for 0.5 s; 0 trials measured"


def test_a_log_for_programs_is_a_line_of_json_each() -> None:
    output = StringIO()
    with JsonProgress(output) as shown:
        shown.say("a \n b")
        shown.begin("x86 slt: collect", 7, 2)
        shown.step("default: P99 12.5 ms")
    one, two, three = map(json.loads, output.getvalue().splitlines())
    assert one["message"] == "a \n b"
    assert (two["message"], two["total"], two["done"]) == ("x86 slt: collect", 7, 2)
    assert (three["message"], three["work"]) == ("default: P99 12.5 ms", "x86 slt: collect")
    assert all(line["time"].endswith("+00:00") for line in (one, two, three))


def test_prometheus_is_told_what_a_worker_has_done(tmp_path: Path) -> None:
    with opened(str(tmp_path / "w.db")) as store, socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        worker = Worker(
            name="one",
            studies={},
            spots=[Spot(study="web", arch="x86", replica=n) for n in (0, 1)],
            store=store,
            connect=lambda _: pytest.fail("connects"),
            progress=JsonProgress(StringIO()),
            counted=Counted(trials={"ok": 7, "disturbed": 1}, late=2, failures=3),
        )
        free.listen()
        with pytest.raises(UsageError, match=f"--metrics-port {port} can't be had at 127.0.0.1"):
            serve(worker, "127.0.0.1", port)
        free.close()
        serve(worker, "127.0.0.1", port)
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
            lines = answer.read().decode().splitlines()
    for line in (
        'intop_worker_trials_total{status="ok"} 7.0',
        'intop_worker_trials_total{status="disturbed"} 1.0',
        "intop_worker_late_trials_total 2.0",
        "intop_worker_failures_total 3.0",
        "intop_worker_leases 0.0",
        'intop_worker_replica_up{arch="x86",replica="2",study="web"} 1.0',
    ):
        assert line in lines
