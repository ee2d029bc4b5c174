"""The guardrails of a study's file."""

from dataclasses import replace
from pathlib import Path

import pytest

from builders.config_files import AT_LEAST, CONFIGS, GOOD, edited, problems, study
from intop.domain.guardrails import NO_GUARDRAILS, Guardrails


def with_guardrails(lines: str) -> str:
    return edited("[workload.slt]", f"[guardrails]\n{lines}\n[workload.slt]")


def test_guardrails_have_defaults_and_can_be_moved_or_switched_off(tmp_path: Path) -> None:
    result = study(tmp_path, GOOD).guardrails
    assert Guardrails() == result
    assert tuple(vars(result).values()) == (
        *(1.1, 1.25, 0.99, 0.1, 0.1, 4.0, None, 5.0, 1.1, 64.0, 1.1),
    )
    text = with_guardrails("p50_times = 1.5\nrate_times = false\nmemory_mib = 0")
    changed = {"p50_times": 1.5, "rate_times": None, "memory_mib": 0.0}
    assert replace(Guardrails(), **changed) == study(tmp_path, text).guardrails
    names = Guardrails.__dataclass_fields__
    off = with_guardrails("\n".join(f"{name} = false" for name in names))
    assert study(tmp_path, off).guardrails == NO_GUARDRAILS


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("p50_times = 0.9", f"6: guardrails.p50_times: {AT_LEAST} 1 (got 0.9)"),
        ("p50_times = true", "6: guardrails.p50_times: must be a number, or false to switch it"),
        ('cpu_times = "10 %"', "6: guardrails.cpu_times: input should be a valid number"),
        ("rate_times = 1.1", "6: guardrails.rate_times: input should be less than or equal to 1"),
        ("rate_times = 0", "6: guardrails.rate_times: input should be greater than 0"),
        ("cpu_points = -1", f"6: guardrails.cpu_points: {AT_LEAST} 0"),
        ("error_points = 101", "6: guardrails.error_points: input should be less than or equal"),
        ("memory_mib = -1", f"6: guardrails.memory_mib: {AT_LEAST} 0"),
        ("memory_points = 1", "6: guardrails.memory_points: extra inputs are not permitted"),
    ],
)
def test_a_mistake_in_the_guardrails_has_its_place(
    tmp_path: Path, line: str, expected: str
) -> None:
    (result,) = problems(tmp_path, with_guardrails(line))
    assert result.startswith(f"study.toml:{expected}")


def test_the_example_says_the_guardrails_that_there_are(tmp_path: Path) -> None:
    text = (CONFIGS / "cluster.example.toml").read_text()
    _, _, shown = text.partition("# [guardrails]\n")
    lines = [line.removeprefix("# ") for line in shown.splitlines()]
    assert Guardrails() == study(tmp_path, with_guardrails("\n".join(lines))).guardrails
    assert all(f"\n# {name} = " in text for name in Guardrails.__dataclass_fields__)
