"""A guest for real: needs root, QEMU and Debian's packages, and fails without them.

Of the architecture that this machine is not, so that nothing but emulation can help.
"""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from intop.domain.cluster import MACHINES, Cluster, LabSpec, Link, other_arch
from intop.domain.configuration import DEFAULT, Configuration
from intop.domain.parameter import PAIRS
from intop.errors import ForeignChangeError, HostError, LabError
from intop.hosts.facts import facts
from intop.hosts.guard import guarded, rollback
from intop.hosts.host import output
from intop.hosts.ssh import SshHost, connect
from intop.lab import cluster as lab
from intop.lab import guest, network, qemu
from kit.client_namespaces import socket_of
from kit.studies import wait_for

PROJECT = Path(__file__).resolve().parents[2]
RUN = os.getpid() % 10_000
OTHER = other_arch()
SPEC = LabSpec(
    name=f"t-v{RUN}",
    arch=OTHER,
    kind="vm",
    link=Link(rate_mbit=100, delay_ms=2, loss_percent=0.1),
)
FILES = Path(f"/run/intop/lab/{SPEC.name}/host-lb")
Traces = Callable[[str], list[str]]


@pytest.fixture(scope="module")
def made() -> Iterator[Cluster]:
    try:
        yield lab.up(SPEC)
    finally:
        lab.down(SPEC.name)


@pytest.fixture
def balancer(made: Cluster) -> Iterator[SshHost]:
    host = connect(made.load_balancer)
    yield host
    host.close()


def fetched(part: str, url: str) -> int:
    """The length of what a host of the lab gets."""
    code = f"import urllib.request as u; print(len(u.urlopen({url!r}, timeout=10).read()))"
    command = ["ip", "netns", "exec", network.namespace(SPEC.name, part), "python3", "-c", code]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=30)
    return int(done.stdout)


def test_it_is_a_machine_of_the_other_architecture(made: Cluster, balancer: SshHost) -> None:
    result = facts(balancer)
    assert result.machine in MACHINES[OTHER]
    assert result.kernel != os.uname().release
    assert not result.in_namespace
    assert result.is_root
    assert result.nginx.startswith("nginx/")
    assert abs(result.clock_s - time.time()) < 2
    assert made.emulation == f"TCG on {os.uname().machine}"
    shape = "delay 2 ms, loss 0.1 %, 100 Mbit/s, limit 100 KB"
    assert made.link.startswith(f"each way {shape}; seed 1; by ")


def test_all_content_is_reached_through_it(made: Cluster) -> None:
    assert fetched("lg", f"{made.url}/img/photo-1.jpg") == 120 * 1024
    assert fetched("lg", f"{made.url}{made.dynamic_path}?r=5") > 1000


def test_its_link_is_between_it_and_the_load_generator(made: Cluster, balancer: SshHost) -> None:
    queueing = output(balancer, "tc qdisc show dev eth0 root")
    assert not re.search("netem|tbf", queueing)
    begin = time.monotonic()
    with socket_of(network.namespace(SPEC.name, "lg")) as client:
        client.connect((made.load_balancer.hostname, 80))
    assert time.monotonic() - begin >= 0.004


def test_its_kernel_offers_choices(balancer: SshHost) -> None:
    offered = output(balancer, "cat /proc/sys/net/ipv4/tcp_available_congestion_control").split()
    assert {"reno", "cubic", "bbr", "htcp"} <= set(offered)
    assert output(balancer, "sysctl -w net.core.default_qdisc=fq >&2; ulimit -n") == "65536\n"


def test_a_key_of_the_whole_machine_is_the_guests_own(balancer: SshHost) -> None:
    mine = Path("/proc/sys/vm/swappiness")
    before = mine.read_text()
    with guarded(balancer, ["vm.swappiness", "net.core.netdev_max_backlog"]) as guard:
        value = "17" if before.strip() != "17" else "18"
        guard.apply(Configuration({"vm.swappiness": value}))
        assert output(balancer, "sysctl -n vm.swappiness") == f"{value}\n"
        assert mine.read_text() == before
        assert guard.snapshot["vm.swappiness"] != value
    assert (
        output(balancer, "cat /proc/sys/vm/swappiness").strip() == guard.snapshot["vm.swappiness"]
    )


def values(host: SshHost, *keys: str) -> dict[str, str]:
    text = output(host, f"sysctl -n {' '.join(keys)}").splitlines()
    return dict(zip(keys, text, strict=True))


def test_keys_of_which_the_kernel_zeroes_one_are_set_and_restored(balancer: SshHost) -> None:
    """Only in a guest: these are the whole machine's. Zero bytes can't be written at all."""
    all_bytes, all_ratios = [one for one, _ in PAIRS], [other for _, other in PAIRS]
    keys = [*all_bytes, *all_ratios]
    before = values(balancer, *keys)
    assert {before[key] for key in all_bytes} == {"0"}
    assert "0" not in {before[key] for key in all_ratios}
    in_bytes = dict.fromkeys(all_bytes, "104857600") | dict.fromkeys(all_ratios, "0")
    in_ratios = dict.fromkeys(all_bytes, "0") | dict.fromkeys(all_ratios, "37")
    with guarded(balancer, all_bytes) as guard:
        assert guard.snapshot == before
        # Each reads back what it has changed, the zeroes too.
        guard.apply(Configuration(in_bytes))
        guard.apply(Configuration(dict.fromkeys(all_ratios, "37")))
        guard.apply(DEFAULT)
        guard.apply(Configuration(dict.fromkeys(all_bytes, "104857600")))
        assert values(balancer, *keys) == in_bytes
    assert values(balancer, *keys) == before
    # A host whose own values are the bytes
    output(balancer, "sysctl -w " + " ".join(f"{key}=104857600" for key in all_bytes))
    with guarded(balancer, all_ratios) as guard:
        guard.apply(Configuration(dict.fromkeys(all_ratios, "37")))
        assert values(balancer, *keys) == in_ratios
    assert values(balancer, *keys) == in_bytes
    output(balancer, "sysctl -w " + " ".join(f"{key}={before[key]}" for key in all_ratios))
    assert values(balancer, *keys) == before


def test_of_two_such_keys_neither_is_restored_over_a_foreign_value(balancer: SshHost) -> None:
    one, other = PAIRS[0]
    before = values(balancer, one, other)
    with pytest.raises(HostError) as caught, guarded(balancer, [one]) as guard:  # noqa: PT012
        guard.apply(Configuration({one: "104857600"}))
        output(balancer, f"sysctl -w {one}=209715200")
        with pytest.raises(ForeignChangeError, match=r"'104857600' is '209715200' now"):
            guard.apply(DEFAULT)
    assert values(balancer, one, other) == {one: "209715200", other: "0"}
    command = f"sysctl -w {other}={before[other]}"
    assert str(caught.value).endswith(f"so it was left alone: {command}")
    assert rollback(balancer, force=True).outcome == "restored"
    assert values(balancer, one, other) == before


def test_a_restarted_nginx_has_a_new_backlog(made: Cluster, balancer: SshHost) -> None:
    for backlog in (777, 4096):
        output(balancer, f"sysctl -w net.core.somaxconn={backlog} && {made.server_restart}")
        assert f" {backlog} " in output(balancer, "ss -Hltn sport = :80")


def test_up_again_finds_it(made: Cluster) -> None:
    pid = (FILES / "qemu.pid").read_text()
    assert lab.up(SPEC) == made == lab.cluster(SPEC.name)
    assert (FILES / "qemu.pid").read_text() == pid
    with pytest.raises(LabError, match=r"is up with .* as .* with a guest.*take it down first"):
        lab.up(replace(SPEC, kind="namespaces"))
    status = lab.status(SPEC.name)
    assert (status.state, status.problems, status.emulation) == ("up", (), made.emulation)


def test_the_image_holds_no_key_and_the_lab_keeps_its_own_closed(made: Cluster) -> None:
    assert (FILES / "guest-start").stat().st_mode & 0o777 == 0o600
    command = (Path("/proc") / (FILES / "qemu.pid").read_text().strip() / "cmdline").read_text()
    initramfs = command.split("\0")[command.split("\0").index("-initrd") + 1]
    key = (FILES.parent / "keys/host-lb").read_text().splitlines()[1]
    assert key in (FILES / "guest-start").read_text()
    assert key.encode() not in Path(initramfs).read_bytes()


def test_a_killed_guest_is_noticed_repaired_and_removed(made: Cluster, traces: Traces) -> None:
    """The last test: it ends the lab that the others look at."""
    pid = int((FILES / "qemu.pid").read_text())
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not Path(f"/proc/{pid}").exists(), "the guest to be dead")
    status = lab.status(SPEC.name)
    assert status.state == "damaged"
    assert "lb: the guest does not run any more" in status.problems[0]

    repaired = lab.up(SPEC)
    assert lab.status(SPEC.name).state == "up"
    assert fetched("lg", f"{repaired.url}/index.html") > 1000

    removed = lab.down(SPEC.name)
    assert f"intop-{SPEC.name}-sw" in removed.namespaces
    assert traces(SPEC.name) == []
    assert not lab.down(SPEC.name)


def test_an_up_that_is_killed_while_the_guest_starts_is_cleared(traces: Traces) -> None:
    name = f"t-w{RUN}"
    imports = "from intop.domain.cluster import LabSpec; from intop.lab.cluster import up"
    code = f"{imports}; up(LabSpec(name={name!r}, arch={OTHER!r}, kind='vm'))"
    process = subprocess.Popen([sys.executable, "-c", code], cwd=PROJECT)
    try:
        pid_file = Path(f"/run/intop/lab/{name}/host-lb/qemu.pid")
        while not pid_file.exists():
            assert process.poll() is None
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert lab.status(name).state == "damaged"
        assert lab.down(name)
        assert traces(name) == []
    finally:
        process.kill()
        lab.down(name)


def test_the_last_words_of_a_guest_tell_of_a_crash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = qemu.Files(tmp_path)
    monkeypatch.setattr(guest, "guest_files", lambda _: files)
    assert guest.last_words("t") == []
    files.console.write_text("Booting\n[9.1] Kernel panic - not syncing: Oops \x1b[2J\nBooting\n")
    assert guest.last_words("t") == ["[9.1] Kernel panic - not syncing: Oops \\u001b[2J"]
