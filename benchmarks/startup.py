"""How soon does a light command answer?

    python -m benchmarks startup

Each command runs as it is typed, in a process of its own, on the recorded campaign of
`tests/data/campaign`, whose labs are not up. Commands take turns with `python -c pass`, and their
first round does not count, since it compiles modules. The claim: each light command
takes at most LIGHT_S seconds, and the whole page at most PAGE_S, both as medians.
"""

import argparse
import lzma
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import median

from benchmarks.harness import ROOT, Question, UnusableError, positive

RECORDED = ROOT / "tests" / "data" / "campaign"
LIGHT_S, PAGE_S = 0.5, 2.0
NOTHING = "python -c pass"
MODELS = "models"
PAGE = "report"
COMMANDS = (
    "progress",
    "progress --all",
    "status",
    "plan --arch x86",
    "report --json",
    PAGE,
    "store check",
    "store vacuum",
    "completion bash",
    f"models {MODELS}",
)
INTOP = (sys.executable, "-c", "from intop.cli import main; main()")


class Startup(Question[str, dict[str, list[float]]]):
    """How soon does a light command answer?"""

    @classmethod
    def options(cls, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--repeats", type=positive, default=9, help="rounds (9)")

    def cells(self) -> dict[str, str]:
        return {"commands": ""}

    def measure(self, cell: str) -> dict[str, list[float]]:  # noqa: ARG002
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            prepare(folder)
            times: dict[str, list[float]] = {command: [] for command in (NOTHING, *COMMANDS)}
            for _ in range(1 + self.given.repeats):
                for command, seconds in times.items():
                    seconds.append(seconds_of(command, folder))
            return {command: seconds[1:] for command, seconds in times.items()}

    def table(self, results: Mapping[str, dict[str, list[float]]]) -> Iterable[str]:
        yield "| command | median (s) | lowest | highest |"
        yield "|---|---:|---:|---:|"
        for command, seconds in results["commands"].items():
            numbers = " | ".join(f"{s:.2f}" for s in (median(seconds), min(seconds), max(seconds)))
            yield f"| `{command}` | {numbers} |"

    def missed(self, results: Mapping[str, dict[str, list[float]]]) -> Sequence[str]:
        return [
            f"{command} takes {median(seconds):.2f} s"
            for command, seconds in results["commands"].items()
            if median(seconds) > (PAGE_S if command == PAGE else LIGHT_S)
        ]


def prepare(folder: Path) -> None:
    """Make the recorded study in a folder, with models that it has saved."""
    for path in RECORDED.glob("*.toml"):
        shutil.copy(path, folder)
    packed = (RECORDED / "finished.db.xz").read_bytes()
    (folder / "recorded.db").write_bytes(lzma.decompress(packed))
    seconds_of(f"train --arch x86 --models {MODELS}", folder)


def seconds_of(command: str, folder: Path) -> float:
    """Return the wall time of a command. Raises UnusableError for one that breaks."""
    words = (sys.executable, "-c", "pass") if command == NOTHING else (*INTOP, *command.split())
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    started = time.perf_counter()
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True)
    seconds = time.perf_counter() - started
    if done.returncode not in (0, 1) or "Traceback" in done.stderr:  # 1: the labs are not up
        raise UnusableError(f"{command}: {done.stderr}")
    return seconds
