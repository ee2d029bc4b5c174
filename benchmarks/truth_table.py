"""The tables that benchmarks/truth.py makes: a row for each arm, and a summary of all cells."""

import csv
import gzip
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import TYPE_CHECKING

from benchmarks import acting
from benchmarks.acting import Effect
from intop.domain.trial import Trial

if TYPE_CHECKING:
    from benchmarks.truth import Cell, Found

Row = dict[str, object]
WORDS = {1: "gain", 0: "nothing", -1: "worse"}
HEAD = """\
# What there is to find in the scenarios

Measured by `python -m benchmarks truth`, which says how; rules and error control:
`benchmarks/acting.py`. A ratio is the default's P99 / the arm's, with the interval of its test. It
acts where that excludes 1. In a scenario that gains, some key has an interval above 1. The sd tells
how much the logarithm of a single trial's P99 scatters, while all labs are measured on at once. The
test calls a gain as large as *calls* with a chance of 90 %, if it is the only one (by that sd, as
far as logarithms are normal): what is smaller may well be there.
"""


def in_words(effect: Effect) -> str:
    """Such as `1.95 (1.80 to 2.11) gain`."""
    if effect.low is None or effect.high is None:
        return f"{effect.ratio:.2f}"
    return f"{effect.ratio:.2f} ({effect.low:.2f} to {effect.high:.2f}) {WORDS[effect.acts]}"


def rows(cell: "Cell", found: "Found", *, commit: str = "") -> list[Row]:
    """A row for each arm in each part, and at the top one for the base.

    The first row says what the table was measured with: `commit`, day, and labs at once.
    """
    first = next(iter(found.trials.values()))
    bases = [t for t in first if acting.is_base(t.planned.arm) and t.usable]
    logs = [math.log(t.judged_ms) for t in bases]
    start = _row(cell, "base", "base", cell.base.to_json())
    start |= {"rounds": len(bases), "p99_ms": f"{math.exp(fmean(logs)):.2f}"}
    start |= {"sd_log_p99": f"{stdev(logs):.4f}" if len(logs) > 1 else ""}
    start |= {"labs": len({t.replica for t in bases}), "commit": commit}
    start |= {"measured": max(t.started_at for t in bases)[: len("2026-11-24")]}
    table = [start]
    pairs = p99_of(found.trials["pairs"]) if "pairs" in found.trials else None
    beyond = {e.arm: e for e in acting.interactions(pairs)} if pairs else {}
    for part, trials in found.trials.items():
        by_arm = {e.arm: e for e in found.effects[part]}
        arms = dict.fromkeys(t.planned.arm for t in trials)
        for arm in sorted(a for a in arms if not acting.is_base(a)):
            own = [t for t in trials if t.planned.arm == arm]
            row = _row(cell, part, arm, own[0].configuration.to_json())
            row["level"] = found.levels.get(part, "")
            row |= _measured(by_arm.get(arm), own, found)
            if part == "pairs" and (effect := beyond.get(arm)) is not None:
                row["beyond"] = in_words(effect).rpartition(" ")[0]
            table.append(row)
    return table


def p99_of(trials: Iterable[Trial]) -> acting.Rounds:
    """P99 (ms) of the usable trials, by arm and in it by round."""
    return _by_round(trials, lambda trial: trial.judged_ms)


def tails_of(trials: Iterable[Trial]) -> acting.Rounds:
    """The same with their tails."""
    return _by_round(trials, lambda trial: trial.tail_ms)


def _by_round(trials: Iterable[Trial], of: Callable[[Trial], float]) -> acting.Rounds:
    found: dict[str, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for trial in trials:
        if trial.usable and trial.planned.round is not None:
            found[trial.planned.arm][trial.planned.round].append(of(trial))
    return {arm: dict(rounds) for arm, rounds in found.items()}


def _row(cell: "Cell", part: str, arm: str, configuration: str) -> Row:
    (arch,), (workload,) = cell.study.clusters, cell.study.workloads
    row: Row = {"scenario": cell.scenario, "arch": arch, "workload": workload}
    row |= {"base": cell.words or "default", "part": part, "arm": arm}
    row |= {"key": acting.key_of(arm) if arm.startswith("net.") and "&" not in arm else ""}
    row |= dict.fromkeys(
        (
            "state",
            "rounds",
            "ratio",
            "low",
            "high",
            "level",
            "p",
            "z",
            "p99_ms",
            "sd_log_p99",
            "beyond",
        ),
        "",
    )
    return row | {"configuration": configuration}


def _measured(effect: Effect | None, own: Sequence[Trial], found: "Found") -> Row:
    if effect is None:
        return {"state": own[-1].status, "rounds": 0}  # failed, or disturbed to the end
    row: Row = {"rounds": effect.rounds, "ratio": f"{effect.ratio:.4f}"}
    usable = [math.log(t.judged_ms) for t in own if t.usable]
    row["p99_ms"] = f"{math.exp(fmean(usable)):.2f}"
    row["sd_log_p99"] = f"{stdev(usable):.4f}" if len(usable) > 1 else ""
    if effect.low is not None and effect.high is not None:
        row |= {"low": f"{effect.low:.4f}", "high": f"{effect.high:.4f}", "p": f"{effect.p:.2g}"}
        return row | {"state": WORDS[effect.acts]}
    row["z"] = f"{effect.z:.2f}"
    if effect.arm in found.dropped:
        return row | {"state": "not followed"}
    goes_on = "split" if effect.arm in found.groups else "tested"
    return row | {"state": goes_on if acting.is_suspicious(effect) else "dropped"}


# -- summary -------------------------------------------------------------------------------------


def summary(folder: Path) -> str:
    """The Markdown text for all tables of a folder."""
    tables = [read(path) for path in sorted(folder.glob("*.csv.gz")) if "-trials." not in path.name]
    heads = (
        "scenario | from | default's P99 | calls | gains | worse | arms | best together | measured"
    )
    lines = [HEAD, f"| {heads} |", "|---" * 9 + "|"]
    lines += [_line(table) for table in tables]
    for table in tables:
        lines += ["", *_section(table)]
    return "\n".join(lines) + "\n"


def read(path: Path) -> list[dict[str, str]]:
    """The rows of a table."""
    with gzip.open(path, "rt", newline="") as file:
        return list(csv.DictReader(file))


def _title(table: Sequence[Mapping[str, str]]) -> str:
    return " ".join(table[0][name] for name in ("scenario", "arch", "workload"))


def _line(table: Sequence[Mapping[str, str]]) -> str:
    tested = [r for r in table if r["part"] == "test"]
    keys = {
        state: sorted({r["key"] for r in tested if r["state"] == state})
        for state in ("gain", "worse")
    }
    together = [r for r in table if r["arm"] == acting.ALL_GAINS]
    best = together or sorted(
        (r for r in tested if r["state"] == "gain"), key=lambda r: -float(r["ratio"])
    )
    cells = [
        _title(table),
        table[0]["base"],
        _base(table[0]),
        _calls(table[0], tested),
        _keys(keys["gain"]),
        _keys(keys["worse"]),
        f"{len(tested)} of {sum(r['part'] == 'scan' for r in table)} tested",
        _interval(best[0]) if best else "-",
        ", ".join(filter(None, (table[0].get(name) for name in ("commit", "measured")))) or "-",
    ]
    return f"| {' | '.join(cells)} |"


def _base(row: Mapping[str, str]) -> str:
    scatter = f", sd {float(row['sd_log_p99']):.0%}" if row.get("sd_log_p99") else ""
    return f"{float(row['p99_ms']):.0f} ms{scatter}"


def _calls(base: Mapping[str, str], tested: Sequence[Mapping[str, str]]) -> str:
    """The ratio that the test would have called with a chance of 90 %."""
    if not base.get("sd_log_p99") or not tested:
        return "-"
    rounds = max(int(row["rounds"]) for row in tested)
    scatter = float(base["sd_log_p99"])
    return f"{acting.least_called(scatter, arms=len(tested), rounds=rounds):.2f}"


def _keys(keys: Sequence[str]) -> str:
    return ", ".join(f"`{k.removeprefix('net.ipv4.').removeprefix('net.')}`" for k in keys) or "-"


def _section(table: Sequence[Mapping[str, str]]) -> list[str]:
    """All arms that act, and all pairs."""
    shown = [
        r
        for r in table
        if r["part"] == "pairs" or (r["part"] == "test" and r["state"] in ("gain", "worse"))
    ]
    lines = [f"## {_title(table)}, from {table[0]['base']}", ""]
    left = sum(r["state"] == "not followed" for r in table)
    if left:
        lines += [f"{left} more arms stood out in the scan, and were not tested.", ""]
    if not shown:
        return [*lines, "Nothing acts."]
    lines += ["| part | arm | ratio | beyond both alone |", "|---|---|---|---|"]
    shown.sort(key=lambda r: (r["part"] != "test", -float(r["ratio"] or 0)))
    return lines + [
        f"| {r['part']} | `{r['arm']}` | {_interval(r)} | {r['beyond']} |" for r in shown
    ]


def _interval(row: Mapping[str, str]) -> str:
    if not row["low"]:
        return row["state"]
    return "{:.2f} ({:.2f} to {:.2f})".format(*(float(row[n]) for n in ("ratio", "low", "high")))
