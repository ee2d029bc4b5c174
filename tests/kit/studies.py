"""A study's folder with the real command line at work in it, for the tests that need a lab."""

import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kit.forked import PATIENCE_S, Forked

RUN = os.getpid() % 10_000
"""In all names, so that two runs of the tests don't meet."""

LIMIT_S = 600.0
"""For a command to end."""
STARTED_ANEW = ("screen", "refine", "train", "search", "explain", "tune", "compare", "report")
"""Commands that start processes of their own, or load what a forked process can't use."""

SMALL = """
[study]
name = "small"
store = "small.db"
load_tool = "engine"

{clusters}

[workload.slt]
rate_rps = 300
connections = 32
threads = 2
duration_s = 1
warmup_s = 0

[workload.dlt]
rate_rps = 150
connections = 32
threads = 2
duration_s = 1
warmup_s = 0

[budget]
screen_trials = 8
keep = 6
collect_trials = 8
replicate_trials = 2
refine_trials = 2
sentinel_every = 4
folds = 2
repeats = 1
tuning_trials = 1
population = 40
generations = 10
finalists = 2
pick_rounds = 1
trim_rounds = 0
judge_pairs = 3
explain_rounds = 0
agree_rounds = 3
max_foreign_cores = 1000    # the machine that runs the tests may have other work,
max_steal_cores = 1000      # and so may those beside it
max_steal = 0.99
max_lag = 1
"""
"""A study of labs that takes about a minute."""


@dataclass(frozen=True)
class Study:
    """A folder with intop.toml, and intop at work in it."""

    folder: Path
    labs: tuple[str, ...]

    def start(self, *arguments: str) -> "subprocess.Popen[str]":
        """intop in a process of its own, in a session of its own."""
        return subprocess.Popen(
            [sys.executable, "-m", "intop", *arguments],
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def run(self, *arguments: str, expected: tuple[int, ...] = (0,)) -> tuple[str, str]:
        """Standard output and error of a command that ends as expected."""
        if arguments[0] in STARTED_ANEW:
            process = self.start(*arguments)
            out, err = process.communicate(timeout=LIMIT_S)
            code = process.returncode
        else:
            with tempfile.TemporaryDirectory(prefix="intop-said-") as output:
                forked = Forked(arguments, folder=self.folder, output=Path(output))
                out, err, code = forked.communicate(LIMIT_S)
        assert code in expected, f"exit code {code}: {err}\n{out}"
        return out, err

    def json(self, *arguments: str, expected: tuple[int, ...] = (0,)) -> Any:
        """What a command prints with --json."""
        return json.loads(self.run(*arguments, "--json", expected=expected)[0])

    def trials(self, stage: str) -> list[tuple[int, int, str]]:
        """Place, attempt and configuration of the stored trials of a stage."""
        path = self.folder / "small.db"
        if not path.exists():
            return []
        query = (
            "SELECT position, attempt, configuration FROM trial "
            "JOIN planned ON planned.id = trial.planned_id WHERE stage = ? ORDER BY trial.id"
        )
        connection = sqlite3.connect(path, timeout=10)
        try:
            return connection.execute(query, (stage,)).fetchall()
        except sqlite3.OperationalError:  # the tables are not there yet
            return []
        finally:
            connection.close()

    def durations(self) -> set[int]:
        """Those of all stored trials, in seconds."""
        connection = sqlite3.connect(self.folder / "small.db", timeout=10)
        try:
            rows = connection.execute("SELECT conditions FROM trial").fetchall()
        finally:
            connection.close()
        return {json.loads(conditions)["duration_s"] for (conditions,) in rows}

    def balancer(self, command: str, lab: int = 0) -> str:
        """What a command prints in the load balancer's namespace."""
        name = f"intop-{self.labs[lab]}-lb"
        done = subprocess.run(
            ["ip", "netns", "exec", name, "sh", "-c", command],
            check=True,
            capture_output=True,
            text=True,
            timeout=20,
        )
        return done.stdout


def wait_for(condition: Callable[[], bool], what: str) -> None:
    """Wait with a generous limit."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, f"waited {PATIENCE_S:g} s for {what}"
        time.sleep(0.05)
