"""The best finalist, and what it is worth against the default or a baseline."""

import itertools
from dataclasses import replace
from typing import Any

import pytest

from builders.nginx_files import FACTS, conf
from builders.searched import QUICK, searched
from builders.testbeds import FakeTestbed, probe_of
from builders.trials import HOSTS, METRICS
from intop.campaign.verify import judge as verify
from intop.campaign.verify import pick
from intop.domain.configuration import DEFAULT, Configuration
from intop.domain.guardrails import NO_GUARDRAILS
from intop.domain.halves import KERNEL, NGINX
from intop.domain.nginx.probe import probed
from intop.domain.rounds import planned_arms
from intop.domain.sides import judged_pairs
from intop.domain.stats import paired_ratio
from intop.domain.trial import PlannedTrial, Trial
from intop.domain.verdict import Verdict
from intop.errors import BaselineError, IntopError, ResultMissingError
from intop.run.campaigns import new
from intop.run.context import Task
from intop.run.executor import execute
from intop.run.rounds import series_plan

SOMAXCONN, RMEM = "net.core.somaxconn", "net.ipv4.tcp_rmem"

# Judging ------------------------------------------------------------------------------------------


def judge(
    task: Task, origin: str, configuration: Configuration, against: str = "default"
) -> Verdict:
    """The judgement alone, of a finalist that was picked by hand."""
    picked = pick.Picked(origin=origin, configuration=configuration, trials=())
    return execute(verify.Judge(task, picked, against))


def test_a_verdict_may_have_longer_trials_than_the_campaign(testbed: FakeTestbed) -> None:
    task = with_budget(testbed, judge_duration_s=99)
    judge(task, "tuned", QUICK)
    assert {p.duration_s for p in task.store.plan(task.subject, "judge")} == {99}
    task = another_campaign(testbed)
    judge(task, "tuned", QUICK)
    assert {p.duration_s for p in task.store.plan(task.subject, "judge")} == {None}


def planned(
    testbed: FakeTestbed, against: str = "default", default: Configuration = DEFAULT
) -> list[PlannedTrial]:
    """What `judge` is going to plan, to say beforehand how trials end."""
    count = testbed.task.context.study.budget.judge_pairs
    return series_plan(testbed.task, "judge", {"tuned": QUICK, against: default}, count)


def with_budget(testbed: FakeTestbed, **changes: Any) -> Task:
    """The same task with another budget."""
    context = testbed.task.context
    study = replace(context.study, budget=replace(context.study.budget, **changes))
    return replace(testbed.task, context=replace(context, study=study))


def another_campaign(testbed: FakeTestbed) -> Task:
    """The same task in a campaign in which nothing is measured yet."""
    campaign = new(testbed.task.store, testbed.task.context.study)
    return replace(testbed.task, subject=replace(testbed.task.subject, campaign=campaign))


def unclear(testbed: FakeTestbed) -> None:
    """The tuned arm is now quicker than the default and now slower."""
    cycle = itertools.cycle((1_000, 25_000))
    testbed.latency = lambda p: 5_000 if p.configuration.is_default else next(cycle)


def test_a_clear_verdict_stops_at_the_first_look(testbed: FakeTestbed) -> None:
    testbed.p99_us[QUICK.digest] = 1_000
    assert verify.judged_latencies(testbed.task) is None
    verdict = judge(testbed.task, "tuned", QUICK)
    latencies = verify.judged_latencies(testbed.task)
    assert latencies is not None
    assert (len(latencies.default), len(latencies.tuned)) == (7, 7)
    assert (
        verdict.outcome,
        verdict.pairs,
        verdict.rounds,
        verdict.planned_rounds,
        verdict.looks,
    ) == ("gain", 7, 7, 10, 2)
    assert verdict.stopped_early
    assert list(range(14)) == testbed.measured
    assert len(testbed.task.store.plan(testbed.task.subject, "judge")) == 20
    assert "x86 slt: judge: clear after 7 of 10 rounds" in testbed.output.getvalue()
    assert verdict.sides is not None
    assert (verdict.sides.requests.default, verdict.sides.requests.tuned) == (700, 700)


def test_a_stopped_verdict_is_not_an_unfinished_one(testbed: FakeTestbed) -> None:
    testbed.p99_us[QUICK.digest] = 1_000
    first = judge(testbed.task, "tuned", QUICK)
    testbed.statuses = ["failed"] * 50
    assert first == judge(testbed.task, "tuned", QUICK)
    assert len(testbed.measured) == 14


def test_an_unclear_verdict_takes_all_pairs(testbed: FakeTestbed) -> None:
    unclear(testbed)
    verdict = judge(testbed.task, "tuned", QUICK)
    assert (
        verdict.outcome,
        verdict.pairs,
        verdict.rounds,
        verdict.stopped_early,
    ) == ("no significant gain", 10, 10, False)
    assert list(range(20)) == testbed.measured
    # The last look has what the first one left of the error rate, without the reserve.
    ratios = [5_000 / us for us in (1_000, 25_000) * 5]
    expected = paired_ratio(ratios, [1.0] * 10, level=0.97372)
    assert (expected.low, expected.high) == pytest.approx(
        (verdict.ratio_low, verdict.ratio_high), rel=0.01
    )


def test_one_look_is_the_plain_interval_of_all_pairs(testbed: FakeTestbed) -> None:
    testbed.p99_us[QUICK.digest] = 1_000
    assert judge(with_budget(testbed, judge_looks=1), "tuned", QUICK).pairs == 10


def with_cpu(testbed: FakeTestbed, *tuned: float) -> None:
    """The tuned arm is five times as quick and uses so much CPU, by round; the default 0.25."""
    testbed.p99_us[QUICK.digest] = 1_000
    trial = testbed.trial

    def busy(p: PlannedTrial, *rest: Any) -> Trial:
        result = trial(p, *rest)
        if p.configuration.is_default:
            return result
        cpu = tuned[((p.round or 1) - 1) % len(tuned)]
        return replace(result, metrics={**HOSTS, "lb": replace(METRICS, cpu=cpu)})

    testbed.trial = busy  # type: ignore[method-assign,assignment]


def test_a_gain_that_may_cost_too_much_takes_all_pairs(testbed: FakeTestbed) -> None:
    """On average 2.5 points more CPU, and so scattered that 5 are not excluded."""
    with_cpu(testbed, 0.2, 0.35)
    verdict = judge(testbed.task, "tuned", QUICK)
    assert (verdict.outcome, verdict.pairs, verdict.stopped_early) == ("gain, but", 10, False)
    assert [one.quantity for one in verdict.unclear] == ["CPU"]
    (cpu,) = verdict.unclear
    assert pytest.approx((cpu.margin, cpu.effect)) == (5.0, 2.5)
    assert verdict == testbed.task.store.get(testbed.task.subject, Verdict)


def test_a_gain_that_costs_too_much_is_none_and_clear(testbed: FakeTestbed) -> None:
    with_cpu(testbed, 0.4, 0.41)
    verdict = judge(testbed.task, "tuned", QUICK)
    assert (
        verdict.outcome,
        verdict.latency_outcome,
        verdict.pairs,
    ) == ("no gain: it costs", "gain", 7)
    assert [one.quantity for one in verdict.broken] == ["CPU"]


def test_the_studys_guardrails_are_those_that_count(testbed: FakeTestbed) -> None:
    with_cpu(testbed, 0.4, 0.41)
    context = testbed.task.context
    for changes, outcome in (
        ({"cpu_points": 20.0}, "gain"),
        ({"cpu_points": None, "cpu_times": None}, "gain"),
        ({"cpu_points": None}, "no gain: it costs"),  # 1.1 times 25 % is 2.5 points more
    ):
        margins = replace(context.study.guardrails, **changes)
        study = replace(context.study, guardrails=margins)
        task = replace(another_campaign(testbed), context=replace(context, study=study))
        assert outcome == judge(task, "tuned", QUICK).outcome
    study = replace(context.study, guardrails=NO_GUARDRAILS)
    task = replace(another_campaign(testbed), context=replace(context, study=study))
    assert judge(task, "tuned", QUICK).guardrails == ()


@pytest.mark.parametrize("clear", [True, False])
@pytest.mark.parametrize("killed_after", [1, 13, 14, 15, 19])
def test_a_killed_and_resumed_judging_comes_to_the_same_verdict(
    testbed: FakeTestbed, killed_after: int, clear: bool
) -> None:
    def latency(p: PlannedTrial) -> int:
        slow = 4_000 + 2_000 * ((p.round or 0) % 2)
        return slow if p.configuration.is_default else 500 if clear else 5_000

    testbed.latency = latency
    undisturbed = judge(testbed.task, "tuned", QUICK)
    assert clear == undisturbed.stopped_early
    measured, testbed.measured = testbed.measured, []

    testbed.task = another_campaign(testbed)
    testbed.dies_after = killed_after
    if killed_after < len(measured):
        with pytest.raises(KeyboardInterrupt):
            judge(testbed.task, "tuned", QUICK)
    testbed.dies_after = None
    assert undisturbed == judge(testbed.task, "tuned", QUICK)
    assert measured == testbed.measured


BACKLOG = "nginx:listen.backlog"


@pytest.fixture
def both_kinds(testbed: FakeTestbed) -> FakeTestbed:
    """A testbed whose study tunes sysctls and directives."""
    context = testbed.task.context
    study = replace(context.study, tunes=("kernel", "nginx"))
    task = testbed.task = replace(testbed.task, context=replace(context, study=study))
    probe = probe_of({"net.core.somaxconn": "128"})
    nginx = probed(study.directives, conf(), FACTS)
    task.store.put(task.subject, replace(probe, nginx=nginx))
    return testbed


def test_rounds_go_on_while_neither_half_is_clearly_where_a_gain_comes_from(
    both_kinds: FakeTestbed,
) -> None:
    both = Configuration({**QUICK.values, BACKLOG: "2000"})
    halves = {QUICK.digest, Configuration({BACKLOG: "2000"}).digest}

    def latency(p: PlannedTrial) -> int:
        noise = 10 * ((p.round or 0) % 3) + p.index % 2
        if p.configuration.digest in halves and (p.round or 0) % 2:
            return 1_000 + noise
        return (1_000 if p.configuration == both else 5_000) + noise

    both_kinds.latency = latency
    result = judge(both_kinds.task, "tuned", both)
    assert result.latency_outcome == "gain"
    assert result.halves is not None
    assert result.halves.is_attributed
    assert result.planned_rounds == result.rounds  # the gain itself is clear at the first look


def test_each_half_of_a_winner_of_both_kinds_is_measured_in_the_same_rounds(
    both_kinds: FakeTestbed,
) -> None:
    """Here neither gains anything without the other."""
    testbed, task = both_kinds, both_kinds.task
    both = Configuration({**QUICK.values, BACKLOG: "2000"})
    testbed.p99_us[both.digest] = 1_000
    testbed.latency = lambda p: (
        testbed.p99_us.get(p.configuration.digest, 5_000) + 10 * ((p.round or 0) % 3) + p.index % 2
    )
    result = judge(task, "tuned", both)
    plan = task.store.plan(task.subject, "judge")
    arms = {"default": DEFAULT, "tuned": both, KERNEL: QUICK}
    arms[NGINX] = Configuration({BACKLOG: "2000"})
    assert arms == planned_arms(plan)
    assert result.latency_outcome == "gain"
    assert result.halves is not None
    assert result.rounds == result.halves.rounds == result.pairs
    assert 4 * result.rounds == len(testbed.measured)
    assert result.halves.kernel.value == pytest.approx(1, rel=0.01)
    assert result.halves.nginx.value == pytest.approx(1, rel=0.01)
    assert result.halves.both.value == pytest.approx(result.ratio)
    assert result.halves.together.low > 4.9


def test_what_was_measured_beyond_a_look_is_never_left_out(testbed: FakeTestbed) -> None:
    testbed.p99_us[QUICK.digest] = 1_000
    judge(with_budget(testbed, judge_looks=1), "tuned", QUICK)
    assert judge(testbed.task, "tuned", QUICK).pairs == 10


def test_a_tuned_arm_that_fails_is_worse_and_needs_no_more_pairs(testbed: FakeTestbed) -> None:
    testbed.p99_us = {QUICK.digest: 1_000}
    made = planned(testbed)
    first = next(n for n, p in enumerate(made) if not p.configuration.is_default)
    testbed.statuses = ["failed" if n == first else "ok" for n in range(20)]
    verdict = judge(testbed.task, "tuned", QUICK)
    assert (
        verdict.pairs,
        verdict.rounds,
        verdict.failures,
        verdict.outcome,
    ) == (6, 7, 1, "worse")
    assert pytest.approx(verdict.ratio, rel=0.01) == 5


def test_a_default_that_fails_is_due_again_also_at_a_look(testbed: FakeTestbed) -> None:
    testbed.p99_us = {QUICK.digest: 1_000}
    made = planned(testbed)
    last = max(n for n, p in enumerate(made[:14]) if p.configuration.is_default)
    testbed.statuses = ["failed" if n == last else "ok" for n in range(last + 1)]
    with pytest.raises(BaselineError):
        judge(testbed.task, "tuned", QUICK)
    verdict = judge(testbed.task, "tuned", QUICK)
    assert (verdict.pairs, verdict.rounds, verdict.failures) == (7, 7, 0)


def test_a_default_that_fails_throughout_gives_no_verdict(testbed: FakeTestbed) -> None:
    searched(testbed)
    baseline = Configuration({"net.ipv4.tcp_fin_timeout": "30", "net.core.somaxconn": "65535"})
    made = planned(testbed, "openeuler-25.09", baseline)
    testbed.statuses = ["failed" if p.arm == "openeuler-25.09" else "ok" for p in made]
    with pytest.raises(
        IntopError, match="only 0 pairs could be measured, a verdict needs two: because"
    ):
        judge(testbed.task, "tuned", QUICK, "openeuler-25.09")


# Further pairs ------------------------------------------------------------------------------------


def noisy(testbed: FakeTestbed, gain: float) -> None:
    """The tuned arm is so many times as quick, which the first ten pairs don't tell from nothing.

    Each pair scatters by itself, and further ones hardly do.
    """

    def latency(p: PlannedTrial) -> int:
        if p.configuration.is_default:
            return 5_000
        spread = (0.4, 2.5) if (p.round or 0) <= 10 else (0.98, 1.02)
        return round(5_000 / gain * spread[(p.round or 0) % 2])

    testbed.latency = latency
    searched(testbed)


def test_further_pairs_decide_what_ten_pairs_did_not(testbed: FakeTestbed) -> None:
    noisy(testbed, 2.0)
    first = verify.verify(testbed.task)
    assert (first.outcome, first.pairs) == ("undecided", 10)
    assert first.further is not None
    count = len(testbed.measured)
    verdict = verify.verify_more(testbed.task, 20)
    assert (verdict.outcome, verdict.pairs, verdict.rounds) == ("gain", 30, 30)
    assert len(testbed.measured) == count + 40
    assert verdict.further is None
    assert verdict == testbed.task.store.get(testbed.task.subject, Verdict)
    assert [look.pairs for look in verdict.earlier] == [7, 10]
    assert verdict.earlier[1].ratio == first.interval
    assert verdict.looks == 3
    # What is clear is left alone, and a plain verify says the same.
    assert verdict == verify.verify_more(testbed.task, 20)
    assert verdict == verify.verify(testbed.task)
    assert len(testbed.measured) == count + 40
    assert "the verdict is clear, so nothing is measured: gain" in testbed.output.getvalue()


def test_further_pairs_have_the_level_that_was_kept_for_them(testbed: FakeTestbed) -> None:
    noisy(testbed, 1.1)
    verify.verify(testbed.task)
    for looks, pairs in ((3, 15), (4, 20)):
        verdict = verify.verify_more(testbed.task, 5)
        level = 1 - 0.05 * 0.2 * 0.5 ** (looks - 2)
        assert (verdict.pairs, verdict.looks, len(verdict.earlier)) == (pairs, looks, looks - 1)
        default, tuned = judged_pairs(testbed.task.trials("judge"), verdict)
        p99s = ([t.judged_ms for t in side] for side in (default, tuned))
        assert verdict.interval == paired_ratio(*p99s, level=level)


@pytest.mark.parametrize("killed_after", [0, 1, 7, 9])
@pytest.mark.parametrize("resumed_by", ["the same", "another number", "verify"])
def test_killed_and_resumed_further_pairs_come_to_the_same_verdict(
    testbed: FakeTestbed, killed_after: int, resumed_by: str
) -> None:
    noisy(testbed, 1.5)
    verify.verify(testbed.task)
    undisturbed = verify.verify_more(testbed.task, 5)
    measured, testbed.measured = testbed.measured, []

    testbed.task = another_campaign(testbed)
    searched(testbed)
    verify.verify(testbed.task)
    testbed.dies_after = len(testbed.measured) + killed_after
    with pytest.raises(KeyboardInterrupt):
        verify.verify_more(testbed.task, 5)
    testbed.dies_after = None
    before = testbed.task.store.get(testbed.task.subject, Verdict)
    assert before is not None
    assert len(judged_pairs(testbed.task.trials("judge"), before)[0]) == 10
    if resumed_by == "verify":
        assert undisturbed == verify.verify(testbed.task)
    else:
        pairs = 5 if resumed_by == "the same" else 8
        assert undisturbed == verify.verify_more(testbed.task, pairs)
        message = "5 further pairs were begun, and are measured first"
        assert (pairs == 8) == (message in testbed.output.getvalue())
    assert measured == testbed.measured


def test_a_verdict_that_is_not_clear_goes_on_by_itself(testbed: FakeTestbed) -> None:
    noisy(testbed, 2.0)
    verdict = verify.verify(with_budget(testbed, judge_more=20))
    assert (verdict.outcome, verdict.further) == ("gain", None)
    assert 10 < verdict.pairs <= 30
    assert [look.pairs for look in verdict.earlier][:2] == [7, 10]


def test_further_pairs_end_with_the_budget(testbed: FakeTestbed) -> None:
    noisy(testbed, 1.1)
    verdict = verify.verify(with_budget(testbed, judge_more=8))
    assert (verdict.outcome, verdict.pairs) == ("undecided", 18)
    assert verdict.further is not None


@pytest.mark.parametrize(
    ("busy", "pairs"),
    [
        ((0.23, 0.26, 0.33), 21),  # some 2 points more CPU, with a scatter of 4.4
        ((0.23, 0.30, 0.37), 10),  # 5 points, the margin itself
    ],
)
def test_a_guardrail_takes_further_pairs_only_where_they_may_settle_it(
    testbed: FakeTestbed, busy: tuple[float, ...], pairs: int
) -> None:
    searched(testbed)
    with_cpu(testbed, *busy)
    testbed.latency = lambda p: 5_000 if p.configuration.is_default else 1_000
    verdict = verify.verify(with_budget(testbed, judge_more=12))
    assert (verdict.is_gain, verdict.pairs) == (True, pairs)


def test_a_clear_verdict_takes_no_further_pairs(testbed: FakeTestbed) -> None:
    searched(testbed)
    assert verify.verify(with_budget(testbed, judge_more=20)).pairs <= 10


@pytest.mark.parametrize("killed_after", [15, 20, 23])
def test_a_killed_verdict_goes_on_with_its_further_pairs(
    testbed: FakeTestbed, killed_after: int
) -> None:
    noisy(testbed, 1.1)
    task = with_budget(testbed, judge_more=8)
    testbed.dies_after = len(testbed.measured) + killed_after
    with pytest.raises(KeyboardInterrupt):
        verify.verify(task)
    testbed.dies_after = None
    assert verify.verify(task).pairs == 18


def test_there_is_nothing_to_go_on_with_before_a_verdict(testbed: FakeTestbed) -> None:
    searched(testbed)
    with pytest.raises(ResultMissingError, match="no verdict yet"):
        verify.verify_more(testbed.task, 5)


def test_a_gain_that_is_excluded_asks_for_no_pairs(testbed: FakeTestbed) -> None:
    testbed.latency = lambda p: 5_000 + 10 * ((p.round or 0) % 3) + p.index % 2
    searched(testbed)
    verdict = verify.verify(testbed.task)
    assert (verdict.outcome, verdict.further) == ("no significant gain", None)
