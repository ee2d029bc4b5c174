"""The tables of benchmarks/log_modes.py, from made-up trials."""

import json
from pathlib import Path

from benchmarks.log_modes import MODES, Cell, cost_of, spread_ratio, stored, tables
from intop.domain.cluster import AccessLog

P99_MS: dict[AccessLog, float] = {"off": 2.0, "memory": 2.0, "disk": 3.0}


def made(path: Path, rounds: int = 5) -> Path:
    """Trials in which the disk costs half, and tied workers scatter half as much."""
    with path.open("w") as file:
        for number in range(rounds):
            for mode in MODES:
                for tied in (False, True):
                    scatter = (1.01 if tied else 1.02) ** (number - rounds // 2)
                    line = [mode, 1, tied, number, P99_MS[mode] * scatter, 0.2]
                    print(json.dumps(line), file=file)
    return path


def test_a_mode_costs_what_its_rounds_say(tmp_path: Path) -> None:
    found = stored(made(tmp_path / "trials.jsonl"))
    ratio, low, high = cost_of(found, Cell("disk", 1, tied=False), compared=4)
    assert (1.5, 1.5, 1.5) == tuple(round(value, 6) for value in (ratio, low, high))
    free, tied = (found[Cell("off", 1, tied=one)] for one in (False, True))
    ratio, low, high = spread_ratio(free, tied)
    assert 1.98 < ratio < 2.02
    assert low < 1 < high  # five rounds say little of a spread


def test_tables_have_a_row_for_each_cell(tmp_path: Path) -> None:
    found = stored(made(tmp_path / "trials.jsonl"))
    lines = tables(found)
    assert 6 == sum(line.startswith(("| off | ", "| memory | ", "| disk | ")) for line in lines)
    assert any(line.startswith("| disk | 1 free | 5 | 3.00 (") for line in lines)
    assert 3 == sum(" | 1.99 (" in line or " | 2.0" in line for line in lines[9:])
    assert {} == stored(tmp_path / "none.jsonl")
