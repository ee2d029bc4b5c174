"""Directives that stay: the record of an apply, what becomes of its files, and the way back."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from builders.nginx_files import catalogue
from intop.domain.applied import Applied, StayingFile, StayingKey
from intop.domain.configuration import Configuration
from intop.errors import HostError
from intop.hosts.guard import GuardedHost, guarded, rollback, status
from intop.hosts.nginx_files import tunable_nginx
from intop.inspect.host_states import state_of
from kit import nginx_host
from kit.namespace_host import FIN, SOMAXCONN, NamespaceHost
from kit.nginx_host import ONE, TWO, files, listens, restart_command, workers

PROCESSES = "nginx:main.worker_processes"
ABOUT = {"since": "2026-11-23T20:00:00Z", "study": "lab", "campaign": "1"}
ELSEWHERE = "another-boot"

Place = tuple[NamespaceHost, Path]


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with nginx_host.nginx_host(tmp_path) as made:
        yield made


def keep(host: NamespaceHost, folder: Path, values: dict[str, str]) -> GuardedHost:
    nginx = tunable_nginx(host, catalogue())
    with guarded(host, [SOMAXCONN, FIN], nginx=nginx, restart=restart_command(folder)) as session:
        session.keep(Configuration(values), ABOUT)
    return session


def applied(host: NamespaceHost) -> Applied:
    result = status(host).applied
    assert result is not None
    return result


@pytest.mark.parametrize("is_rebooted", [False, True])
def test_directives_stay_and_a_rollback_undoes_them(place: Place, is_rebooted: bool) -> None:
    host, folder = place
    before, values = files(folder), host.values()
    keep(host, folder, ONE)
    assert (workers(host), listens(host)) == (2, "777")
    assert list(folder.rglob(".intop*")) == []
    state = state_of(host)
    assert state.drift == ()
    result = applied(host)
    assert {key.key: key.left for key in result.directives} == {
        key: value for key, value in ONE.items() if key != SOMAXCONN
    }
    assert StayingKey(key=PROCESSES, before="1", left="2", now="2") in result.directives
    paths = [str(folder / "nginx.conf"), str(folder / "sites-available/site")]
    assert [StayingFile(path=path, state="ours") for path in paths] == sorted(
        result.nginx_files, key=lambda file: file.path
    )
    edited = files(folder)
    if is_rebooted:
        (record,) = host.state.glob("applied.*")
        (record / "boot").write_text(f"{ELSEWHERE}\n")
    done = rollback(host)
    assert done.outcome == "restored"
    assert before == files(folder) != edited
    assert workers(host) == 1
    # After a reboot the keys are whatever the host has by itself: they are left alone.
    assert host.values()[SOMAXCONN] == ("777" if is_rebooted else values[SOMAXCONN])
    assert status(host).applied is None


def test_a_file_that_somebody_edits_is_drift_and_stays_without_force(place: Place) -> None:
    host, folder = place
    before = files(folder)
    keep(host, folder, ONE)
    site = folder / "sites-available/site"
    theirs = site.read_bytes() + b"\n# theirs\n"
    site.write_bytes(theirs)
    state = state_of(host)
    assert [(str(site), "edited")] == [(drift.where, drift.kind) for drift in state.drift]
    # What it says of the directives, nobody but nginx could tell.
    assert {key.now for key in applied(host).directives} == {""}
    done = rollback(host)
    assert done.outcome == "partly"
    (left,) = done.unrestored
    assert (str(site), "somebody else has changed it, so it was left alone") == (left.key, left.why)
    assert theirs == site.read_bytes()
    assert before["nginx.conf"] == files(folder)["nginx.conf"]
    assert workers(host) == 1
    assert rollback(host, force=True).outcome == "restored"
    assert before == files(folder)
    assert listens(host) == "100"
    assert status(host).applied is None


def test_what_somebody_has_set_back_is_lost(place: Place) -> None:
    host, folder = place
    before = files(folder)
    keep(host, folder, ONE)
    for name, (text, *_) in before.items():
        (folder / name).write_bytes(text)
    state = state_of(host)
    assert {drift.kind for drift in state.drift} == {"lost"}
    assert {(key.before, key.now) for key in applied(host).directives} == {
        ("1", "1"),
        ("100", "100"),
        ("75", "75"),
    }
    assert rollback(host).outcome == "restored"
    assert before == files(folder)
    assert workers(host) == 1


def test_over_directives_that_stay_nothing_else_is_kept(place: Place) -> None:
    """Two records of edited files would have to be undone in order."""
    host, folder = place
    before = files(folder)
    keep(host, folder, TWO)
    kept = files(folder)
    with pytest.raises(HostError, match="stay here: roll that back first"):
        keep(host, folder, {PROCESSES: "3"})
    with (
        pytest.raises(HostError, match="stay here: roll that back first"),
        guarded(host, [SOMAXCONN]) as session,
    ):
        session.keep(Configuration({SOMAXCONN: "778"}), ABOUT)
    assert kept == files(folder)
    assert {k.key: k.left for k in applied(host).directives} == {"nginx:listen.rcvbuf": "64"}
    # A trial on top is given back to what stays.
    nginx = tunable_nginx(host, catalogue())
    with guarded(host, [SOMAXCONN], nginx=nginx, restart=restart_command(folder)) as session:
        assert session.value_before("nginx:listen.rcvbuf") == "64"
        session.apply(Configuration({PROCESSES: "3"}))
        assert state_of(host).drift == ()
    assert kept == files(folder)
    assert rollback(host).outcome == "restored"
    assert before == files(folder)
