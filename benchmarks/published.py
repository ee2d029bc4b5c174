"""What published sets of values are worth in the scenarios: `intop contest` in each of them.

    python -m benchmarks published static-wan uploads
    python -m benchmarks published                         only the Markdown table, from the files

SCENARIO is a file of configs/scenarios without its suffix. Each cell of it (an architecture and a
workload) is a campaign of its own, in which the product's contest measures the host's own values
and all baselines of configs/baselines in interleaved rounds. The intervals of a cell hold together
at the level of the study (Bonferroni); over all cells nothing is corrected.

All trials are in `--store`, a file for each scenario.
Writes into `--out`: CELL.csv, a row for each set of values, and README.md, the table of all.
"""

import argparse
import csv
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.campaign import labs_up
from benchmarks.truth import Cell, OfScenarios
from intop.domain.multi_arm import Contest, Contestant
from intop.experiment.contest.stage import ContestRequest, MultiArm
from intop.run.executor import execute

ROUNDS = 10
HEAD = """\
# Published sets of values in the scenarios

Measured by `python -m benchmarks published`, which says how. A ratio is the default's P99 / that
with the set, and its interval; above 1 is better. **Bold** is a gain, *slanted* is worse. A set
that changes nothing on such a host has no figure.
"""


class Published(OfScenarios[None]):
    """What are published sets of values worth?"""

    @classmethod
    def options(cls, parser: argparse.ArgumentParser) -> None:
        super().options(parser)
        parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"({ROUNDS})")
        out = Path("benchmarks/truth/published")
        parser.add_argument("--out", type=Path, default=out, help="a folder")

    def measure(self, cell: Cell) -> None:
        self.given.out.mkdir(parents=True, exist_ok=True)
        with labs_up(cell.study):
            request = ContestRequest(rounds=self.given.rounds)
            result = execute(MultiArm(cell.task("published"), request))
        write(self.given.out / f"{cell.name}.csv", cell, result)

    def table(self, results: Mapping[str, None]) -> list[str]:  # noqa: ARG002
        text = summary(self.given.out)
        (self.given.out / "README.md").write_text(text)
        return text.splitlines()


def write(path: Path, cell: Cell, found: Contest) -> None:
    """A row for each set of values."""
    rows = [row(cell, found, one) for one in found.contestants if not one.is_reference]
    with path.open("w", newline="") as file:
        table = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        table.writeheader()
        table.writerows(rows)


def row(cell: Cell, found: Contest, one: Contestant) -> dict[str, object]:
    """What a set came to; numbers are empty where nothing was measured."""
    (arch,), (workload,) = cell.study.clusters, cell.study.workloads
    ratio = one.ratio
    return {
        "scenario": cell.scenario,
        "arch": arch,
        "workload": workload,
        "set": one.name,
        "changed": len(one.configuration.values),
        "rounds": found.rounds,
        "ratio": f"{ratio.value:.4f}" if ratio else "",
        "low": f"{ratio.low:.4f}" if ratio else "",
        "high": f"{ratio.high:.4f}" if ratio else "",
        "failures": one.failures,
        "outcome": one.outcome,
    }


# -- summary -------------------------------------------------------------------------------------


def summary(folder: Path) -> str:
    """The Markdown text of all tables of a folder: a line for each cell, a column for each set."""
    tables = [read(path) for path in sorted(folder.glob("*.csv"))]
    names = sorted({one["set"] for table in tables for one in table})
    lines = [HEAD, f"| scenario | {' | '.join(names)} |", f"|---|{'---|' * len(names)}"]
    for table in tables:
        by_name = {one["set"]: one for one in table}
        title = " ".join(table[0][part] for part in ("scenario", "arch", "workload"))
        told = [in_words(by_name[name]) if name in by_name else "-" for name in names]
        lines.append(f"| {title} | {' | '.join(told)} |")
    return "\n".join(lines) + "\n"


def read(path: Path) -> Sequence[Mapping[str, str]]:
    """The rows of a table."""
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def in_words(one: Mapping[str, str]) -> str:
    """Such as `**1.31 (1.20 to 1.43)**`."""
    if not one["ratio"]:
        return one["outcome"]
    told = "{:.2f} ({:.2f} to {:.2f})".format(*(float(one[n]) for n in ("ratio", "low", "high")))
    if float(one["low"]) > 1:
        told = f"**{told}**"
    elif float(one["high"]) < 1:
        told = f"*{told}*"
    return told + (f", {one['failures']} failed" if one["failures"] != "0" else "")
