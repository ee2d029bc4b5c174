"""The winner at other rates, with a testbed that says what each trial comes to."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

import samples
from fakes import FakeTestbed, probe_of
from intop.domain.configuration import DEFAULT, Configuration
from intop.domain.rate_sweep import RateSweep
from intop.domain.trial import PlannedTrial, Trial
from intop.errors import IncomparableError, UsageError
from intop.run.comparability import check_same
from intop.stages.rates import AtRates, at_rates, rounds_of
from samples import CONDITIONS

QUICK = Configuration({"net.core.somaxconn": "64"})
VERDICT = replace(samples.VERDICT, configuration=QUICK)
RATE = 150  # of the lab's study


def planned(testbed: FakeTestbed) -> list[PlannedTrial]:
    return testbed.task.store.plan(testbed.task.subject, "rates")


def outcomes(found: RateSweep) -> dict[float, str]:
    return {one.times: one.outcome for one in found.rates}


def killed(testbed: FakeTestbed, times: Sequence[float], after: int) -> None:
    testbed.dies_after = after
    with pytest.raises(KeyboardInterrupt):
        at_rates(testbed.task, VERDICT, times)
    testbed.dies_after = None


@pytest.mark.parametrize(("pairs", "rounds"), [(3, 4), (8, 4), (9, 5), (10, 5), (20, 10)])
def test_each_rate_has_half_of_the_judges_rounds_but_four(pairs: int, rounds: int) -> None:
    assert rounds == rounds_of(pairs)


def test_every_rate_is_measured_on_both_sides_once_a_round(testbed: FakeTestbed) -> None:
    found = at_rates(testbed.task, VERDICT, (0.5, 1.0, 1.5))
    plan = planned(testbed)
    assert (5, 30) == (found.rounds, len(plan))
    orders = []
    for number in range(5):
        of_round = plan[6 * number : 6 * number + 6]
        assert {(number + 1, 1)} == {(p.round, p.series) for p in of_round}
        orders.append([(p.rate_rps, p.arm) for p in of_round])
        assert {
            (rate, arm, configuration.digest)
            for rate in (75.0, 150.0, 225.0)
            for arm, configuration in (("default", DEFAULT), ("tuned", QUICK))
        } == {(p.rate_rps, p.arm, p.configuration.digest) for p in of_round}
    assert 1 < len({tuple(order) for order in orders})
    assert found == testbed.task.store.get(testbed.task.subject, RateSweep)


def test_at_each_rate_the_sides_have_p99_gain_rate_and_failures(testbed: FakeTestbed) -> None:
    """Good at the workload's rate, worse above it, where the tuned side also fails twice."""

    def latency(p: PlannedTrial) -> int:
        assert p.rate_rps is not None
        tuned = 6_000 if p.rate_rps > RATE else 1_000
        return 2_000 if p.configuration.is_default else tuned

    testbed.latency = latency
    trial = testbed.trial

    def measured(p: PlannedTrial, *rest: Any) -> Trial:
        too_much = p.arm == "tuned" and p.rate_rps == 225.0 and (p.round or 0) <= 2
        testbed.statuses = ["failed" if too_much else "ok"]
        return trial(p, *rest)

    testbed.trial = measured  # type: ignore[method-assign,assignment]
    found = at_rates(testbed.task, VERDICT, (0.5, 1.0, 1.5))
    assert {0.5: "gain", 1.0: "gain", 1.5: "worse"} == outcomes(found)
    half, _, more = found.rates
    assert (75.0, 5, 5, 0) == (half.rate_rps, half.pairs, half.tuned.trials, half.tuned.failed)
    assert half.ratio is not None
    assert (2.0, 2.0, 1.0) == pytest.approx(
        (half.ratio.ratio, half.default.p99_ms, half.tuned.p99_ms), rel=0.01
    )
    assert (3, 5, 2, 0) == (more.pairs, more.tuned.trials, more.tuned.failed, more.default.failed)


def test_a_default_that_fails_at_a_rate_is_a_result(testbed: FakeTestbed) -> None:
    trial = testbed.trial

    def measured(p: PlannedTrial, *rest: Any) -> Trial:
        testbed.statuses = ["failed" if p.rate_rps == 300.0 else "ok"]
        return trial(p, *rest)

    testbed.trial = measured  # type: ignore[method-assign,assignment]
    found = at_rates(testbed.task, VERDICT, (1.0, 2.0))
    assert {1.0: "no significant gain", 2.0: "not measured"} == outcomes(found)
    assert (5, None) == (found.rates[1].default.failed, found.rates[1].default.p99_ms)
    # Asked again, nothing is tried again.
    count = len(testbed.measured)
    assert found == at_rates(testbed.task, VERDICT, (1.0, 2.0))
    assert count == len(testbed.measured)


def test_killed_it_goes_on_and_other_rates_are_a_new_series(testbed: FakeTestbed) -> None:
    killed(testbed, (0.5, 1.0), after=7)
    found = at_rates(testbed.task, VERDICT, (0.5, 1.0))
    assert list(range(20)) == testbed.measured
    assert found == at_rates(testbed.task, VERDICT, (0.5, 1.0))
    assert 20 == len(testbed.measured)

    other = at_rates(testbed.task, VERDICT, (0.5, 2.0))
    assert {0.5, 2.0} == outcomes(other).keys()
    assert list(range(40)) == testbed.measured
    assert [1, 2] == sorted({p.series for p in planned(testbed)})
    assert "other rates or rounds than before are measured anew" in testbed.told.getvalue()
    assert other == testbed.task.store.get(testbed.task.subject, RateSweep)
    # More rounds are no continuation either: all of them are interleaved.
    assert 6 == at_rates(testbed.task, VERDICT, (0.5, 2.0), 6).rounds
    assert 64 == len(testbed.measured)


def test_a_verdict_against_a_baseline_has_that_beside_the_winner(testbed: FakeTestbed) -> None:
    probe = probe_of({"net.ipv4.tcp_fin_timeout": "60", "net.core.somaxconn": "4096"})
    testbed.task.store.put(testbed.task.subject, probe)
    against = replace(VERDICT, against="openeuler-25.09")
    found = at_rates(testbed.task, against, (1.0,))
    assert "openeuler-25.09" == found.reference
    arms = {p.arm: p.configuration for p in planned(testbed)}
    assert {"tuned", "openeuler-25.09"} == arms.keys()
    assert "30" == arms["openeuler-25.09"].values["net.ipv4.tcp_fin_timeout"]


def test_a_rate_at_which_connections_would_idle_too_long_is_refused(testbed: FakeTestbed) -> None:
    slow = replace(testbed.task.workload, rate_rps=10.0, connections=64, timeout_s=10)
    with pytest.raises(UsageError, match=r"at 1 requests/s 64 connections are idle for longer"):
        AtRates(replace(testbed.task, workload=slow), VERDICT, (0.1,))
    assert [] == testbed.measured


def test_which_rate_is_measured_is_said(testbed: FakeTestbed) -> None:
    at_rates(testbed.task, VERDICT, (0.5,))
    assert "at 75 requests/s: P99 5.0 ms" in testbed.told.getvalue()


def test_trials_at_other_rates_do_not_keep_others_from_being_measured(
    testbed: FakeTestbed,
) -> None:
    """The rate is a condition: what comes after the sweep has the workload's again."""
    task = testbed.task
    collected = replace(samples.trial(), conditions=replace(CONDITIONS, rate_rps=RATE))
    task.store.write_plan(task.subject, "collect", [collected.planned])
    task.store.add(task.subject, collected)
    probe = probe_of({"net.core.somaxconn": "4096"})
    task.store.put(task.subject, probe)
    trial = testbed.trial

    def measured(p: PlannedTrial, *rest: Any) -> Trial:
        conditions = replace(CONDITIONS, rate_rps=p.rate_rps or RATE)
        return replace(trial(p, *rest), conditions=conditions)

    testbed.trial = measured  # type: ignore[method-assign,assignment]
    at_rates(task, VERDICT, (0.5,))
    name = collected.replica
    check_same(task, collected.conditions, probe, probe, name)
    other = replace(CONDITIONS, rate_rps=75.0)
    with pytest.raises(IncomparableError, match=r"rate_rps: 150.* against 75"):
        check_same(task, other, probe, probe, name)
