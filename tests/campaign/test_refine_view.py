"""A refinement as text."""

import math
from dataclasses import replace

import pytest

from intop.campaign.refine.view import refined
from intop.domain.configuration import Configuration
from intop.domain.refined import BestKnown, Refined, RefineStep
from kit.golden import Golden
from kit.printed import cells, shown

pytestmark = pytest.mark.usefixtures("a_narrow_file")
BEST = BestKnown(configuration=Configuration({"a": "1"}), judged_ms=20.25, trials=1)
STEP = RefineStep(
    number=1,
    reasons={"promise": 2, "uncertainty": 1, "replicate": 1},
    improvement=math.log(2),
    spent=4,
    failures=1,
    best=replace(BEST, judged_ms=12.5, trials=3),
)
FOUND = Refined(
    before=BEST,
    collected=20,
    steps=(STEP, replace(STEP, number=2, reasons={"promise": 4}, improvement=math.inf, spent=8)),
    ended="budget",
    budget=8,
    earlier=0,
    default_ms=90.0,
)


def test_every_step_with_its_reasons_and_what_it_came_to(
    capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    out = shown(capsys, refined("x86 slt", FOUND))
    golden(out)
    assert " ".join(cells(out, "first")) == "first design (20) - - - - 20.2 ms 1"
    assert " ".join(cells(out, "1")) == "1 2 1 1 1 12.5 ms 3 50.0 %"
    assert " ".join(cells(out, "2")) == "2 4 0 0 1 12.5 ms 3 -"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"ended": "nothing better expected", "improvement": 0.005}, "(the last step: 0.5 %)"),
        (
            {"ended": "nothing better expected", "improvement": 0.005, "least": 0.01},
            "(the last step: 0.5 %; worth its trials from 1.0 % on)",
        ),
        ({"ended": "nothing left", "steps": ()}, "no configuration left to measure"),
        ({"earlier": 42}, "42 trials of earlier campaigns helped to choose"),
    ],
)
def test_why_it_ended_and_what_helped(
    capsys: pytest.CaptureFixture[str], changes: dict[str, object], message: str
) -> None:
    out = shown(capsys, refined("x86 slt", replace(FOUND, **changes)))  # type: ignore[arg-type]
    assert message in " ".join(out.split())
