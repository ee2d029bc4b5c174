"""A sweep as text, in a file: everything is there, and nothing is cut."""

from dataclasses import replace

import pytest

from builders.results import AT_HALF, AT_ONCE, SWEEP, TOO_MUCH
from intop.document.figures import figures_of
from intop.domain.stats import Interval
from intop.domain.sweep import Capacity, Knee
from intop.experiment.sweep.view import sweep_section
from intop.sentences import sweep_sentence
from kit.golden import Golden
from kit.printed import shown

pytestmark = pytest.mark.usefixtures("a_narrow_file")


def said(capsys: pytest.CaptureFixture[str], result: object) -> str:
    return " ".join(shown(capsys, sweep_section("x86 slt", result)).split())  # type: ignore[arg-type]


def test_every_arm_has_a_row_at_every_point(
    capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    golden(shown(capsys, sweep_section("x86 slt", SWEEP)))


def test_a_p99_of_few_requests_is_said_to_be_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert "fewer than 1,000: at 150 (600)." in said(capsys, SWEEP)
    enough = replace(SWEEP, points=(AT_HALF, AT_ONCE))
    assert "fewer than ten" not in said(capsys, enough)


def test_what_an_arm_carries_is_one_number(capsys: pytest.CaptureFixture[str]) -> None:
    result = replace(
        SWEEP,
        limit_ms=50.0,
        capacities=(
            Capacity(arm="default", rps=Interval(100, 90, 110), outside="", ratio=None),
            Capacity(
                arm="tuned",
                rps=Interval(138, 130, 146),
                outside="",
                ratio=Interval(1.38, 1.2, 1.58),
            ),
        ),
    )
    assert sweep_sentence(result).endswith("requests/s; tuned carries 38 % more (20 to 58)")
    message = (
        "tuned carries 138 (130 to 146) requests/s at P99 <= 50.0 ms: 38 % more (20 to 58) than"
    )
    assert message in said(capsys, result)
    slower = replace(result.capacities[1], ratio=Interval(0.8, 0.7, 0.9))
    assert "20 % less (10 to 30)" in sweep_sentence(replace(result, capacities=(slower,)))


@pytest.mark.parametrize(
    ("outside", "message"),
    [
        ("above", "carries more than 150 requests/s at"),
        ("below", "carries less than 50 requests/s at"),
        ("unclear", "carries a rate that these rounds don't agree on at"),
    ],
)
def test_a_capacity_outside_of_the_points_is_said_so(
    outside: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    one = Capacity(arm="tuned", rps=None, outside=outside, ratio=None)  # type: ignore[arg-type]
    assert message in said(capsys, replace(SWEEP, limit_ms=9.0, capacities=(one,)))


def test_a_closed_loop_is_named_as_such(capsys: pytest.CaptureFixture[str], golden: Golden) -> None:
    knee = Knee(arm="tuned", value=Interval(64, 60, 68))
    result = replace(SWEEP, axis="connections", loop="closed", knees=(knee,))
    golden(shown(capsys, sweep_section("x86 slt", result)))


def test_files_are_called_by_their_paths(capsys: pytest.CaptureFixture[str]) -> None:
    one, other = (
        replace(point, value=float(n), label=path, times=None)
        for n, (point, path) in enumerate(((AT_HALF, "/a.css"), (TOO_MUCH, "/b.jpg")), 1)
    )
    result = replace(SWEEP, axis="file", points=(one, other), knees=())
    assert sweep_sentence(result) == "with other files: tuned gain at /a.css, worse at /b.jpg"
    assert "/b.jpg tuned 900 (810 to 990) ms" in said(capsys, result)
    (drawing,) = figures_of(result, "x86 slt")
    assert "/a.css" in drawing.svg()


def test_a_sweep_without_a_winner_has_the_default_alone() -> None:
    points = tuple(replace(p, arms=p.arms[:1]) for p in SWEEP.points)
    alone = replace(SWEEP, arms=SWEEP.arms[:1], points=points)
    assert sweep_sentence(alone) == "at other rates: default alone"


@pytest.mark.parametrize("limit", [None, 50.0])
def test_a_figure_has_a_line_for_each_arm_in_each_panel(limit: float | None) -> None:
    (drawing,) = figures_of(replace(SWEEP, limit_ms=limit), "x86 slt")
    for figure in (drawing.figure, drawing.narrow):
        labels = [
            [line.get_label() for line in axes.get_lines() if str(line.get_label())[0] != "_"]
            for axes in figure.get_axes()
        ]
        assert labels == [["default", "tuned"]] * 4
    assert (limit is not None) == ('id="figure-x86-slt-sweep-rate-open-limit"' in drawing.svg())


def test_nothing_usable_has_no_figure() -> None:
    arms = tuple(replace(one, judged_ms=None) for one in AT_ONCE.arms)
    result = replace(SWEEP, points=(replace(AT_ONCE, arms=arms),))
    assert list(figures_of(result, "x86 slt")) == []
