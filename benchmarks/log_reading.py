"""How long does a log of a million lines take, and how much memory?

    apt-get install goaccess        to have it beside intop; it is no part of the product
    python -m benchmarks log-reading

A made-up log in nginx's combined format. `intop workload learn` reads it in a process of its own,
with and without a recording, and a tenth of it. GoAccess makes its HTML report of the same file,
where it is installed. Commands take turns, and the files are in the page cache.

Terms, said before any run: three rounds. The claim is that the median time of a million lines is
below 20 s, and that they take at most 1.2 times the memory of a hundred thousand.
"""

import argparse
import os
import random
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

from benchmarks.harness import ROOT, Question, UnusableError, positive
from benchmarks.logs import START
from benchmarks.startup import INTOP

AT_MOST_S, AT_MOST_TIMES = 20.0, 1.2
LOOK_S = 0.02
WHOLE, TENTH, RECORD = "learn", "learn, a tenth of the lines", "learn --record"
GOACCESS = "goaccess"


@dataclass(frozen=True)
class Cost:
    """The median costs of a command."""

    seconds: float
    cpu_s: float
    """The time of processors, which other work on the machine hardly changes."""
    peak_mb: float


class LogReading(Question[str, dict[str, Cost]]):
    """How long does a log of a million lines take?"""

    @classmethod
    def options(cls, parser: argparse.ArgumentParser) -> None:
        add = parser.add_argument
        add("--lines", type=positive, default=1_000_000, help="of the log (1000000)")
        add("--repeats", type=positive, default=3, help="rounds (3)")

    def cells(self) -> dict[str, str]:
        return {"commands": ""}

    def measure(self, cell: str) -> dict[str, Cost]:  # noqa: ARG002
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            whole, tenth = folder / "access.log", folder / "tenth.log"
            write_log(whole, self.given.lines)
            write_log(tenth, self.given.lines // 10)
            learn = (*INTOP, "workload", "learn")
            commands = {
                WHOLE: (*learn, str(whole)),
                TENTH: (*learn, str(tenth)),
                RECORD: (*learn, str(whole), "--record", str(folder / "own.recording")),
            }
            if program := shutil.which(GOACCESS):
                report = ("-o", str(folder / "report.html"), "--no-progress", "--no-global-config")
                commands[GOACCESS] = (program, str(whole), "--log-format=COMBINED", *report)
            costs: dict[str, list[Cost]] = {command: [] for command in commands}
            for _ in range(self.given.repeats):
                for command, words in commands.items():
                    costs[command].append(cost_of(words, folder))
            return {command: medians(own) for command, own in costs.items()}

    def table(self, results: Mapping[str, dict[str, Cost]]) -> Iterator[str]:
        yield f"| {self.given.lines:,} lines | seconds | CPU seconds | peak memory (MB) |"
        yield "|---|---:|---:|---:|"
        costs = results["commands"]
        for command, cost in costs.items():
            yield f"| {command} | {cost.seconds:.1f} | {cost.cpu_s:.1f} | {cost.peak_mb:.0f} |"
        if GOACCESS not in costs:
            yield f"| {GOACCESS} | not installed | | |"

    def missed(self, results: Mapping[str, dict[str, Cost]]) -> list[str]:
        costs = results["commands"]
        missed = []
        if costs[WHOLE].seconds >= AT_MOST_S:
            missed.append(f"it takes {costs[WHOLE].seconds:.1f} s")
        if costs[WHOLE].peak_mb > AT_MOST_TIMES * costs[TENTH].peak_mb:
            missed.append("its memory grows with the log")
        return missed


def medians(costs: Sequence[Cost]) -> Cost:
    """Return the median of each cost."""
    return Cost(*map(median, zip(*map(astuple, costs), strict=True)))


def write_log(path: Path, lines: int, seed: int = 1) -> None:
    """Write a log of 300 requests/s for 5,000 paths."""
    rng = random.Random(seed)
    agents = [f"Mozilla/5.0 (X11; Linux x86_64; rv:{n}.0) Gecko/20100101" for n in range(90, 130)]
    with path.open("w") as file:
        for n in range(lines):
            clock = datetime.fromtimestamp(START + n // 300, UTC)
            place = int(5000 * rng.random() ** 3)
            address = f"198.51.{rng.randrange(256)}.{rng.randrange(256)}"
            file.write(
                f"{address} - - [{clock:%d/%b/%Y:%H:%M:%S} +0000] "
                f'"GET /section-{place % 40}/page-{place}.html HTTP/1.1" 200 '
                f'{1000 + place % 4000} "https://example.org/" "{rng.choice(agents)}"\n'
            )


def cost_of(words: Sequence[str], folder: Path) -> Cost:
    """Return the costs of a command. Raises UnusableError for one that fails."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    output = folder / "output"
    begun, peak_kb, ended = time.perf_counter(), 0, 0
    with output.open("wb") as file:
        process = subprocess.Popen(words, cwd=folder, env=environment, stdout=file, stderr=file)
        # The kernel's own peak of an ended process includes what its parent had when it forked.
        while not ended:
            peak_kb = max(peak_kb, resident_kb(process.pid))
            time.sleep(LOOK_S)
            ended, status, usage = os.wait4(process.pid, os.WNOHANG)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise UnusableError(f"{words[0]} failed: {output.read_text()[-500:]}")
    cpu_s = usage.ru_utime + usage.ru_stime
    return Cost(time.perf_counter() - begun, cpu_s, 1024 * peak_kb / 1e6)


def resident_kb(pid: int) -> int:
    """Return the peak of a process's memory so far, in KB of 1,024 bytes; 0 once it has ended."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    match = re.search(r"^VmHWM:\s+(\d+) kB$", status, re.MULTILINE)
    return int(match[1]) if match else 0
