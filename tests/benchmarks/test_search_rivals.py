"""The benchmark of rivals: its tables, and what it calls a win or behind random."""

from itertools import product
from pathlib import Path

import numpy as np
import pytest

from benchmarks import search_rivals
from benchmarks.harness import UnusableError, ask
from benchmarks.search import Job, Outcome, Table
from benchmarks.search_rivals import Rivals, Tuner, Unmeasured, at_random, flash, offline, read, tpe

NAMES = ("first", "second")
COUNTS = (6, 12)


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two tables of moot's form, and few rows to measure."""
    rows = [[a, b / 10, 5, 2 * a, 100 + (a - 3) ** 2 + b] for a, b in product(range(8), range(6))]
    for name, sign in zip(NAMES, "-+", strict=True):
        lines = [f"A,B,same,Other-,Time{sign}", *(",".join(map(str, row)) for row in rows)]
        lines += ["?,0.1,5,1,1", "0,0.0,5,0,1"]
        (tmp_path / f"{name}.csv").write_text("\n".join(lines))
    monkeypatch.setattr(search_rivals, "TABLES", NAMES)
    monkeypatch.setattr(search_rivals, "COUNTS", COUNTS)
    monkeypatch.setattr(search_rivals, "FIRST", 4)
    return tmp_path


@pytest.fixture
def table(data: Path) -> Table:
    return read(data / "first.csv")


def run(data: Path, *words: str) -> str:
    results = f"--results={data / 'results.json'}"
    return str(ask("search-rivals", Rivals, [str(data), "--jobs=1", results, *words]) or "")


def test_a_table_has_its_inputs_as_whole_numbers_and_its_last_objective(data: Path) -> None:
    samples = read(data / "first.csv").samples
    assert [(v.name, v.low, v.high) for v in samples.variables] == [("A", 0, 7), ("B", 0, 5)]
    # The unknown row and the one that is measured twice are left out.
    assert len(samples) == 48
    assert samples.measured[0] == (109.0,)
    # What is to be high is learned as its reciprocal.
    assert read(data / "second.csv").target.max() == pytest.approx(1 / 100)


def test_a_file_that_is_no_table_is_named(tmp_path: Path) -> None:
    with pytest.raises(UnusableError, match=r"nosuch\.csv.*optimize/ of moot"):
        read(tmp_path / "nosuch.csv")


@pytest.mark.parametrize("tuner", [at_random, flash, tpe])
def test_a_tuner_measures_each_row_once_and_the_given_ones_first(
    table: Table, tuner: Tuner
) -> None:
    order = np.random.default_rng(1).permutation(len(table.samples)).tolist()
    rows = list(tuner(table, order, 1))
    assert rows[:4] == order[:4]
    assert len(rows) == len(set(rows)) == COUNTS[-1]


def test_the_offline_plan_is_half_random_and_half_ranked(table: Table) -> None:
    order = np.random.default_rng(1).permutation(len(table.samples)).tolist()
    rows = list(offline(table, order, 1, 12))
    assert rows[:6] == order[:6]
    assert len(set(rows)) == 12
    assert table.target[rows[6:]].mean() < table.target.mean()


def test_the_nearest_row_is_taken_once(table: Table) -> None:
    left = Unmeasured(table, [0])
    taken = [left.take_nearest([0.0, 0.0]) for _ in range(2)]
    assert set(taken) == {1, 6}


def test_random_and_offline_stand_beside_each_other(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(data, "--seeds=3", "--tuners", "random", "offline") == ""
    printed, _ = capsys.readouterr()
    assert printed.count("| offline |") == len(NAMES)


def test_a_win_is_beyond_two_standard_errors_and_behind_random_is_missed(
    data: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    values = {"ours": [101.0, 100.0], "random": [104.0, 100.0], "FLASH": [100.0, 100.0]}

    def measured(_question: Rivals, cell: tuple[Job, Table]) -> Outcome:
        job, _ = cell
        shift = 0.01 * job.run
        return Outcome([value + shift for value in values[job.search]], 0.1)

    monkeypatch.setattr(Rivals, "measure", measured)
    assert run(data, "--seeds=3", "--tuners", "ours", "random", "FLASH") == ""
    printed, _ = capsys.readouterr()
    assert "| random | 2, 0, 0 | 0, 2, 0 |" in printed
    assert "| FLASH | 0, 0, 2 | 0, 2, 0 |" in printed
    values["ours"] = [105.0, 100.0]
    (data / "results.json").unlink()
    message = run(data, "--seeds=3", "--tuners", "ours", "random", "FLASH")
    assert "first after 6: behind random" in message
