"""What the tests of several parts of intop have in common."""

import platform
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from hypothesis import settings

from builders.shipped_studies import lab_study
from builders.testbeds import FakeTestbed
from intop.document.progress import LineProgress
from intop.run.campaigns import new
from intop.run.context import Context, Task
from intop.store import Subject, opened
from kit.golden import (  # noqa: F401  pytest finds fixtures here
    _golden,
    _golden_file,
)
from kit.postgres import Server, running
from kit.studies import RUN, SMALL, Study, wait_for
from quick import (  # noqa: F401  pytest finds hooks and fixtures here
    _needs_no_lab,
    name_of,
    pytest_ignore_collect,
    pytest_itemcollected,
)

# The same examples in every run: a failure is repeated by running the test again. What a machine
# is busy with must not fail a test, and nothing is kept between runs.
settings.register_profile("intop", derandomize=True, deadline=None, max_examples=60, database=None)
# To look further, by hand: pytest --hypothesis-profile=further
settings.register_profile("further", deadline=None, max_examples=2000, database=None)
settings.load_profile("intop")

LONGEST = (
    "pipeline/test_end_to_end.py",
    "faults/test_connection.py",
    "attacks/test_commands.py",
    "learn/test_tuning.py",
    "attacks/test_looks_like_nginx.py",
    "deploy/test_deployed.py",
    "hosts/test_guard_watchdog.py",
    "faults/test_kill_points.py",
    "hosts/load/test_engine_run.py",
    "hosts/load/test_engine_sends.py",
    "faults/test_disks.py",
    "attacks/test_looks_like_other_servers.py",
    "hosts/ssh/test_config_as_ssh.py",
    "hosts/test_made_up_sysctl_files.py",
    "hosts/test_made_up_tuned_profiles.py",
    "run/test_any_rows.py",
    "run/test_hostile_rows.py",
    "test_nginx_made_up.py",
    "config/test_tables_against_pandas.py",
    "run/test_doctor_on_labs.py",
    "run/test_disturbance.py",
    "faults/test_rivals.py",
    "lab/test_guest.py",
    "faults/test_values.py",
    "run/test_overload.py",
    "pipeline/test_defects.py",
    "pipeline/test_install.py",
    "hosts/load/test_http2.py",
    "benchmarks/test_recorded.py",
    "hosts/test_guard_deaths.py",
    "pipeline/test_planted.py",
    "typed/test_compare.py",
    "typed/test_help.py",
)
"""Files that take longest, the longest first: their workers shall not be what all wait for."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the files that take longest; all others stay in their order.

    With `--no-loadscope-reorder` workers get them so. By itself xdist begins with the files that
    have most tests, and those with a few tests of minutes come last.
    """
    places = {name: n for n, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(name_of(item.path), len(places)))


MOVING = {"fs.dentry-state", "fs.file-nr", "fs.inode-nr", "fs.inode-state", "fs.quota.syncs"}
MOVING |= {"kernel.ns_last_pid", "kernel.pty.nr"}
"""Keys that count what goes on. kernel.random.* is left out as well."""
ALLOWED = "net.ipv4.tcp_allowed_congestion_control"
"""To which the first lab of a machine adds cubic, until the last one ends: lab/test_defaults.py."""


def traces(lab: str) -> list[str]:
    """Whatever there is of a lab, looked for without the lab's own bookkeeping."""
    result = [str(path) for path in Path("/run/netns").glob(f"intop-{lab}-*")]
    result += [n for _, n in socket.if_nameindex() if n == f"intop-{lab}"]
    result += [str(path) for path in Path("/run/intop/lab").glob(lab)]
    mounts = Path("/proc/self/mountinfo").read_text().split()
    result += [word for word in mounts if word.startswith(f"/run/intop/lab/{lab}/")]
    groups = Path("/sys/fs/cgroup")
    result += [str(p) for of in ("", "*/") for p in groups.glob(f"{of}intop-{lab}")]
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            arguments = process.read_bytes().decode(errors="replace")
        except OSError:
            continue
        if f"/run/intop/lab/{lab}/" in arguments or f"intop-{lab}-" in arguments:
            result.append(arguments)
    return result


def machine_sysctls() -> dict[str, str]:
    """`sysctl -a` of the machine, without what moves by itself."""
    text = subprocess.run(["sysctl", "-a"], capture_output=True, text=True, timeout=20).stdout
    pairs = (line.partition(" = ") for line in text.splitlines() if " = " in line)
    result = {
        key: value
        for key, _, value in pairs
        if key not in MOVING and not key.startswith("kernel.random.")
    }
    return result | {ALLOWED: result.get(ALLOWED, "").replace("cubic", "").strip()}


@pytest.fixture(name="traces", scope="session")
def _traces() -> Callable[[str], list[str]]:
    return traces


@pytest.fixture(name="machine_sysctls", scope="session")
def _machine_sysctls() -> Callable[[], dict[str, str]]:
    return machine_sysctls


@pytest.fixture(scope="session", name="wait_for")
def _wait_for() -> Callable[[Callable[[], bool], str], None]:
    return wait_for


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Server]:
    """A PostgreSQL server for all tests of this process."""
    with running() as server:
        yield server


@pytest.fixture(scope="session")
def study_class() -> type[Study]:
    return Study


@pytest.fixture
def make_study(tmp_path: Path) -> Iterator[Callable[..., Study]]:
    """Studies with labs of their own, which are up, and down after the test."""
    made: list[Study] = []

    def make(*archs: str, replicas: int = 1) -> Study:
        places = [(arch, f"{letter}-{arch}{RUN}") for arch in archs for letter in "tuv"[:replicas]]
        labs = tuple(lab for _, lab in places)
        machine = platform.machine()
        clusters = "\n".join(
            f'[[cluster.{arch}]]\nlab = "{lab}"\nmachines = ["{machine}"]\n'
            'link = { rate_mbit = 300 }\nload_cpus = "0-1"\n'
            for arch, lab in places
        )
        (tmp_path / "intop.toml").write_text(SMALL.format(clusters=clusters))
        study = Study(tmp_path, labs)
        made.append(study)
        study.run("lab", "up")
        return study

    yield make
    for study in made:
        study.run("lab", "down")


@pytest.fixture
def a_narrow_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that is narrow, whatever terminal the tests run in."""
    monkeypatch.setenv("COLUMNS", "100")
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def testbed(tmp_path: Path) -> Iterator[FakeTestbed]:
    """A task of the lab's study whose trials are made up."""
    message = StringIO()
    study = lab_study()
    study = replace(study, clusters={arch: c[:1] for arch, c in study.clusters.items()})
    with opened(str(tmp_path / "store.db")) as store:
        context = Context(
            study=study,
            store=store,
            campaign=new(store, study),
            connect=lambda address: pytest.fail(f"connects to {address}"),
            progress=LineProgress(message),
            archs=("x86",),
            workloads=(study.workloads["slt"],),
            testbeds=lambda _: nullcontext((fake,)),
        )
        subject = Subject(campaign=context.campaign, arch="x86", workload="slt")
        task = Task(context=context, subject=subject, workload=study.workloads["slt"])
        fake = FakeTestbed(task, output=message)
        yield fake


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a store may be made, in each of the databases."""
    if request.param == "sqlite":
        return str(tmp_path / "intop.db")
    server: Server = request.getfixturevalue("postgres_server")
    return server.database()
