"""Other work on the machines of a real lab: told from the load's own, and named."""

import os
import re
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from intop.config.study import load_study
from intop.domain.configuration import Configuration
from intop.domain.trial import PlannedTrial, Trial
from intop.errors import ForeignChangeError, HostError
from intop.lab import app, processes
from intop.run.opening import cluster_testbed
from kit.real_campaigns import BASELINE, contexts, undisturbed

SOMAXCONN = "net.core.somaxconn"
LIMIT = (os.cpu_count() or 1) / 4
"""Hogs on all processors take more, also where other tests' nginx and sshd have most of them: those
are no foreign programs by their names."""


@contextmanager
def hogs() -> Iterator[None]:
    """A busy process for each processor, ended by its id."""
    loop = ["sh", "-c", "while :; do :; done"]
    started = [subprocess.Popen(loop) for _ in range(os.cpu_count() or 1)]
    try:
        yield
    finally:
        for process in started:
            process.kill()
            process.wait()


def programs_of(namespace: str) -> set[str]:
    listed = ["ip", "netns", "pids", namespace]
    pids = subprocess.run(listed, check=True, capture_output=True, text=True).stdout.split()
    return {processes.command_name(int(pid)) for pid in pids}


def test_a_hog_on_the_hosts_disturbs_and_the_load_itself_does_not(
    make_study: Callable[..., Any], tmp_path: Path
) -> None:
    made = make_study("x86")
    # The application is a Python as any other: its name is what tells it.
    assert app.PROGRAM in programs_of(f"intop-{made.labs[0]}-b1")
    path = made.folder / "intop.toml"
    limit = f"max_foreign_cores = {LIMIT} "
    path.write_text(path.read_text().replace("max_foreign_cores = 1000 ", limit))
    study = load_study(path)
    study = replace(study, workloads={"slt": study.workloads["slt"]})
    assert study.budget.max_foreign_cores == LIMIT

    quiet: list[Trial] = []
    crowded: list[Trial] = []
    with contexts(study, tmp_path) as context:
        for task in context.subjects():
            with cluster_testbed(task) as ready:
                quiet.append(undisturbed(ready))
                with hogs():
                    crowded += [ready.trial(BASELINE, "collect", attempt) for attempt in range(2)]

    assert [t.status for t in crowded] == ["disturbed"] * 2
    for trial in crowded:
        # No name is wanted: other tests, beside this one, may be busier than the hogs.
        assert re.search(r": other programs used \d+\.\d\d of its \d+ cores", trial.detail)
        assert f"more than max_foreign_cores ({LIMIT:g})" in trial.detail
    for trial in quiet + crowded:
        (load_cpu,) = [m.load_cpu for m in trial.metrics.values() if m.load_cpu is not None]
        assert 0 < load_cpu < study.budget.max_load_cpu
    # Other tests run beside this one, and may be busy for longer than it is patient.
    others = "other programs used"
    assert all(t.usable or others in t.detail for t in quiet), [t.detail for t in quiet]


def test_somebody_who_changes_keys_meanwhile_disturbs_and_then_ends_the_measuring(
    make_study: Callable[..., Any], tmp_path: Path
) -> None:
    made = make_study("x86")
    study = load_study(made.folder / "intop.toml")
    inside = ["ip", "netns", "exec", f"intop-{made.labs[0]}-lb"]

    def set_by_somebody(value: str) -> None:
        words = [*inside, "sysctl", "-qw", f"{SOMAXCONN}={value}"]
        subprocess.run(words, check=True)

    set_to_777 = PlannedTrial(
        index=0, role="design", configuration=Configuration({SOMAXCONN: "777"})
    )
    with contexts(study, tmp_path) as context, pytest.raises(HostError) as caught:  # noqa: PT012
        task = next(iter(context.subjects()))
        with cluster_testbed(task) as ready:
            before = ready.guard.snapshot[SOMAXCONN]
            meanwhile = threading.Timer(0.5, set_by_somebody, ["55"])
            meanwhile.start()
            disturbed = ready.trial(BASELINE, "collect", 0)
            meanwhile.join()
            with pytest.raises(ForeignChangeError):
                ready.check_connections()
            # Once it is back at its value from before, only what was measured is lost.
            set_by_somebody(before)
            ready.check_connections()
            measured = ready.trial(set_to_777, "collect", 1)
            set_by_somebody("66")
    assert (disturbed.status, disturbed.usable) == ("disturbed", False)
    assert f"{SOMAXCONN} ({before!r} is '55' now)" in disturbed.detail
    assert measured.status != "failed"
    assert str(caught.value).endswith(f"so it was left alone: sysctl -w {SOMAXCONN}={before}")
