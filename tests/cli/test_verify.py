"""`intop verify`: what is printed, on which stream, and with which exit code."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest

from benchmarks.campaign import measured
from builders.results import COSTLY, DOUBTED, VERDICT
from builders.testbeds import FakeTestbed
from builders.trials import search
from intop.campaign.sentinels import with_sentinels
from intop.command.running import exit_by
from intop.domain.configuration import Configuration
from intop.domain.search import Candidate
from intop.domain.trial import PlannedTrial
from intop.domain.verdict import Verdict
from intop.errors import UsageError

Call = Callable[..., tuple[int, str, str]]
NO_GAIN = replace(VERDICT, ratio_low=0.9)
WORSE = replace(VERDICT, ratio=0.5, ratio_low=0.4, ratio_high=0.6)


@pytest.mark.parametrize(
    ("verdicts", "code", "noticed"),
    [
        ([VERDICT], 0, False),
        ([DOUBTED], 0, True),
        ([COSTLY], 3, False),
        ([NO_GAIN], 3, False),
        ([WORSE, COSTLY], 3, False),
        ([COSTLY, DOUBTED], 0, True),
    ],
)
def test_a_gain_in_doubt_is_0_with_a_notice_and_one_that_costs_is_3(
    capsys: pytest.CaptureFixture[str], verdicts: list[Verdict], code: int, noticed: bool
) -> None:
    result = {f"x86 {n}": verdict for n, verdict in enumerate(verdicts)}
    if code:
        with pytest.raises(SystemExit) as ended:
            exit_by(result)
        assert code == ended.value.code
    else:
        exit_by(result)
    out, message = capsys.readouterr()
    assert out == ""
    assert noticed == ("gain, but CPU may be higher by up to 8 points" in message)


@pytest.fixture
def verify(testbed: FakeTestbed, on_testbed: Call, quick: Configuration) -> Call:
    """The command, on a task whose trials are made up and whose one candidate is quick."""
    task = testbed.task
    configurations = [Configuration({"net.core.somaxconn": str(n)}) for n in (1, 2)]
    measured(task, "collect", with_sentinels(configurations, 2))
    result = Candidate(configuration=quick, predicted_ms=1.0, model="ensemble")
    task.store.put(task.subject, search(candidates=(result,)))
    return partial(on_testbed, "verify")


def test_a_verdict_is_measured_once(verify: Call, testbed: FakeTestbed) -> None:
    code, out, _ = verify()
    assert code == 0
    assert "x86 slt: gain: P99 is 5.0" in out
    count = len(testbed.measured)
    assert (0, out) == verify()[:2]
    assert count == len(testbed.measured)


def test_an_undecided_verdict_ends_with_what_decides_it(verify: Call, testbed: FakeTestbed) -> None:
    def latency(p: PlannedTrial) -> int:
        spread = (0.4, 2.5) if (p.round or 0) <= 10 else (0.98, 1.02)
        return 5_000 if p.arm == "default" else round(2_500 * spread[(p.round or 0) % 2])

    testbed.latency = latency
    code, out, _ = verify()
    sentence = " ".join(out.split())
    assert code == 3
    assert "x86 slt: undecided, more pairs would tell (ratio 2.0" in sentence
    (pairs,) = re.findall(r"some (\d+) more pairs, \d+ minutes?: intop verify --more \1 ", sentence)
    code, out, _ = verify("--more", pairs)
    assert code == 0
    assert "x86 slt: gain: P99 is 2.0" in out
    assert "after 10 pairs; the intervals of all looks hold together" in " ".join(out.split())
    # What is clear is left alone.
    assert (0, out) == verify("--more", pairs)[:2]


def test_json_has_guardrails_and_both_sides(verify: Call) -> None:
    result = json.loads(verify("--json")[1])
    assert list(result) == ["x86 slt"]
    assert (
        result["x86 slt"]["outcome"],
        result["x86 slt"]["guardrails"][0]["state"],
    ) == ("gain", "kept")
    # A hundred requests in each of seven trials.
    assert result["x86 slt"]["sides"]["untold"].keys() == {"P99", "P99.9"}
    assert result["x86 slt"]["sides"]["latencies_ms"]["P99"]["default"] is None
    assert result["x86 slt"]["default_ms"] is not None


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--more", "3", "--default", "ubuntu-18.04"), "--more goes on with the verdict's own two"),
        (("--more", "3", "--dry-run"), "^3 further pairs .*leave --dry-run out"),
    ],
)
def test_what_does_not_go_together_is_said(
    verify: Call, words: tuple[str, ...], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        verify(*words)
