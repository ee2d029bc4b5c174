"""A soak as text and as a figure."""

from dataclasses import replace

import pytest

from builders.results import SOAK, SOAK_BLOCK
from intop.document.figures import figures_of
from intop.domain.soak import Limits
from intop.domain.stats import Interval
from intop.sentences import soak_sentence
from intop.soak.view import soak
from kit.printed import shown

pytestmark = pytest.mark.usefixtures("a_narrow_file")


def said(capsys: pytest.CaptureFixture[str], result: object) -> str:
    return " ".join(shown(capsys, soak("x86 slt", result)).split())  # type: ignore[arg-type]


def test_the_verdict_and_what_it_rests_on_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    out = said(capsys, SOAK)
    assert "no leak, nginx's memory +0.10 (-0.20 to +0.40) MiB an hour" in out
    assert "lb has nothing of intop applied (default). Load: 50 requests/s in blocks of 60 s" in out
    assert "no load for 0.45 s on average: load 99.27 % of the time" in out
    assert "over time: 5 blocks of 60 s in each row" in out
    assert "interruption" not in out
    assert "longer soak" not in out


def test_leaks_limits_interruptions_and_changes_are_told(
    capsys: pytest.CaptureFixture[str],
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
    out = said(capsys, result)
    assert "Ended after 4 blocks of 60" in out
    assert "lb has x86 slt of study lab, campaign 3, since" in out
    assert "1 interruption of more than 10 s" in out
    assert "were started 2 times meanwhile" in out
    assert "Not as in the first block: kernel: 6.1 against 6.2." in out
    assert "1 overloaded" in out


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


def test_what_is_not_known_asks_for_a_longer_soak(capsys: pytest.CaptureFixture[str]) -> None:
    memory = replace(SOAK.trends[0], per_hour=Interval(4.0, -3.0, 11.0))
    out = said(capsys, replace(SOAK, trends=(memory, *SOAK.trends[1:])))
    assert "whether there is a leak is not known" in out
    assert "a longer soak can tell: --hours" in out


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
