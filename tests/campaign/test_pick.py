"""Picking the best finalist, and the verdict from the finalists on."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.campaign import measured
from builders.searched import QUICK, configurations, probe_with, searched
from builders.testbeds import FakeTestbed
from builders.trials import model_error, search, training
from intop.campaign.verify import judge as verify
from intop.campaign.verify import pick
from intop.domain.configuration import DEFAULT, Configuration
from intop.domain.search import Candidate, Search
from intop.domain.trial import PlannedTrial
from intop.domain.verdict import Verdict
from intop.errors import UsageError
from intop.learn import active
from intop.run.rounds import series_plan

SOMAXCONN, RMEM = "net.core.somaxconn", "net.ipv4.tcp_rmem"


def test_the_best_finalist_is_one_that_never_failed(testbed: FakeTestbed) -> None:
    quick, slow = configurations(2)
    arms = {"quick": quick, "slow": slow, "default": DEFAULT}
    made = series_plan(testbed.task, "pick", arms, 2)
    testbed.p99_us = {quick.digest: 1_000, slow.digest: 2_000}
    picked = measured(testbed.task, "pick", made)
    assert ("quick", quick) == pick.best_finalist(testbed.task, picked)
    quicks = [p.arm == "quick" for p in made]
    testbed.statuses = ["failed" if mine else "ok" for mine in quicks]
    failing = measured(testbed.task, "judge", made)
    assert ("slow", slow) == pick.best_finalist(testbed.task, failing)


def test_a_disturbed_trial_does_not_count_against_its_finalist(testbed: FakeTestbed) -> None:
    quick, slow = configurations(2)
    made = series_plan(testbed.task, "pick", {"quick": quick, "slow": slow, "default": DEFAULT}, 2)
    testbed.p99_us = {quick.digest: 1_000, slow.digest: 2_000}
    retries = testbed.task.context.study.budget.retries
    first = next(p for p in made if p.arm == "quick")
    testbed.statuses = ["disturbed" if planned == first else "ok" for planned in made]
    testbed.statuses += ["disturbed"] * retries
    picked = measured(testbed.task, "pick", made)
    assert "disturbed" in {t.status for t in picked}
    assert ("quick", quick) == pick.best_finalist(testbed.task, picked)


def with_winners(testbed: FakeTestbed, **winners: Configuration) -> None:
    """The same search, with the winners of models."""
    task = testbed.task
    result = task.store.get(task.subject, Search)
    assert result is not None
    made = tuple(
        Candidate(configuration=configuration, predicted_ms=1.0, model=model)
        for model, configuration in winners.items()
    )
    task.store.put(task.subject, replace(result, winners=made))


def test_the_models_own_winners_are_finalists_and_one_configuration_is_measured_once(
    testbed: FakeTestbed,
) -> None:
    searched(testbed)
    one, other = configurations(9)[7:]
    with_winners(testbed, RFR=one, CatBoost=QUICK, LightGBM=one, XGBoost=other)
    finalists = pick.finalists(testbed.task, 1)
    assert {"candidate 1": QUICK, "RFR": one, "XGBoost": other} == finalists


def large_and_small(testbed: FakeTestbed, keys: int) -> list[PlannedTrial]:
    """A plan of four rounds with a finalist of three keys, and one with so many of them."""
    large = Configuration(
        {SOMAXCONN: "8192", RMEM: "4096 16384 33554432", "net.ipv4.tcp_fin_timeout": "30"}
    )
    small = Configuration(dict(itertools.islice(large.values.items(), keys)))
    return series_plan(testbed.task, "pick", {"large": large, "small": small}, 4)


@pytest.mark.parametrize(
    ("keys", "small_us", "name"),
    [(1, 5_300, "small"), (1, 8_000, "large"), (2, 5_300, "large"), (2, 4_000, "small")],
)
def test_half_of_the_keys_are_preferred_where_nothing_tells_them_from_the_best(
    testbed: FakeTestbed, keys: int, small_us: int, name: str
) -> None:
    plan = large_and_small(testbed, keys)
    spread = itertools.cycle((0.9, 1.0, 1.1, 1.2))
    testbed.latency = lambda p: round(next(spread) * 5_000) if p.arm == "large" else small_us
    picked = measured(testbed.task, "pick", plan)
    assert pick.best_finalist(testbed.task, picked)[0] == name


def test_few_keys_that_are_worse_in_each_round_are_told_from_the_best(
    testbed: FakeTestbed,
) -> None:
    """Rounds scatter by a third, and all of their arms with them."""
    plan = large_and_small(testbed, 1)
    spread = {1: 0.7, 2: 1.0, 3: 1.4, 4: 1.0}
    each = {"large": 5_000, "small": 5_400}
    testbed.latency = lambda p: round(spread[p.round or 0] * each[p.arm])
    picked = measured(testbed.task, "pick", plan)
    assert pick.best_finalist(testbed.task, picked)[0] == "large"


def test_a_verdict_says_what_the_models_own_winners_were_worth(testbed: FakeTestbed) -> None:
    searched(testbed)
    one, other = configurations(9)[7:]
    with_winners(testbed, RFR=one, CatBoost=QUICK, XGBoost=other)
    testbed.p99_us |= {one.digest: 2_500, other.digest: 5_000}
    verdict = verify.verify(testbed.task)
    assert verdict.models is not None
    rounds = testbed.task.context.study.budget.pick_rounds
    assert [("RFR", "RFR", rounds), ("CatBoost", "candidate 1", rounds)] == [
        (m.model, m.arm, m.rounds) for m in verdict.models.models
    ][:2]
    ratios = [m.ratio.value for m in verdict.models.models if m.ratio]
    assert pytest.approx(ratios, rel=0.01) == [2, 5, 1]
    assert verdict.models.mean is not None
    assert pytest.approx(verdict.models.mean.value, rel=0.01) == 10 ** (1 / 3)
    assert verdict.models.best is not None
    assert (verdict.models.best.model, verdict.configuration) == ("CatBoost", QUICK)
    assert verdict == testbed.task.store.get(testbed.task.subject, Verdict)


def test_a_models_own_winner_may_be_picked(testbed: FakeTestbed) -> None:
    searched(testbed)
    (one,) = configurations(9)[8:]
    with_winners(testbed, XGBoost=one)
    testbed.p99_us[one.digest] = 500
    verdict = verify.verify(testbed.task)
    assert ("XGBoost", one) == (verdict.origin, verdict.configuration)
    assert pytest.approx(verdict.ratio, rel=0.01) == 10


def test_a_pick_that_was_planned_without_the_winners_goes_on_without_them(
    testbed: FakeTestbed,
) -> None:
    searched(testbed)
    plan = series_plan(testbed.task, "pick", {"candidate 1": QUICK, "default": DEFAULT}, 3)
    testbed.task.store.write_plan(testbed.task.subject, "pick", plan)
    with_winners(testbed, XGBoost=configurations(9)[8])
    assert verify.verify(testbed.task).models is None


def test_a_verdict_is_against_the_hosts_own_values(testbed: FakeTestbed) -> None:
    searched(testbed)
    verdict = verify.verify(testbed.task)
    assert (verdict.against, verdict.configuration) == ("", QUICK)
    assert pytest.approx(verdict.ratio, rel=0.01) == 5


def test_a_verdict_against_a_baseline_measures_that_in_place_of_the_default(
    testbed: FakeTestbed,
) -> None:
    searched(testbed)
    baseline = Configuration({"net.ipv4.tcp_fin_timeout": "30", "net.core.somaxconn": "65535"})
    testbed.p99_us[baseline.digest] = 2_000
    verdict = verify.verify(testbed.task, "openeuler-25.09")
    assert verdict.against == "openeuler-25.09"
    assert pytest.approx(verdict.ratio, rel=0.01) == 2
    judged = testbed.task.store.plan(testbed.task.subject, "judge")
    assert {QUICK.digest, baseline.digest} == {p.configuration.digest for p in judged}


def test_a_baseline_that_changes_nothing_is_the_hosts_own_values(
    testbed: FakeTestbed,
) -> None:
    searched(testbed)
    testbed.task.store.put(testbed.task.subject, probe_with("30", "65535"))
    verdict = verify.verify(testbed.task, "openeuler-25.09")
    assert pytest.approx(verdict.ratio, rel=0.01) == 5
    assert "openeuler-25.09 changes nothing on this host" in testbed.output.getvalue()


@pytest.mark.parametrize(
    ("first", "later", "way_out"),
    [
        ("default", "openeuler-25.09", "Go on with: intop verify\n"),
        ("openeuler-25.09", "default", "Go on with: intop verify --default openeuler-25.09\n"),
        ("kernel-6.1", "openeuler-25.09", "Go on with: intop verify --default kernel-6.1\n"),
    ],
)
def test_a_verdict_planned_against_another_default_is_refused(
    testbed: FakeTestbed, first: str, later: str, way_out: str
) -> None:
    searched(testbed)
    verdict = verify.verify(testbed.task, first)
    assert verdict == verify.verify(testbed.task, first)
    with pytest.raises(UsageError, match=f"was planned against {first}, not {later}") as caught:
        verify.verify(testbed.task, later)
    assert way_out in str(caught.value)


def test_the_best_measured_is_not_the_luckiest_trial(
    testbed: FakeTestbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One trial of the first is the lowest of all, but not the mean of its trials."""
    searched(testbed)
    monkeypatch.setattr(
        active, "best_known", lambda samples, seed: int(np.argmin(samples.log_target))
    )
    lucky, steady, failing = configurations(3)
    places = [(lucky, 500), (lucky, 8_000), (steady, 1_500), (steady, 1_600), (failing, 100)]
    plan = [
        PlannedTrial(index=10 + n, role="replicate", configuration=configuration)
        for n, (configuration, _) in enumerate(places)
    ]
    plan.append(PlannedTrial(index=15, role="replicate", configuration=failing))
    testbed.task.store.write_plan(testbed.task.subject, "collect", plan)
    testbed.latency = lambda p: places[min(p.index, 14) - 10][1]
    testbed.statuses = [*("ok",) * 5, "failed"]
    measured(testbed.task, "collect", [])
    finalists = pick.finalists(testbed.task, 2)
    assert {"candidate 1": QUICK, pick.MEASURED_BEST: steady} == finalists


def test_an_unknown_default_is_refused_before_anything_is_measured(testbed: FakeTestbed) -> None:
    with pytest.raises(UsageError, match="there is no baseline nosuch; there are kernel"):
        verify.verify(testbed.task, "nosuch")
    assert testbed.measured == []


@pytest.mark.parametrize(("r2", "count"), [(0.4, 3), (-0.02, 1)])
def test_models_that_explain_nothing_have_one_candidate(
    testbed: FakeTestbed, r2: float, count: int
) -> None:
    searched(testbed)
    task = testbed.task
    candidates = tuple(
        Candidate(configuration=c, predicted_ms=1.0, model="ensemble")
        for c in configurations(9)[5:]
    )
    task.store.put(task.subject, search(candidates=candidates))
    task.store.put(task.subject, training(model_error("RFR", r2=r2)))
    names = [name for name in pick.finalists(task, 4) if name != pick.MEASURED_BEST]
    assert count == len(names)
