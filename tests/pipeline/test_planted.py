"""That verdicts are right, on a real lab: a wait and a good key that are planted are called so."""

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.campaign import begun, judged
from benchmarks.verdicts import SIDE, Wait, one_sided
from intop.config.study import Study, load_study
from intop.domain.cluster import LabSpec, native_arch
from intop.domain.configuration import DEFAULT, Configuration
from intop.lab import cluster as lab
from intop.resources import shipped
from intop.run.context import Task
from intop.store import opened

Traces = Callable[[str], list[str]]

SMALL_WINDOW = Configuration(
    {"net.ipv4.tcp_moderate_rcvbuf": "0", "net.ipv4.tcp_rmem": "51491 51491 252930"}
)
"""A campaign's winner with two keys: backends send less at once, and the short buffer of the lab's
link holds it. Its P99 was 5.17 times lower (docs/tutorial.md)."""


@pytest.fixture
def study(traces: Traces) -> Iterator[Study]:
    """The lab's study on a lab of its own, with verdicts of eight pairs: other tests make noise."""
    shipped_study = load_study(shipped("configs") / "lab.toml")
    arch = native_arch()
    spec = LabSpec(
        name=f"t-p{os.getpid() % 10_000}", arch=arch, link=shipped_study.clusters[arch][0].link
    )
    limits = {"max_foreign_cores": 1000, "max_steal_cores": 1000, "max_steal": 0.99, "max_lag": 1}
    budget = replace(shipped_study.budget, judge_pairs=8, judge_looks=1, **limits)
    try:
        lab.up(spec)
        yield replace(shipped_study, clusters={arch: (spec,)}, budget=budget)
    finally:
        lab.down(spec.name)
    assert traces(spec.name) == []


def only(study: Study, workload: str) -> Study:
    return replace(study, workloads={workload: study.workloads[workload]})


def test_verdicts_call_what_was_planted(study: Study, tmp_path: Path) -> None:
    with opened(str(tmp_path / "planted.db")) as store:
        slower: Task = begun(store, only(study, "dlt"), testbeds=one_sided(Wait(60)))
        verdict = judged(slower, SIDE, DEFAULT)
        assert "worse" == verdict.outcome

        better: Task = begun(store, only(study, "slt"))
        verdict = judged(better, "small window", SMALL_WINDOW)
        assert "gain" == verdict.p99_outcome
