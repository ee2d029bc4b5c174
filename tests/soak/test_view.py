"""A soak as text and as a figure."""

from dataclasses import replace

import pytest

from builders.results import SOAK, SOAK_BLOCK
from intop.document.figures import figures_of
from intop.domain.soak import Limits
from intop.domain.stats import Interval
from intop.sentences import soak_sentence
from intop.soak.view import soak
from kit.golden import Golden
from kit.printed import shown

pytestmark = pytest.mark.usefixtures("a_narrow_file")


def test_the_verdict_and_what_it_rests_on_are_told(
    capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    golden(shown(capsys, soak("x86 slt", SOAK)))


def test_leaks_limits_interruptions_and_changes_are_told(
    capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    memory = replace(SOAK.trends[0], per_hour=Interval(20.0, 19.0, 21.0))
    bad = replace(SOAK_BLOCK, status="overloaded", p99_ms=90.0)
    result = replace(
        SOAK,
        applied="x86 slt of study lab, campaign 3, since 2026-11-25T00:00:00Z",
        trends=(memory, *SOAK.trends[1:]),
        blocks=(SOAK_BLOCK, bad, bad, bad),
        broken="P99",
        interruptions=1,
        restarts=2,
        changed=("kernel: 6.1 against 6.2",),
    )
    assert "ended early, P99 above 80.0 ms in 3 blocks in a row; leak" in soak_sentence(result)
    golden(shown(capsys, soak("x86 slt", result)))


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        ("errors", "more than 1 % of requests failed in 3 blocks in a row"),
        ("memory", "nginx's memory above 100 MiB in 3 blocks in a row"),
        ("no answers", "no request was answered in 3 blocks in a row"),
    ],
)
def test_each_limit_has_its_words(broken: str, message: str) -> None:
    limits = Limits(errors=0.01, memory_mib=100.0)
    assert message in soak_sentence(replace(SOAK, broken=broken, limits=limits))  # type: ignore[arg-type]


def test_what_is_not_known_asks_for_a_longer_soak(
    capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    memory = replace(SOAK.trends[0], per_hour=Interval(4.0, -3.0, 11.0))
    golden(shown(capsys, soak("x86 slt", replace(SOAK, trends=(memory, *SOAK.trends[1:])))))


def test_it_is_drawn_over_time() -> None:
    (drawing,) = figures_of(SOAK, "x86 slt")
    svg = drawing.svg()
    assert drawing.name == "x86-slt-soak"
    assert all(f"line-{name}" in svg for name in ("P99", "P50", "reached", "TIME_WAIT"))
    assert "minutes since the first block" in svg
    assert "limit" in svg
    # Where nobody could read nginx, and some blocks failed.
    gap = replace(SOAK_BLOCK, p99_ms=None, p50_ms=None, achieved_rps=None)
    none = [replace(b, nginx_memory_mib=None, nginx_files=None) for b in (SOAK_BLOCK, gap)]
    (drawing,) = figures_of(replace(SOAK, blocks=tuple(none)), "x86 slt")
    assert "line-of nginx" not in drawing.svg()
    assert list(figures_of(replace(SOAK, blocks=(gap,)), "x86 slt")) == []
