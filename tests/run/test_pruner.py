"""Which trials are pruned; and that they are, on a real lab."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.campaign import FixedPlan, measured
from builders.testbeds import FakeTestbed
from builders.trials import trial
from intop.campaign.collect.stage import Collect
from intop.campaign.sentinels import with_sentinels
from intop.config.study import load_study
from intop.domain.configuration import DEFAULT, Configuration
from intop.domain.trial import PlannedTrial, Trial
from intop.run.attempt import pruned
from intop.run.measuring import prune_above_ms
from intop.run.opening import cluster_testbed
from intop.run.registry import stages
from kit.real_campaigns import contexts

OTHER = Configuration({"net.core.somaxconn": "64"})
DESIGN = PlannedTrial(index=5, role="design", configuration=OTHER)
DEFAULTS = [trial(DEFAULT, 1000), trial(OTHER, 77), trial(DEFAULT, 2000, index=1)]


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        ([], None),
        ([trial(OTHER, 1000)], None),
        ([trial(DEFAULT, 1000, status="disturbed")], None),
        ([trial(DEFAULT, 1000)], 5.0),
        (DEFAULTS, 5 * 2**0.5),
        ([*DEFAULTS, trial(DEFAULT, 9, status="failed")], 5 * 2**0.5),
    ],
)
def test_the_limit_is_a_multiple_of_the_defaults_p99(
    testbed: FakeTestbed, made: list[Trial], expected: float | None
) -> None:
    assert prune_above_ms(Collect(testbed.task), DESIGN, made) == pytest.approx(expected)


def test_zero_prunes_none_and_the_default_never_is(testbed: FakeTestbed) -> None:
    context = testbed.task.context
    study = replace(context.study, budget=replace(context.study.budget, prune_factor=0.0))
    without = Collect(replace(testbed.task, context=replace(context, study=study)))
    assert prune_above_ms(without, DESIGN, DEFAULTS) is None
    default = replace(DESIGN, configuration=DEFAULT)
    assert prune_above_ms(Collect(testbed.task), default, DEFAULTS) is None


def test_what_a_verdict_rests_on_is_never_pruned(testbed: FakeTestbed) -> None:
    assert [s.name for s in stages() if s.explores] == ["screen", "collect", "refine"]
    judge = FixedPlan(testbed.task, "judge", (), ends_by_failures=True)
    assert prune_above_ms(judge, DESIGN, DEFAULTS) is None


def test_why_it_was_pruned_is_said() -> None:
    assert pruned(3.14, 30, 450.0) == (
        "pruned after 3.1 of 30 s: its latency is certainly above 450 ms (prune_factor x the "
        "default's)"
    )
    assert pruned(None, 30, 450.0) == ""


def test_each_trial_of_a_stage_has_the_limit_of_the_defaults_before_it(
    testbed: FakeTestbed,
) -> None:
    plan = with_sentinels([OTHER, replace(OTHER)], 1)
    testbed.latency = lambda planned: {0: 1000, 2: 2000}.get(planned.index, 500)
    assert testbed.task.context.study.budget.prune_factor == 5.0
    measured(testbed.task, "collect", plan)
    expected = [None, 5.0, None, 5 * 2**0.5, None]
    assert [
        limit if limit is None else pytest.approx(limit) for limit in testbed.limits_ms
    ] == expected


# On a real lab ------------------------------------------------------------------------------------

LIMIT_MS = 400.0


def test_a_bad_trial_is_pruned_and_a_healthy_one_is_not(
    make_study: Callable[..., Any], tmp_path: Path
) -> None:
    made = make_study("x86")
    study = load_study(made.folder / "intop.toml")
    workload = study.workloads["slt"]
    # Files of 2 to 120 KB: several times what a link of 300 Mbit/s carries.
    flood = replace(workload, rate_rps=2000, duration_s=10)
    trials: list[Trial] = []
    with contexts(study, tmp_path) as context:
        for task in replace(context, workloads=(workload, flood)).subjects():
            with cluster_testbed(task) as ready:
                trials.append(ready.trial(DESIGN, "collect", 0, LIMIT_MS))
    healthy, bad = trials
    assert (healthy.status, healthy.pruned_above_ms) == ("ok", None), healthy.detail

    assert bad.status == "pruned", bad.detail
    assert bad.detail.startswith("pruned after ")
    assert bad.detail.endswith(
        " of 10 s: its latency is certainly above 400 ms (prune_factor x the default's)"
    )
    assert bad.seconds < flood.duration_s
    assert bad.usable
    assert LIMIT_MS == bad.pruned_above_ms < bad.judged_ms
    assert 0 < bad.achieved_rps < flood.rate_rps
