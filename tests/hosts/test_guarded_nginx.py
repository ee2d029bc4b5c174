"""Configurations of both kinds on a real nginx, and the way back when their controller dies."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from builders.nginx_files import catalogue
from intop.domain.configuration import DEFAULT, Configuration
from intop.errors import ForeignChangeError, HostError, NginxRefusedError, UsageError
from intop.hosts.guard import GuardedHost, guarded, rollback, status
from intop.hosts.nginx_files import tunable_nginx
from kit import nginx_host
from kit.namespace_host import FIN, SOMAXCONN, NamespaceHost, wait_until
from kit.nginx_host import ONE, TWO, files, listens, restart_command, workers

LEASE_S = 1
PROMISED_S = LEASE_S + 5
PROCESSES = "nginx:main.worker_processes"

Place = tuple[NamespaceHost, Path]


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with nginx_host.nginx_host(tmp_path) as made:
        yield made


def test_one_configuration_of_both_kinds_is_applied_read_back_and_given_back(place: Place) -> None:
    host, folder = place
    before, values = files(folder), host.values()
    nginx = tunable_nginx(host, catalogue())
    with guarded(host, [SOMAXCONN, FIN], nginx=nginx, restart=restart_command(folder)) as session:
        _apply_both(session, host, folder)
        assert before == files(folder)
        _refuse(session, folder)
        assert before == files(folder)
        with pytest.raises(UsageError, match="can't be"):
            session.apply(Configuration({PROCESSES: "2; user nobody"}))
        with pytest.raises(ValueError, match=r"not guarded: nginx:main\.user"):
            session.apply(Configuration({"nginx:main.user": "root"}))
        assert session.was_tuned
    assert (before, values) == (files(folder), host.values())
    assert workers(host) == 1
    assert list(folder.rglob(".intop*")) == []


def _apply_both(session: GuardedHost, host: NamespaceHost, folder: Path) -> None:
    session.apply(Configuration(ONE))
    site = (folder / "sites-available/site").read_bytes()
    assert b"    listen 127.0.0.1:80 backlog=2000;\r\n" in site
    # A directive that the user has further in stays theirs.
    assert b"keepalive_timeout 65;" in site
    assert b"keepalive_timeout 20s;" in (folder / "nginx.conf").read_bytes()
    assert (workers(host), listens(host)) == (2, "777")
    master = (folder / "nginx.pid").read_text()
    host.seen.clear()
    session.apply(Configuration(ONE))
    assert master == (folder / "nginx.pid").read_text()
    session.apply(Configuration(TWO))
    assert master != (folder / "nginx.pid").read_text()
    assert (workers(host), listens(host)) == (1, "100")
    session.apply(DEFAULT)
    # A command for each of them.
    assert len([command for command in host.seen if " write " in command]) == 3


def _refuse(session: GuardedHost, folder: Path) -> None:
    """What `nginx -t` takes, and a restart doesn't."""
    real = (folder / "restart").read_text()
    (folder / "restart").write_text("echo the unit failed >&2; exit 1\n")
    # Nor does it come back: that is more than a failed trial.
    with pytest.raises(HostError, match=r"Nor does it go back .*the unit failed"):
        session.apply(Configuration(TWO))
    (folder / "restart").write_text(real)
    session.apply(DEFAULT)


LINES = """
# Stops it, and waits.
read -r pid < {folder}/nginx.pid &&
\tkill "$pid"
while [ -e {folder}/nginx.pid ]; do sleep 0.01; done

printf '<%s>' 'a  b' "c\td" '100%%' \\ e >> {folder}/words # and what it got
cat >> {folder}/words <<'END'
  $pid `false` \\n
END
exec nginx -p {folder} -e {folder}/error.log \\
    -c {folder}/nginx.conf
"""
WORDS = "<a  b><c\td><100%%>< e>  $pid `false` \\n\n"


@pytest.mark.parametrize("is_kept", [False, True])
def test_a_restart_of_several_lines_runs_as_it_was_written(place: Place, is_kept: bool) -> None:
    host, folder = place
    before = files(folder)
    masters = {(folder / "nginx.pid").read_text()}
    nginx = tunable_nginx(host, catalogue())
    with guarded(host, [FIN], nginx=nginx, restart=LINES.format(folder=folder)) as session:
        if is_kept:
            session.keep(Configuration(TWO), {"since": "now"}, None)
        else:
            session.apply(Configuration(TWO))
        masters.add((folder / "nginx.pid").read_text())
    if is_kept:
        assert before != files(folder)
        assert rollback(host).outcome == "restored"
    masters.add((folder / "nginx.pid").read_text())
    # Found, tuned and given back; what is kept nginx takes once more.
    assert len(masters) == 3
    assert (3 if is_kept else 2) * WORDS == (folder / "words").read_text()
    assert before == files(folder)
    assert workers(host) == 1


def test_what_nginx_refuses_fails_with_its_own_words(place: Place) -> None:
    """A constraint of the catalogue keeps a search from it."""
    host, folder = place
    before = files(folder)
    nginx = tunable_nginx(host, catalogue())
    with guarded(host, [SOMAXCONN], nginx=nginx, restart=restart_command(folder)) as session:
        wanted = {"nginx:http.proxy_busy_buffers_size": "1", SOMAXCONN: "777"}
        with pytest.raises(NginxRefusedError, match=r'\[emerg\] "proxy_busy_buffers_size" must'):
            session.apply(Configuration(wanted))
        assert before == files(folder)
        session.apply(Configuration(ONE))
        assert workers(host) == 2
    assert before == files(folder)


def test_a_file_of_somebody_else_stops_the_session_and_stays(place: Place) -> None:
    host, folder = place
    site = folder / "sites-available/site"
    nginx = tunable_nginx(host, catalogue())
    theirs = site.read_bytes() + b"\n# theirs\n"
    with (  # noqa: PT012
        pytest.raises(HostError, match="not everything is as it was found") as caught,
        guarded(host, [SOMAXCONN], nginx=nginx, restart=restart_command(folder)) as session,
    ):
        session.apply(Configuration(ONE))
        site.write_bytes(theirs)
        with pytest.raises(ForeignChangeError, match="sites-available/site"):
            session.apply(DEFAULT)
    assert f"{site}: somebody else has changed it, so it was left alone: sh " in str(caught.value)
    assert theirs == site.read_bytes()
    # The other one, and the keys, are as before.
    assert "keepalive_timeout 20" not in (folder / "nginx.conf").read_text()
    changed = {change.key: change.now for change in status(host).changed}
    assert {str(site): "changed by somebody else"} == changed
    with pytest.raises(HostError, match="would become the default here"):
        guarded(host, [SOMAXCONN]).__enter__()


def test_what_another_file_says_since_is_read_back(place: Place) -> None:
    """A file that came after the snapshot is in no session, and nginx reads it."""
    host, folder = place
    nginx = tunable_nginx(host, catalogue())
    (folder / "sites-available/more").write_text("\n")
    with guarded(host, [SOMAXCONN], nginx=nginx, restart=restart_command(folder)) as session:
        session.apply(Configuration(ONE))
        (folder / "sites-enabled/more").symlink_to("../sites-available/more")
        with pytest.raises(ForeignChangeError, match="sites-enabled/more"):
            session.apply(Configuration({PROCESSES: "3"}))
        # Also by who would give it back, for the first time and for the second.
        for _ in range(2):
            with pytest.raises(ForeignChangeError, match="sites-enabled/more"):
                session.apply(DEFAULT)
        (folder / "sites-enabled/more").unlink()
        session.apply(DEFAULT)


def test_without_an_nginx_there_is_nothing_to_tune(place: Place) -> None:
    host, folder = place
    host.run(f"read -r pid < {folder}/nginx.pid; kill $pid")
    wait_until(lambda: not workers(host), "nginx ends")
    with pytest.raises(HostError, match="exactly one nginx runs"):
        tunable_nginx(host, catalogue())


# A controller that dies ---------------------------------------------------------------------------

FEW = ((6, "within"), (8, "within"), (9, "sent"), (14, "sent"))
"""Its commands: two that ask, two for the script, the fifth begins, eight write, the last ends."""
MANY = tuple(
    (command, moment) for command in range(5, 15) for moment in ("before", "sent", "within")
)


def died(folder: Path, number: int, command: int, moment: str) -> float:
    """Seconds from a controller's death there until all is as before."""
    with nginx_host.nginx_host(folder, number) as (host, nginx):
        before, values = files(nginx), host.values()
        words = [sys.executable, nginx_host.__file__, folder, host._namespace, str(LEASE_S)]
        root = Path(__file__).parents[2]
        controller = subprocess.Popen(
            [*words, str(command), moment],
            env=os.environ | {"PYTHONPATH": f"{root}:{root / 'tests'}"},
        )
        assert controller.wait(timeout=60) == -signal.SIGKILL
        since = time.monotonic()

        def is_back() -> bool:
            return (
                files(nginx) == before
                and host.values() == values
                and not (host.state / "lock").exists()
                and not list(host.state.glob("restoring.*"))
            )

        # A command that is still on its way has to be heard of first.
        time.sleep(0.3)
        wait_until(is_back, f"{command} {moment} is given back")
        seconds = time.monotonic() - since
        assert list(nginx.rglob(".intop*")) == []
        assert (workers(host), listens(host)) == (1, "100")
        assert list(host.state.glob("unrestored.*")) == []
        return seconds


def all_died(tmp_path: Path, points: tuple[tuple[int, str], ...]) -> None:
    with ThreadPoolExecutor(4) as pool:
        jobs = {
            (command, moment): pool.submit(died, tmp_path / str(n), n, command, moment)
            for n, (command, moment) in enumerate(points)
        }
        took = {point: job.result() for point, job in jobs.items()}
    print(took)
    assert max(took.values()) <= PROMISED_S, took


def test_files_are_back_within_the_lease_and_5_s_when_the_controller_dies(tmp_path: Path) -> None:
    all_died(tmp_path, FEW)


@pytest.mark.long
def test_files_are_back_wherever_the_controller_dies(tmp_path: Path) -> None:
    assert len(MANY) >= 20
    all_died(tmp_path, MANY)
