"""Each format carried out by the program that it is for, and undone; no other key is touched."""

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from builders.results import DEPLOYMENT
from intop.deploy.export.ansible import playbook
from intop.deploy.export.tuned import FILE, profile
from intop.domain.cluster import native_arch, other_arch
from intop.domain.sysctl_file import NAME, sysctl_file
from kit.namespace_host import FIN
from kit.own_machine import OwnMachine, own_machine
from kit.playing import Playing

AT = "2026-11-22T02:00:00+00:00"
HERE = replace(DEPLOYMENT, arch=native_arch(), study="a\nb {{ c }} ${d} 'ü'")
WANTED = dict(HERE.values)
PLACE = f"/etc/sysctl.d/{NAME}"

TUNED = """
set -e
mkdir -p /run/dbus
dbus-daemon --system --fork --nopidfile
# By the interpreter, so that its name is not that of a daemon which others look for.
/usr/bin/python3 -Es /usr/sbin/tuned &
daemon=$!
until busctl call com.redhat.tuned /Tuned com.redhat.tuned.control is_running >/dev/null 2>&1; do
    kill -0 $daemon
    sleep 0.1
done
tuned-adm profile intop-web
tuned-adm active
tuned-adm verify
sysctl $KEYS
tuned-adm off
echo off
sysctl $KEYS
"""


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[OwnMachine]:
    before = machines_own()
    with own_machine(tmp_path) as made:
        yield made
    assert before == machines_own()


def machines_own() -> list[str]:
    return [Path(f"/proc/sys/{key.replace('.', '/')}").read_text() for key in WANTED]


def settings_in(text: str) -> dict[str, str]:
    pairs = [line.partition(" = ") for line in text.splitlines() if " = " in line]
    return {key: " ".join(value.split()) for key, _, value in pairs if key in WANTED}


@pytest.mark.parametrize("program", ["/usr/sbin/sysctl --system", "/lib/systemd/systemd-sysctl"])
def test_sysctl_d(machine: OwnMachine, program: str) -> None:
    assert machine.values(WANTED) != WANTED
    machine.path("/etc/sysctl.d/99-sysctl.conf").write_text("net.core.somaxconn = 100\n")
    machine.path(PLACE).write_text(sysctl_file(HERE, written_at=AT))
    message = machine.run(*program.split())
    assert machine.values(WANTED) == WANTED, message
    for word in ("cannot", "invalid", "ignoring"):
        assert word not in message.lower()


def test_tuned(machine: OwnMachine) -> None:
    before = machine.values(WANTED)
    assert before != WANTED
    base = machine.path("/etc/tuned/base")
    base.mkdir()
    base.joinpath(FILE).write_text("[sysctl]\nnet.core.somaxconn=100\n")
    ours = machine.path("/etc/tuned/intop-web")
    ours.mkdir()
    ours.joinpath(FILE).write_text(profile(HERE, written_at=AT, include="base"))
    shutil.copy("/etc/tuned/tuned-main.conf", machine.path("/etc/tuned"))
    # Else it would choose a profile by itself.
    machine.path("/etc/tuned/profile_mode").write_text("manual\n")
    message = machine.run("sh", "-c", TUNED, KEYS=" ".join(WANTED))
    on, _, off = message.partition("\noff\n")
    assert "Current active profile: intop-web" in on
    assert "Verfication succeeded" in on or "Verification succeeded" in on
    assert settings_in(on) == WANTED
    assert before == settings_in(off)


@pytest.fixture
def play(machine: OwnMachine, tmp_path: Path) -> Playing:
    return Playing(machine, tmp_path)


@pytest.mark.long
def test_ansible(machine: OwnMachine, play: Playing) -> None:
    before = machine.values(WANTED)
    assert before != WANTED
    amount = replace(HERE.changes[1], key="vm.dirty_bytes", value="64000000", default="0")
    play.write(playbook(replace(HERE, changes=(*HERE.changes, amount)), written_at=AT))
    message, changed = play("--check", "--diff")
    assert changed
    assert "+net.ipv4.tcp_rmem = 4096 8192 65536" in message
    assert "+vm.dirty_ratio = " in message  # to set it back, since the kernel sets it to zero
    assert before == machine.values(WANTED)
    assert machine.listed("/etc/sysctl.d") == []

    # As an earlier export has left it that had one key more.
    machine.path(f"{PLACE}.before").write_text(f"{FIN} = 60\n")
    machine.run("sysctl", "-w", f"{FIN}=30")
    play.write(playbook(HERE, written_at=AT))
    play()
    assert machine.values({**WANTED, FIN: ""}) == {**WANTED, FIN: "60"}
    assert sysctl_file(HERE, written_at=AT) == machine.path(PLACE).read_text()
    message, changed = play()
    assert changed == 0, message

    play("-e", "intop_state=absent")
    assert before == machine.values(WANTED)
    assert machine.listed("/etc/sysctl.d") == []


def test_ansible_leaves_other_architectures_alone(machine: OwnMachine, play: Playing) -> None:
    before = machine.values(WANTED)
    play.write(playbook(replace(HERE, arch=other_arch()), written_at=AT))
    message, changed = play()
    assert changed == 0, message
    assert before == machine.values(WANTED)
