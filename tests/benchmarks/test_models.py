"""The benchmark of models: the protocol, what it keeps, and what it calls missed."""

from itertools import product
from pathlib import Path

import numpy as np
import pytest

from benchmarks import models
from benchmarks.harness import ask
from benchmarks.models import Job, Outcome
from intop.learn.families import FAMILIES

FEW = ("SVR", "Blend")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A table of 32 rows with splits of 10 and 16, one without, and errors of both."""
    folder = tmp_path / "data" / "prediction"
    (folder / "splits").mkdir(parents=True)
    rows = [
        [*options, 7, 10 + 5 * options[0] + 3 * options[1] * options[2]]
        for options in product((0, 1), repeat=5)
    ]
    lines = ["a,b,c,d,e,same,PERF", *(",".join(map(str, row)) for row in rows)]
    for name in ("Split", "Drawn"):
        (folder / f"{name}.csv").write_text("\n".join(lines))
    rng = np.random.default_rng(1)
    runs = [[*rng.permutation(32)[:10], *rng.permutation(32)[:16]] for _ in range(3)]
    splits = [[10] * 10 + [16] * 16, *runs]
    text = "\n".join(",".join(f"{float(n):.3e}" for n in row) for row in splits)
    (folder / "splits" / "Split_training_index.csv").write_text(text)
    (folder / "published.csv").write_text(
        "\ufeffsystem,n,method,mre,ci95,source\n"
        "Split,10,RF,90,1,x\nSplit,16,RF,80,1,x\nSplit,16,DeepPerf,70,1,x\nDrawn,12,RF,0.0,1,x\n"
    )
    return tmp_path / "data"


@pytest.fixture
def folder(data: Path) -> Path:
    return data / "prediction"


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two quick families, tried with their defaults alone."""
    monkeypatch.setattr(models, "FAMILIES", {name: FAMILIES[name] for name in FEW})
    monkeypatch.setattr(models, "TRIES", dict.fromkeys(FEW, 1))


def run(data: Path, *options: str) -> str:
    results = f"--results={data / 'results.json'}"
    return str(ask("models", models.Models, [str(data), "--jobs=1", results, *options]) or "")


@pytest.mark.long
@pytest.mark.usefixtures("few")
def test_prints_ours_beside_theirs_and_goes_on_where_it_stopped(
    data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    missed = run(data, "--seeds=2")
    assert "Drawn" in missed
    assert "not below RF's 0" in missed
    assert "Split" not in missed
    printed, progress = capsys.readouterr()
    assert "| Split | 16 | **" in printed
    assert "| 80 | - | 70 | - | - |" in printed
    assert "| Split | 10 |" not in printed
    assert "[4/4]" in progress
    monkeypatch.setattr(models, "one_family", None)
    run(data, "--seeds=2")
    assert (printed, "") == capsys.readouterr()


def test_every_family_has_a_number_of_tries() -> None:
    assert list(models.TRIES) == list(FAMILIES)


@pytest.mark.usefixtures("few")
def test_what_is_selected_knows_nothing_of_the_other_rows(folder: Path) -> None:
    samples = models.table(folder, "Split")
    (job,) = models.jobs(folder, "Split", 16, range(1), len(samples))
    changed = models.Samples(
        variables=samples.variables,
        values=samples.values,
        measured=tuple(m if n in job.rows else (99.0,) for n, m in enumerate(samples.measured)),
    )
    one, other = models.done(job, samples), models.done(job, changed)
    for family in FEW:
        assert one[family].inner_score == other[family].inner_score
        assert one[family].mre < 30 < other[family].mre


def test_a_table_is_read_without_what_never_changes(folder: Path) -> None:
    samples = models.table(folder, "Split")
    assert list("abcde") == [v.name for v in samples.variables]
    assert (len(samples), samples.measured[0]) == (32, (10.0,))


def test_splits_are_the_published_ones_or_drawn_by_seed(folder: Path) -> None:
    split = list(models.jobs(folder, "Split", 10, range(3), 32))
    assert [len(set(job.rows)) for job in split] == [10] * 3
    assert split != list(models.jobs(folder, "Split", 16, range(3), 32))
    drawn = list(models.jobs(folder, "Drawn", 12, range(2), 32))
    assert drawn == list(models.jobs(folder, "Drawn", 12, range(2), 32))
    assert drawn[0].rows != drawn[1].rows


def outcomes(good: float, other: float) -> dict[str, Outcome]:
    """The better one over inner folds, and another."""
    return {"Blend": Outcome(0.1, good, 1.0), "SVR": Outcome(0.2, other, 1.0)}


def test_rf_and_decart_have_to_be_beaten_and_deepperf_reached_but_once() -> None:
    plan = [Job(name, size, 0, ()) for name in "ABC" for size in (5, 9)]
    results = {job.name: outcomes(2.0, 0.1) for job in plan}
    bounds = {(name, size): {"RF": 3.0, "DeepPerf": 2.0} for name in "ABC" for size in (5, 9)}
    assert not models.missed(plan, results, bounds)
    assert not models.missed(plan, results, {**bounds, ("A", 5): {"RF": 1.0}})
    assert not models.missed(plan, results, {**bounds, ("A", 9): {"DeepPerf": 1.0}})
    behind = {("A", 9): {"DeepPerf": 1.0}, ("B", 9): {"DeepPerf": 1.9}}
    assert len(models.missed(plan, results, {**bounds, **behind})) == 2
    assert models.missed(plan, results, {**bounds, ("C", 9): {"DECART": 2.0}}) == [
        "C: 2 is not below DECART's 2"
    ]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("Split.csv", None, "No such file or directory; DATA is the folder with prediction/"),
        ("Split.csv", "a,PERF\n1,2\n1,x", "line 3: could not convert string to float: 'x'"),
        ("Split.csv", "a,PERF\n1,2\n1", "line 3: 1 columns, not 2"),
        ("Split.csv", "a,PERF\n1,2\n2,0", "every value of the target must be a positive number"),
        ("Split.csv", "", "no rows"),
        ("published.csv", None, "No such file or directory; DATA is the folder with prediction/"),
        ("published.csv", "x,y\n1,2", "not as expected: 'system'"),
        ("splits/Split_training_index.csv", "16\n1", "no 30 runs of 16 rows; it has 1 runs"),
    ],
)
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
    assert output.startswith(str(folder / name))
    assert output.endswith(message)
    assert "\n" not in output


def test_other_systems_are_named(data: Path) -> None:
    assert run(data, "--systems", "Nothing") == "no published errors of Nothing"
