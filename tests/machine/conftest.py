"""One machine for all of these tests; how long each fault took is printed at the end."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from intop.domain.cluster import LabSpec, Link, native_arch
from intop.hosts.guard import rollback
from intop.hosts.ssh import Secret
from intop.lab import cluster as lab
from kit.studies import Study
from machine.hosts import Machine, left, values
from machine.session import VALUES

SPEC = LabSpec(
    name=f"t-m{os.getpid() % 10_000}",
    arch=native_arch(),
    kind="machine",
    link=Link(rate_mbit=100),
)
TIMES: list[tuple[str, float]] = []
STUDY = """
[study]
name = "small"
store = "small.db"
load_tool = "engine"
parameters = {keys}

[cluster.native]
lab = "{lab}"
kind = "machine"
link = {{ rate_mbit = 100 }}

[workload.slt]
rate_rps = 60
connections = 16
threads = 1
duration_s = 2
warmup_s = 0
paths = ["/index.html", "/img/photo-1.jpg"]

[budget]
settle_limit_s = 10
# The machine that runs the tests may have other work, and an emulated one is slow.
max_foreign_cores = 1000
max_steal_cores = 1000
max_steal = 0.99
max_load_cpu = 1
max_lag = 1
"""


@pytest.fixture(scope="session")
def machine() -> Iterator[Machine]:
    try:
        made = lab.up(SPEC, lambda output: TIMES.append((output, float("nan"))))
        password = Secret(lab.sudo_password(SPEC.name).read_text().rstrip("\n"))
        yield Machine(SPEC, made, password, TIMES)
    finally:
        lab.down(SPEC.name)


@pytest.fixture
def before(machine: Machine) -> Iterator[dict[str, str]]:
    """The machine's own values, of which none is one of ours, and nothing of us on it."""
    with machine.connected() as host:
        assert left(host) == ""
        result = values(host)
    assert not set(result.items()) & set(VALUES.items())
    yield result
    # What one test has shown to be left must not fail the others, too.
    machine.switch_on()
    with machine.connected() as host:
        rollback(host, force=True)


@pytest.fixture
def study(machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Study:
    """The command line, which has the password from its environment."""
    monkeypatch.setenv("INTOP_SUDO_PASSWORD", machine.password.reveal())
    text = STUDY.format(keys=list(VALUES), lab=machine.spec.name)
    (tmp_path / "intop.toml").write_text(text)
    return Study(tmp_path, (machine.spec.name,))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if not TIMES:
        return
    terminalreporter.section("times on the machine")
    for what, seconds in TIMES:
        terminalreporter.line(what if seconds != seconds else f"{seconds:7.1f} s  {what}")
