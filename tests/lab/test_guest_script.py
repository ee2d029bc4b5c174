"""What a guest is told, and what the machine must have for one."""

import shlex
import subprocess
from ipaddress import IPv4Network
from pathlib import Path

import pytest

from intop.domain.balancing import Balancing
from intop.domain.cluster import LabSpec, Link
from intop.errors import LabError
from intop.lab import commands, guest, state
from intop.lab.texts import USUAL

SUBNET = IPv4Network("198.18.7.0/24")


@pytest.fixture(autouse=True)
def _keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "STATE_FOLDER", tmp_path)
    keys = tmp_path / "t" / "keys"
    keys.mkdir(parents=True)
    (keys / "host-lb").write_text("PRIVATE\nKEY\n")
    (keys / "authorized_keys").write_text("ssh-ed25519 AAAA it's the lab\n")


def script(link: Link | None = None, balancing: Balancing = USUAL) -> str:
    spec = LabSpec(name="t", kind="vm", link=link, balancing=balancing)
    return guest.prepared(spec, SUBNET)


def test_it_is_a_valid_script_with_address_and_link() -> None:
    text = script(Link(rate_mbit=50))
    subprocess.run(["sh", "-n"], input=text, check=True, text=True)
    lines = text.splitlines()
    assert "ip address add 198.18.7.20/24 dev eth0" in lines
    start = lines.index("ip link set eth0 up")
    shaped = "tc qdisc add dev eth0 root tbf rate 50000000bit burst 32kb limit 100kb"
    assert lines[start + 1] == shaped
    for link in (None, Link(rate_mbit=50, delay_ms=10)):  # the latter is not the guest's to make
        assert not any(line.startswith("tc ") for line in script(link).splitlines())


def test_it_may_start_badly_set_before_its_servers_do() -> None:
    settings = Balancing(backlog=511, sysctls=(("net.ipv4.tcp_rmem", "4096 8192 65536"),))
    text = script(balancing=settings)
    subprocess.run(["sh", "-n"], input=text, check=True, text=True)
    lines = text.splitlines()
    written = lines.index("echo '4096 8192 65536' > /proc/sys/net/ipv4/tcp_rmem")
    assert written < lines.index(f"sh {guest.RESTART_SCRIPT}")
    assert "        listen 80 backlog=511;" in lines


def test_the_files_arrive_as_they_are(tmp_path: Path) -> None:
    text = script()
    folder = tmp_path / "guest"
    folder.mkdir()
    files_only = text.partition("umask 022")[0].replace(
        f"cd {guest.FOLDER}", f"cd {shlex.quote(str(folder))}"
    )
    subprocess.run(["sh"], input=files_only, check=True, text=True)
    assert (folder / "keys/host-lb").read_text() == "PRIVATE\nKEY\n"
    assert (folder / "keys/host-lb").stat().st_mode & 0o777 == 0o600
    assert (folder / "keys").stat().st_mode & 0o777 == 0o700
    assert (folder / "keys/authorized_keys").read_text() == "ssh-ed25519 AAAA it's the lab\n"
    nginx = (folder / "nginx.conf").read_text()
    assert "proxy_set_header Host $host;" in nginx
    assert f"pid {guest.FOLDER}/nginx.pid;" in nginx
    assert "ListenAddress 198.18.7.20" in (folder / "sshd.conf").read_text()
    subprocess.run(["sh", "-n", str(folder / "server-restart")], check=True)


def test_a_file_that_would_end_the_script_early_is_refused() -> None:
    with pytest.raises(LabError, match=r"nginx\.conf has a line"):
        guest.script(LabSpec(), SUBNET, {"nginx.conf": "a\nEND-OF-FILE-FOR-GUEST\nb\n"})


def test_what_this_machine_lacks_for_a_guest_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guest, "TUN_DEVICE", tmp_path / "tun")
    monkeypatch.setattr(commands, "find_program", lambda name: None)
    with pytest.raises(LabError, match=r"qemu-system-aarch64: apt-get install -y qemu-system-arm$"):
        guest.require("arm")
    monkeypatch.setattr(commands, "find_program", lambda name: f"/usr/bin/{name}")
    with pytest.raises(LabError, match="modprobe tun"):
        guest.require("x86")
    (tmp_path / "tun").touch()
    guest.require("x86")


def test_a_guest_is_qemu_in_this_lab_and_nothing_else() -> None:
    """A process id may be somebody else's by now."""
    files = state.guest_files("t")
    files.root.mkdir()
    assert guest.pid("t") is None
    files.pid.write_text("1\n")
    assert guest.pid("t") is None
    files.console.write_text("Kernel panic\n")
    assert guest.problem("t") == (
        "lb: the guest does not run any more\n  console.log: Kernel panic"
    )
