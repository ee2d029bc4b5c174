"""The identity of a process, and whether it still runs."""

import os
import subprocess
import sys

from intop import process


def test_this_process_runs_and_is_the_same_each_time() -> None:
    assert process.identity() == process.identity()
    assert not process.is_gone(process.identity())
    assert process.title().endswith(f"(process {os.getpid()})")


def test_one_that_has_ended_is_gone() -> None:
    text = "from intop import process; print(process.identity())"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert process.is_gone(done.stdout.strip())


def test_one_that_waits_for_its_parent_is_gone() -> None:
    text = "from intop import process; print(process.identity(), flush=True)"
    with subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        identity = other.stdout.readline().strip()
        os.waitid(os.P_PID, other.pid, os.WEXITED | os.WNOWAIT)
        assert process.is_gone(identity)


def test_another_process_with_the_same_number_is_not_the_same() -> None:
    place, pid, started = process.identity().split("/")
    assert process.is_gone(f"{place}/{pid}/{int(started) - 1}")


def test_one_of_another_machine_may_still_run() -> None:
    _, pid, started = process.identity().split("/")
    assert not process.is_gone(f"elsewhere/{pid}/{started}")
    assert not process.is_gone("nonsense")
