"""The harness of benchmarks: what it keeps, what it refuses, and how it ends."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from benchmarks import harness
from benchmarks.__main__ import QUESTIONS, main, question
from benchmarks.harness import Question, UnusableError, ask


class Squares(Question[int, list[float]]):
    seeds = 2
    result = list[float]
    fixed = ("power",)

    @classmethod
    def options(cls, parser) -> None:
        parser.add_argument("--power", type=int, default=2)

    def cells(self) -> dict[str, int]:
        return {f"of {seed}": seed for seed in self.seed_range()}

    def measure(self, cell: int) -> list[float]:
        if cell == 4:
            raise UnusableError("there is no 4")
        if cell == 5:
            raise KeyboardInterrupt
        return [float(cell**self.given.power), float("inf")]

    def table(self, results: Mapping[str, list[float]]) -> Iterator[str]:
        yield from (f"{name}: {value:g} {ever:g}" for name, (value, ever) in results.items())

    def missed(self, results: Mapping[str, list[float]]) -> list[str]:
        return [f"{name} is 9" for name, (value, _) in results.items() if value == 9]


@pytest.fixture
def results(tmp_path: Path) -> str:
    return f"--results={tmp_path / 'new' / 'results.json'}"


def test_results_are_kept_and_measured_once(
    results: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ask("squares", Squares, [results]) is None
    printed, progress = capsys.readouterr()
    assert printed.endswith("\n\nof 1: 1 inf\nof 2: 4 inf\n")
    assert f"| command | `python -m benchmarks squares {results}` |" in printed
    assert progress == "[1/2] of 1\n[2/2] of 2\n"
    monkeypatch.setattr(Squares, "measure", None)
    assert ask("squares", Squares, [results]) is None
    assert (printed, "") == capsys.readouterr()


def test_a_claim_that_is_missed_is_the_message_that_ends_it(results: str) -> None:
    output = ask("squares", Squares, [results, "--start=3", "--seeds=1"])
    assert output == "not as it should be: of 3 is 9"


@pytest.mark.parametrize(("start", "output"), [("3", "there is no 4"), ("5", "stopped; the same")])
def test_what_was_measured_before_an_end_is_kept(
    start: str, output: str, results: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ask("squares", Squares, [results, "--seeds=1"])
    assert str(ask("squares", Squares, [results, f"--start={start}"])).startswith(output)
    stored = json.loads((tmp_path / "new" / "results.json").read_text())
    assert ["of 1", *(["of 3"] if start == "3" else [])] == list(stored["results"])


@pytest.mark.parametrize("stored", ['{"settings": {}, "results": {}}', "[]", "{"])
def test_results_of_other_code_are_not_mixed_in(stored: str, tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    path.write_text(stored)
    output = str(ask("squares", Squares, [f"--results={path}"]))
    assert output.startswith(str(path))
    assert "delete it, or name another" in output
    assert stored == path.read_text()


def test_results_with_other_options_are_not_mixed_in(results: str) -> None:
    assert ask("squares", Squares, [results]) is None
    assert "of other code, versions or options" in str(
        ask("squares", Squares, [results, "--power=3"])
    )


@pytest.mark.parametrize("name", QUESTIONS)
def test_every_question_says_what_it_asks(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([name, "--help"])
    assert ended.value.code == 0
    assert f"usage: python -m benchmarks {name}" in capsys.readouterr().out
    assert str(question(name).__doc__).endswith((".", "?"))


def test_questions_are_listed() -> None:
    assert "verdicts-aa, verdicts-planted" in str(main([]))
    assert "verdicts-aa, verdicts-planted" in str(main(["nothing"]))


def test_a_checkout_without_git_has_no_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(harness, "ROOT", tmp_path)
    assert harness.commit() == "unknown"
