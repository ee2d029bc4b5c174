"""A training that is killed with -9 in the middle of a search."""

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

from builders.trials import table
from intop.domain.training import FittedFamily, ModelError, SearchRecords
from intop.learn import tuning
from intop.learn.samples import Samples
from intop.learn.tuning_effort import Effort
from intop.store import Subject, opened
from intop.store.schema import search_table
from kit.studies import wait_for

ROOT = Path(__file__).parents[2]
FAMILIES = ["SVR", "LightGBM"]
FOLDS, TRIALS = 2, 8
MADE = search_table.select().where(search_table.c.number >= 0)


def samples() -> Samples:
    rng = np.random.default_rng(3)
    return table(rng.random((20, 3)), rng.normal(4, 1, 20))


def trained(records: SearchRecords | None, jobs: int = 1) -> list[tuple[FittedFamily, ModelError]]:
    result = tuning.train_all(
        FAMILIES,
        samples(),
        Effort(folds=FOLDS, trials=TRIALS, seed=1),
        jobs=jobs,
        records=records,
    )
    return [(fitted, replace(error, seconds=0.0)) for fitted, error in result]


def train_in(url: str) -> None:
    """What is killed: a training in two processes, that stores each try."""
    tuning.SLICE_S = 0.0
    with opened(url) as store:
        campaign = store.latest("study")
        assert campaign is not None
        trained(store.searches(Subject(campaign=campaign, arch="x86", workload="slt")), jobs=2)


def test_it_goes_on_in_the_middle_and_ends_as_if_undisturbed(url: str) -> None:
    with opened(url) as store:
        campaign = store.begin("study", seed=1, tool_version="0")
        subject = Subject(campaign=campaign, arch="x86", workload="slt")

        def tries() -> int:
            return len(store.session.rows(MADE))

        def killed_after(more: int) -> None:
            most = tries() + more
            script = f"import test_killed_training as t; t.train_in({url!r})"
            path = os.pathsep.join(map(str, (ROOT, ROOT / "tests", Path(__file__).parent)))
            going = subprocess.Popen(
                [sys.executable, "-c", script], env={**os.environ, "PYTHONPATH": path}
            )
            try:
                wait_for(lambda: tries() >= most or going.poll() is not None, "tries")
            finally:
                going.send_signal(signal.SIGKILL)
            assert going.wait() == -signal.SIGKILL

        for _ in range(2):
            killed_after(5)
        before = tries()
        assert 10 <= before < len(FAMILIES) * (FOLDS + 1) * TRIALS
        assert trained(None) == trained(store.searches(subject))
        # A search was cut in the middle, and only what was lacking was tried.
        assert len(FAMILIES) * (FOLDS + 1) * TRIALS == tries()
