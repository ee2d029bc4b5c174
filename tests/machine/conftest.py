"""One machine for all of these tests; how long each fault took is printed at the end."""

import os
from collections.abc import Iterator

import pytest

from intop.domain.cluster import LabSpec, Link, native_arch
from intop.hosts.guard import rollback
from intop.hosts.ssh import Secret
from intop.lab import cluster as lab
from machine.hosts import Machine, left, values
from machine.session import VALUES

SPEC = LabSpec(
    name=f"t-m{os.getpid() % 10_000}",
    arch=native_arch(),
    kind="machine",
    link=Link(rate_mbit=100),
)
TIMES: list[tuple[str, float]] = []


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


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if not TIMES:
        return
    terminalreporter.section("times on the machine")
    for what, seconds in TIMES:
        terminalreporter.line(what if seconds != seconds else f"{seconds:7.1f} s  {what}")
