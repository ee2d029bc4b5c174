"""How soon does a light command answer?

    python -m benchmarks startup
    python -m benchmarks startup --beside ../before    another checkout, in turn with this one

Each command runs as it is typed, in a process of its own, on the recorded campaign of
`tests/data/campaign`, whose labs are not up. Commands take turns with `python -c pass`, and their
first round does not count, since it compiles modules. The claim: each light command
takes at most LIGHT_S seconds, and the whole page at most PAGE_S, both as medians. On a busy machine
processor seconds tell more of two checkouts than seconds.
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
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchmarks.harness import ROOT, Question, UnusableError, positive

RECORDED = ROOT / "tests" / "data" / "campaign"
LIGHT_S, PAGE_S = 0.5, 2.0
NOTHING = "python -c pass"
HERE, BESIDE = "this", "beside"
CHILDREN = ("children_user", "children_system")
"""The processor seconds of ended processes, as os.times() has them."""
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


@dataclass(frozen=True)
class Taken:
    """The time of a command, in seconds of the clock and of processors."""

    seconds: float
    processor_s: float


Times = dict[str, dict[str, list[Taken]]]
"""By checkout, then by command."""


class Startup(Question[str, Times]):
    """How soon does a light command answer?"""

    @classmethod
    def options(cls, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--repeats", type=positive, default=9, help="rounds (9)")
        parser.add_argument("--beside", type=Path, help="another checkout, measured in turn")

    def cells(self) -> dict[str, str]:
        return {"commands": ""}

    def measure(self, cell: str) -> Times:  # noqa: ARG002
        roots = {HERE: ROOT} | ({BESIDE: self.given.beside} if self.given.beside else {})
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            prepare(folder)
            times: Times = {root: {c: [] for c in (NOTHING, *COMMANDS)} for root in roots}
            for _ in range(1 + self.given.repeats):
                for command in (NOTHING, *COMMANDS):
                    for root, path in roots.items():
                        times[root][command].append(taken_by(command, folder, path))
            return {r: {c: each[1:] for c, each in rows.items()} for r, rows in times.items()}

    def table(self, results: Mapping[str, Times]) -> Iterable[str]:
        yield "| checkout | command | median (s) | lowest | highest | processors, median (s) |"
        yield "|---|---|---:|---:|---:|---:|"
        for root, rows in results["commands"].items():
            for command, each in rows.items():
                seconds = [one.seconds for one in each]
                numbers = (median(seconds), min(seconds), max(seconds))
                columns = [f"{s:.2f}" for s in (*numbers, median(one.processor_s for one in each))]
                yield f"| {root} | `{command}` | {' | '.join(columns)} |"

    def missed(self, results: Mapping[str, Times]) -> Sequence[str]:
        medians = {
            command: median(one.seconds for one in each)
            for command, each in results["commands"][HERE].items()
        }
        return [
            f"{command} takes {seconds:.2f} s"
            for command, seconds in medians.items()
            if seconds > (PAGE_S if command == PAGE else LIGHT_S)
        ]


def prepare(folder: Path) -> None:
    """Make the recorded study in a folder, with models that it has saved."""
    for path in RECORDED.glob("*.toml"):
        shutil.copy(path, folder)
    packed = (RECORDED / "finished.db.xz").read_bytes()
    (folder / "recorded.db").write_bytes(lzma.decompress(packed))
    taken_by(f"train --arch x86 --models {MODELS}", folder)


def taken_by(command: str, folder: Path, root: Path = ROOT) -> Taken:
    """Return what a command of a checkout takes. Raises UnusableError for one that breaks."""
    words = (sys.executable, "-c", "pass") if command == NOTHING else (*INTOP, *command.split())
    environment = {**os.environ, "PYTHONPATH": str(root)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    before, started = os.times(), time.perf_counter()
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True)
    seconds, after = time.perf_counter() - started, os.times()
    if done.returncode not in (0, 1) or "Traceback" in done.stderr:  # 1: the labs are not up
        raise UnusableError(f"{command}: {done.stderr}")
    user, system = (getattr(after, n) - getattr(before, n) for n in CHILDREN)
    return Taken(seconds, user + system)
