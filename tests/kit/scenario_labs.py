"""A shipped scenario on a lab of its own."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from intop.config.study import Study, load_study
from intop.domain.cluster import LabSpec, native_arch
from intop.lab import cluster as lab
from intop.resources import shipped

AS_IT_IS = {"max_foreign_cores": 1000, "max_steal_cores": 1000, "max_steal": 0.99, "max_lag": 1}
"""No trial counts as disturbed, since other tests make noise."""


@contextmanager
def on_a_lab(
    name: str, workload: str, *, pairs: int, arch: str | None = None, **changes: object
) -> Iterator[Study]:
    """A shipped study with one workload and one cluster, whose lab has these changes."""
    shipped_study = load_study(shipped("configs") / name)
    arch = arch or native_arch()
    (*_, spec) = shipped_study.clusters[arch]
    assert isinstance(spec, LabSpec)
    spec = replace(spec, name=f"t-p{os.getpid() % 10_000}", **changes)  # type: ignore[arg-type]
    budget = replace(shipped_study.budget, judge_pairs=pairs, judge_looks=1, **AS_IT_IS)
    try:
        lab.up(spec)
        load = shipped_study.workloads[workload]
        clusters = {arch: (spec,)}
        yield replace(shipped_study, clusters=clusters, workloads={workload: load}, budget=budget)
    finally:
        lab.down(spec.name)
