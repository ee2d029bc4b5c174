"""What a workload asks for."""

from dataclasses import replace

from intop.domain.workload import Workload

SLT = Workload(
    name="slt", rate_rps=10, connections=2, threads=1, duration_s=1, warmup_s=0, timeout_s=2
)


def test_static_load_asks_for_the_clusters_paths_unless_it_has_its_own() -> None:
    assert ("/a", "/b") == SLT.asked(("/a", "/b"), "/dynamic")
    assert ("/large",) == replace(SLT, paths=("/large",)).asked(("/a", "/b"), "/dynamic")


def test_dynamic_load_asks_for_the_dynamic_path() -> None:
    assert ("/dynamic",) == replace(SLT, name="dlt").asked(("/a", "/b"), "/dynamic")
