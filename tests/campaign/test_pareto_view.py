"""A front as text."""

from dataclasses import replace

import pytest

from intop.campaign.search.tradeoff import (
    Front,
    FrontPoint,
    LearnedObjective,
    MeasuredPoint,
    Tradeoff,
)
from intop.campaign.search.view import MOST_ROWS, tradeoff
from intop.domain.configuration import DEFAULT, Configuration
from kit.golden import Golden
from kit.printed import cells, shown

pytestmark = pytest.mark.usefixtures("a_narrow_file")
KEY = "net.core.somaxconn"
P99 = LearnedObjective(
    name="p99",
    mape=52.34,
    r2=0.5,
    spearman=0.6,
    configurations=30,
    measured_low=10.0,
    measured_high=200.0,
)
CPU = replace(P99, name="cpu", mape=8.0, r2=-0.3, measured_low=0.1, measured_high=0.2)
RATE = replace(P99, name="throughput", r2=0.0, measured_low=149.0, measured_high=150.0)


def found(*others: LearnedObjective, points: int = 3, knee: int = 1) -> Tradeoff:
    rest = (0.125,) * len(others)
    return Tradeoff(
        front=Front(
            objectives=(P99, *others),
            points=tuple(
                FrontPoint(
                    configuration=Configuration({KEY: str(64 + n)}), predicted=(20.0 + n, *rest)
                )
                for n in range(points)
            ),
            knee=knee,
            default=FrontPoint(configuration=DEFAULT, predicted=(97.0, *rest)),
            generations=40,
            converged_at=25,
            seconds=1.25,
        ),
        measured=(MeasuredPoint(configuration=DEFAULT, measured=(101.5, *rest)),),
        rate_rps=150.0,
    )


def test_a_front_is_told_as_predicted_with_its_errors(
    capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    out = shown(capsys, tradeoff("x86 slt", found(CPU)))
    golden(out)
    assert cells(out, "P99")[:6] == ["P99", "lower", "52.3", "%", "0.50", "0.60"]
    assert cells(out, "2 ") == ["2", "21.0", "ms", "12.50", "%", "←", "knee"]
    assert cells(out, "default") == ["default", "97.0", "ms", "12.50", "%"]
    assert cells(out, "predicted") == ["predicted", "P99", "predicted", "balancer's", "CPU"]
    # What was measured of a configuration has no place beside it.


def test_an_objective_that_does_not_vary_is_named(
    capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    out = shown(capsys, tradeoff("x86 slt", found(RATE)))
    golden(out)
    assert "may differ" not in shown(capsys, tradeoff("x86 slt", found(RATE, CPU)))


def test_a_long_front_is_shown_from_end_to_end_with_its_knee(
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = shown(capsys, tradeoff("x86 slt", found(CPU, points=100, knee=57)))
    rows = [line.split() for line in out.splitlines() if " ms " in line and " to " not in line]
    numbers = [int(row[0]) for row in rows if row[0] != "default"]
    assert {1, 58, 100} <= set(numbers)
    assert len(numbers) <= MOST_ROWS
    assert numbers == sorted(set(numbers))
    assert "The front has 100 configurations" in out


def test_where_there_is_no_choice_that_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    out = shown(capsys, tradeoff("x86 slt", found(CPU, points=1, knee=0)))
    assert "One configuration is predicted best in every objective" in out
