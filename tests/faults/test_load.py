"""The load generator dies: the program that sends the load, or the host that it runs on."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from faults.sites import COLLECT, TRIALS, Site, ended, finished, message, site


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Site]:
    with site("l", tmp_path) as made:
        yield made


def kill_load(place: Site) -> None:
    (pid,) = [pid for pid in place.pids("lg", "wrk") if _program(pid).startswith("wrk")]
    os.kill(pid, signal.SIGKILL)


def _program(pid: int) -> str:
    return Path(f"/proc/{pid}/comm").read_text()
