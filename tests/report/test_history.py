from dataclasses import replace
from typing import Any

from builders.results import VERDICT
from builders.trials import CONDITIONS
from intop.domain.comparison import latency
from intop.report.history import history
from intop.report.history_result import Moment


def moment(campaign: int, *default_ms: float, **changes: Any) -> Moment:
    result = Moment(
        campaign=campaign,
        started_at=f"2026-01-0{campaign}T00:00:00+00:00",
        conditions=CONDITIONS,
        default=latency(default_ms, 0.95),
    )
    return replace(result, **changes)


def test_a_step_holds_the_later_campaign_against_the_earlier_one() -> None:
    tuned = latency((1.0, 1.1), 0.95)
    one = moment(1, 10.0, 11.0, tuned=tuned, verdict=VERDICT)
    two = moment(2, 20.0, 22.0, tuned=tuned, verdict=VERDICT)
    three = moment(3, 20.0, 22.0)
    result = history("lab", "x86", "slt", [one, two, three], level=0.95)
    first, second = result.steps
    assert first.default is not None
    assert (round(first.default.ratio.value, 9), first.default.outcome) == (2.0, "higher")
    assert first.tuned is not None
    assert first.tuned.outcome == "not separated"
    assert second.tuned is None


def test_another_load_is_not_contrasted_and_other_conditions_are_named() -> None:
    other = replace(CONDITIONS, kernel="6.1", link="10 Gbit/s")
    (step,) = history(
        "lab", "x86", "slt", [moment(1, 1, 2), moment(2, 1, 2, conditions=other)], level=0.95
    ).steps
    assert step.incomparable == (f"link: {CONDITIONS.link} against 10 Gbit/s",)
    assert step.changed == (f"kernel: {CONDITIONS.kernel} against 6.1",)
    assert step.default is None


def test_what_stands_for_the_default_must_be_the_same() -> None:
    two = moment(2, 1, 2, verdict=replace(VERDICT, against="web"))
    (step,) = history("lab", "x86", "slt", [moment(1, 1, 2), two], level=0.95).steps
    assert step.incomparable == ("default: default against web",)
