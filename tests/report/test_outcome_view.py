"""The end of tune, as it is printed."""

from dataclasses import replace

import pytest

from builders.results import COSTLY, VERDICT
from builders.trials import ranking, search, training
from intop.campaign.tune import Tuned
from intop.domain.configuration import Configuration
from intop.domain.verdict import Verdict
from intop.report.outcome_view import outcome
from kit.golden import Golden
from kit.printed import shown

pytestmark = pytest.mark.usefixtures("a_narrow_file")

MANY = replace(
    VERDICT, configuration=Configuration({f"net.ipv4.tcp_k{n}": str(n) for n in range(5)})
)
NOTHING = replace(VERDICT, ratio=1.02, ratio_low=0.97, ratio_high=1.08)


def tuned(arch: str, workload: str, verdict: Verdict) -> Tuned:
    return Tuned(
        arch=arch,
        workload=workload,
        ranking=ranking(),
        refined=None,
        training=training(),
        search=search(),
        verdict=verdict,
        explanation=None,
    )


def test_each_cell_has_its_verdict_its_parameters_and_what_else_differs(
    capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    cells = [
        tuned("x86", "slt", VERDICT),
        tuned("x86", "dlt", MANY),
        tuned("arm", "slt", NOTHING),
        tuned("arm", "dlt", COSTLY),
    ]
    text = shown(capsys, *outcome(cells))
    golden(text)
    assert len(text.splitlines()) <= 24


def test_without_a_gain_there_is_no_next_step(capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, *outcome([tuned("x86", "slt", NOTHING)]))
    assert "intop plan" not in text
    assert "intop compare" not in text
