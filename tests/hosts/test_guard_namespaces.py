"""The real guard.sh and network namespaces that go away: only their numbers come again."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from intop.hosts.guard import status
from intop.hosts.guard.script import HELD, NOT_BACK
from kit.namespace_host import (
    FIN,
    LISTS,
    LONG,
    SOMAXCONN,
    NamespaceHost,
    begun,
    end_processes,
    namespace_host,
    wait_until,
)

LINE = "net/core/somaxconn 777"


def number_of(host: NamespaceHost) -> int:
    return Path(f"/run/netns/{host._namespace}").stat().st_ino


def made_again(host: NamespaceHost) -> None:
    """The host's namespace goes, and another one comes that has its number.

    The kernel gives the lowest free number, which somebody else may get first: so what the guard
    has noted gets the number that came, and keeps the rest of what it knows of the old namespace.
    """
    number, name = number_of(host), host._namespace
    end_processes(host)
    subprocess.run(["ip", "netns", "del", name], check=True)
    subprocess.run(["ip", "netns", "add", name], check=True)
    for file in host.state.glob("*/network"):
        file.write_text(file.read_text().replace(f"{number}-", f"{number_of(host)}-"))
    (sessions,) = LISTS.glob(f"{number}-*")
    sessions.rename(LISTS / sessions.name.replace(f"{number}-", f"{number_of(host)}-"))


@contextmanager
def in_another_folder(host: NamespaceHost) -> Iterator[None]:
    first = host.address
    host.address = host.address.__class__(
        **{**vars(first), "state_dir": f"{first.state_dir}-other"}
    )
    yield
    host.address = first


def own_values(tmp_path: Path) -> dict[str, str]:
    with namespace_host(tmp_path / "fresh", 7) as fresh:
        return fresh.values()


def test_a_session_whose_namespace_is_gone_is_in_nobodys_way(
    host: NamespaceHost, tmp_path: Path
) -> None:
    begun(host, LINE)
    made_again(host)
    assert own_values(tmp_path) == host.values()
    with in_another_folder(host):
        begin = host.begin("token-2", LONG, SOMAXCONN, FIN)
        assert begin.exit_code == 0, begin
        assert host.script("end", "token-2").exit_code == 0
    assert [path.name.partition("-")[0] for path in LISTS.glob(f"{number_of(host)}*")] == [
        f"{number_of(host)}"
    ]


@pytest.mark.parametrize("verb", ["rollback", "rollback force", "status", "begin"])
def test_its_values_are_not_written_to_the_next_namespace(
    host: NamespaceHost, tmp_path: Path, verb: str
) -> None:
    host.run("sysctl -qw net.core.somaxconn=99")
    begun(host, LINE)
    made_again(host)
    before = host.values()
    assert own_values(tmp_path) == before
    if verb == "begin":
        assert host.begin("token-2", LONG, SOMAXCONN).exit_code == 0
        assert host.script("end", "token-2").exit_code == 0
    else:
        assert host.script(verb).exit_code == 0
    assert before == host.values()
    assert [path.name for path in host.state.glob("lock")] == []
    assert status(host).changed == ()


def test_what_was_applied_in_a_namespace_that_is_gone_needs_no_rollback(
    host: NamespaceHost, tmp_path: Path
) -> None:
    begun(host, LINE)
    about = "key\tnet/core/somaxconn\nabout\tsince\tnow\nend\n"
    assert host.script("keep", "token-1", stdin=about).exit_code == 0
    made_again(host)
    before = host.values()
    assert own_values(tmp_path) == before
    applied = status(host).applied
    assert applied is not None
    assert applied.was_rebooted
    assert host.script("rollback").exit_code == 0
    assert (before, None) == (host.values(), status(host).applied)


def test_a_session_of_a_living_namespace_is_restored_in_that_one_only(
    host: NamespaceHost, tmp_path: Path
) -> None:
    """Two namespaces of one machine, whose hosts have one state folder by mistake."""
    before = host.values()
    begun(host, LINE)
    end_processes(host)
    with namespace_host(tmp_path / "other", 1) as other:
        own = other.values()
        other.address = host.address
        refused = other.begin("token-2", LONG, FIN)
        assert refused.exit_code == HELD
        assert f"in the network namespace net:[{number_of(host)}]" in refused.stdout
        for verb in ("rollback", "rollback force"):
            done = other.script(verb)
            assert done.exit_code == HELD
            assert "the values are those of another network namespace" in done.stderr
        assert other.script("status").exit_code != NOT_BACK
        assert own == other.values()
    assert host.script("rollback force").exit_code == 0
    assert before == host.values()
    wait_until(lambda: not (host.state / "lock").exists(), "it is given back")
