"""plan: what deploying changes, on a real namespace and on replicas that are made up."""

from dataclasses import replace
from math import nan
from typing import Any

import pytest

from builders.hosts import address, refuse
from builders.results import BROKEN_CPU, COSTLY, DEPLOYMENT, DOUBTED, SWEEP, VERDICT
from builders.testbeds import FakeTestbed, probe_of
from intop.deploy.deployable import deployments
from intop.deploy.plan import plan, plan_again
from intop.deploy.result import HostPlan, Plan, SavedPlan, planned_key
from intop.domain.cluster import HostAddress, LabSpec
from intop.domain.configuration import Configuration
from intop.domain.explanation import Explanation, Kept
from intop.domain.host_state import Answer
from intop.domain.persistent import Persistent
from intop.domain.stats import Interval
from intop.domain.sweep import Arm, Sweeps
from intop.errors import IntopError, LabError, ResultMissingError, UsageError
from intop.lab import cluster as lab
from intop.run.context import Context
from kit.golden import Golden

RMEM, SOMAXCONN = (change.key for change in DEPLOYMENT.changes)


@pytest.fixture
def context(testbed: FakeTestbed, monkeypatch: pytest.MonkeyPatch) -> Context:
    def not_up(name: str) -> None:
        raise LabError(f"lab {name} is not up")

    monkeypatch.setattr(lab, "cluster", not_up)
    return replace(testbed.task.context, connect=refuse)


def judged(testbed: FakeTestbed, verdict: Any = VERDICT) -> None:
    values = {RMEM: "4096 131072 6291456", SOMAXCONN: "4096"}
    testbed.task.store.put(testbed.task.subject, probe_of(values))
    testbed.task.store.put(testbed.task.subject, verdict)


def test_without_a_verdict_the_next_step_is_named(context: Context) -> None:
    with pytest.raises(ResultMissingError, match=r"x86: no verdict yet\. Run: intop tune --arch"):
        plan(context)


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        (
            "net.ipv4.ip_local_port_range",
            "2000 60000",
            "'2000 60000', which is beyond a hard",
        ),
        ("net.ipv4.ip_local_port_range", "0x8000 0x8100", "'0x8000 0x8100', which is malformed"),
        ("net.core.default_qdisc", "fq", "longer tunes .net.core.default_qdisc: not offered"),
        ("kernel.pid_max", "400", "longer tunes .kernel.pid_max: on the deny list"),
    ],
)
def test_a_stored_winner_that_can_hurt_a_host_does_not_leave_the_campaign(
    testbed: FakeTestbed, context: Context, key: str, value: str, words: str
) -> None:
    judged(testbed, replace(VERDICT, configuration=Configuration({key: value})))
    own = {key: "32768 60999" if " " in value else "1"}
    testbed.task.store.put(testbed.task.subject, probe_of(own))
    with pytest.raises(UsageError, match=words):
        plan(context)


def test_what_has_no_gain_keeps_the_defaults(testbed: FakeTestbed, context: Context) -> None:
    judged(testbed, replace(VERDICT, ratio_low=0.9))
    assert plan(context) == {"x86": None}
    both = replace(context, archs=("x86", "arm"))
    assert plan(both) == {"x86": None}
    assert "left out: arm: no verdict yet" in testbed.output.getvalue()


def test_what_costs_too_much_keeps_the_defaults_unless_that_is_accepted(
    testbed: FakeTestbed, context: Context, golden: Golden
) -> None:
    judged(testbed, COSTLY)
    assert plan(context) == {"x86": None}
    output = testbed.output.getvalue()
    golden(output)
    named = [address("far")]
    result = plan(context, hosts=named, accept_costs=True)["x86"]
    assert result is not None
    assert (result.accept_costs, result.deployment.verdict) == (True, COSTLY)
    # What P99 does not show, nobody can accept.
    judged(testbed, replace(COSTLY, ratio_low=0.9))
    assert plan(context, accept_costs=True) == {"x86": None}
    judged(testbed, DOUBTED)
    result = plan(context, hosts=named)["x86"]
    assert result is not None
    assert not result.accept_costs


def test_a_saved_plan_that_accepts_costs_is_made_again_so(
    testbed: FakeTestbed, context: Context
) -> None:
    judged(testbed, COSTLY)
    clusters = {"x86": (LabSpec(name="gone"),)}
    here = replace(context, study=replace(context.study, clusters=clusters))
    then = plan(here, accept_costs=True)["x86"]
    assert then is not None
    saved = SavedPlan(
        study=here.study.name,
        campaign=here.campaign.id,
        started_at=here.campaign.started_at,
        made_at="2026-11-22T18:00:00+00:00",
        whole=False,
        plans=(then,),
    )
    # Only its host is in the way, which can't be asked.
    with pytest.raises(IntopError, match="lab gone is not up"):
        plan_again(here, saved)
    without = replace(saved, plans=(replace(then, accept_costs=False),))
    with pytest.raises(IntopError, match="its verdict is no gain any more"):
        plan_again(here, without)


def test_what_the_winner_is_worth_under_other_loads_goes_with_it(
    testbed: FakeTestbed, context: Context
) -> None:
    judged(testbed)
    result = deployments(context)["x86"]
    assert result is not None
    assert result.sweeps == ()
    testbed.task.store.put(testbed.task.subject, Sweeps((SWEEP,)))
    result = deployments(context)["x86"]
    assert result is not None
    assert result.sweeps == (SWEEP,)
    arm = Arm(name="tuned", configuration=Configuration({SOMAXCONN: "1"}))
    other = replace(SWEEP, arms=(SWEEP.arms[0], arm))
    testbed.task.store.put(testbed.task.subject, Sweeps((other,)))
    result = deployments(context)["x86"]
    assert result is not None
    assert result.sweeps == ()


def test_a_host_that_cannot_be_asked_has_its_error_in_its_place(
    testbed: FakeTestbed, context: Context
) -> None:
    judged(testbed)
    clusters = {"x86": (LabSpec(name="gone"),)}
    result = plan(replace(context, study=replace(context.study, clusters=clusters)))["x86"]
    assert result is not None
    assert [(a.name, a.error) for a in result.hosts] == [("lab gone", "lab gone is not up")]
    named = HostAddress(name="far", role="load-balancer", hostname="far")
    result = plan(context, hosts=[named])["x86"]
    assert result is not None
    assert [(a.name, a.error) for a in result.hosts] == [("far", "far: the network is gone")]
    assert set(result.deployment.values) == {RMEM, SOMAXCONN}


def test_a_host_gets_what_one_architecture_has(testbed: FakeTestbed, context: Context) -> None:
    judged(testbed)
    subject = replace(testbed.task.subject, arch="arm")
    testbed.task.store.put(subject, probe_of({RMEM: "4096 131072 6291456", SOMAXCONN: "4096"}))
    testbed.task.store.put(subject, VERDICT)
    named = HostAddress(name="far", role="load-balancer", hostname="far")
    with pytest.raises(UsageError, match=r"x86 and arm have a gain.*say with --arch"):
        plan(replace(context, archs=("x86", "arm")), hosts=[named])


def test_a_plan_says_how_it_is_to_be_rolled_out(testbed: FakeTestbed, context: Context) -> None:
    judged(testbed)
    named = [address("far")]
    result = plan(context, hosts=named)["x86"]
    assert result is not None
    pairs = context.study.budget.judge_pairs
    assert (pairs, False, True) == (result.rounds, result.persist, result.for_review)
    clusters = {"x86": (LabSpec(name="gone"),)}
    study = replace(context.study, clusters=clusters)
    result = plan(replace(context, study=study), persist=True, rounds=4)["x86"]
    assert result is not None
    assert (result.rounds, result.persist, result.for_review) == (4, True, False)
    assert result.problems == ("lab gone is not up",)


# A plan from a file -------------------------------------------------------------------------------

HOST = HostPlan(
    file="/f",
    keys=tuple(planned_key(c, c.default, "", Persistent(), "/f") for c in DEPLOYMENT.changes),
)


def saved_plan(
    context: Context, now: HostPlan, monkeypatch: pytest.MonkeyPatch, configuration: str = ""
) -> SavedPlan:
    """A plan of one host; made again, its host is `now`."""
    started = context.campaign.started_at
    deployment = replace(DEPLOYMENT, started_at=started, campaign=context.campaign.id)
    then = Plan(
        deployment=deployment,
        hosts=(Answer(name="lb", result=HOST),),
        rounds=4,
        persist=True,
    )

    def again(narrow: Context, **asked: object) -> dict[str, Plan | None]:
        expected = {"whole": True, "persist": True, "rounds": 4, "accept_costs": False}
        assert asked == expected | {"configuration": configuration}
        assert (narrow.archs, [w.name for w in narrow.workloads]) == (("x86",), ["slt"])
        return {"x86": replace(then, hosts=(Answer(name="lb", result=now),))}

    monkeypatch.setattr("intop.deploy.plan.plan", again)
    return SavedPlan(
        study=context.study.name,
        campaign=context.campaign.id,
        started_at=started,
        made_at="2026-11-22T18:00:00+00:00",
        whole=True,
        plans=(then,),
        configuration=configuration,
    )


def test_a_plan_whose_hosts_are_as_they_were_is_carried_out(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved = saved_plan(context, HOST, monkeypatch)
    assert {"x86": saved.plans[0]} == plan_again(context, saved)
    every = replace(context, workloads=tuple(context.study.workloads.values()))
    assert {"x86": saved.plans[0]} == plan_again(every, saved)


def test_a_saved_plan_of_a_configuration_is_made_again_of_that(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved = saved_plan(context, HOST, monkeypatch, configuration="ubuntu-18.04")
    assert {"x86": saved.plans[0]} == plan_again(context, saved)


def test_a_plan_whose_host_has_changed_is_refused(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed = replace(HOST.keys[1], now="128", obstacle="can't be written")
    now = replace(HOST, keys=(HOST.keys[0], changed))
    with pytest.raises(IntopError) as error:
        plan_again(context, saved_plan(context, now, monkeypatch))
    lines = [line.strip() for line in str(error.value).splitlines()]
    assert "has changed, so nothing was touched on any host" in lines[0]
    assert lines[1] == f"lb: {SOMAXCONN}: 4096 in the plan, 128 now"
    assert "what is in its way: nothing in the plan, can't be written now" in lines[2]
    assert lines[3] == f"lb: {SOMAXCONN} can't be set to 64: can't be written"
    assert "intop plan --output" in lines[4]


def test_a_plan_of_what_is_not_there_any_more_is_refused(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved = saved_plan(context, HOST, monkeypatch)
    with pytest.raises(UsageError, match=r"the plan is of the study other, and .* is lab"):
        plan_again(context, replace(saved, study="other"))
    with pytest.raises(IntopError, match=r"the plan is of campaign 7 .* and the latest one"):
        plan_again(context, replace(saved, campaign=7))
    with pytest.raises(IntopError, match="the plan is of campaign 1 of then"):
        plan_again(context, replace(saved, started_at="then"))
    monkeypatch.setattr("intop.deploy.plan.plan", lambda *_, **__: {"x86": None})
    with pytest.raises(IntopError, match="its verdict is no gain any more"):
        plan_again(context, saved)


def test_a_plan_for_review_is_refused(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    saved = saved_plan(context, HOST, monkeypatch)
    review = replace(saved.plans[0], for_review=True)
    with pytest.raises(UsageError, match="for review only"):
        plan_again(context, replace(saved, plans=(review,)))


# Which set leaves the campaign --------------------------------------------------------------------


def explained(testbed: FakeTestbed, **changes: Any) -> None:
    """A winner of two keys, of which one is the smallest set and keeps all of the gain."""
    judged(testbed)
    ratio = Interval(VERDICT.ratio, VERDICT.ratio_low, VERDICT.ratio_high)
    minimal = Configuration({SOMAXCONN: VERDICT.configuration.values[SOMAXCONN]})
    made = Explanation(
        winner=VERDICT.configuration,
        minimal=minimal,
        contributions=(),
        interactions=(),
        same=(),
        verdict=replace(VERDICT, configuration=minimal),
        kept=Kept(share=1.0, low=0.8, high=1.2, full=ratio, smaller=ratio, rounds=16),
        offer=None,
        level=0.95,
        trials=60,
    )
    testbed.task.store.put(testbed.task.subject, replace(made, **changes))


def kept_of(share: float, high: float, smaller: float = 3.0, full: float = 3.0) -> Kept:
    ratios = [Interval(r, r / 1.2, r * 1.2) for r in (full, smaller)]
    return Kept(share=share, low=0.5, high=high, full=ratios[0], smaller=ratios[1], rounds=16)


def leaving(context: Context, *, whole: bool = False) -> tuple[str, set[str], str]:
    result = deployments(context, whole=whole)["x86"]
    assert result is not None
    return result.origin, set(result.values), result.instead


def test_the_smallest_set_leaves_where_it_is_a_gain_and_keeps_enough(
    testbed: FakeTestbed, context: Context
) -> None:
    explained(testbed, kept=kept_of(0.7, high=0.9))
    assert leaving(context) == ("smallest set", {SOMAXCONN}, "")
    assert leaving(context, whole=True) == ("winner", {RMEM, SOMAXCONN}, "")


def test_a_set_that_keeps_less_than_was_asked_for_stays(
    testbed: FakeTestbed, context: Context
) -> None:
    explained(testbed, kept=kept_of(0.7, high=0.899))
    why = "the smallest set keeps clearly less than 90% of the gain"
    assert ("winner", {RMEM, SOMAXCONN}, why) == leaving(context)


def test_a_set_that_is_no_gain_by_itself_stays(testbed: FakeTestbed, context: Context) -> None:
    explained(testbed, verdict=replace(VERDICT, ratio_low=0.9))
    why = "the smallest set is no gain by itself (no significant gain)"
    assert ("winner", {RMEM, SOMAXCONN}, why) == leaving(context)


def test_a_set_that_costs_too_much_by_itself_stays(testbed: FakeTestbed, context: Context) -> None:
    explained(testbed, verdict=replace(VERDICT, guardrails=(BROKEN_CPU,)))
    origin, keys, why = leaving(context)
    assert (origin, keys) == ("winner", {RMEM, SOMAXCONN})
    assert why.startswith(
        "the smallest set costs more than is accepted: CPU is higher by 12 points"
    )


@pytest.mark.parametrize(
    ("smaller", "origin"), [(1.5, "smallest set"), (0.8, "smallest set"), (0.6, "winner")]
)
def test_beside_a_winner_without_a_gain_the_set_leaves_unless_it_is_worse(
    testbed: FakeTestbed, context: Context, smaller: float, origin: str
) -> None:
    """In these rounds the winner had none, so there is no share of it."""
    explained(testbed, kept=kept_of(nan, nan, smaller=smaller, full=0.98))
    assert origin == leaving(context)[0]
