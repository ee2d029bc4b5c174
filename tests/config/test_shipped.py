"""The configuration files that come with intop."""

import re
from dataclasses import fields
from pathlib import Path

import pytest

from builders.config_files import CONFIGS, STUDIES, study
from intop.config.study import load_study
from intop.domain.cluster import Cluster, LabSpec, native_arch, other_arch
from intop.domain.workload import Clients


@pytest.mark.parametrize("name", STUDIES)
def test_every_shipped_study_loads(name: str) -> None:
    result = load_study(CONFIGS / name)
    assert {w.name for w in result.workloads.values() if w.tuned} == {"slt", "dlt"}
    assert result.clusters
    assert len(result.catalogue.parameters) >= 100


def test_the_shipped_studies_are_there() -> None:
    assert {"lab.toml", "paper.toml", "cluster.example.toml"} <= set(STUDIES)


def test_the_lab_is_this_machines_architecture_and_a_guest_of_the_other() -> None:
    result = load_study(CONFIGS / "lab.toml")
    labs = [c for replicas in result.clusters.values() for c in replicas]
    kinds = {(c.arch, c.kind) for c in labs if isinstance(c, LabSpec)}
    assert {(native_arch(), "namespaces"), (other_arch(), "vm")} == kinds
    assert {other_arch()} == result.optional
    # Clusters that are compared have the same link, and a machine can't be two labs at once.
    assert len({c.link for c in labs}) == 1
    assert len(labs) == len({c.name for c in labs if isinstance(c, LabSpec)})


def test_the_example_has_an_x86_and_an_arm_cluster() -> None:
    result = load_study(CONFIGS / "cluster.example.toml").clusters
    assert set(result) == {"x86", "arm"}
    clusters = [c for replicas in result.values() for c in replicas if isinstance(c, Cluster)]
    assert [c.programs for c in clusters] == [("php-fpm8.2",)] * 2


def uncommented(text: str, first: str, last: str) -> str:
    """The example with its settings from one line to another in force, which are comments."""
    start = text.index(f"# {first}")
    end = text.index(f"# {last}", start) + len(f"# {last}")
    lines = re.sub(r"^# (?=\w+ = |\[\[)", "", text[start:end], flags=re.MULTILINE)
    assert lines != text[start:end]
    return text[:start] + lines + text[end:]


def test_what_the_example_says_of_loads_in_comments_can_be_said(tmp_path: Path) -> None:
    text = (CONFIGS / "cluster.example.toml").read_text()
    behaving = study(tmp_path, uncommented(text, "duration_s = 20", "source = ")).workloads["slt"]
    assert (behaving.arrivals, behaving.duration_s) == ("poisson", 20)
    (clients,) = behaving.clients
    plain = Clients()
    same = {f.name for f in fields(Clients) if getattr(plain, f.name) == getattr(clients, f.name)}
    assert same == {"name", "share", "connections"}

    classes = uncommented(text, "[[workload.slt.clients]]", "requests_per_connection = 1\n")
    result = study(tmp_path, classes).workloads["slt"].clients
    assert [one.name for one in result] == ["people", "bots"]

    start = text.index("[cluster.x86.load_generator]")
    end = text.index("# [[cluster.x86.load_generators]]")
    shared = uncommented(text[:start] + text[end:], "[[cluster.x86", 'hostname = "192.0.2.11"')
    (x86,) = study(tmp_path, shared).clusters["x86"]
    assert isinstance(x86, Cluster)
    assert [host.hostname for host in x86.load_generators] == ["192.0.2.10", "192.0.2.11"]
