"""Planted defects of a run: each has to be flagged, by the status of the trial and its reason.

The others are planted where they are looked for: requests that hang, bodies that are cut, answers
of other content and clocks that are set in tests/hosts/load/test_engine_run.py; nginx in another
network namespace in tests/hosts/test_settle.py.
"""

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from intop.config.study import load_study
from intop.document.progress import LineProgress
from intop.domain.cluster import Cluster
from intop.domain.trial import Trial
from intop.hosts.ssh import connect
from intop.lab import content, processes
from intop.run.campaigns import new
from intop.run.context import Context, Task, cluster_of
from intop.run.opening import cluster_testbed
from intop.store import opened
from kit.real_campaigns import BASELINE, undisturbed


@pytest.fixture
def lab(make_study: Callable[..., Any]) -> Any:
    made = make_study("x86")
    path = made.folder / "intop.toml"
    text = path.read_text().replace("max_lag = 1\n", "")
    path.write_text(text.replace("duration_s = 1", "duration_s = 2"))
    return made


@contextmanager
def task_of(lab: Any, folder: Path, generators: int = 1) -> Iterator[Task]:
    study = load_study(lab.folder / "intop.toml")
    if generators > 1:
        clusters = {"x86": (shared(cluster_of(study.clusters["x86"][0]), generators),)}
        study = replace(study, clusters=clusters)
    with opened(str(folder / "own.db")) as store:
        yield next(
            iter(
                Context(
                    study=study,
                    store=store,
                    campaign=new(store, study),
                    connect=connect,
                    progress=LineProgress(StringIO()),
                    archs=("x86",),
                    workloads=(study.workloads["slt"],),
                ).subjects()
            )
        )


def shared(cluster: Cluster, generators: int) -> Cluster:
    """The cluster with several load generators, which are one host under several names."""
    first = cluster.load_generator
    others = (
        replace(first, name=f"{first.name}-{n}", state_dir=f"{first.state_dir}-{n}")
        for n in range(2, generators + 1)
    )
    return replace(cluster, more_generators=tuple(others))


def pids(lab: Any, part: str, program: str) -> list[int]:
    """The processes of a program on one of the lab's hosts."""
    words = ["ip", "netns", "pids", f"intop-{lab.labs[0]}-{part}"]
    output = subprocess.run(words, check=True, capture_output=True, text=True).stdout.split()
    return [pid for pid in map(int, output) if processes.command_name(pid) == program]


def pause_a_generator(lab: Any, seconds: float, over: threading.Event) -> None:
    """Stop the first engine that is seen at work, once its load has begun."""
    while not over.is_set():
        if result := pids(lab, "lg", "luajit"):
            time.sleep(1)
            os.kill(result[-1], signal.SIGSTOP)
            time.sleep(seconds)
            os.kill(result[-1], signal.SIGCONT)
            return
        time.sleep(0.02)


def paused_trial(lab: Any, folder: Path, generators: int) -> tuple[Trial, Trial]:
    """A trial without a pause, and one with it."""
    with task_of(lab, folder, generators) as task, cluster_testbed(task) as testbed:
        healthy = undisturbed(testbed)
        over = threading.Event()
        pausing = threading.Thread(target=pause_a_generator, args=(lab, 0.6, over))
        pausing.start()
        try:
            return healthy, testbed.trial(BASELINE, "collect", 0)
        finally:
            over.set()
            pausing.join()


@pytest.mark.parametrize("generators", [1, 3])
def test_a_generator_that_was_paused(lab: Any, tmp_path: Path, generators: int) -> None:
    healthy, paused = paused_trial(lab, tmp_path, generators)
    assert healthy.status == "ok", healthy.detail
    assert healthy.histogram is not None
    assert paused.histogram is not None
    # All generators together send what one would.
    assert 600 == healthy.histogram.total == paused.histogram.total
    assert paused.status == "disturbed"
    assert "the load generator was itself" in paused.detail
    late = [m.lag_ms for m in paused.metrics.values() if m.lag_ms is not None]
    assert generators == len(late)
    assert sum(lag > 300 for lag in late) == 1


def test_static_files_of_other_content(lab: Any, tmp_path: Path) -> None:
    with task_of(lab, tmp_path) as task, cluster_testbed(task) as testbed:
        healthy = undisturbed(testbed)
        path = content.static_paths()[0]
        file = Path(f"/run/intop/lab/{lab.labs[0]}/content{path}")
        right = file.read_bytes()
        file.write_bytes(bytes(byte ^ 1 for byte in right))  # of the same length
        wrong = testbed.trial(BASELINE, "collect", 0)
        file.write_bytes(right)
        again = undisturbed(testbed)
    assert (healthy.status, healthy.errors) == ("ok", {}), healthy.detail
    assert wrong.status == "overloaded"
    assert set(wrong.errors) == {"content"}
    assert wrong.judged_ms >= 10_000
    assert (again.status, again.errors) == ("ok", {}), again.detail


def test_a_dead_backend(lab: Any, tmp_path: Path) -> None:
    with task_of(lab, tmp_path) as task, cluster_testbed(task) as testbed:
        healthy = undisturbed(testbed)
        for pid in pids(lab, "b2", "nginx"):
            os.kill(pid, signal.SIGKILL)
        dead = testbed.trial(BASELINE, "collect", 0)
    assert healthy.status == "ok", healthy.detail
    assert dead.status == "disturbed"
    assert "-b2: accepted no connection during the load" in dead.detail
