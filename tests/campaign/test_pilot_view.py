"""A pilot as text."""

from dataclasses import replace

import pytest

from intop.campaign.pilot.view import pilot, sentence
from intop.domain.pilot import Pilot, TriedDuration
from kit.golden import Golden
from kit.printed import cells, shown

pytestmark = pytest.mark.usefixtures("a_narrow_file")
SHORT = TriedDuration(
    duration_s=2,
    requests=300,
    trials=5,
    judged_ms=80.25,
    sd=0.5,
    sd_low=0.3,
    sd_high=1.44,
    resolution=1.76,
    resolution_low=1.4,
    resolution_high=1e9,
    pairs_needed=None,
    seconds=2.25,
)
LONG = replace(
    SHORT, duration_s=7, requests=1050, resolution=1.2, pairs_needed=8, seconds=7.25, sd=0.15
)
FOUND = Pilot(
    duration_s=7,
    tried=(SHORT, LONG),
    reached=True,
    stalled=False,
    wanted=1.25,
    pairs=10,
    level=0.95,
)


def test_every_duration_with_what_it_tells(
    capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    out = shown(capsys, pilot("x86 slt", replace(FOUND, given_s=2)))
    golden(out)
    assert " ".join(cells(out, "2 s")) == (
        "2 s 5 x 300 80.2 ms 0.50 (0.30 to 1.44) 1.76 (1.40 to > 100) > 1000 2.2 s in the file"
    )
    assert cells(out, "7 s")[-4:] == ["8", "7.2", "s", "chosen"]


def test_one_that_found_what_it_looked_for() -> None:
    assert (
        sentence(FOUND) == "trials of 7 s, of which 10 pairs tell a ratio of 1.20 (asked for: 1.25)"
    )


def test_one_that_did_not_says_why_and_what_would_do() -> None:
    missed = replace(FOUND, reached=False)
    assert sentence(missed).startswith(
        "no duration tells a ratio of 1.25 in 10 pairs (up to 7 s); trials of 7 s take the least"
    )
    assert "and 8 would tell 1.25 (judge_pairs)" in sentence(missed)
    assert "(longer trials scattered no less)" in sentence(replace(missed, stalled=True))


def test_it_says_how_many_requests_a_connection_carries(
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = shown(capsys, pilot("x86 slt", replace(FOUND, connections=64)))
    assert "A connection carries 16.4 requests in a trial of 7 s." in out
    few = " ".join(shown(capsys, pilot("x86 slt", replace(FOUND, connections=700))).split())
    assert "1.5 requests in a trial of 7 s, so parameters of congestion control" in few
