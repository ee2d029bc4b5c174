"""A contest as text in a file, and as JSON."""

import json
from dataclasses import replace
from typing import Any

import pytest

from intop.document.machine import to_json
from intop.document.text import show
from intop.domain.configuration import DEFAULT, Configuration
from intop.domain.multi_arm import Contest, Contestant
from intop.domain.stats import Interval
from intop.experiment.contest.stage import contest_section
from kit.golden import Golden

NAMESPACE = "belongs to the whole machine, and this host is only a namespace of it"


def contestant(**changes: Any) -> Contestant:
    values: dict[str, Any] = {
        "name": "ubuntu-18.04",
        "title": "Ubuntu 18.04",
        "configuration": Configuration({"net.core.somaxconn": "128"}),
        "keys": 9,
        "already": 1,
        "left_out": {
            "net.ipv4.tcp_syncookies": "on the deny list: one reason",
            "kernel.sysrq": "on the deny list: another reason",
            **{f"vm.key{n}": NAMESPACE for n in range(5)},
        },
        "judged_ms": Interval(80.0, 70.0, 90.0),
        "ratio": Interval(1.25, 1.1, 1.4),
    }
    return Contestant(**(values | changes))


HOST = contestant(
    name="default",
    title="the host's own values",
    configuration=DEFAULT,
    keys=0,
    already=0,
    left_out={},
    is_reference=True,
    judged_ms=Interval(100.0, 90.0, 110.0),
    ratio=None,
)
SAME = contestant(name="same", same_as="default", configuration=DEFAULT, judged_ms=None, ratio=None)
REFUSED = contestant(name="refused", failures=5, detail="lb: no", judged_ms=None, ratio=None)
TUNED = contestant(name="tuned", keys=1, already=0, left_out={})
FOUND = Contest(
    contestants=(HOST, contestant(), SAME, REFUSED, TUNED),
    reference="default",
    rounds=5,
    level=0.95,
    ratio_level=0.9875,
)


@pytest.fixture
def out(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("COLUMNS", "200")
    show(contest_section("x86 slt", FOUND))
    return capsys.readouterr().out


def row(out: str, name: str) -> str:
    return " ".join(next(line for line in out.splitlines() if line.startswith(f"  {name}")).split())


def test_every_contestant_has_a_row(out: str) -> None:
    assert "x86 slt: contest, 5 interleaved rounds" in out
    assert row(out, "default") == "default - 100.0 ms (90.0 to 110.0) - reference"
    assert (
        row(out, "ubuntu") == "ubuntu-18.04 1 of 9 80.0 ms (70.0 to 90.0) 1.25 (1.10 to 1.40) gain"
    )
    assert row(out, "same") == "same 0 of 9 - - same as default"
    assert row(out, "refused") == "refused 1 of 9 - - failed"


def test_the_levels_of_the_intervals_are_said(out: str, golden: Golden) -> None:
    golden(out)


def test_what_is_left_out_is_told_by_kind_of_reason(out: str, golden: Golden) -> None:
    (line,) = [line for line in out.splitlines() if line.startswith("ubuntu-18.04 (")]
    assert line.startswith("ubuntu-18.04 (Ubuntu 18.04): 1 of 9 so already; left out 2 (on the ")
    golden(out)


def test_why_a_contestant_failed_is_told(out: str) -> None:
    assert "refused: 5 trials failed: lb: no" in out


def test_one_comparison_needs_no_correction(capsys: pytest.CaptureFixture[str]) -> None:
    show(contest_section("x", replace(FOUND, contestants=(HOST, contestant()), ratio_level=0.95)))
    assert "Bonferroni" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("changes", "outcome"),
    [
        ({}, "gain"),
        ({"ratio": Interval(1.2, 1.0, 1.4)}, "no significant gain"),
        ({"ratio": Interval(0.5, 0.4, 0.9)}, "worse"),
        ({"failures": 1}, "worse"),
        ({"ratio": None}, "not measured"),
        ({"ratio": None, "failures": 3}, "failed"),
    ],
)
def test_outcomes(changes: dict[str, Any], outcome: str) -> None:
    assert outcome == contestant(**changes).outcome


def test_programs_get_outcomes_and_reasons() -> None:
    result = json.loads(to_json(FOUND))
    assert [c["outcome"] for c in result["contestants"]] == [
        "reference",
        "gain",
        "same as default",
        "failed",
        "gain",
    ]
    assert result["contestants"][1]["judged_ms"] == {"value": 80.0, "low": 70.0, "high": 90.0}
    assert result["contestants"][1]["left_out"]["vm.key0"] == NAMESPACE
