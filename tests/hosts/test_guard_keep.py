"""The real guard.sh: values that stay, whoever dies meanwhile, and their way back."""

import hashlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from intop.domain.applied import drift_of
from intop.domain.configuration import DEFAULT, Configuration
from intop.domain.host_state import HostState
from intop.errors import ForeignChangeError, HostError
from intop.hosts import guard
from intop.hosts.guard import guarded, status
from intop.hosts.host import Completed
from namespace_host import (
    FIN,
    KEYS,
    LONG,
    RMEM,
    SOMAXCONN,
    NamespaceHost,
    end_processes,
    leased,
    namespace_host,
)

ABOUT = {"since": "2026-11-22T01:00:00Z", "study": "fleet", "campaign": "3"}
ONE = {SOMAXCONN: "777", FIN: "11"}
TWO = {FIN: "12", RMEM: "8192 65536 1048576"}
TEXT = "# Written by intop\n\nnet.core.somaxconn = 777\n"
ELSEWHERE = "11111111-2222-3333-4444-555555555555"

SHIM = """\
#!/bin/sh
echo >> {folder}/calls
[ "$(/usr/bin/wc -l < {folder}/calls)" != "$(/bin/cat {folder}/fatal)" ] ||
    kill -9 -"$(/bin/cat {folder}/group)"
exec {program} "$@"
"""
SHIMMED = ("mv", "rm", "sync", "sed", "cat", "tail", "mkdir", "chmod", "sha256sum", "date", "grep")


@pytest.fixture
def host(tmp_path: Path) -> Iterator[NamespaceHost]:
    with namespace_host(tmp_path) as made:
        yield made


def conf(host: NamespaceHost) -> Path:
    return host.state.parent / "root/etc/sysctl.d/99-zz-intop.conf"


def keep(host: NamespaceHost, values: dict[str, str], text: str | None = TEXT) -> None:
    file = None if text is None else (str(conf(host)), text)
    with guarded(host, KEYS, originals=True) as session:
        session.keep(Configuration(values), ABOUT, file)


def left(host: NamespaceHost) -> list[str]:
    """What there is of us, but for the script and what it has reported."""
    names = [path.name for path in host.state.iterdir()]
    names += [path.name for path in conf(host).parent.glob("*")]
    return sorted(name for name in names if name not in ("guard.sh", "report", "report.old"))


# Staying, and the way back ------------------------------------------------------------------------


def test_values_and_file_stay_until_a_rollback_by_hand(host: NamespaceHost) -> None:
    before = host.values()
    keep(host, ONE)
    assert before | ONE == host.values()
    assert (TEXT, 0o644) == (conf(host).read_text(), conf(host).stat().st_mode & 0o777)
    applied = status(host).applied
    assert applied is not None
    assert (ABOUT, ONE) == (applied.about, applied.values)
    assert {key: before[key] for key in ONE} == {key.key: key.before for key in applied.keys}
    assert () == drift_of(applied, None)
    end_processes(host)

    out = host.script("rollback").stdout
    assert f"restored\tnet/core/somaxconn\t{before[SOMAXCONN]}\n" in out
    assert before == host.values()
    assert [] == left(host)
    assert HostState() == status(host)
    assert 77 == host.script("rollback").exit_code


def test_a_second_apply_keeps_the_first_values_and_lets_go_of_what_it_does_not_set(
    host: NamespaceHost,
) -> None:
    before = host.values()
    keep(host, ONE)
    with guarded(host, KEYS, originals=True) as session:
        session.apply(DEFAULT)  # what it is measured against
        assert before == host.values()
    assert before | ONE == host.values()
    keep(host, TWO, "two\n")
    assert before | TWO == host.values()
    assert "two\n" == conf(host).read_text()
    assert ["99-zz-intop.conf", "applied.2"] == left(host)
    applied = status(host).applied
    assert applied is not None
    assert TWO == applied.values
    guard.rollback(host)
    assert before == host.values()
    assert [] == left(host)


def test_a_campaign_is_told_of_it_in_a_line_and_leaves_it(host: NamespaceHost) -> None:
    before = host.values()
    keep(host, ONE)
    heard: list[str] = []
    with guarded(host, KEYS, say=heard.append) as session:
        assert before | ONE == session.snapshot == session.base
        session.apply(Configuration({FIN: "13"}))
        state = status(host)
        assert state.applied is not None
        assert () == drift_of(state.applied, None, is_held=bool(state.holder))
    (line,) = heard
    assert "of study fleet, campaign 3 applied since 2026-11-22T01:00:00Z" in line
    assert before | ONE == host.values()


def test_what_somebody_else_changes_is_left_alone_unless_by_force(host: NamespaceHost) -> None:
    before = host.values()
    keep(host, ONE)
    host.run("sysctl -qw net.core.somaxconn=55")
    conf(host).write_text("mine\n")
    applied = status(host).applied
    assert applied is not None
    assert {"changed", "edited"} == {drift.kind for drift in drift_of(applied, None)}
    done = guard.rollback(host)
    assert ("partly", "edited") == (done.outcome, done.file_is)
    assert [SOMAXCONN] == [change.key for change in done.foreign]
    assert before | {SOMAXCONN: "55"} == host.values()
    assert "mine\n" == conf(host).read_text()
    done = guard.rollback(host, force=True)
    assert ("restored", "removed") == (done.outcome, done.file_is)
    assert before == host.values()
    assert [] == left(host)


@pytest.mark.parametrize("text", [None, TEXT])
def test_after_a_reboot_only_what_the_file_has_set_again_is_restored(
    host: NamespaceHost, text: str | None
) -> None:
    before = host.values()
    keep(host, ONE, text)
    (host.state / "applied.1" / "boot").write_text(f"{ELSEWHERE}\n")
    if text is None:
        set_all(host, before)
        host.run("sysctl -qw net.core.somaxconn=55")  # the machine's own by now
    done = guard.rollback(host)
    assert "restored" == done.outcome
    assert before | ({} if text else {SOMAXCONN: "55"}) == host.values()
    assert [] == left(host)


# What goes wrong ----------------------------------------------------------------------------------


def test_a_file_that_is_not_ours_is_not_replaced_and_nothing_stays(host: NamespaceHost) -> None:
    before = host.values()
    conf(host).parent.mkdir(parents=True)
    conf(host).write_text("theirs\n")
    with pytest.raises(HostError, match=r"99-zz-intop\.conf is there, and not as intop"):
        keep(host, ONE)
    assert (before, "theirs\n") == (host.values(), conf(host).read_text())
    assert ["99-zz-intop.conf"] == left(host)


@pytest.mark.parametrize("what", ["state", "root"])
def test_on_a_full_disk_nothing_stays(host: NamespaceHost, what: str) -> None:
    before = host.values()
    folder = host.state.parent / what
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "none", folder], check=True)
    try:
        with pytest.raises(HostError, match="can't be written"), guarded(host, KEYS) as session:  # noqa: PT012
            session.apply(Configuration(ONE))
            host.run(f"cat /dev/zero > {folder}/full")
            session.keep(Configuration(ONE), ABOUT, (str(conf(host)), TEXT * 500))
        assert before == host.values()
        assert [] == [path for path in folder.rglob("*") if "applied" in str(path)]
        assert [] == list(conf(host).parent.glob("*"))
    finally:
        end_processes(host)
        subprocess.run(["umount", folder], check=True)


def test_what_is_cut_off_on_its_way_does_not_stay(host: NamespaceHost) -> None:
    before = host.values()
    host.begin("token-1", LONG, *KEYS)
    host.script("write", "token-1", stdin="net/core/somaxconn 777\n")
    done = host.script("keep", "token-1", stdin="key\tnet/core/somaxconn\nabout\tsince\tnow\n")
    assert (1, True) == (done.exit_code, "cut off" in done.stderr)
    assert 0 == host.script("end", "token-1").exit_code
    assert (before, []) == (host.values(), left(host))


def test_a_foreign_change_just_before_stops_it(host: NamespaceHost) -> None:
    before = host.values()
    with pytest.raises(HostError, match="somebody else has changed"), guarded(host, KEYS) as one:  # noqa: PT012
        one.apply(Configuration(ONE))
        host.run("sysctl -qw net.core.somaxconn=55")
        with pytest.raises(ForeignChangeError):
            one.keep(Configuration(ONE), ABOUT)
    assert before | {SOMAXCONN: "55"} == host.values()


# Death at each step -------------------------------------------------------------------------------


class Mortal:
    """Runs guard.sh so that it and all that it has started is killed at its n-th program."""

    def __init__(self, host: NamespaceHost, folder: Path) -> None:
        self._host, self._folder = host, folder
        folder.mkdir()
        for name in SHIMMED:
            program = f"/usr/bin/{name}" if Path(f"/usr/bin/{name}").exists() else f"/bin/{name}"
            (folder / name).write_text(SHIM.format(folder=folder, program=program))
            (folder / name).chmod(0o755)

    def run(self, fatal: int, *words: str, stdin: str = "") -> Completed:
        (self._folder / "calls").write_text("")
        (self._folder / "fatal").write_text(f"{fatal}\n")
        state = self._host.state
        inner = f'echo $$ > {self._folder}/group; exec sh {state}/guard.sh {state} "$@"'
        path = f"PATH={self._folder}:$PATH"
        return self._host.run(
            f"{path} exec setsid -w sh -c '{inner}' sh {' '.join(words)}", stdin=stdin
        )


def to_keep(values: dict[str, str], text: str, path: Path) -> tuple[str, tuple[str, str]]:
    """What goes to a keep on standard input, and its further words."""
    lines = [f"key\t{key.replace('.', '/')}" for key in values]
    lines += [f"about\t{name}\t{word}" for name, word in ABOUT.items()]
    lines += [f"text\t{line}" for line in text.splitlines()]
    digest = hashlib.sha256(text.encode()).hexdigest()
    return "\n".join([*lines, "end", ""]), (str(path), digest)


def set_all(host: NamespaceHost, values: dict[str, str]) -> None:
    lines = (f"echo {value} > /proc/sys/{key.replace('.', '/')}" for key, value in values.items())
    assert 0 == host.run("\n".join(lines)).exit_code


def lapse(host: NamespaceHost) -> None:
    """Everybody is dead, and the lease is over."""
    end_processes(host)
    if (host.state / "lock").is_dir():
        (host.state / "lock" / "lease").write_text("0\n")


def reboot(host: NamespaceHost, before: dict[str, str], persistent: dict[str, str]) -> None:
    """Everybody is dead, and values are those of before, but for what our file sets at boot."""
    end_processes(host)
    for path in (*host.state.glob("lock/boot"), *host.state.glob("*/record/boot")):
        path.write_text(f"{ELSEWHERE}\n")
    for path in host.state.glob("applied.*/boot"):
        path.write_text(f"{ELSEWHERE}\n")
    set_all(host, before | (persistent if conf(host).exists() else {}))


@pytest.mark.parametrize("kind", ["first, then a reboot", "second, then the lease lapses"])
def test_a_keep_that_dies_anywhere_leaves_all_of_it_or_nothing(
    host: NamespaceHost, tmp_path: Path, kind: str
) -> None:
    before = host.values()
    mortal = Mortal(host, tmp_path / "bin")
    is_second = kind.startswith("second")
    outcomes: list[str] = []
    for fatal in range(1, 100):
        if is_second:
            keep(host, ONE)
        earlier = ONE if is_second else {}
        token = f"token-{fatal}"
        paths = "".join(f"{key.replace('.', '/')}\n" for key in KEYS)
        host.script("begin", token, LONG, "me", "originals", stdin=paths)
        wanted = {**{key: before[key] for key in ONE}, **TWO}
        lines = "".join(f"{k.replace('.', '/')} {v}\n" for k, v in wanted.items())
        assert 0 == host.script("write", token, stdin=lines).exit_code
        stdin, words = to_keep(TWO, "two\n", conf(host))
        done = mortal.run(fatal, "keep", token, *words, stdin=stdin)
        committed = (host.state / ("applied.2" if is_second else "applied.1")).is_dir()
        # What is read at boot is there only once it can be undone.
        assert committed or not conf(host).exists() or TEXT == conf(host).read_text()
        lapse(host) if is_second else reboot(host, before, TWO)
        state = status(host)
        assert "" == state.holder
        if committed:
            assert "two\n" == conf(host).read_text()
            assert state.applied is not None
            assert TWO == state.applied.values
            if is_second:
                assert before | TWO == host.values()
        else:
            assert before | earlier == host.values()
            assert (ONE if is_second else None) == (state.applied and state.applied.values)
            assert is_second == conf(host).exists()
        kept = ["99-zz-intop.conf", f"applied.{1 + (is_second and committed)}"]
        assert (kept if committed or is_second else []) == left(host)
        if committed or is_second:
            assert "restored" == guard.rollback(host).outcome
        assert (before, []) == (host.values(), left(host))
        outcomes.append("applied" if committed else "before")
        if done.exit_code == 0:
            break
    assert 0 == done.exit_code, done.stderr
    assert outcomes == sorted(outcomes, reverse=True), "once it is through, it stays so"
    assert outcomes.count("before") >= 10
    assert outcomes.count("applied") >= 4


def test_a_rollback_that_dies_anywhere_is_carried_to_its_end(
    host: NamespaceHost, tmp_path: Path
) -> None:
    before = host.values()
    mortal = Mortal(host, tmp_path / "bin")
    for fatal in range(1, 100):
        keep(host, ONE)
        done = mortal.run(fatal, "rollback")
        end_processes(host)
        if done.exit_code == 0:
            break
        assert guard.rollback(host).outcome in ("restored", "nothing")
        assert (before, []) == (host.values(), left(host))
    assert 0 == done.exit_code, done.stderr
    assert fatal >= 8
    assert (before, []) == (host.values(), left(host))


def test_a_host_whose_session_is_alive_keeps_what_is_applied(host: NamespaceHost) -> None:
    keep(host, ONE)
    with guarded(leased(host, 60.0), KEYS):
        assert "held" == guard.rollback(host).outcome
    assert "777" == host.value(SOMAXCONN)
