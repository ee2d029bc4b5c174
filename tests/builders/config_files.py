"""A study's file for the tests of configuration, and how it is changed and read."""

from pathlib import Path

import pytest

from intop.config.study import Study, load_study
from intop.errors import ConfigurationError

CONFIGS = Path(__file__).parents[2] / "configs"
CATALOGUES = ("parameters.toml", "counters.toml", "nginx.toml")
STUDIES = sorted(p.name for p in CONFIGS.glob("*.toml") if p.name not in CATALOGUES)
GOOD = """\
[study]
name = "mine"
store = "mine.db"

[workload.slt]
rate_rps = 100
connections = 8
threads = 2
duration_s = 2

[cluster.x86]
lab = "one"
link = { rate_mbit = 300 }

[cluster.arm]
url = "http://10.0.0.2"
nginx_restart = "systemctl restart nginx"
static_paths = ["/index.html"]
dynamic_path = "/dynamic"

[cluster.arm.load_generator]
hostname = "load.example"

[cluster.arm.load_balancer]
hostname = "10.0.0.2"
sudo = true
jump = { hostname = "jump.example", user = "me" }

[[cluster.arm.backends]]
hostname = "b1.example"

[[cluster.arm.backends]]
hostname = "b2.example"
name = "second"
"""
HEAD = GOOD[: GOOD.index("[cluster.x86]")]
REPLICA = '[[cluster.x86]]\nlab = "{}"\nlink = {{ rate_mbit = 300 }}\n\n'
REPLICAS = HEAD + REPLICA.format("one") + REPLICA.format("two")


NAME, STORE, SLT, SUDO = 'name = "mine"', 'store = "mine.db"', "[workload.slt]", "sudo = true"
DURATION, LAB, LINK = "duration_s = 2", 'lab = "one"', "link = { rate_mbit = 300 }"

MUST = "input should be"
AT_LEAST = f"{MUST} greater than or equal to"


def study(tmp_path: Path, text: str) -> Study:
    path = tmp_path / "study.toml"
    path.write_text(text)
    return load_study(path)


def problems(tmp_path: Path, text: str) -> tuple[str, ...]:
    """Without the folder."""
    with pytest.raises(ConfigurationError) as caught:
        study(tmp_path, text)
    return tuple(problem.removeprefix(f"{tmp_path}/") for problem in caught.value.problems)


def edited(old: str, new: str, text: str = GOOD) -> str:
    assert text.count(old) == 1, old
    return text.replace(old, new)


def with_budget(line: str) -> str:
    return edited("[workload.slt]", f"[budget]\n{line}\n[workload.slt]")


CLASSES = """\
[[workload.slt.clients]]
name = "people"
share = 0.8
think_ms = 20
[[workload.slt.clients]]
name = "bots"
share = 0.2
connections = 2
requests_per_connection = 1
"""


def with_classes(old: str = "[[", new: str = "[[") -> str:
    classes = CLASSES if old == new else edited(old, new, CLASSES)
    return edited(DURATION, f"{DURATION}\n{classes}")


GENERATOR = """\
[cluster.arm.load_generator]
hostname = "load.example"
"""
GENERATORS = """\
[[cluster.arm.load_generators]]
hostname = "load.example"

[[cluster.arm.load_generators]]
hostname = "load-2.example"
name = "more"
"""
