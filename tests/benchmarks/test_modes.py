"""The benchmark of tables with modes: what they are, and what it calls missed."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import mode_tables, models, modes, search
from benchmarks.harness import Question, ask
from benchmarks.mode_tables import made_up
from intop.learn.families import FAMILIES

FEW = ("XGBoost", "SVR")


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Tables of few rows, and two quick families, tried with their defaults alone."""
    monkeypatch.setattr(mode_tables, "ROWS", 300)
    made_up.cache_clear()
    for module in (models, modes):
        monkeypatch.setattr(module, "FAMILIES", {name: FAMILIES[name] for name in FEW})
    monkeypatch.setattr(models, "TRIES", dict.fromkeys(FEW, 1))
    yield
    # Other tests of this process want whole tables.
    made_up.cache_clear()


def run(folder: Path, kind: type[Question[Any, Any]], *options: str) -> str:
    results = f"--results={folder / 'results.json'}"
    return str(ask("modes", kind, [*options, "--jobs=1", results]) or "")


@pytest.mark.parametrize("number", range(6))
def test_tables_are_as_the_issue_wants_them(number: int) -> None:
    made = made_up(number)
    assert 10 <= len(made.variables) <= 20
    assert 1_000 < len(made) <= 60_000
    assert len(np.unique(made.values, axis=0)) == len(made)
    assert np.array_equal(made.values, np.rint(made.values))
    for column, variable in zip(made.values.T, made.variables, strict=True):
        assert (variable.low, variable.high) == (column.min(), column.max())
    made_up.cache_clear()
    assert made.digest == made_up(number).digest


@pytest.mark.parametrize("number", range(20))
def test_modes_are_a_factor_of_3_to_200_apart(number: int) -> None:
    switches = np.indices((2, 2, 2, 2)).reshape(4, -1).T
    result = np.unique(mode_tables.modes(np.random.default_rng(number), switches, number))
    assert len(result) == 2 + number % 2
    assert np.diff(result).min() >= np.log(3) - 1e-9
    assert np.ptp(result) <= np.log(200) + 1e-9


@pytest.mark.parametrize("number", range(3))
def test_within_a_mode_the_target_varies_by_less_than_a_factor_of_ten(number: int) -> None:
    made = made_up(number)
    places = made.values[:, 4:] / made.values[:, 4:].max(axis=0)
    total = mode_tables.smooth(np.random.default_rng(1), places, 0)
    assert 0.3 < np.ptp(total) < np.log(10)


@pytest.mark.usefixtures("small")
def test_draws_grow_from_40_rows_to_100_and_tables_take_turns() -> None:
    drawn = modes.draws(range(modes.DRAWS))
    assert [drawn[0].size, drawn[-1].size] == [40, 100]
    assert all(len(set(job.rows)) == job.size for job in drawn)
    assert len({job.system for job in drawn}) == 20
    assert drawn[:5] == modes.draws(range(5))


@pytest.mark.usefixtures("small")
def test_models_are_compared_by_their_worst_draw_and_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    output = run(tmp_path, modes.DrawnModels, "--seeds=2")
    printed, progress = capsys.readouterr()
    rows = {line.split()[1]: line for line in printed.splitlines()[9:]}
    assert list(rows) == ["selected", *FEW]
    assert "[2/2] modes 1 41 1: " in progress
    monkeypatch.setattr(models, "done", None)
    assert output == run(tmp_path, modes.DrawnModels, "--seeds=2")
    assert (printed, "") == capsys.readouterr()


def test_a_worst_draw_above_xgboosts_is_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def done(_job: models.Job, _: object) -> dict[str, models.Outcome]:
        bad = {name: models.Outcome(1.0, 5.0, 0.0) for name in FAMILIES}
        return bad | {"SVR": models.Outcome(0.5, 7.25, 0.0)}

    monkeypatch.setattr(models, "done", done)
    expected = "not as it should be: the selected model's worst draw has 7.25 %, XGBoost's 5 %"
    assert run(tmp_path, modes.DrawnModels, "--seeds=1") == expected


@pytest.mark.usefixtures("small")
def test_searches_stand_beside_random_one_at_a_time_and_four_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(modes, "SEARCHED", 1)
    monkeypatch.setattr(modes, "COUNTS", (12, 16))
    run(tmp_path, modes.ModeSearch, "--seeds=1")
    printed, progress = capsys.readouterr()
    assert "[4/4]" in progress
    for at_once in (1, 4):
        for kind in ("ours", "random"):
            assert f"| modes 0, {at_once} at a time | {kind} | " in printed


def test_a_mean_above_randoms_is_missed() -> None:
    table = modes.searched(0, 1)
    results = {
        search.Job(table.name, kind, 0).name: search.Outcome([value] * 100, 0.0)
        for kind, value in (("ours", 3.0), ("random", 2.0))
    }
    expected = [f"{table.name} after {count}: 3, random 2" for count in modes.COUNTS]
    assert modes.missed_by_search([table], results, range(1)) == expected
