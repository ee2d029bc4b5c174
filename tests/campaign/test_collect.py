"""What is collected, and its replicates, with a testbed that makes its trials up."""

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from builders.testbeds import FakeTestbed, probe_of
from builders.trials import ranking, screening, trial
from intop.campaign.collect.stage import collect
from intop.campaign.collected import collected_space, collected_trials, required_space
from intop.campaign.sentinels import with_sentinels
from intop.domain.configuration import Configuration
from intop.domain.replicates import by_configuration
from intop.domain.trial import PlannedTrial
from intop.errors import ResultMissingError, UsageError
from intop.run.campaigns import new

COUNT = 16
EVERY = 4


def configurations() -> list[Configuration]:
    return [Configuration({"net.core.somaxconn": str(n)}) for n in range(1, COUNT + 1)]


def number(planned: PlannedTrial) -> int:
    return int(planned.configuration.values["net.core.somaxconn"])


def latency(planned: PlannedTrial) -> int:
    """The higher its number the slower is a configuration, and no two trials are alike."""
    if planned.configuration.is_default:
        return 50_000 + 5_000 * (planned.index % 3)
    return 1_000 * number(planned) + 40 * (planned.index * 7 % 5)


@pytest.fixture(name="first_pass")
def _first_pass(testbed: FakeTestbed) -> FakeTestbed:
    """One whose campaign has its first pass planned; without a refinement, a quarter of 16."""
    testbed.latency = latency
    with_budget(testbed, sentinel_every=EVERY, refine_trials=0)
    planned(testbed)
    return testbed


def planned(testbed: FakeTestbed) -> None:
    plan = with_sentinels(configurations(), EVERY)
    testbed.task.store.write_plan(testbed.task.subject, "collect", plan)


def with_budget(testbed: FakeTestbed, **changes: Any) -> None:
    context = testbed.task.context
    study = replace(context.study, budget=replace(context.study.budget, **changes))
    testbed.task = replace(testbed.task, context=replace(context, study=study))


def another_campaign(testbed: FakeTestbed) -> None:
    campaign = new(testbed.task.store, testbed.task.context.study)
    testbed.task = replace(testbed.task, subject=replace(testbed.task.subject, campaign=campaign))
    testbed.measured = []
    planned(testbed)


def replicates(testbed: FakeTestbed) -> list[PlannedTrial]:
    plan = testbed.task.store.plan(testbed.task.subject, "collect")
    return [p for p in plan if p.role == "replicate"]


def numbers(places: Sequence[PlannedTrial]) -> list[int]:
    return [number(p) for p in places]


def test_a_quarter_as_many_replicates_go_to_the_most_promising(first_pass: FakeTestbed) -> None:
    result = collect(first_pass.task)
    assert sorted(numbers(replicates(first_pass))) == [1, 2, 3, 4]
    assert result.replicates == 4
    assert len(result.trials) == 1 + COUNT + COUNT // EVERY + 4 + 1
    assert (result.noise.configurations, result.noise.freedom) == (4, 4)
    assert (result.default_noise.configurations, result.default_noise.freedom) == (1, 5)


def test_what_acts_is_always_varied_and_what_is_open_in_turns(testbed: FakeTestbed) -> None:
    keys = [
        f"net.ipv4.tcp_{name}" for name in ("sack", "dsack", "fack", "ecn", "frto", "autocorking")
    ]
    offered = dict.fromkeys(keys, "0") | {"net.core.somaxconn": "4096"}
    testbed.task.store.put(testbed.task.subject, probe_of(offered))
    testbed.probed = SimpleNamespace(space=required_space(testbed.task))
    still, frozen = ["net.ipv4.tcp_sack", "net.ipv4.tcp_frto", "net.ipv4.tcp_ecn"], keys[-1]
    result = screening(["net.core.somaxconn"], still, [frozen])
    testbed.task.store.put(
        testbed.task.subject, ranking(chosen=["net.core.somaxconn"], keep=2, screening=result)
    )
    with_budget(testbed, refine_trials=40)
    collected = collect(testbed.task, 24)
    design = [t.configuration.values for t in collected.trials if t.planned.role == "design"]
    assert all("net.core.somaxconn" in values for values in design)
    assert {len(values) for values in design if len(values) > 1} == {2}
    assert set(still) < set().union(*design)
    assert frozen not in set().union(*design)
    assert "configurations varies" not in testbed.output.getvalue()

    again = new(testbed.task.store, testbed.task.context.study)
    testbed.task = replace(testbed.task, subject=replace(testbed.task.subject, campaign=again))
    testbed.task.store.put(testbed.task.subject, probe_of(offered))
    testbed.task.store.put(
        testbed.task.subject, ranking(chosen=["net.core.somaxconn"], keep=2, screening=result)
    )
    collect(testbed.task, 2)
    output = testbed.output.getvalue()
    assert "none of the 2 configurations varies net.ipv4.tcp_" in output


def test_sentinels_go_on_at_their_distance(first_pass: FakeTestbed) -> None:
    with_budget(first_pass, replicate_trials=10, sentinel_every=3)
    collect(first_pass.task)
    plan = first_pass.task.store.plan(first_pass.task.subject, "collect")[21:]
    assert [p.role for p in plan[:4]] == ["replicate"] * 3 + ["sentinel"]
    assert [p.role for p in plan] == 3 * (["replicate"] * 3 + ["sentinel"]) + ["replicate"]
    assert list(range(21, 34)) == [p.index for p in plan]
    assert first_pass.measured == list(range(34))


def test_later_batches_go_by_what_the_earlier_ones_showed(first_pass: FakeTestbed) -> None:
    """One that looked best by luck is given up when it is known; a quiet one as bad gets none."""
    lucky = 16
    with_budget(first_pass, replicate_trials=12)
    first_pass.latency = lambda p: 900 if p.role == "design" and number(p) == lucky else latency(p)
    collect(first_pass.task)
    places = numbers(replicates(first_pass))
    assert len(places) == 12
    batches = [places[n : n + 4] for n in (0, 4, 8)]
    assert [len(set(batch)) for batch in batches] == [4, 4, 4]
    assert [lucky in batch for batch in batches] == [True, True, False]
    assert lucky - 1 not in places


def test_a_refinement_has_replicates_of_its_own(first_pass: FakeTestbed) -> None:
    with_budget(first_pass, refine_trials=4)
    assert collect(first_pass.task).replicates == 0


def test_there_may_be_none(first_pass: FakeTestbed) -> None:
    with_budget(first_pass, replicate_trials=0)
    assert collect(first_pass.task).replicates == 0
    assert len(first_pass.measured) == 21


def test_what_failed_gets_none(first_pass: FakeTestbed) -> None:
    plan = first_pass.task.store.plan(first_pass.task.subject, "collect")
    first = Configuration({"net.core.somaxconn": "1"})
    first_pass.statuses = ["failed" if p.configuration == first else "ok" for p in plan]
    collect(first_pass.task)
    assert 1 not in numbers(replicates(first_pass))


def test_where_everything_failed_there_is_nothing_to_replicate(first_pass: FakeTestbed) -> None:
    with_budget(first_pass, max_failures=99)
    plan = first_pass.task.store.plan(first_pass.task.subject, "collect")
    first_pass.statuses = ["failed" if p.role == "design" else "ok" for p in plan]
    assert collect(first_pass.task).replicates == 0


def test_nothing_is_measured_again_when_it_is_asked_for_again(first_pass: FakeTestbed) -> None:
    first = collect(first_pass.task)
    count = len(first_pass.measured)
    assert first == collect(first_pass.task)
    assert first == collect(first_pass.task, COUNT)
    assert count == len(first_pass.measured)


def test_replicates_are_no_configurations(first_pass: FakeTestbed) -> None:
    collect(first_pass.task)
    with pytest.raises(UsageError, match="has 16 configurations already"):
        collect(first_pass.task, 20)


@pytest.mark.parametrize("killed_after", [1, 20, 21, 23, 25, 26, 30])
def test_a_killed_collect_comes_to_the_same_replicates(
    first_pass: FakeTestbed, killed_after: int
) -> None:
    with_budget(first_pass, replicate_trials=8)
    undisturbed = collect(first_pass.task)
    assert len(undisturbed.trials) == 31
    places = replicates(first_pass)

    another_campaign(first_pass)
    first_pass.dies_after = killed_after
    with pytest.raises(KeyboardInterrupt):
        collect(first_pass.task)
    first_pass.dies_after = None
    assert undisturbed == collect(first_pass.task)
    assert places == replicates(first_pass)
    assert list(range(31)) == first_pass.measured


def test_what_is_collected_counts_once_for_each_configuration(first_pass: FakeTestbed) -> None:
    collect(first_pass.task)
    result = by_configuration(collected_trials(first_pass.task))
    assert len(result) == 1 + COUNT
    assert [len(m.judged_ms) for m in result[:6]] == [6, 2, 2, 2, 2, 1]
    assert result[0].configuration.is_default


def test_it_has_the_drift_of_its_sentinels(first_pass: FakeTestbed) -> None:
    result = collect(first_pass.task)
    # The made-up trials are all of one moment.
    assert (result.drift.sentinels, result.drift.change) == (6, None)
    assert first_pass.task.context.study.budget.level == result.drift.level


def test_training_waits_for_the_whole_plan(first_pass: FakeTestbed) -> None:
    with pytest.raises(ResultMissingError, match="0 of 21 trials of collect are measured"):
        collected_trials(first_pass.task)


@pytest.mark.parametrize(
    ("key", "why"),
    [
        ("net.core.default_qdisc", "not offered: interfaces keep the queueing discipline"),
        ("kernel.pid_max", "on the deny list: without room for another process"),
    ],
)
def test_a_campaign_with_what_is_not_tuned_any_more_says_so(
    testbed: FakeTestbed, key: str, why: str
) -> None:
    """It was measured by an intop that had another catalogue; its trials can still be read."""
    task = testbed.task
    task.store.put(task.subject, probe_of({"net.core.somaxconn": "4096", key: "1"}))
    made = trial(Configuration({key: "2", "net.core.somaxconn": "64"}))
    task.store.write_plan(task.subject, "collect", [made.planned])
    task.store.add(task.subject, made)
    assert [made] == collected_trials(task)
    with pytest.raises(UsageError, match=rf"not tuned any more \({key}: {why}.* intop tune --new"):
        collected_space(task)
