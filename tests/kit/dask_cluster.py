"""A real Dask cluster on the loopback: a scheduler and workers, each a process."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from kit.studies import wait_for

ROOT = Path(__file__).parents[2]


def slept_in(seconds: float) -> int:
    """A task: the process that it was done in."""
    time.sleep(seconds)
    return os.getpid()


@dataclass
class DaskCluster:
    """Its scheduler's address, and its processes, the scheduler first."""

    folder: Path
    address: str = ""
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start(self, module: str, *words: str, before: str = "") -> None:
        """One of Dask's programs, after some Python of the caller's."""
        log = self.folder / f"{len(self.processes)}.log"
        script = f"{before}\nfrom distributed.cli.{module} import main; main()"
        with log.open("wb") as file:
            self.processes.append(
                subprocess.Popen(
                    [sys.executable, "-c", script, *words, "--no-dashboard"],
                    stdout=file,
                    stderr=file,
                    cwd=self.folder,
                    env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'tests'}"},
                )
            )

    def add_worker(self, threads: int = 1, before: str = "") -> None:
        self.start(
            "dask_worker",
            *(self.address, "--nthreads", str(threads), "--no-nanny", "--host", "127.0.0.1"),
            before=before,
        )

    def log(self) -> str:
        return "".join(path.read_text() for path in sorted(self.folder.glob("*.log")))


@contextmanager
def dask_cluster(folder: Path, workers: int) -> Iterator[DaskCluster]:
    """A scheduler, and workers that come as soon as they can."""
    cluster, message = DaskCluster(folder), folder / "scheduler.json"
    try:
        cluster.start(
            "dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(message)
        )
        # The file is there before its text is.
        wait_for(lambda: message.exists() and message.read_text() != "", "Dask's scheduler")
        cluster.address = json.loads(message.read_text())["address"]
        for _ in range(workers):
            cluster.add_worker()
        yield cluster
    finally:
        for process in reversed(cluster.processes):
            process.kill()
            process.wait()
