"""guard.sh's way to a host: whole or not, beside other versions, in a folder that is root's."""

import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from intop.domain.configuration import Configuration
from intop.errors import HostError
from intop.hosts.guard import guarded, rollback, status
from intop.hosts.guard import script as guard_script
from intop.hosts.host import Completed
from kit.namespace_host import FIN, KEYS, LONG, SOMAXCONN, NamespaceHost, begun, namespace_host

# Its parts ----------------------------------------------------------------------------------------

PARTS = Path(guard_script.__file__).parent
ALONE = {"ask.sh", "guard.sh", "install.sh", "installed.sh", "unwritable.sh"}
"""Scripts beside the parts."""


def test_the_script_has_each_part_once_and_each_function_once() -> None:
    text = guard_script.text()
    for part in (*PARTS.glob("*.sh"), PARTS.parent / "trust.sh"):
        if part.name not in ALONE:
            assert text.count(part.read_text()) == 1, part
    assert re.findall(r"^@.*", text, re.MULTILINE) == []
    functions = re.findall(r"^([a-z_]+)\(\) [({]$", text, re.MULTILINE)
    assert 143 == len(functions) == len(set(functions))


def test_nothing_runs_before_all_of_the_script_is_read() -> None:
    """But for its settings: what is behind the last function stands in braces."""
    _, _, end = guard_script.text().rpartition("\n}\n\n")
    assert re.fullmatch(r"\s*# [^\n]*\n\{\n.*\n    exit\n\}\n", end, re.DOTALL)


# The whole script, and the whole answer -----------------------------------------------------------


class Cut(NamespaceHost):
    """The link is cut when half of the script is there, and the host sees the end of its input."""

    def run(self, command: str, *, stdin: str = "", timeout_s: float = 30.0) -> Completed:
        is_script = stdin.startswith("#!/bin/sh")
        return super().run(command, stdin=stdin[: len(stdin) // 2] if is_script else stdin)


def test_half_a_script_is_not_put_in_place(host: NamespaceHost) -> None:
    with pytest.raises(HostError, match="what arrived of the script is not what was sent"):
        guarded(Cut(host._namespace, host.address), KEYS).__enter__()
    assert list(host.state.iterdir()) == []


def test_a_script_that_was_changed_on_the_host_is_put_anew(host: NamespaceHost) -> None:
    guard_script.install(host)
    script = host.state / guard_script.name()
    script.write_text("exit 0\n")
    with guarded(host, KEYS):
        assert guard_script.text() == script.read_text()


def test_a_script_that_is_there_is_not_sent_again(host: NamespaceHost) -> None:
    guard_script.install(host)
    host.seen.clear()
    guard_script.install(host)
    assert len(host.seen) == 1


@pytest.mark.parametrize("share", [0, 0.3, 0.6, 0.999])
def test_half_a_script_runs_nothing_and_reads_as_nothing(host: NamespaceHost, share: float) -> None:
    before = host.values()
    begun(host, "net/core/somaxconn 777")
    script = host.state / guard_script.name()
    whole = script.read_text()
    script.write_text(whole[: int(share * len(whole))])
    for ask in (status, rollback):
        with pytest.raises(HostError, match="its answer was cut off"):
            ask(host)
    script.write_text(whole)
    assert host.value(SOMAXCONN) == "777"
    assert rollback(host, force=True).outcome == "restored"
    assert before == host.values()


@pytest.mark.parametrize("verb", ["end", "renew", "write"])
def test_an_answer_that_was_cut_off_is_no_answer(host: NamespaceHost, verb: str) -> None:
    class Short(NamespaceHost):
        def run(self, command: str, *, stdin: str = "", timeout_s: float = 30.0) -> Completed:
            done = super().run(command, stdin=stdin, timeout_s=timeout_s)
            return replace(done, stdout=done.stdout[:-1]) if f" {verb} " in command else done

    before = host.values()
    short = Short(host._namespace, host.address)
    with pytest.raises(HostError, match="cut off"), guarded(short, KEYS) as session:  # noqa: PT012
        session.renew()
        session.apply(Configuration({SOMAXCONN: "777"}))
    assert before == host.values()


def test_no_script_beside_what_a_session_left_is_told_of(host: NamespaceHost) -> None:
    begun(host, "net/core/somaxconn 777")
    (host.state / "guard.sh").unlink()
    for ask in (status, rollback):
        with pytest.raises(HostError, match=r"lock is there, and no guard\.sh to restore it"):
            ask(host)


# Another version ----------------------------------------------------------------------------------

OTHER = "guard-0123456789ab.sh"


def other_version(host: NamespaceHost) -> None:
    """A session of another version, whose script says of itself who it is."""
    guard_script.install(host)
    text = guard_script.text()
    mine = "do_status() {\n"
    assert mine in text
    (host.state / OTHER).write_text(text.replace(mine, f"{mine}    echo 'holder\tthe other'\n"))
    paths = "net/core/somaxconn\n"
    words = f"sh {host.state}/{OTHER} {host.state}"
    assert host.run(f"{words} begin t1 {LONG} me own", stdin=paths).exit_code == 0
    assert host.run(f"{words} write t1", stdin="net/core/somaxconn 777\n").exit_code == 0


def test_a_session_keeps_its_script_when_another_version_comes(host: NamespaceHost) -> None:
    other_version(host)
    script = (host.state / OTHER).read_text()
    guard_script.install(host)
    assert guard_script.name() == str((host.state / "guard.sh").readlink())
    assert script == (host.state / OTHER).read_text()
    assert (host.state / "lock" / "script").read_text().strip() == OTHER
    watchdog = (host.state / "lock" / "watchdog").read_text().partition("-")[0]
    assert OTHER.encode() in Path(f"/proc/{watchdog}/cmdline").read_bytes()


def test_a_session_of_another_version_is_asked_by_its_own_script(host: NamespaceHost) -> None:
    before = host.value(SOMAXCONN)
    other_version(host)
    guard_script.install(host)
    assert "the other" in host.script("status").stdout
    assert rollback(host, force=True).outcome == "restored"
    assert before == host.value(SOMAXCONN)
    assert "the other" not in host.script("status").stdout


# The folder ---------------------------------------------------------------------------------------


@pytest.fixture
def nobodys(tmp_path: Path) -> Iterator[NamespaceHost]:
    """A host whose state folder is tmp/x/state."""
    (tmp_path / "x").mkdir(mode=0o755)
    with namespace_host(tmp_path / "x") as made:
        yield made


def refused(host: NamespaceHost, words: str) -> None:
    before = host.value(FIN)
    with pytest.raises(HostError, match=words) as caught:
        guarded(host, [FIN]).__enter__()
    message = str(caught.value)
    assert f"lb: the state folder {host.state} can't be trusted: " in message
    assert "give the host another one as state_dir" in message
    assert len(message.splitlines()) == 1
    assert before == host.value(FIN)
    assert not (host.state / "lock").exists()


@pytest.mark.parametrize("which", ["x", "x/state"])
def test_a_folder_of_somebody_else_is_refused(nobodys: NamespaceHost, which: str) -> None:
    folder = nobodys.state.parents[1] / which
    folder.mkdir(exist_ok=True)
    os.chown(folder, 65534, 65534)
    refused(nobodys, "it belongs to user 65534, and not to root")


@pytest.mark.parametrize(
    ("which", "mode"), [("x", 0o777), ("x", 0o775), ("x/state", 0o770), ("x/state", 0o1777)]
)
def test_a_folder_that_others_can_change_is_refused(
    nobodys: NamespaceHost, which: str, mode: int
) -> None:
    folder = nobodys.state.parents[1] / which
    folder.mkdir(exist_ok=True)
    folder.chmod(mode)
    refused(nobodys, rf"others can change what is in it \(mode {mode:o}\)")


@pytest.mark.parametrize("which", ["x", "x/state"])
def test_a_link_on_the_way_is_refused(nobodys: NamespaceHost, which: str) -> None:
    folder = nobodys.state.parents[1] / which
    elsewhere = nobodys.state.parents[1] / "elsewhere"
    elsewhere.mkdir()
    if folder.is_dir():
        shutil.rmtree(folder)
    folder.symlink_to(elsewhere)
    refused(nobodys, "is a symbolic link")
    assert list(elsewhere.iterdir()) == []


def test_a_folder_below_one_like_tmp_is_fine_if_it_is_roots(nobodys: NamespaceHost) -> None:
    nobodys.state.parent.chmod(0o1777)
    with guarded(nobodys, [FIN]) as session:
        session.renew()


def test_no_script_of_somebody_elses_folder_is_run(nobodys: NamespaceHost) -> None:
    mark = nobodys.state.parents[1] / "mark"
    nobodys.state.mkdir()
    (nobodys.state / "guard.sh").write_text(f"touch {mark}\n")
    os.chown(nobodys.state, 65534, 65534)
    for ask in (status, rollback):
        with pytest.raises(HostError, match="can't be trusted"):
            ask(nobodys)
    assert not mark.exists()
