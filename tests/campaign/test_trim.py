"""The stage that drops what does nothing from the picked candidate, on a made-up cluster."""

from dataclasses import replace
from typing import Any

import pytest

from builders.testbeds import FakeTestbed, probe_of
from builders.trials import ranking, screening, trial
from intop.campaign.verify.pick import Picked
from intop.campaign.verify.trim import trimmed
from intop.domain.configuration import Configuration
from intop.domain.histogram import Histogram
from intop.domain.trial import PlannedTrial
from intop.domain.trimmed import SlowChange, Trimmed, TrimOrder
from intop.errors import UsageError
from intop.run.context import Task

VALUES = {
    "net.core.somaxconn": "8192",
    "net.ipv4.tcp_fin_timeout": "30",
    "net.ipv4.tcp_max_syn_backlog": "8192",
    "net.ipv4.tcp_rmem": "4096 16384 33554432",
}
DEFAULTS = {
    "net.core.somaxconn": "4096",
    "net.ipv4.tcp_fin_timeout": "60",
    "net.ipv4.tcp_max_syn_backlog": "512",
    "net.ipv4.tcp_rmem": "4096 131072 6291456",
}
ACTS = "net.ipv4.tcp_max_syn_backlog"
PICKED = Picked(origin="candidate 1", configuration=Configuration(VALUES), trials=())


@pytest.fixture(name="ready")
def _ready(testbed: FakeTestbed) -> FakeTestbed:
    """A campaign whose candidate changes four keys, of which one acts."""
    task = testbed.task
    task.store.put(task.subject, probe_of(DEFAULTS))
    task.store.put(task.subject, ranking(chosen=(ACTS,), screening=screening((ACTS,))))

    def latency(planned: PlannedTrial) -> int:
        return 2_000 if ACTS in planned.configuration.values else 5_000

    testbed.latency = latency
    return testbed


def with_budget(task: Task, **changes: Any) -> Task:
    study = task.context.study
    study = replace(study, budget=replace(study.budget, **changes))
    return replace(task, context=replace(task.context, study=study))


def test_what_acts_stays_and_is_tried_first(ready: FakeTestbed) -> None:
    task = with_budget(ready.task, trim_rounds=3)
    result = trimmed(task, PICKED)
    assert result.configuration == Configuration({ACTS: VALUES[ACTS]})
    assert result.origin == "candidate 1, 1 of 4 keys"
    stored = task.store.get(task.subject, Trimmed)
    assert stored is not None
    assert [len(each.keys) for each in stored.sets] == [1, 2, 3]
    assert stored.sets[0].keys == (ACTS,)
    assert stored.trials == len(ready.measured) == 15
    trimmed(task, PICKED)
    assert ready.output.getvalue().count("trim: 1 of 4 keys stay") == 1


def test_a_change_whose_trials_have_slow_requests_is_not_tried(ready: FakeTestbed) -> None:
    task = with_budget(ready.task, trim_rounds=3)
    others = {key: value for key, value in VALUES.items() if key != ACTS}
    designed = [Configuration(values) for values in (VALUES, others, {})] * 6
    places = [
        PlannedTrial(index=n, role="design", configuration=configuration)
        for n, configuration in enumerate(designed)
    ]
    task.store.write_plan(task.subject, "collect", places)
    slow = Histogram.from_pairs([(2_000, 99), (1_000_000, 1)])
    trials = [replace(trial(p.configuration, 5_000), planned=p) for p in places]
    trials = [replace(t, histogram=slow) if ACTS in t.configuration.values else t for t in trials]
    for each in trials:
        task.store.add(task.subject, each)
    result = trimmed(task, replace(PICKED, trials=tuple(trials)))
    assert ACTS not in result.configuration.values
    assert result.configuration.values
    stored = task.store.get(task.subject, Trimmed)
    assert stored is not None
    (change,) = stored.slow
    assert change == SlowChange(
        keys=(ACTS,), limit_ms=change.limit_ms, slow=6, trials=6, slow_others=0, others=12
    )
    assert change.limit_ms == pytest.approx(20.0, rel=0.01)
    assert not any(ACTS in each.keys for each in stored.sets)
    line = f"trim: {ACTS} goes: 6 of 6 trials with it have requests above 20 ms, and 0 of 12"
    assert ready.output.getvalue().count(line) == 1


def test_where_all_act_the_candidate_stays_as_it_is(ready: FakeTestbed) -> None:
    ready.latency = lambda p: 10_000 - 2_000 * len(p.configuration.values)
    result = trimmed(with_budget(ready.task, trim_rounds=3), PICKED)
    assert result == PICKED


def test_one_change_is_not_measured(ready: FakeTestbed) -> None:
    one = replace(PICKED, configuration=Configuration({ACTS: VALUES[ACTS]}))
    assert trimmed(ready.task, one) == one
    assert not ready.measured


def test_no_rounds_judge_the_whole_candidate(ready: FakeTestbed) -> None:
    assert trimmed(with_budget(ready.task, trim_rounds=0), PICKED) == PICKED
    assert not ready.measured


def test_a_killed_one_goes_on_with_the_order_that_it_began_with(ready: FakeTestbed) -> None:
    task = with_budget(ready.task, trim_rounds=3)
    ready.dies_after = 5
    with pytest.raises(KeyboardInterrupt):
        trimmed(task, PICKED)
    ready.dies_after = None
    before = task.store.get(task.subject, TrimOrder)
    task.store.put(task.subject, ranking(chosen=()))
    assert trimmed(task, PICKED).configuration == Configuration({ACTS: VALUES[ACTS]})
    assert task.store.get(task.subject, TrimOrder) == before


def test_other_rounds_than_it_was_begun_with_are_refused(ready: FakeTestbed) -> None:
    ready.dies_after = 5
    with pytest.raises(KeyboardInterrupt):
        trimmed(with_budget(ready.task, trim_rounds=3), PICKED)
    ready.dies_after = None
    with pytest.raises(UsageError, match="intop tune --new"):
        trimmed(with_budget(ready.task, trim_rounds=4), PICKED)


def test_a_judged_winner_is_not_trimmed_any_further(ready: FakeTestbed) -> None:
    """An earlier version may have judged a set that this one would measure again."""
    task = with_budget(ready.task, trim_rounds=3)
    kept = Configuration({key: VALUES[key] for key in (ACTS, "net.ipv4.tcp_fin_timeout")})
    task.store.put(
        task.subject,
        Trimmed(
            origin="candidate 1",
            candidate=PICKED.configuration,
            configuration=kept,
            sets=(),
            left_out=(),
            trials=9,
            level=0.95,
        ),
    )
    place = PlannedTrial(index=0, role="finalist", configuration=kept, arm="winner", round=1)
    task.store.write_plan(task.subject, "judge", [place])
    assert trimmed(task, PICKED).configuration == kept
    assert not ready.measured
