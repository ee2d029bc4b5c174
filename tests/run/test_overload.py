"""Defaults that do not carry the load: when they end a stage, what is said, and how it goes on."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from benchmarks.campaign import measured
from builders.testbeds import FakeTestbed
from builders.trials import trial
from intop.campaign.collect.stage import Collect
from intop.campaign.pilot import stage as pilot
from intop.campaign.sentinels import with_sentinels
from intop.campaign.verify import judge as verify
from intop.campaign.verify import pick
from intop.domain.configuration import DEFAULT, Configuration
from intop.domain.pilot import Pilot
from intop.domain.trial import PlannedTrial, Status, Trial
from intop.errors import BaselineError
from intop.run import registry
from intop.run.measuring import measure
from intop.run.overload import remedies
from intop.run.prospect import Prospect
from intop.run.replicas import Replicas
from intop.run.rounds import series_plan

LOW: Status = "overloaded"
CONFIGURATIONS = [Configuration({"net.core.somaxconn": str(n)}) for n in range(1, 7)]
PLAN = with_sentinels(CONFIGURATIONS, 2)
"""The default stands at 0, 3, 6 and 9."""


def collected(testbed: FakeTestbed, plan: Sequence[PlannedTrial] = PLAN) -> list[Trial]:
    return measured(testbed.task, "collect", plan)


def stored(testbed: FakeTestbed, stage: str = "collect") -> list[tuple[int, int, Status]]:
    """Place, attempt and status of the defaults' trials, all attempts, as they lie in the store."""
    return [
        (t.planned.index, t.attempt, t.status)
        for t in testbed.task.store.trials(testbed.task.subject, stage)
        if t.configuration.is_default
    ]


def ended(testbed: FakeTestbed, plan: Sequence[PlannedTrial] = PLAN) -> str:
    """What is said when it ends by its defaults."""
    with pytest.raises(BaselineError) as caught:
        collected(testbed, plan)
    return str(caught.value)


# The rule -----------------------------------------------------------------------------------------


def test_one_among_good_ones_is_a_bad_result_and_no_more(testbed: FakeTestbed) -> None:
    testbed.statuses = ["ok", "ok", "ok", LOW]
    trials = collected(testbed)
    assert list(range(10)) == testbed.measured
    assert [t.status for t in trials if t.status != "ok"] == [LOW]


def test_two_in_a_row_end_the_stage(testbed: FakeTestbed) -> None:
    testbed.statuses = ["ok", "ok", "ok", LOW, "ok", "ok", LOW]
    ended(testbed)
    assert list(range(7)) == testbed.measured
    assert stored(testbed) == [(0, 0, "ok"), (3, 0, LOW), (6, 0, LOW)]


def test_two_with_a_good_one_between_them_do_not(testbed: FakeTestbed) -> None:
    testbed.statuses = ["ok", "ok", "ok", LOW, "ok", "ok", "ok", "ok", "ok", LOW]
    assert sum(t.status == LOW for t in collected(testbed)) == 2


def test_the_first_one_is_doubted_and_measured_again_at_once(testbed: FakeTestbed) -> None:
    testbed.statuses = [LOW]
    trials = collected(testbed)
    assert [0, *range(10)] == testbed.measured
    assert {t.status for t in trials} == {"ok"}
    assert stored(testbed)[:2] == [(0, 0, LOW), (0, 1, "ok")]
    assert "the first default of collect is overloaded" in testbed.output.getvalue()
    # Steps are counted, not attempts.
    assert testbed.output.getvalue().count("collect: 10/10") == 1


def test_the_first_one_ends_the_stage_when_it_is_overloaded_twice(testbed: FakeTestbed) -> None:
    testbed.statuses = [LOW, LOW]
    ended(testbed)
    assert testbed.measured == [0, 0]


def test_a_configuration_may_be_overloaded_as_often_as_it_likes(testbed: FakeTestbed) -> None:
    testbed.statuses = [LOW if not p.configuration.is_default else "ok" for p in PLAN]
    assert sum(t.status == LOW for t in collected(testbed)) == 6


def test_a_default_that_was_disturbed_is_none_before_another(testbed: FakeTestbed) -> None:
    context = testbed.task.context
    budget = replace(context.study.budget, retries=0)
    study = replace(context.study, budget=budget)
    testbed.task = replace(testbed.task, context=replace(context, study=study))
    testbed.statuses = ["ok", "ok", "ok", LOW, "ok", "ok", "disturbed", "ok", "ok", LOW]
    ended(testbed)
    assert list(range(10)) == testbed.measured


def test_each_replica_has_its_own_row(testbed: FakeTestbed) -> None:
    """Two replicas with a good and an overloaded default each are no two in a row."""
    testbeds = [testbed, FakeTestbed(testbed.task, name="other", output=testbed.output)]
    plan = with_sentinels(CONFIGURATIONS, 1, replicas=2)
    places = [p.index for p in plan if p.configuration.is_default]
    turns = [[p.index for p in plan if p.index % 2 == n] for n in (0, 1)]
    for one, own in zip(testbeds, turns, strict=True):
        defaults = [n for n in own if n in places]
        one.statuses = [LOW if n == defaults[1] else "ok" for n in own]
    task = testbed.task
    task.store.write_plan(task.subject, "collect", plan)
    made: dict[int, Trial] = {}
    measure(testbeds, Collect(task), plan, made)
    assert len(plan) == len(made)
    assert sum(t.status == LOW for t in made.values()) == 2


def test_a_replica_that_is_too_weak_ends_the_stage_by_its_name(testbed: FakeTestbed) -> None:
    weak = FakeTestbed(testbed.task, name="weak", output=testbed.output, statuses=[LOW, LOW])
    plan = with_sentinels(CONFIGURATIONS, 4, replicas=2)
    task = testbed.task
    task.store.write_plan(task.subject, "collect", plan)
    with pytest.raises(BaselineError, match="x86 slt: weak does not carry this load"):
        measure([testbed, weak], Collect(task), plan, {})
    assert weak.measured == [1, 1]


def test_which_stages_end_by_it() -> None:
    """A contest, an explanation and a transfer say what becomes of each arm, whatever that is; a
    host that a deployment comes to may need it for that reason."""
    ends = {s.name for s in registry.stages() if s.measures and s.ends_by_overload}
    assert ends == {"pilot", "replicas", "screen", "collect", "refine", "pick", "judge"}
    assert Replicas.ends_by_overload


def test_in_others_it_is_a_result(testbed: FakeTestbed) -> None:
    plan = series_plan(testbed.task, "contest", {"default": DEFAULT, "one": CONFIGURATIONS[0]}, 3)
    testbed.statuses = [LOW] * 6
    assert {t.status for t in measured(testbed.task, "contest", plan)} == {LOW}
    assert list(range(6)) == testbed.measured


# What is said -------------------------------------------------------------------------------------


@dataclass
class Slow(FakeTestbed):
    """A testbed whose overloaded trials have the figures of one."""

    errors: dict[str, int] = field(default_factory=lambda: {"timeout": 40, "read": 0, "status": 3})

    def trial(
        self, planned: PlannedTrial, stage: Any, attempt: int, prune_above_ms: float | None = None
    ) -> Trial:
        made = super().trial(planned, stage, attempt, prune_above_ms)
        if made.status != LOW:
            return made
        return replace(made, achieved_rps=81.2, errors=self.errors, detail="81 of 97 requests/s")


def test_the_evidence_and_the_next_step_are_said(testbed: FakeTestbed) -> None:
    slow = Slow(testbed.task, statuses=[LOW, LOW], output=testbed.output)
    with pytest.raises(BaselineError) as caught:
        measured(testbed.task, "collect", PLAN, on=(slow,))
    output = str(caught.value)
    assert "x86 slt: lb does not carry this load with its default configuration" in output
    line = (
        "\n  trial 0: 81 of 97 requests/s (answered: 81 requests/s, errors: 40 timeout, 3 status, "
        "P99 5.0 ms)"
    )
    assert output.count(line) == 2
    assert "intop doctor --arch x86" in output
    assert "the same command measures this default again and goes on" in output
    assert "lower rate_rps in [workload.slt] of" in output
    assert "--new" in output
    assert "(81 of 97 requests/s), and measured again" in testbed.output.getvalue()


def test_two_places_of_the_plan_are_both_named(testbed: FakeTestbed) -> None:
    testbed.statuses = ["ok", "ok", "ok", LOW, "ok", "ok", LOW]
    output = ended(testbed)
    assert " (answered: 100 requests/s, errors: none, P99 5.0 ms)\n  trial 6: " in output


# Going on -----------------------------------------------------------------------------------------


def test_once_the_cause_is_gone_the_first_default_is_measured_and_all_goes_on(
    testbed: FakeTestbed,
) -> None:
    testbed.statuses = [LOW, LOW]
    ended(testbed)
    trials = collected(testbed)
    assert [0, 0, *range(10)] == testbed.measured
    assert {t.status for t in trials} == {"ok"}
    # Nothing that was measured is lost.
    assert stored(testbed)[:3] == [(0, 0, LOW), (0, 1, LOW), (0, 2, "ok")]


def test_while_the_cause_is_there_it_ends_again(testbed: FakeTestbed) -> None:
    for _ in range(3):
        testbed.statuses = [LOW, LOW]
        ended(testbed)
    assert testbed.measured == [0] * 6
    assert list(range(6)) == [attempt for _, attempt, _ in stored(testbed)]


def test_of_two_in_a_row_the_one_that_ended_it_is_measured_again(testbed: FakeTestbed) -> None:
    testbed.statuses = ["ok", "ok", "ok", LOW, "ok", "ok", LOW]
    ended(testbed)
    trials = collected(testbed)
    assert [*range(7), 6, 7, 8, 9] == testbed.measured
    assert {n: trials[n].status for n in (3, 6)} == {3: LOW, 6: "ok"}
    # And that was all: the same again measures nothing.
    assert trials == collected(testbed)
    assert len(testbed.measured) == 11


def test_of_two_in_a_row_it_may_end_the_stage_again(testbed: FakeTestbed) -> None:
    testbed.statuses = ["ok", "ok", "ok", LOW, "ok", "ok", LOW]
    ended(testbed)
    testbed.statuses = [LOW]
    output = ended(testbed)
    assert "trial 3: " in output
    assert "trial 6: " in output
    assert [*range(7), 6] == testbed.measured


@pytest.mark.parametrize("dies_after", range(8, 11))
def test_killed_after_it_went_on_it_ends_as_it_would_have(
    testbed: FakeTestbed, dies_after: int
) -> None:
    testbed.statuses = ["ok", "ok", "ok", LOW, "ok", "ok", LOW]
    ended(testbed)
    testbed.dies_after = dies_after
    with pytest.raises(KeyboardInterrupt):
        collected(testbed)
    testbed.dies_after = None
    collected(testbed)
    assert [*range(7), 6, 7, 8, 9] == testbed.measured


def test_one_that_was_put_off_and_makes_two_in_a_row_is_seen(testbed: FakeTestbed) -> None:
    """Measured last, it stands before another one in the plan: that is measured once more."""
    testbed.statuses = ["ok", "ok", "ok", "disturbed", "ok", "ok", LOW, "ok", "ok", "ok", LOW]
    collected(testbed)
    assert [*range(10), 3, 6] == testbed.measured
    assert stored(testbed)[-1] == (6, 1, "ok")


# In the stages ------------------------------------------------------------------------------------


def test_a_pilot_ends_by_it_and_goes_on(testbed: FakeTestbed) -> None:
    context = testbed.task.context
    workload = replace(testbed.task.workload, duration_s=None)
    task = replace(testbed.task, context=context, workload=workload)
    testbed.statuses = ["ok", LOW, "ok", LOW, LOW]
    with pytest.raises(BaselineError, match="pilot would compare failures"):
        pilot.pilot(task)
    assert list(range(5)) == testbed.measured
    assert task.store.get(task.subject, Pilot) is None
    result = pilot.pilot(task)
    assert testbed.measured[5] == 4
    assert result.tried[0].trials == 5
    assert list(range(len(set(testbed.measured)))) == sorted(set(testbed.measured))


def test_a_verdict_ends_by_it_and_goes_on(testbed: FakeTestbed) -> None:
    task = testbed.task
    quick = Configuration({"net.core.somaxconn": "64"})
    testbed.p99_us[quick.digest] = 1_000
    count = task.context.study.budget.judge_pairs
    made = series_plan(task, "judge", {"tuned": quick, "default": DEFAULT}, count)
    second, third = [p.index for p in made if p.configuration.is_default][1:3]
    testbed.statuses = [LOW if n in (second, third) else "ok" for n in range(third + 1)]
    judge = verify.Judge(task, pick.Picked(origin="tuned", configuration=quick, trials=()))
    with pytest.raises(BaselineError, match="judge would compare failures"):
        verify.execute(judge)
    verdict = verify.execute(judge)
    assert [*range(third + 1), third, *range(third + 1, 14)] == testbed.measured
    # The overloaded one that did not end it counts, and so does its pair.
    assert (verdict.pairs, verdict.rounds, verdict.outcome) == (7, 7, "gain")


@pytest.mark.parametrize(
    ("statuses", "expected"),
    [
        ({}, True),
        ({3: LOW}, True),
        ({9: LOW}, True),
        ({6: LOW, 9: LOW}, False),
        ({0: LOW}, False),
        ({9: "failed"}, False),
        ({8: "failed"}, True),
    ],
)
def test_a_stage_whose_default_is_due_again_has_not_ended(
    testbed: FakeTestbed, statuses: dict[int, Status], expected: bool
) -> None:
    """Else `tune` would go on to the next one."""
    task = testbed.task
    store_trials(testbed, lambda n: statuses.get(n, "ok"))
    budget = replace(task.context.study.budget, replicate_trials=0, collect_trials=6)
    study = replace(task.context.study, budget=replace(budget, sentinel_every=2))
    prospect = Prospect.of(study, task.workload, task.subject, task.store)
    assert Collect.is_done(prospect) == expected


def store_trials(testbed: FakeTestbed, status: Callable[[int], Status]) -> None:
    """A stage whose places have all been measured, and come to these."""
    task = testbed.task
    task.store.write_plan(task.subject, "collect", PLAN)
    testbed.statuses = [status(p.index) for p in PLAN]
    for planned in PLAN:
        task.store.add(task.subject, testbed.trial(planned, "collect", 0))


# On a real lab ------------------------------------------------------------------------------------

SHAPE = "tc qdisc change dev eth0 root tbf rate {mbit}mbit burst 32kb limit 100kb"


@pytest.mark.long
def test_a_cluster_that_does_not_carry_its_load_is_mended_and_goes_on(
    make_study: Callable[..., Any],
) -> None:
    """Its link is narrowed to a small part of what the load needs."""
    study = make_study("x86")
    collect = ("collect", "--arch", "x86", "--workload", "slt")
    study.balancer(SHAPE.format(mbit=4))
    _, output = study.run(*collect, expected=(1,))
    assert f"x86 slt: {study.labs[0]}-lb does not carry this load" in output
    assert output.count("\n  trial 0: ") == 2
    assert " requests/s (answered: " in output
    assert "intop doctor --arch x86" in output
    assert [(place, attempt) for place, attempt, _ in study.trials("collect")] == [(0, 0), (0, 1)]

    study.balancer(SHAPE.format(mbit=300))
    study.run(*collect)
    places = [(place, attempt) for place, attempt, _ in study.trials("collect")]
    assert places[:3] == [(0, 0), (0, 1), (0, 2)]
    # 8 configurations and 2 replicates, with the default among them.
    assert set(range(13)) <= {place for place, _ in places}


# What to do ---------------------------------------------------------------------------------------


def failing(testbed: FakeTestbed, errors: dict[str, int], achieved_rps: float) -> str:
    (plan,) = with_sentinels([], 2)
    one = replace(
        trial(DEFAULT, 5_000, status=LOW), planned=plan, errors=errors, achieved_rps=achieved_rps
    )
    return remedies(testbed.task, [one])


def test_a_generator_without_ports_is_no_matter_of_the_server(testbed: FakeTestbed) -> None:
    text = failing(testbed, {"ports": 90, "timeout": 10}, 50)
    assert text.startswith("The load generator ran out of ports. There, widen net.ipv4.ip_local")
    assert "nginx" not in text


def test_too_few_connections_are_named_beside_the_server(testbed: FakeTestbed) -> None:
    workload = testbed.task.workload
    text = failing(testbed, {"pending": 90}, workload.rate_rps / 20)
    assert text.startswith("Look at nginx and its backends, and with: intop doctor --arch x86\n")
    assert f"the rate needs {20 * workload.connections:,} of them" in text
    assert f"raise connections in [workload.{workload.name}]" in text
    assert "connections" not in failing(testbed, {"status": 90, "pending": 5}, 5)
