"""The benchmark of searches: the protocols, what it keeps, and what it calls missed."""

import re
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from benchmarks import search
from benchmarks.harness import ask
from benchmarks.search import Job, Outcome, Rival, Table, by_ranks, read_table
from builders.trials import table as samples_of


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Tables of 48 rows: one by FLASH's protocol and one by PromiseTune's, with rivals."""
    folder = tmp_path / "data" / "search"
    folder.mkdir(parents=True)
    rows = [
        [a, b, c, 7, 10 + 3 * abs(np.log10(a) - 2) + b + b * c]
        for a, b, c in product((1, 10, 100, 1000), (1, 2, 3), (0, 1, 2, 3))
    ]
    lines = ["a,b,c,same,PERF", *(",".join(map(str, row)) for row in rows)]
    for name in ("ranked", "valued"):
        (folder / f"{name}.csv").write_text("\n".join(lines))
    (folder / "published_flash.csv").write_text(
        "\ufefffile,method,rank_diff_mean,evals_mean\n"
        "ranked.csv,FLASH (trees),1.5,12.9\n"
        "ranked.csv,Rank-based progressive,1.25,30\n"
        "ranked.csv,MMRE-based progressive,0,40\n"
    )
    (folder / "published_promisetune.csv").write_text(
        "system,tuner,budget_distinct,mean\n"
        "valued,HEBO,12,11.25\nvalued,HEBO,8,12.5\nvalued,GA,12,13\n"
    )
    return tmp_path / "data"


@pytest.fixture
def folder(data: Path) -> Path:
    return data / "search"


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few rows first and in all."""
    monkeypatch.setattr(search, "FIRST_OF_FLASH", 6)
    monkeypatch.setattr(search, "FIRST", 5)
    monkeypatch.setattr(search, "COUNTS", (8, 12))


def run(data: Path, *options: str) -> str:
    results = f"--results={data / 'results.json'}"
    return str(ask("search", search.Search, [str(data), "--jobs=1", results, *options]) or "")


@pytest.mark.long
@pytest.mark.usefixtures("few")
def test_prints_ours_beside_theirs_and_goes_on_where_it_stopped(
    data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(data, "--seeds=2") == ""
    printed, progress = capsys.readouterr()
    # So few trials needn't find the optimum.
    assert re.search(r"\| ranked \| 48 \| 12 \| \*\*[0-9.]+ ± [0-9.]+ \(12\)\*\* \|", printed)
    assert "| 1.5 (13) | 1.25 (30) | 0 (40) |" in printed
    assert "| HEBO | 12.5 | 11.25 |" in printed
    assert "| GA | - | 13 |" in printed
    assert "[12/12]" in progress
    monkeypatch.setattr(search, "execute", None)
    assert run(data, "--seeds=2") == ""
    assert (printed, "") == capsys.readouterr()


def test_a_table_has_scales_and_nothing_that_never_changes(folder: Path) -> None:
    result = read_table(folder, "ranked", 6, 12).samples
    assert [(v.name, v.scale) for v in result.variables] == [
        ("a", "log"),
        ("b", "linear"),
        ("c", "linear"),
    ]
    assert (len(result), result.measured[0]) == (48, (17.0,))


def test_a_pair_of_levels_is_on_a_linear_scale() -> None:
    assert search.variable("x", np.array([3.0, 7.0, 3.0])).scale == "linear"


@pytest.mark.parametrize("name", list(search.SEARCHES))
@pytest.mark.parametrize("different", [False, True])
def test_a_search_begins_with_the_same_rows_and_measures_no_more_than_it_may(
    folder: Path, name: str, different: bool
) -> None:
    table = read_table(folder, "ranked", 6, 12, different=different)
    outcome = search.done(Job("ranked", name, 1), table)
    assert 6 < len(outcome.best) <= 12
    assert len(outcome.best) == 12 or name == "ours"
    assert outcome.best == sorted(outcome.best, reverse=True)
    first = np.random.default_rng([search.SEED, 1]).permutation(48)[:6]
    assert outcome.best[5] == table.target[first].min()


@pytest.mark.parametrize("different", [False, True])
def test_where_nothing_scatters_rows_are_measured_again_in_the_first_step_at_most(
    folder: Path, different: bool
) -> None:
    table = read_table(folder, "ranked", 6, 12, different=different)
    rows = search.refined(table, range(6), search.Onward, 1)
    assert len(set(rows) if different else rows) == 12
    assert len(rows) - len(set(rows)) == 1


def test_a_refinement_that_ended_keeps_its_last_value() -> None:
    best = {"ours": [9.0, 3], "random": [9.0, 9, 9, 2]}
    table, results = made_up(best, [1, 2, 3, 9])
    assert search.runs_of(results, table, "ours", range(1)).tolist() == [[9, 3, 3, 3]]
    assert search.measured_by(results, table, "ours", range(1)) == 2


def made_up(best: dict[str, list[float]], values: list[float]) -> tuple[Table, dict[str, Outcome]]:
    """A table with these values, and one run of each search on it."""
    table = Table("deeparch", samples_of(np.zeros((len(values), 1)), np.log(values)), 1, 4)
    return table, {f"deeparch, {name}, 0": Outcome(b, 1.0) for name, b in best.items()}


def test_ranks_count_different_values() -> None:
    table, _ = made_up({}, [3, 1, 1, 2, 3])
    assert [table.ranks_behind(v) for v in np.unique(table.target)] == [0, 1, 2]


def test_flash_and_random_have_to_be_beaten() -> None:
    best = {"ours": [9.0, 9, 9, 3], "random": [9.0, 9, 9, 2]}
    table, results = made_up(best, [1, 2, 3, 9])

    def missed(flash: float) -> list[str]:
        rivals = {"deeparch": (Rival("FLASH", 4, flash),)}
        return search.missed([table], [], results, rivals, range(1))

    assert missed(2.5) == ["deeparch: 2 ranks, random 1"]
    assert missed(1.5) == ["deeparch: 2 ranks, random 1", "mean: 2 ranks, FLASH 1.5"]
    assert missed(0.5)[0] == "deeparch: 2 ranks, FLASH 0.5"


def test_good_enough_is_what_was_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    best = {"ours": [9.0, 3, 2, 2], "random": [9.0, 9, 2, 1]}
    table, results = made_up(best, [1, 2, 3, 9])
    monkeypatch.setattr(search, "COUNTS", (2, 3, 4))
    monkeypatch.setattr(search, "GOOD_ENOUGH", {("deeparch", 2): 2.5, ("deeparch", 3): 2.5})
    assert search.missed([], [table], results, {}, range(1)) == [
        "deeparch after 2: 3, not 2.5",
        "deeparch after 4: 2, random 1",
    ]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("ranked.csv", None, "No such file or directory; DATA is the folder with search/"),
        ("ranked.csv", "a,PERF\n1,2\n2,0", "every value of the target must be a positive number"),
        ("ranked.csv", "a,PERF\n1,2\n2.5,3", "not all of its options are whole numbers"),
        ("ranked.csv", "a,PERF\n1,2\n2,3", "2 rows, and 12 are to be measured"),
        ("published_flash.csv", None, "No such file or directory; DATA is the folder with search/"),
        ("published_flash.csv", "x,y\n1,2", "not as expected: 'file'"),
        (
            "published_flash.csv",
            "file,method,rank_diff_mean,evals_mean\nranked.csv,Other,1,2",
            "ranked: nothing of FLASH",
        ),
        ("published_promisetune.csv", "", "no rows"),
    ],
)
@pytest.mark.usefixtures("few")
def test_bad_data_is_one_line(
    name: str,
    text: str | None,
    message: str,
    data: Path,
    folder: Path,
) -> None:
    if text is None:
        (folder / name).unlink()
    else:
        (folder / name).write_text(text)
    output = run(data)
    assert name in output
    assert output.endswith(message)
    assert "\n" not in output


def test_published_ranks_are_by_table(folder: Path) -> None:
    assert Rival("FLASH (trees)", 12.9, 1.5) == by_ranks(folder)["ranked"][0]
