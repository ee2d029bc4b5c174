"""How two checkouts' genetic algorithms are compared."""

from pathlib import Path

import pytest

from benchmarks import genetic
from benchmarks.genetic import Search
from benchmarks.harness import UnusableError, parser_of

CHECKOUT = """
import json, sys
def answer():
    for line in sys.stdin:
        print(json.dumps({"recorded": [int(line) + OFFSET, 0.5]}), flush=True)
"""


def checkout(folder: Path, source: str) -> Path:
    (folder / "benchmarks").mkdir(parents=True)
    (folder / "benchmarks" / "genetic.py").write_text(source)
    return folder


def measured(before: Path, seeds: int) -> dict[str, genetic.Both]:
    words = [str(before), f"--seeds={seeds}"]
    question = genetic.Genetic(parser_of("genetic", genetic.Genetic).parse_args(words))
    with question.bed():
        return {name: question.measure(seed) for name, seed in question.cells().items()}


def test_each_checkout_answers_every_seed_with_its_own_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, now = (
        checkout(tmp_path / str(offset), CHECKOUT.replace("OFFSET", str(offset)))
        for offset in (10, 20)
    )
    monkeypatch.setattr(genetic, "ROOT", now)
    old, new = genetic.by_case(measured(before, 3))
    assert {"recorded": [Search(n, 0.5) for n in (11, 12, 13)]} == old
    assert {"recorded": [Search(n, 0.5) for n in (21, 22, 23)]} == new
    genetic.write(tmp_path / "searches.csv", (1, 2, 3), old, new)
    lines = (tmp_path / "searches.csv").read_text().splitlines()
    assert lines[0] == "space,seed,checkout,lowest_ms,seconds"
    assert [lines[1], lines[-1]] == ["recorded,1,before,11,0.500", "recorded,3,now,23,0.500"]


@pytest.mark.long
def test_a_checkout_that_breaks_or_lacks_the_benchmark_is_named(tmp_path: Path) -> None:
    broken = checkout(tmp_path / "broken", "raise SystemExit('broken')")
    with pytest.raises(UnusableError, match="seed 1: a checkout's process ended"):
        measured(broken, 1)
    with pytest.raises(UnusableError, match="no checkout that has this benchmark"):
        measured(tmp_path, 1)


def test_a_higher_mean_or_more_than_twice_the_time_misses_a_bound() -> None:
    old = {"recorded": [Search(1.0, 1.0), Search(3.0, 1.0)]}
    same_mean = {"recorded": [Search(2.0, 2.0), Search(2.0, 1.9)]}
    assert list(genetic.missed(old, same_mean)) == []
    worse = {"recorded": [Search(1.0, 1.0), Search(3.1, 3.1)]}
    assert list(genetic.missed(old, worse)) == [
        "recorded: 2.0500 ms, before 2.0000 ms",
        "recorded: 2.050 s, before 1.000 s",
    ]


def test_the_table_counts_seeds_and_compares_means() -> None:
    old = {"recorded": [Search(1.0, 1.0), Search(3.0, 1.0), Search(2.0, 1.0)]}
    new = {"recorded": [Search(1.0, 1.5), Search(2.0, 1.5), Search(2.0, 1.5)]}
    *_, row = genetic.report(old, new)
    assert row == "| recorded | 3 | 2.0000 | 1.6667 | 2, 1, 0 | 1.000 | 1.500 | 1.50 |"
