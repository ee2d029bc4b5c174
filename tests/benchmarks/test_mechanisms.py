"""Planted mechanisms: the cases are of what there is, and the table says what is right."""

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import mechanisms
from benchmarks.harness import ask
from benchmarks.mechanisms import CASES, Case, Mechanisms, row
from builders.results import CAUSES, VERDICT
from intop.config.catalogue import load_catalogue
from intop.config.counters import load_counters
from intop.config.study import load_study
from intop.domain.cluster import LabSpec, native_arch
from intop.resources import shipped

CONFIGS = shipped("configs")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.mechanism)
def test_cases_are_of_what_there_is(case: Case) -> None:
    assert case.mechanism in load_counters(CONFIGS / "counters.toml").mechanisms
    keys = {p.key for p in load_catalogue(CONFIGS / "parameters.toml").parameters}
    assert case.eased.keys() <= keys
    study = load_study(CONFIGS / "scenarios" / f"{case.scenario}.toml")
    assert isinstance(study.clusters[native_arch()][0], LabSpec)


def test_the_first_that_is_named_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class OnItsLab:
        def __init__(self, case: Case, seed: int) -> None: ...
        def __enter__(self) -> None: ...
        def __exit__(self, *_: object) -> None: ...

    monkeypatch.setattr(mechanisms, "on_its_lab", OnItsLab)
    result = [replace(VERDICT, causes=causes) for causes in (CAUSES, CAUSES, None, CAUSES)]
    monkeypatch.setattr(mechanisms, "verdict_on", lambda *_: result.pop(0))
    names = [case.mechanism for case in CASES[:2]]
    results = f"--results={tmp_path / 'results.json'}"
    assert ask("mechanisms", Mechanisms, [*names, "--equal=2", results]) is None
    printed = capsys.readouterr().out
    assert printed.endswith("Right: 1 of 2. Named where nothing differs: 1 of 2.\n")
    assert row("syn-backlog", replace(VERDICT, causes=CAUSES)) == (
        "| syn-backlog | 3.10 (2.20 to 4.40) | syn-backlog | "
        "TcpExt.ListenDrops 51.2 to 0 a trial | none |"
    )
