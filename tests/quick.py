"""Which tests are quick: `make quick` leaves out those that need a lab, and those that take long.

A test needs a lab if it is in a folder of such tests, or if it refers to a helper that starts one:
network namespaces, hosts, servers, PostgreSQL. What a test refers to is seen in its code, in that
of its fixtures, and in the functions of the tests that these call. A guard holds this against what
quick tests really do.
"""

import inspect
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import pytest

TESTS = Path(__file__).parent

LAB_FOLDERS = ("attacks", "faults", "machine", "pipeline", "hosts/ssh")
"""Folders whose tests all need one."""

LAB_HELPERS = frozenset(
    {
        "kit.client_namespaces",
        "kit.cut_postgres",
        "kit.fake_kernel",
        "intop.lab.cluster",
        "kit.namespace_host",
        "kit.nginx_host",
        "kit.own_machine",
        "kit.postgres",
        "kit.real_campaigns",
        "kit.studies.Study",
        "kit.sysctl_programs",
        "kit.systemd_host",
    }
)
"""Modules that start one."""

LAB_TESTS = (
    "traffic/test_loss.py::test_it_is_the_share_of_this_machines_own_segments",
    "cli/test_init.py::test_an_alias_of_ssh_is_no_name_for_others",
    "cli/test_worker.py::test_prometheus_is_told_what_a_worker_has_done",
    "hosts/load/test_engine_run.py",
    "hosts/load/test_engine_sends.py",
    "hosts/load/test_http2.py",
    "hosts/load/test_http2_nginx.py",
    "hosts/load/test_scripts.py",
    "hosts/load/test_scripts_nginx.py",
    "hosts/test_facts.py::test_namespaces_of_this_machine",
    "hosts/test_delivery.py::test_real_connections_of_a_server",
    "hosts/test_fetch.py",
    "hosts/test_footprint.py",
    "hosts/test_other_servers.py",
    "hosts/test_persistent_order.py",
    "hosts/test_reader.py",
    "hosts/test_readiness.py",
    "hosts/test_sockets.py",
    "hosts/test_sysctl.py",
    "lab/test_client_link.py",
    "lab/test_system_packages.py",
    "learn/test_dask_cluster.py",
    "deploy/canary/test_own_metrics.py",
    "deploy/export/test_nginx.py::test_nginx_takes_it",
    "report/test_live.py::test_a_browser_shows_it_and_asks_for_nothing_else",
    "report/test_live.py::test_a_port_that_is_taken_is_one_error",
    "run/test_worker_metrics.py",
    "test_nginx_accepts.py",
    "test_nginx_made_up.py",
)
"""Files and tests that start programs of the system themselves."""

SLOW_TESTS = (
    "cli/test_secrets.py",
    "cli/test_trials.py",
    "config/test_mistakes.py",
    "config/test_tables_against_pandas.py",
    "domain/nginx/test_edits.py::test_any_values_are_set_once_and_hold",
    "domain/test_whole_catalogue.py",
    "hosts/ssh/test_config_as_ssh.py",
    "hosts/test_hostile_output.py",
    "hosts/test_made_up_tuned_profiles.py",
    "learn/test_active.py",
    "learn/test_ceiling.py",
    "learn/test_effects.py",
    "learn/test_gaussian_process.py",
    "learn/test_parallel.py",
    "learn/test_screening.py",
    "learn/test_surrogate.py",
    "learn/test_tuning.py",
    "report/test_page.py",
    "report/test_figures.py::test_every_figure_can_stand_in_a_document",
    "document/test_plain.py",
    "run/test_distrust.py",
    "run/test_any_rows.py",
    "run/test_hostile_rows.py",
    "run/test_overload.py",
    "run/test_worker.py",
    "explain/test_stage.py",
    "campaign/test_models.py",
    "explain/test_promised.py",
    "campaign/test_pick.py",
    "campaign/test_refine.py",
    "campaign/test_refine_warm_start.py",
    "campaign/test_screen.py",
    "campaign/test_verify.py",
    "store/test_killed_training.py",
    "store/test_migrations.py::test_a_kill_within_a_migration_leaves_a_store_as_it_was",
    "store/test_opening.py::test_of_several_programs_that_open_a_new_store_one_makes_it",
    "store/test_queries.py",
    "test_artefacts.py",
    "test_docs.py::test_what_needs_no_cluster_runs",
    "test_hostile_files.py::test_any_value_anywhere_is_taken_or_told",
    "test_hostile_store.py",
    "benchmarks/test_models.py",
    "benchmarks/test_modes.py",
    "benchmarks/test_recorded.py",
    "benchmarks/test_search.py",
    "benchmarks/test_truth.py",
    "benchmarks/test_tuners.py",
    "typed",
)
"""Folders, files and tests that need none, and take long: half a second of a processor and more."""


def name_of(path: Path) -> str:
    """Return a test file's name within the tests."""
    return str(path.relative_to(TESTS))


@pytest.hookimpl(tryfirst=True)
def pytest_itemcollected(item: pytest.Item) -> None:
    """Give each test its markers."""
    for name in markers(item):
        item.add_marker(name)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out whole files of which `make quick` has no test."""
    is_quick = "not lab and not slow" in config.option.markexpr
    return True if is_quick and is_left_out(collection_path) else None


def markers(item: pytest.Item) -> Iterator[str]:
    """Yield the markers of a test."""
    name = f"{name_of(item.path)}::{item.name}"
    if name.startswith((*LAB_FOLDERS, *LAB_TESTS)) or needs_lab(item):
        yield "lab"
    if name.startswith(SLOW_TESTS):
        yield "slow"


def is_left_out(path: Path) -> bool:
    """Return whether no test of a file or folder is quick, so that nothing of it is imported."""
    return name_of(path) in {*LAB_FOLDERS, *LAB_TESTS, *SLOW_TESTS}


def needs_lab(item: pytest.Item) -> bool:
    """Return whether a test refers to a helper that starts a lab."""
    if not isinstance(item, pytest.Function):
        return False
    if getattr(item, "callspec", None) and item.callspec.params.get("url") == "postgresql":
        return True
    fixtures = item._fixtureinfo.name2fixturedefs
    own = [fixtures[name][-1].func for name in item.fixturenames if name in fixtures]
    return any(map(starts_lab, [item.function, *own]))


@cache
def starts_lab(function: Any) -> bool:
    """Return whether a function refers to a helper that starts a lab, or calls one that does."""
    seen: set[Any] = set()
    todo = [function]
    while todo:
        value = inspect.unwrap(todo.pop())
        if value in seen:
            continue
        seen.add(value)
        for referred in references(value):
            module = referred if isinstance(referred, ModuleType) else inspect.getmodule(referred)
            name = getattr(module, "__name__", "")
            if {name, f"{name}.{getattr(referred, '__qualname__', '')}"} & LAB_HELPERS:
                return True
            if Path(getattr(module, "__file__", None) or "/").is_relative_to(TESTS):
                todo.append(referred)
    return False


def references(value: Any) -> Iterator[Any]:
    """Yield the modules, functions and classes that a function or a class of ours refers to."""
    if isinstance(value, type):
        functions = [inspect.unwrap(f) for f in vars(value).values() if callable(f)]
    else:
        functions = [value]
    for function in functions:
        if isinstance(function, FunctionType):
            for name in names(function.__code__):
                referred = function.__globals__.get(name)
                if isinstance(referred, ModuleType | FunctionType | type):
                    yield referred


def names(code: CodeType) -> Iterator[str]:
    """Yield all names that code refers to, and those of the functions in it."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from names(constant)


# What quick tests do ------------------------------------------------------------------------------

PROGRAMS = frozenset(
    {
        *(
            "initdb",
            "ip",
            "nft",
            "nginx",
            "nsenter",
            "pg_ctl",
            "postgres",
            "psql",
            "qemu-system-arm",
        ),
        *("qemu-system-x86_64", "scp", "ssh", "sshd", "sudo", "systemctl", "tc", "unshare", "wrk"),
    }
)
"""Programs that no quick test starts itself."""


class Guard:
    """An audit hook that knows what the present test does that needs a lab."""

    def __init__(self) -> None:
        self.is_on = False
        self.seen: list[str] = []

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self.is_on and (what := beyond_quick(event, arguments)):
            self.seen.append(what)
            raise RuntimeError(f"a quick test {what}: see tests/quick.py")


def beyond_quick(event: str, arguments: tuple[Any, ...]) -> str:
    """Return what an audited event does that no quick test may do, or nothing."""
    if event in ("subprocess.Popen", "os.exec", "os.posix_spawn"):
        executable, words, *_ = arguments
        program = words if isinstance(words, str) else [*words, executable][0]
        name = Path(str(program)).name
        return f"starts {name}" if name in PROGRAMS else ""
    if event == "socket.connect" and isinstance(arguments[1], tuple):
        return f"connects to {arguments[1]}"
    return ""


@cache
def guard() -> Guard:
    """Return the guard of this process, which can't be taken away again."""
    made = Guard()
    sys.addaudithook(made)
    return made


@pytest.fixture(autouse=True)
def _needs_no_lab(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail a test of `make quick` that does what needs a lab."""
    if "not lab" not in request.config.option.markexpr:
        yield
        return
    present = guard()
    present.is_on = True
    yield
    present.is_on = False
    seen, present.seen = present.seen, []
    assert not seen
