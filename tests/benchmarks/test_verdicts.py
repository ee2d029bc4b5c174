"""The benchmark of verdicts: what it plants, the truth that follows, and what it finds wrong."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import verdicts
from benchmarks.campaign import scenario
from builders.results import VERDICT
from builders.trials import cluster
from intop.config.recording import words_of
from intop.domain.baseline import HOST
from intop.domain.configuration import DEFAULT
from intop.domain.recording import paths_of, times_us
from intop.domain.trial import PlannedTrial
from intop.hosts.rig import Rig
from intop.lab.content import static_paths
from intop.run.cluster_testbed import ClusterTestbed

NOTHING: Any = None


def found(ratio: float, low: float, high: float, truth: Sequence[float] = ()) -> verdicts.Found:
    sides = replace(VERDICT.sides, latencies_ms={}, mean_ms=None)
    verdict = replace(VERDICT, ratio=ratio, ratio_low=low, ratio_high=high, sides=sides)
    return verdicts.Found(verdict=verdict, seconds=30.0, truth=list(truth), pairs=[ratio])


def planned(arm: str) -> PlannedTrial:
    return PlannedTrial(index=0, role="sentinel", configuration=DEFAULT, arm=arm, round=1)


def test_one_side_asks_for_pages_that_come_later_by_the_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        ClusterTestbed, "trial", lambda testbed, *_: testbed.loads.rig.cluster.dynamic_path
    )
    ready = verdicts.OneSided(
        task=NOTHING,
        rig=Rig(cluster(), ()),
        loads=NOTHING,
        guard=NOTHING,
        probe=NOTHING,
        probed=NOTHING,
        conditions=NOTHING,
        effect=verdicts.Wait(7),
    )
    assert ready.trial(planned(HOST), "judge", 0) == "/dynamic?wait_ms=10"
    assert ready.trial(planned(verdicts.SIDE), "judge", 0) == "/dynamic?wait_ms=17"
    assert ready.trial(planned(HOST), "judge", 0) == "/dynamic?wait_ms=10"


def test_the_truth_of_a_wait_follows_from_the_default_alone() -> None:
    p99s = {HOST: {(1, 1): 10.0, (1, 2): 30.0}, verdicts.SIDE: {(1, 1): 999.0}}
    assert verdicts.Wait(10).truth(p99s) == [0.5, 0.75]


def test_the_truth_of_a_slow_link_is_that_of_the_pairs() -> None:
    p99s = {HOST: {(1, 1): 10.0, (1, 2): 30.0}, verdicts.SIDE: {(1, 1): 20.0, (1, 3): 1.0}}
    assert verdicts.SlowLink(NOTHING, 0.6).truth(p99s) == [0.5]


def test_a_verdict_is_held_against_the_truth_of_all_others() -> None:
    one = found(0.5, 0.4, 0.6, truth=[0.5])
    other = found(0.5, 0.4, 0.6, truth=[0.9])
    assert [verdicts.holds_truth([one, other], n) for n in range(2)] == [False, True]


def test_errors_beyond_the_limit_are_named() -> None:
    same, error = found(1.0, 0.9, 1.1), found(1.2, 1.1, 1.3)
    assert not verdicts.summary([same] * 36 + [error] * 4, "nothing")[1]
    assert verdicts.summary([same] * 35 + [error] * 5, "nothing")[1] == [
        "call anything, all percentiles together: 5 of 40, at most 4"
    ]


def test_a_wrong_sign_and_intervals_beside_the_truth_are_named() -> None:
    good = found(0.6, 0.5, 0.7, truth=[0.6, 0.61])
    beside, wrong = found(0.8, 0.75, 0.85, truth=[0.6]), found(1.1, 0.55, 1.5, truth=[0.6])
    rows, missed = verdicts.summary([good] * 18 + [beside] * 2, "effect")
    assert not missed
    assert any("18 of 20 | at least 18" in row for row in rows)
    assert verdicts.summary([good] * 16 + [beside] * 3 + [wrong], "effect")[1] == [
        "right sign: 19 of 20, at least 20",
        "interval holds the truth of all others: 17 of 20, at least 18",
    ]


def test_a_recorded_load_has_bursts_at_the_scenarios_rate_and_its_mix(tmp_path: Path) -> None:
    study = scenario("bbr-backends")
    own = replace(study, workloads={"slt": study.workloads["slt"]})
    load = verdicts.replaying(own, tmp_path).workloads["slt"]
    assert load.recording is not None
    assert load.recording.rate_rps == pytest.approx(load.rate_rps, rel=0.05)
    words = words_of(load.recording)
    counts = np.bincount(paths_of(words), minlength=len(static_paths()))
    assert counts.max() < 1.2 * counts.min()
    each_s = np.bincount(times_us(words) // 1_000_000)
    assert each_s.var() / each_s.mean() > 2
