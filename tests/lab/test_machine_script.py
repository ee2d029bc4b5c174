"""What a machine is made of and told, and the disk that it has, without starting one."""

import hashlib
import os
import subprocess
from ipaddress import IPv4Network
from pathlib import Path

import pytest

from intop.domain.balancing import Balancing
from intop.domain.cluster import LabSpec, Link, native_arch, other_arch
from intop.errors import LabError
from intop.lab import image, machine, machine_image, qemu, state
from intop.lab.image import Image
from intop.lab.texts import USUAL

SUBNET = IPv4Network("198.18.7.0/24")


@pytest.fixture(autouse=True)
def _keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "STATE_FOLDER", tmp_path / "labs")
    keys = tmp_path / "labs" / "t" / "keys"
    keys.mkdir(parents=True)
    (keys / "host-lb").write_text("PRIVATE\nKEY\n")
    (keys / "authorized_keys").write_text("ssh-ed25519 AAAA it's the lab\n")


def script(link: Link | None = None, balancing: Balancing = USUAL) -> str:
    spec = LabSpec(name="t", kind="machine", link=link, balancing=balancing)
    return machine.first_start(spec, SUBNET, "a-Pass_word")


def test_its_first_start_is_a_valid_script_with_address_link_and_password() -> None:
    text = script(Link(rate_mbit=50))
    subprocess.run(["sh", "-n"], input=text, check=True, text=True)
    lines = text.splitlines()
    assert "Address=198.18.7.20/24" in lines
    assert "admin:a-Pass_word" in lines
    assert "        server 198.18.7.31:80 max_fails=0;" in lines
    assert "tc qdisc add dev eth0 root tbf rate 50000000bit burst 32kb limit 100kb" in lines
    # Nobody else may read the keys, at no moment.
    assert lines.index("umask 077") < lines.index("PRIVATE") < lines.index("umask 022")
    assert not any(line.startswith("tc ") for line in script().splitlines())


def test_it_may_start_badly_set() -> None:
    keys = (("net.core.somaxconn", "128"), ("net.ipv4.tcp_rmem", "4096 8192 65536"))
    settings = Balancing(upstream_keepalive=0, sysctls=keys)
    text = script(balancing=settings)
    subprocess.run(["sh", "-n"], input=text, check=True, text=True)
    assert "net.core.somaxconn = 128\nnet.ipv4.tcp_rmem = 4096 8192 65536\n" in text
    assert f"sysctl -q -p {machine.SYSCTLS}" in text.splitlines()
    assert "keepalive 64;" not in text
    assert machine.SYSCTLS not in script()


def test_its_units_are_valid_and_run_what_there_is(tmp_path: Path) -> None:
    subprocess.run(["sh", "-n"], input=machine_image.SETUP, check=True, text=True)
    first = machine_image.OWN_FILES["etc/systemd/system/lab.service"]
    assert f"ConditionPathExists=!{machine_image.DONE}\n" in first
    script = first.partition("ExecStart=/bin/sh -c '")[2].partition("'\n")[0].replace("\\\n", "")
    subprocess.run(["sh", "-n"], input=script, check=True, text=True)
    link = machine_image.OWN_FILES["etc/systemd/system/lab-link.service"]
    assert f"ExecStart=/bin/sh {machine_image.LINK_SCRIPT}\n" in link
    enabled = machine_image.SETUP.partition(" enable ")[2].splitlines()[0].split()
    assert enabled == ["systemd-networkd.service", "lab.service", "lab-link.service"]


def test_the_packages_of_a_folder_are_a_source_for_apt(tmp_path: Path) -> None:
    file = tmp_path / "7.deb"
    text = machine_image.source_index([("Package: a\nVersion: 1\n", file, b"content")])
    assert text.splitlines() == [
        "Package: a",
        "Version: 1",
        "Filename: ./7.deb",
        "Size: 7",
        f"SHA256: {hashlib.sha256(b'content').hexdigest()}",
        "",
    ]


def test_what_installs_them_has_mounts_and_processes_of_its_own() -> None:
    command = machine_image.installing("x86", Path("/s"), Path("/r"), ["a", "b"])
    apart, _, rest = " ".join(command).partition(" mmdebstrap ")
    assert apart.split()[:2] == ["unshare", "--mount"]
    assert "--kill-child" in apart
    assert "--include=a,b" in rest
    assert command[-3:] == ["", "/r", "deb [trusted=yes] copy:/s ./"]


def test_qemu_gives_it_a_disk_and_lets_it_start_again() -> None:
    files, mine = qemu.Files(Path("/run/t")), Image(Path("/cache/machines/t"))
    for arch in qemu.MACHINES:
        line = " ".join(qemu.command(arch, "tcg", mine, files, "lb", has_disk=True))
        assert "-drive file=/cache/machines/t/disk,if=virtio,format=raw" in line
        assert " root=/dev/vda ro net.ifnames=0 " in line
        assert "-no-reboot" not in line
        assert "rdinit" not in line


def test_it_can_only_be_of_this_machines_own_architecture() -> None:
    with pytest.raises(LabError, match=f'own architecture.*{native_arch()}, not.*kind = "vm"'):
        machine.require(other_arch())


def test_each_lab_has_a_disk_of_its_own_which_goes_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "cache"
    monkeypatch.setattr(image, "CACHE_FOLDER", cache)
    made = Image(cache / "machine-x86-1")
    made.folder.mkdir(parents=True)
    for file in (made.kernel, made.file_system):
        file.write_text(file.name)
    with made.disk.open("wb") as disk:
        disk.write(b"begin")
        os.truncate(disk.fileno(), 50_000_000)
    assert machine.owned("t") is None

    mine = machine.own(made, "t")
    machine.own(made, "u")
    assert (mine.kernel.read_text(), mine.disk.stat().st_size) == ("vmlinuz", 50_000_000)
    assert mine.disk.stat().st_blocks * 512 < 1_000_000
    assert mine.folder.stat().st_mode & 0o777 == 0o700
    mine.disk.write_bytes(b"written")
    assert made.disk.read_bytes().startswith(b"begin")
    assert machine.owned("t") == mine
    # A new lab of that name begins with a new disk.
    assert machine.own(made, "t").disk.read_bytes().startswith(b"begin")

    for lab in ("t", "t", "u"):
        machine.discard(lab)
    assert machine.owned("t") is None
    assert [made.folder] == list(cache.iterdir())
