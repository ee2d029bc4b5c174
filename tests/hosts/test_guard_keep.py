"""The real guard.sh: values that stay, whoever dies meanwhile, and their way back."""

import hashlib
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from intop.domain.applied import drift_of
from intop.domain.configuration import DEFAULT, Configuration
from intop.domain.host_state import HostState
from intop.errors import ForeignChangeError, HostError
from intop.hosts import guard
from intop.hosts.guard import guarded, status
from intop.hosts.host import Completed
from intop.hosts.sysctl import path_of
from intop.inspect.host_states import state_of
from kit.namespace_host import (
    FIN,
    KEYS,
    LONG,
    RMEM,
    SCRIPTS,
    SOMAXCONN,
    NamespaceHost,
    begun,
    end_processes,
    lapse,
    leased,
    set_by_somebody,
)

ABOUT = {"since": "2026-11-22T01:00:00Z", "study": "fleet", "campaign": "3"}
ONE = {SOMAXCONN: "777", FIN: "11"}
TWO = {FIN: "12", RMEM: "8192 65536 1048576"}
TEXT = "# Written by intop\n\nnet.core.somaxconn = 777\n"
ELSEWHERE = "11111111-2222-3333-4444-555555555555"

SHIM = """\
#!/bin/sh
echo >> {folder}/calls
read -r fatal < {folder}/fatal
while read -r _; do fatal=$((fatal - 1)); done < {folder}/calls
if [ "$fatal" -le 0 ]; then read -r group < {folder}/group; kill -9 -"$group"; fi
exec {program} "$@"
"""
SHIMMED = ("mv", "rm", "sync", "sed", "mkdir", "chmod")
"""The programs that change something; what the shell writes itself stands between two of them."""


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
    return sorted(name for name in names if name not in (*SCRIPTS, "report", "report.old"))


# Staying, and the way back ------------------------------------------------------------------------


def test_values_and_file_stay_until_a_rollback_by_hand(host: NamespaceHost) -> None:
    before = host.values()
    keep(host, ONE)
    assert before | ONE == host.values()
    assert (conf(host).read_text(), conf(host).stat().st_mode & 0o777) == (TEXT, 0o644)
    applied = status(host).applied
    assert applied is not None
    assert (applied.about, applied.values) == (ABOUT, ONE)
    assert {key: before[key] for key in ONE} == {key.key: key.before for key in applied.keys}
    assert drift_of(applied, None) == ()
    # Its own root is where the file is, whatever whoever asks knows of that.
    later = conf(host).with_name("99-zzz.conf")
    later.write_text(f"{SOMAXCONN} = 1\n")
    host.address = replace(host.address, config_root="/")
    assert [drift.kind for drift in state_of(host).drift] == ["overridden"]
    later.unlink()
    end_processes(host)

    out = host.script("rollback").stdout
    assert f"restored\tnet/core/somaxconn\t{before[SOMAXCONN]}\n" in out
    assert before == host.values()
    assert left(host) == []
    assert HostState() == status(host)
    assert host.script("rollback").exit_code == 77


def test_a_second_apply_keeps_the_first_values_and_lets_go_of_what_it_does_not_set(
    host: NamespaceHost,
) -> None:
    before = host.values()
    keep(host, ONE)
    with guarded(host, KEYS, originals=True) as session:
        assert session.applied == ABOUT
        session.apply(session.as_found)
        assert before | ONE == host.values()
        assert not session.was_tuned
        session.apply(DEFAULT)  # what it is measured against
        assert before == host.values()
    assert before | ONE == host.values()
    keep(host, TWO, "two\n")
    assert before | TWO == host.values()
    assert conf(host).read_text() == "two\n"
    assert left(host) == ["99-zz-intop.conf", "applied.2"]
    applied = status(host).applied
    assert applied is not None
    assert applied.values == TWO
    guard.rollback(host)
    assert before == host.values()
    assert left(host) == []


def test_a_key_that_is_gone_keeps_no_rollback_from_its_end(host: NamespaceHost) -> None:
    gone = "net.ipv4.conf.veth7.rp_filter"
    assert host.run("ip link add veth7 type veth peer name veth8").exit_code == 0
    before = host.values()
    with guarded(host, [*KEYS, gone], originals=True) as session:
        other = "2" if host.value(gone) != "2" else "1"
        session.keep(Configuration({SOMAXCONN: "777", gone: other}), ABOUT, None)
    host.run("ip link del veth7")
    results = guard.rollback(host)
    assert ("partly", [gone]) == (results.outcome, [key.key for key in results.unrestored])
    assert before == host.values()
    assert status(host).applied is None
    keep(host, ONE)
    guard.rollback(host)
    assert before == host.values()


def test_a_campaign_is_told_of_it_in_a_line_and_leaves_it(host: NamespaceHost) -> None:
    before = host.values()
    keep(host, ONE)
    heard: list[str] = []
    with guarded(host, KEYS, say=heard.append) as session:
        assert before | ONE == session.snapshot == session.base
        session.apply(Configuration({FIN: "13"}))
        state = status(host)
        assert state.applied is not None
        assert drift_of(state.applied, None, is_held=bool(state.holder)) == ()
    (line,) = heard
    assert "of study fleet, campaign 3 applied since 2026-11-22T01:00:00Z" in line
    assert before | ONE == host.values()


def test_what_somebody_else_changes_is_left_alone_unless_by_force(host: NamespaceHost) -> None:
    before = host.values()
    keep(host, ONE)
    set_by_somebody(host, SOMAXCONN, "55")
    conf(host).write_text("mine\n")
    applied = status(host).applied
    assert applied is not None
    assert {drift.kind for drift in drift_of(applied, None)} == {"changed", "edited"}
    done = guard.rollback(host)
    assert (done.outcome, done.file_is) == ("partly", "edited")
    assert [change.key for change in done.foreign] == [SOMAXCONN]
    assert before | {SOMAXCONN: "55"} == host.values()
    assert conf(host).read_text() == "mine\n"
    done = guard.rollback(host, force=True)
    assert (done.outcome, done.file_is) == ("restored", "removed")
    assert before == host.values()
    assert left(host) == []


@pytest.mark.parametrize("force", [False, True])
def test_after_a_partial_rollback_another_one_is_enough(host: NamespaceHost, force: bool) -> None:
    """A session on applied values has met a change of somebody else's, whom its user undoes."""
    before = host.values()
    keep(host, ONE)
    begun(host, f"{path_of(SOMAXCONN)} 888", f"{path_of(FIN)} 12")
    set_by_somebody(host, SOMAXCONN, "55")
    assert host.script("end", "token-1").exit_code == 1
    done = guard.rollback(host)
    assert (done.outcome, {change.key for change in done.foreign}) == ("partly", {SOMAXCONN})
    # All commands that it names lead to one value.
    commands = {change.command for change in done.foreign}
    assert commands == {f"sysctl -w {SOMAXCONN}={before[SOMAXCONN]}"}
    set_by_somebody(host, SOMAXCONN, before[SOMAXCONN])
    assert guard.rollback(host, force=force).outcome == "restored"
    assert before == host.values()
    assert left(host) == []
    assert guard.rollback(host, force=force).outcome == "nothing"
    assert before == host.values()


def test_what_a_session_has_changed_besides_what_is_applied_stays_its_own(
    host: NamespaceHost,
) -> None:
    before = host.values()
    keep(host, {SOMAXCONN: "777"})
    begun(host, f"{path_of(SOMAXCONN)} 888", f"{path_of(FIN)} 12")
    set_by_somebody(host, SOMAXCONN, "55")
    set_by_somebody(host, FIN, "13")
    assert host.script("end", "token-1").exit_code == 1
    done = guard.rollback(host)
    assert (done.outcome, {change.key for change in done.foreign}) == ("partly", {SOMAXCONN, FIN})
    set_by_somebody(host, SOMAXCONN, before[SOMAXCONN])
    done = guard.rollback(host)
    assert (done.outcome, {change.key for change in done.foreign}) == ("partly", {FIN})
    assert status(host).applied is None
    assert guard.rollback(host, force=True).outcome == "restored"
    assert before == host.values()
    assert left(host) == []


HALF = "9000 131072 99999999999"
"""Of tcp_rmem, the kernel takes the first two and refuses the last."""


def with_refused_vector(host: NamespaceHost, snapshot: Path) -> str:
    """Have the host's record give RMEM back what the kernel refuses. Returns what it had."""
    (line,) = (x for x in snapshot.read_text().splitlines() if x.startswith(path_of(RMEM)))
    text = snapshot.read_text()
    snapshot.write_text(text.replace(line, f"{path_of(RMEM)}:{HALF}".replace(" ", "\t")))
    return line


@pytest.mark.parametrize("is_of_somebody", [False, True])
def test_a_rollback_that_is_refused_half_way_is_ours_however_often_it_is_tried(
    host: NamespaceHost, is_of_somebody: bool
) -> None:
    before = host.values()
    keep(host, TWO, None)
    snapshot = host.state / "applied.1/snapshot"
    whole = with_refused_vector(host, snapshot)
    if is_of_somebody:
        set_by_somebody(host, FIN, "55")
    foreign = [FIN] if is_of_somebody else []
    for _ in range(3):
        result = guard.rollback(host)
        assert (result.outcome, [key.key for key in result.unrestored]) == ("partly", [RMEM])
        assert foreign == [change.key for change in result.foreign]
        assert host.value(RMEM) == "9000 131072 1048576"
        applied = status(host).applied
        assert applied is not None
        drift = {each.where: each.detail for each in drift_of(applied, None)}
        assert set(drift) == {FIN, RMEM}
        assert is_of_somebody or drift[FIN].endswith("or a rollback that could not restore all")
    # Whoever changes it now is somebody else.
    set_by_somebody(host, RMEM, "4096 65536 1048576")
    assert sorted([*foreign, RMEM]) == sorted(x.key for x in guard.rollback(host).foreign)
    set_by_somebody(host, RMEM, "9000 131072 1048576")
    lines = [whole if x.startswith(path_of(RMEM)) else x for x in snapshot.read_text().splitlines()]
    snapshot.write_text("\n".join(lines) + "\n")
    assert foreign == [change.key for change in guard.rollback(host).foreign]
    assert before | ({FIN: "55"} if is_of_somebody else {}) == host.values()


def test_a_session_that_is_given_back_half_way_is_ours_however_often_it_is_tried(
    host: NamespaceHost,
) -> None:
    before = host.values()
    begun(host, f"{path_of(RMEM)} 8192 65536 1048576", f"{path_of(SOMAXCONN)} 777")
    whole = with_refused_vector(host, host.state / "lock/snapshot")
    assert host.script("end", "token-1").exit_code == 1
    for _ in range(2):
        result = guard.rollback(host)
        assert (result.outcome, [key.key for key in result.unrestored]) == ("partly", [RMEM])
        assert result.foreign == ()
        assert host.value(RMEM) == "9000 131072 1048576"
    (rest,) = host.state.glob("unrestored.*")
    (rest / "snapshot").write_text(f"{whole}\n")
    assert guard.rollback(host).outcome == "restored"
    assert before == host.values()


@pytest.mark.parametrize("text", [None, TEXT])
def test_after_a_reboot_only_what_the_file_has_set_again_is_restored(
    host: NamespaceHost, text: str | None
) -> None:
    before = host.values()
    keep(host, ONE, text)
    (host.state / "applied.1" / "boot").write_text(f"{ELSEWHERE}\n")
    if text is None:
        set_all(host, before)
        set_by_somebody(host, SOMAXCONN, "55")  # the machine's own by now
    done = guard.rollback(host)
    assert done.outcome == "restored"
    assert before | ({} if text else {SOMAXCONN: "55"}) == host.values()
    assert left(host) == []


# What goes wrong ----------------------------------------------------------------------------------


def test_a_file_that_is_not_ours_is_not_replaced_and_nothing_stays(host: NamespaceHost) -> None:
    before = host.values()
    conf(host).parent.mkdir(parents=True)
    conf(host).write_text("theirs\n")
    with pytest.raises(HostError, match=r"99-zz-intop\.conf is there, and not as intop"):
        keep(host, ONE)
    assert (before, "theirs\n") == (host.values(), conf(host).read_text())
    assert left(host) == ["99-zz-intop.conf"]


@pytest.mark.parametrize("what", ["state", "root"])
def test_on_a_full_disk_nothing_stays(host: NamespaceHost, what: str) -> None:
    before = host.values()
    folder = host.state.parent / what
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k,mode=700", "none", folder], check=True)
    try:
        with pytest.raises(HostError, match="can't be written"), guarded(host, KEYS) as session:  # noqa: PT012
            session.apply(Configuration(ONE))
            host.run(f"cat /dev/zero > {folder}/full")
            session.keep(Configuration(ONE), ABOUT, (str(conf(host)), TEXT * 500))
        assert before == host.values()
        assert [path for path in folder.rglob("*") if "applied" in str(path)] == []
        assert list(conf(host).parent.glob("*")) == []
    finally:
        end_processes(host)
        subprocess.run(["umount", folder], check=True)


def test_what_is_cut_off_on_its_way_does_not_stay(host: NamespaceHost) -> None:
    before = host.values()
    begun(host, "net/core/somaxconn 777")
    done = host.script("keep", "token-1", stdin="key\tnet/core/somaxconn\nabout\tsince\tnow\n")
    assert (done.exit_code, "cut off" in done.stderr) == (1, True)
    assert host.script("end", "token-1").exit_code == 0
    assert (before, []) == (host.values(), left(host))


def test_a_foreign_change_just_before_stops_it(host: NamespaceHost) -> None:
    before = host.values()
    with pytest.raises(HostError, match="somebody else has changed"), guarded(host, KEYS) as one:  # noqa: PT012
        one.apply(Configuration(ONE))
        set_by_somebody(host, SOMAXCONN, "55")
        with pytest.raises(ForeignChangeError):
            one.keep(Configuration(ONE), ABOUT)
    assert before | {SOMAXCONN: "55"} == host.values()


def test_what_somebody_else_has_set_since_an_apply_is_not_taken_by_the_next_one(
    host: NamespaceHost,
) -> None:
    before = host.values()
    keep(host, ONE)
    set_by_somebody(host, SOMAXCONN, "55")
    with pytest.raises(ForeignChangeError, match="somaxconn"):
        keep(host, TWO)
    assert before | ONE | {SOMAXCONN: "55"} == host.values()
    assert left(host) == ["99-zz-intop.conf", "applied.1"]


# Death at each step -------------------------------------------------------------------------------


class Mortal:
    """Runs guard.sh so that it and all that it has started is killed at its n-th program."""

    def __init__(self, host: NamespaceHost, folder: Path) -> None:
        self._host, self._folder = host, folder
        folder.mkdir()
        for name in SHIMMED:
            program = "true" if name == "sync" else f"/usr/bin/{name}"
            (folder / name).write_text(SHIM.format(folder=folder, program=program))
            (folder / name).chmod(0o755)
        # Waiting for the disk takes most of the time, and shows nothing here.
        calm = folder.with_name("calm")
        calm.mkdir()
        (calm / "sync").symlink_to("/usr/bin/true")

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
    lines = [f"key\t{path_of(key)}" for key in values]
    lines += [f"about\t{name}\t{word}" for name, word in ABOUT.items()]
    lines += [f"text\t{line}" for line in text.splitlines()]
    digest = hashlib.sha256(text.encode()).hexdigest()
    return "\n".join([*lines, "end", ""]), (str(path), digest)


def set_all(host: NamespaceHost, values: dict[str, str]) -> None:
    assert host.run(setting(values)).exit_code == 0


def setting(values: dict[str, str]) -> str:
    return "\n".join(f"echo {value} > /proc/sys/{path_of(key)}" for key, value in values.items())


def at_once(host: NamespaceHost, *commands: str) -> dict[str, str]:
    """Run commands in one shell, since a shell in a namespace takes time; the keys thereafter."""
    paths = " ".join(path_of(key) for key in KEYS)
    last = f"echo; echo values; cd /proc/sys; cat {paths}"
    done = host.run("\n".join([f"PATH={host.state.parent}/calm:$PATH", *commands, last]))
    results = done.stdout.rpartition("values\n")[2].splitlines()
    return {key: " ".join(value.split()) for key, value in zip(KEYS, results, strict=True)}


def die(host: NamespaceHost, *, rebooted: bool) -> None:
    """Everybody is dead, and the lease is over, or the kernel another one."""
    end_processes(host)
    if rebooted:
        for path in (*host.state.glob("*/boot"), *host.state.glob("*/record/boot")):
            path.write_text(f"{ELSEWHERE}\n")
    elif (host.state / "lock").is_dir():
        lapse(host.state / "lock")


@pytest.mark.parametrize("is_second", [False, True], ids=["first-reboot", "second-lapse"])
def test_a_keep_that_dies_anywhere_leaves_all_of_it_or_nothing(
    host: NamespaceHost, tmp_path: Path, is_second: bool
) -> None:
    """Of a first apply, with a reboot thereafter; of a second one, with the lease's lapse."""
    before = host.values()
    mortal = Mortal(host, tmp_path / "bin")
    guard_sh = f"sh {host.state}/guard.sh {host.state}"
    host.script("status")
    earlier = before
    if is_second:
        keep(host, ONE)
        end_processes(host)
        earlier = before | ONE
    shutil.copytree(tmp_path, tmp_path.with_name("earlier"), dirs_exist_ok=True)
    (tmp_path / "paths").write_text("".join(f"{path_of(key)}\n" for key in KEYS))
    wanted = (before | TWO).items()
    (tmp_path / "lines").write_text("".join(f"{path_of(k)} {v}\n" for k, v in wanted))
    stdin, words = to_keep(TWO, "two\n", conf(host))
    outcomes: list[bool] = []
    for fatal in range(1, 100, 1 + is_second):
        token = f"token-{fatal}"
        at_once(
            host,
            setting(earlier),
            f"{guard_sh} begin {token} {LONG} me originals < {tmp_path}/paths",
            f"{guard_sh} write {token} < {tmp_path}/lines",
        )
        done = mortal.run(fatal, "keep", token, *words, stdin=stdin)
        committed = (host.state / f"applied.{1 + is_second}").is_dir()
        # What is read at boot is there only once it can be undone.
        assert committed or not conf(host).exists() or conf(host).read_text() == TEXT
        die(host, rebooted=not is_second)
        booted = before | (TWO if conf(host).exists() else {})
        now = at_once(host, "" if is_second else setting(booted), f"{guard_sh} status")
        expected = (before | TWO if committed else earlier) if is_second else booted
        assert now == expected
        there = [f"applied.{1 + (is_second and committed)}"] if committed or is_second else []
        assert [*["99-zz-intop.conf"] * len(there), *there] == left(host)
        if there:
            record = host.state / there[0]
            assert ("two\n" if committed else TEXT) == conf(host).read_text()
            stays = TWO if committed else ONE
            assert {path_of(key) for key in stays} == set(keys_in(record / "left"))
        assert before == at_once(host, f"{guard_sh} rollback") or not there
        if there:
            assert left(host) == []
        outcomes.append(committed)
        if done.exit_code == 0:
            break
        if is_second:
            shutil.copytree(tmp_path.with_name("earlier"), tmp_path, dirs_exist_ok=True)
    assert done.exit_code == 0, done.stderr
    assert outcomes == sorted(outcomes), "once it is through, it stays so"
    assert outcomes.count(False) >= 5
    assert outcomes.count(True) >= 3


def keys_in(file: Path) -> list[str]:
    return [line.partition(":")[0] for line in file.read_text().splitlines()]


def test_a_rollback_that_dies_anywhere_is_carried_to_its_end(
    host: NamespaceHost, tmp_path: Path
) -> None:
    before = host.values()
    mortal = Mortal(host, tmp_path / "bin")
    guard_sh = f"sh {host.state}/guard.sh {host.state}"
    keep(host, ONE)
    end_processes(host)
    shutil.copytree(tmp_path, tmp_path.with_name("applied"), dirs_exist_ok=True)
    for fatal in range(1, 100):
        at_once(host, setting(before | ONE))
        done = mortal.run(fatal, "rollback")
        if done.exit_code == 0:
            break
        assert before == at_once(host, f"{guard_sh} rollback")
        assert left(host) == []
        shutil.copytree(tmp_path.with_name("applied"), tmp_path, dirs_exist_ok=True)
    assert done.exit_code == 0, done.stderr
    assert fatal >= 6
    assert (before, []) == (host.values(), left(host))


def test_a_host_whose_session_is_alive_keeps_what_is_applied(host: NamespaceHost) -> None:
    keep(host, ONE)
    with guarded(leased(host, 60.0), KEYS):
        assert guard.rollback(host).outcome == "held"
    assert host.value(SOMAXCONN) == "777"
