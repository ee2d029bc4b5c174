"""What mechanisms bring of a gain, with a testbed that says what each trial comes to."""

from dataclasses import replace
from typing import Any

import pytest

from builders import results as findings
from builders.testbeds import FakeTestbed, probe_of
from intop.causes.stage import MediationRequest, mediate
from intop.domain.causes import Causes
from intop.domain.configuration import Configuration
from intop.domain.mediation import BlockedMechanism, Mediation
from intop.domain.trial import PlannedTrial
from intop.domain.verdict import Verdict
from intop.errors import UsageError

IDLE, SYNACKS = "net.ipv4.tcp_slow_start_after_idle", "net.ipv4.tcp_synack_retries"
FIN, SOMAXCONN = "net.ipv4.tcp_fin_timeout", "net.core.somaxconn"
OWN = {IDLE: "1", FIN: "60", SOMAXCONN: "4096", SYNACKS: "5"}
WINNER = {FIN: "30", SOMAXCONN: "8192"}
NAMED = "slow-start-after-idle"
ROUNDS = 5


def verdict_of(*mechanisms: str, winner: dict[str, str] = WINNER) -> Verdict:
    """A gain that names these mechanisms."""
    (cause, *_) = findings.CAUSES.mechanisms
    result = tuple(replace(cause, mechanism=name, eased=True) for name in mechanisms)
    causes: Causes = replace(findings.CAUSES, mechanisms=result)
    return replace(findings.VERDICT, configuration=Configuration(winner), causes=causes)


@pytest.fixture(name="ready")
def _ready(testbed: FakeTestbed) -> FakeTestbed:
    """Idle connections cost half of the time, unless fin_timeout is low; somaxconn gains 2."""

    def latency(planned: PlannedTrial) -> int:
        values = {**OWN, **planned.configuration.values}
        us = 80_000.0
        if values[SOMAXCONN] != OWN[SOMAXCONN]:
            us /= 2
        if values[FIN] != OWN[FIN] or values[IDLE] == "0":
            us /= 2
        return round(us * (1 + 0.01 * (planned.index * 7 % 5)))

    testbed.latency = latency
    task = testbed.task
    task.store.put(task.subject, probe_of(OWN))
    return testbed


def measured(testbed: FakeTestbed, verdict: Verdict, *blocks: BlockedMechanism) -> Mediation:
    testbed.task.store.put(testbed.task.subject, verdict)
    result = mediate(testbed.task, MediationRequest(blocks=blocks, rounds=ROUNDS))
    assert isinstance(result, Mediation)
    return result


def test_a_mechanism_is_taken_away_by_a_key_that_the_winner_does_not_change(
    ready: FakeTestbed,
) -> None:
    result = measured(ready, verdict_of(NAMED))
    (one,) = result.mechanisms
    assert (one.block.values, one.own) == ({IDLE: "0"}, ())
    assert one.gain is not None
    assert one.left is not None
    assert one.share is not None
    message = (one.gain.value, one.left.value, one.share.value)
    assert pytest.approx(message, rel=0.05) == (4.0, 2.0, 0.5)
    assert one.share.low < 0.5 < one.share.high
    assert (one.rounds, len(ready.measured)) == (ROUNDS, 4 * ROUNDS)
    assert result == ready.task.store.get(ready.task.subject, Mediation)


def test_where_only_the_winners_own_key_takes_it_away_that_is_told(ready: FakeTestbed) -> None:
    (one,) = measured(ready, verdict_of("accept-queue")).mechanisms
    assert one.own == (SOMAXCONN,)


def test_a_key_that_the_winner_names_and_leaves_at_its_default_is_not_its_own(
    ready: FakeTestbed,
) -> None:
    (one,) = measured(ready, verdict_of(NAMED, winner={**WINNER, IDLE: "1"})).mechanisms
    assert one.own == ()


def test_a_mechanism_that_nothing_takes_away_is_named_with_the_reason(ready: FakeTestbed) -> None:
    # Its own change is all that the winner has, so the sides would be the same.
    verdict = verdict_of("slow-start-after-idle", "congestion", "reordering", winner={IDLE: "0"})
    result = measured(ready, verdict)
    assert (result.mechanisms, ready.measured) == ((), [])
    assert "what the winner does" in result.untold["slow-start-after-idle"]
    assert "not offered here" in result.untold["congestion"]
    assert "no value is known" in result.untold["reordering"]


def test_a_verdict_without_a_known_mechanism_measures_nothing(ready: FakeTestbed) -> None:
    result = measured(ready, verdict_of())
    assert (result.mechanisms, result.untold, ready.measured) == ((), {}, [])


def test_a_user_names_what_takes_it_away(ready: FakeTestbed) -> None:
    block = BlockedMechanism(mechanism="reordering", values={SYNACKS: "3"})
    (one,) = measured(ready, verdict_of("reordering"), block).mechanisms
    assert one.share is not None
    assert pytest.approx(one.share.value, abs=0.1) == 0.0


@pytest.mark.parametrize(
    ("mechanism", "values", "message"),
    [
        ("rto", {IDLE: "0"}, f"--block rto: the verdict does not name it; it names {NAMED}"),
        (NAMED, {"vm.swappiness": "1"}, "vm.swappiness can't be tuned here"),
        (NAMED, {SYNACKS: "many"}, f"{SYNACKS} is malformed: 'many' is not 1 whole number"),
        (NAMED, {IDLE: "7"}, f"{IDLE} is not offered: '7' is none of 0, 1"),
    ],
)
def test_blocks_that_can_not_be_are_refused(
    ready: FakeTestbed, mechanism: str, values: dict[str, str], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        measured(ready, verdict_of(NAMED), BlockedMechanism(mechanism=mechanism, values=values))


def test_one_that_was_killed_goes_on_and_other_blocks_are_measured_anew(ready: FakeTestbed) -> None:
    verdict = verdict_of(NAMED)
    ready.dies_after = 7
    with pytest.raises(KeyboardInterrupt):
        measured(ready, verdict)
    ready.dies_after = None
    measured(ready, verdict)
    assert list(range(4 * ROUNDS)) == sorted(ready.measured)
    measured(ready, verdict, BlockedMechanism(mechanism=NAMED, values={SYNACKS: "3"}))
    assert len(ready.measured) == 8 * ROUNDS
    assert "other blocks or rounds than before are measured anew" in ready.output.getvalue()


def test_what_fails_is_told(ready: FakeTestbed, monkeypatch: pytest.MonkeyPatch) -> None:
    trial = ready.trial

    def failing(planned: PlannedTrial, *rest: Any) -> Any:
        ready.statuses = ["failed" if "without" in planned.arm else "ok"]
        return trial(planned, *rest)

    monkeypatch.setattr(ready, "trial", failing)
    (one,) = measured(ready, verdict_of(NAMED)).mechanisms
    assert (one.left, one.share, one.rounds) == (None, None, 0)


def test_a_verdict_that_is_no_gain_is_returned(ready: FakeTestbed) -> None:
    verdict = replace(verdict_of(NAMED), ratio_low=0.9)
    ready.task.store.put(ready.task.subject, verdict)
    assert verdict == mediate(ready.task, MediationRequest())
