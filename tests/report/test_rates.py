"""A sweep over rates as text, in a file: everything is there, and nothing is cut."""

from dataclasses import replace

import pytest

from intop.report.rates import rates, sentence
from printed import cells, shown
from samples import AT_HALF, AT_ONCE, SWEEP, TOO_MUCH

pytestmark = pytest.mark.usefixtures("a_narrow_file")


def test_every_rate_has_a_row(capsys: pytest.CaptureFixture[str]) -> None:
    out = shown(capsys, rates("x86 slt", SWEEP))
    assert "x86 slt: at other rates: 0.5 times gain, 1 times gain, 1.5 times worse" in out
    half = " ".join(cells(out, "0.5 times "))
    assert "0.5 times 50.0 40.0 ms 20.0 ms 2.00 (1.50 to 2.50) 50.0 50.0" == half
    said = " ".join(out.split())
    assert "1.5 times 150 40.0 ms 900 ms 0.05 (0.01 to 0.20) 100 120" in said
    assert "5 rounds with each rate once on both sides" in said


def test_what_fails_is_named_by_side(capsys: pytest.CaptureFixture[str]) -> None:
    both = replace(TOO_MUCH, default=replace(TOO_MUCH.default, overloaded=4))
    said = " ".join(shown(capsys, rates("x", replace(SWEEP, rates=(both,)))).split())
    failures = "default: 4 of 5 overloaded; tuned: 2 of 5 overloaded, 1 of 5 failed"
    assert f"1.5 times: {failures}" in said


def test_a_p99_of_few_requests_is_said_to_be_one(capsys: pytest.CaptureFixture[str]) -> None:
    said = " ".join(shown(capsys, rates("x", SWEEP)).split())
    assert "fewer than ten slower requests" in said
    assert "fewer than 1,000: at 1.5 times the rate 600." in said
    enough = replace(SWEEP, rates=(AT_HALF, AT_ONCE))
    assert "fewer than ten" not in " ".join(shown(capsys, rates("x", enough)).split())


def test_what_was_not_measured_is_no_number(capsys: pytest.CaptureFixture[str]) -> None:
    gone = replace(AT_ONCE.default, p99_ms=None, achieved_rps=None, failed=5)
    one = replace(
        AT_ONCE, default=gone, tuned=gone, ratio=None, pairs=0, fewest_requests=None, times=2.0
    )
    found = replace(SWEEP, rates=(one,), against="ubuntu-18.04")
    assert "at other rates: 2 times not measured" == sentence(found)
    out = shown(capsys, rates("x", found))
    assert "2 times 100 - - - - -" in " ".join(out.split())
    assert "2 times: ubuntu-18.04: 5 of 5 failed; tuned: 5 of 5 failed" in out
