"""Which trials are stopped before their end; and that they are, on a real lab."""

from collections.abc import Callable
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from fakes import FakeTestbed
from intop.config.study import load_study
from intop.domain.configuration import DEFAULT, Configuration
from intop.domain.trial import PlannedTrial, Trial
from intop.hosts.ssh import connect
from intop.report.progress import LineProgress
from intop.run.campaigns import new
from intop.run.cluster_testbed import bench as ready_bench
from intop.run.context import Context
from intop.run.pruner import limit_ms, told
from intop.store import opened
from samples import trial

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
    made: list[Trial], expected: float | None
) -> None:
    assert pytest.approx(expected) == limit_ms(DESIGN, "screen", made, 5.0)


@pytest.mark.parametrize(
    ("planned", "stage", "factor", "is_limited"),
    [
        (DESIGN, "screen", 5.0, True),
        (DESIGN, "collect", 1.5, True),
        (DESIGN, "refine", 5.0, True),
        (DESIGN, "collect", 0.0, False),
        (DESIGN, "pick", 5.0, False),
        (DESIGN, "judge", 5.0, False),
        (DESIGN, "contest", 5.0, False),
        (replace(DESIGN, configuration=DEFAULT), "collect", 5.0, False),
    ],
)
def test_what_a_verdict_rests_on_is_never_stopped_nor_the_default(
    planned: PlannedTrial, stage: str, factor: float, is_limited: bool
) -> None:
    assert is_limited == (limit_ms(planned, stage, DEFAULTS, factor) is not None)


def test_why_it_was_stopped_is_told() -> None:
    assert (
        "stopped after 3.1 of 30 s: its P99 is certainly above 450 ms (hopeless x the default's)"
    ) == told(3.14, 30, 450.0)
    assert "" == told(None, 30, 450.0)


def test_each_trial_of_a_stage_has_the_limit_of_the_defaults_before_it(
    testbed: FakeTestbed,
) -> None:
    plan = with_sentinels([OTHER, replace(OTHER)], 1)
    testbed.latency = lambda planned: {0: 1000, 2: 2000}.get(planned.index, 500)
    assert 5.0 == testbed.task.context.study.budget.prune_factor
    measured(testbed.task, "collect", plan)
    expected = [None, 5.0, None, 5 * 2**0.5, None]
    assert expected == [
        limit if limit is None else pytest.approx(limit) for limit in testbed.limits_ms
    ]


# On a real lab ------------------------------------------------------------------------------------

LIMIT_MS = 400.0


def test_a_hopeless_trial_is_stopped_and_a_healthy_one_is_not(
    make_study: Callable[..., Any], tmp_path: Path
) -> None:
    made = make_study("x86")
    study = load_study(made.folder / "intop.toml")
    workload = study.workloads["slt"]
    # Files of 2 to 120 KB: several times what a link of 300 Mbit/s carries.
    flood = replace(workload, rate_rps=2000, duration_s=10)
    trials: list[Trial] = []
    with opened(str(tmp_path / "own.db")) as store:
        context = Context(
            study=study,
            store=store,
            campaign=new(store, study),
            connect=connect,
            progress=LineProgress(StringIO()),
            archs=("x86",),
            workloads=(workload, flood),
        )
        for task in context.subjects():
            with ready_bench(task) as ready:
                trials.append(ready.trial(DESIGN, "collect", 0, LIMIT_MS))
    healthy, hopeless = trials
    assert ("ok", None) == (healthy.status, healthy.pruned_above_ms), healthy.detail

    assert "overloaded" == hopeless.status, hopeless.detail
    assert hopeless.detail.startswith("stopped after ")
    assert hopeless.detail.endswith(
        " of 10 s: its P99 is certainly above 400 ms (hopeless x the default's)"
    )
    assert hopeless.seconds < flood.duration_s
    assert hopeless.usable
    assert LIMIT_MS == hopeless.pruned_above_ms < hopeless.p99_ms
    assert 0 < hopeless.achieved_rps < flood.rate_rps
