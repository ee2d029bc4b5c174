"""The scenarios of configs/scenarios: each is a whole study, and says what it is about."""

from dataclasses import replace
from pathlib import Path

import pytest

from intop.config.study import load_study
from intop.domain.cluster import LabSpec
from intop.lab import content
from intop.resources import shipped

FILES = sorted((shipped("configs") / "scenarios").glob("*.toml"))
STUDIES = {path.stem: load_study(path) for path in FILES}


def specs_of(name: str) -> list[LabSpec]:
    result = [spec for (spec,) in STUDIES[name].clusters.values() if isinstance(spec, LabSpec)]
    assert len(result) == len(STUDIES[name].clusters)
    return result


def spec_of(name: str) -> LabSpec:
    (spec,) = specs_of(name)
    return spec


def test_there_are_at_least_ten_and_they_cover_architectures_and_workloads() -> None:
    assert len(FILES) >= 10
    cells = [(a, w) for s in STUDIES.values() for a in s.clusters for w in s.workloads]
    assert min(map(cells.count, [(a, w) for a in ("x86", "arm") for w in ("slt", "dlt")])) >= 2


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_scenario_says_its_bottleneck_and_what_is_expected(path: Path) -> None:
    head = path.read_text().partition("[study]")[0]
    assert all(line.startswith("#") for line in head.strip().splitlines())
    assert "\n# Bottleneck: " in head
    assert "\n# Expected to act: " in head


@pytest.mark.parametrize("name", STUDIES)
def test_a_scenario_is_a_small_study_of_its_own(name: str) -> None:
    study = STUDIES[name]
    assert (name, f"{name}.db") == (study.name, study.store)
    everybody = [spec.name for other in STUDIES for spec in specs_of(other)]
    assert all(everybody.count(spec.name) == 1 for spec in specs_of(name))
    for workload in study.workloads.values():
        assert 2 <= workload.counted_s <= 4
        files = {f"/{path}" for path in (*content.SIZES_KB, *content.LARGE_KB)}
        assert set(workload.paths) <= files


def test_scenarios_that_are_badly_set_say_so_in_their_lab() -> None:
    assert spec_of("upstreams").balancing.upstream_keepalive == 0
    assert ("net.core.somaxconn", "128") in spec_of("bursts").balancing.sysctls
    assert ("net.ipv4.tcp_rmem", "4096 16384 32768") in spec_of("uploads").balancing.sysctls


@pytest.mark.parametrize("name", ["guest-idle", "guest-loss"])
def test_a_pair_of_guests_differs_in_the_architecture_only(name: str) -> None:
    one, other = specs_of(name)
    assert {one.arch, other.arch} == {"x86", "arm"}
    assert replace(one, name=other.name, arch=other.arch) == other
    assert one.kind == "vm"
