"""The embedded cluster for real: needs root and the lab's programs, and fails without them."""

import os
import signal
import ssl
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from intop.domain.balancing import Balancing
from intop.domain.cluster import Cluster, CongestionControl, HostAddress, LabSpec, Link
from intop.errors import LabError, UsageError
from intop.hosts.facts import facts_script
from intop.lab import cluster as lab
from intop.lab import network, processes, servers, state
from intop.lab.commands import wait_until
from kit.commands import ran
from kit.studies import wait_for

PROJECT = Path(__file__).resolve().parents[2]
RUN = os.getpid() % 10_000
"""In all names, so that two runs of the tests don't meet."""
Traces = Callable[[str], list[str]]
Sysctls = Callable[[], dict[str, str]]
LINK = Link(rate_mbit=300)
SPEC = LabSpec(name=f"t-m{RUN}", link=LINK)


@pytest.fixture(scope="module")
def shaped() -> Iterator[Cluster]:
    """One lab for the tests that only look at it."""
    try:
        yield lab.up(SPEC)
    finally:
        lab.down(SPEC.name)


@pytest.fixture
def name() -> Iterator[str]:
    """A name for a lab that the test makes, and that is gone after it."""
    name = f"t-n{RUN}"
    try:
        yield name
    finally:
        lab.down(name)


def ssh(host: HostAddress, command: str, program: str = "ssh") -> str:
    options = [
        *("-F", "none", "-i", str(host.key_file), "-o", "BatchMode=yes"),
        *("-o", f"UserKnownHostsFile={host.known_hosts}", "-o", "StrictHostKeyChecking=yes"),
    ]
    where = f"{host.user}@{host.hostname}"
    last = [command] if program == "ssh" else []
    return ran(program, *options, where, *last, input=command, check=True, timeout=20).stdout


def inside(lab_name: str, part: str, *arguments: str) -> str:
    command = ["ip", "netns", "exec", network.namespace(lab_name, part), *arguments]
    return ran(*command, check=True, timeout=20).stdout


def fetched_by_load_generator(lab_name: str, url: str) -> int:
    """The length of what the load generator gets."""
    code = f"import urllib.request as u; print(len(u.urlopen({url!r}, timeout=5).read()))"
    return int(inside(lab_name, "lg", sys.executable, "-c", code))


def start_up(lab_name: str, settings: str = "") -> "subprocess.Popen[bytes]":
    """`up` in a process of its own."""
    imports = (
        "from intop.domain.balancing import Balancing\nfrom intop.domain.cluster import LabSpec\n"
        "from intop.lab.cluster import up"
    )
    code = f"{imports}\nup(LabSpec(name={lab_name!r}, balancing=Balancing({settings})))"
    return subprocess.Popen([sys.executable, "-c", code], cwd=PROJECT)


# -- a lab at work -------------------------------------------------------------------------------


def test_every_host_takes_the_labs_key(shaped: Cluster) -> None:
    for host in shaped.hosts:
        answer = ssh(host, "id -un; readlink /proc/self/ns/net; ls -d $HOME")
        user, namespace, home = answer.splitlines()
        assert user == "root"
        assert namespace != str(Path("/proc/self/ns/net").readlink())
        assert home.startswith(f"/run/intop/lab/{SPEC.name}/")
        # The machine's /etc is not a host's: each has a root of its own, in the lab's folder.
        assert ssh(host, f"ls {host.state_dir}; ls {host.config_root}") == ""
        assert Path(host.config_root).is_relative_to(Path(host.state_dir).parent)
    assert "bytes" not in ssh(shaped.load_balancer, "ls /", program="sftp")


def test_the_state_is_closed_to_others(shaped: Cluster) -> None:
    folder = Path(f"/run/intop/lab/{SPEC.name}")
    for private in (folder / "keys", Path(shaped.load_balancer.state_dir)):
        assert private.stat().st_mode & 0o777 == 0o700
    assert Path(str(shaped.load_balancer.key_file)).stat().st_mode & 0o777 == 0o600
    assert folder.stat().st_mode & 0o044 == 0  # nobody else may list it


def test_all_content_is_reached_through_the_balancer(shaped: Cluster) -> None:
    assert len(shaped.static_paths) == 24
    for path in shaped.static_paths:
        with urllib.request.urlopen(shaped.url + path, timeout=5) as answer:
            assert answer.status == 200
            assert len(answer.read()) >= 2048
    pages = {
        urllib.request.urlopen(f"{shaped.url}{shaped.dynamic_path}?r=5", timeout=5).read()
        for _ in range(6)  # every backend gives the same page
    }
    assert len(pages) == 1
    assert fetched_by_load_generator(SPEC.name, f"{shaped.url}/img/photo-1.jpg") == 120 * 1024
    assert fetched_by_load_generator(SPEC.name, f"{shaped.url}/dynamic?r=5") == len(pages.pop())
    with pytest.raises(urllib.error.HTTPError, match="400"):
        urllib.request.urlopen(f"{shaped.url}/dynamic?r=x", timeout=5)


def test_the_balancers_link_is_shaped_and_no_other(shaped: Cluster) -> None:
    shown = inside(SPEC.name, "lb", "tc", "qdisc", "show", "dev", "eth0")
    assert shown.startswith("qdisc tbf")
    assert "rate 300Mbit" in shown
    assert shaped.link == "tbf 300 Mbit/s, burst 32 KB, limit 100 KB"
    for part in ("lg", "b1", "b2", "b3"):
        assert "tbf" not in inside(SPEC.name, part, "tc", "qdisc", "show", "dev", "eth0")


def test_the_load_generator_has_ports_for_a_minute(shaped: Cluster) -> None:
    ports = inside(SPEC.name, "lg", "sysctl", "-n", "net.ipv4.ip_local_port_range").split()
    assert ports == ["1024", "65535"]


def test_every_host_starts_with_what_distributions_have(shaped: Cluster) -> None:
    assert shaped.hosts
    key = "net.ipv4.tcp_congestion_control"
    for part in network.HOSTS:
        assert inside(SPEC.name, part, "sysctl", "-n", key) == "cubic\n"
    for choice in ("reno", "cubic"):  # another one may be tried, and put back
        assert inside(SPEC.name, "lb", "sysctl", "-w", f"{key}={choice}")


def test_each_role_has_the_congestion_control_of_the_labs_file(name: str) -> None:
    lab.up(LabSpec(name=name, congestion_control=CongestionControl(backends="reno")))
    key = "net.ipv4.tcp_congestion_control"
    values = [inside(name, part, "sysctl", "-n", key).strip() for part in network.HOSTS]
    assert values == ["cubic", "cubic", "reno", "reno", "reno"]


def test_a_congestion_control_that_is_not_here_fails_with_its_name(name: str) -> None:
    wanted = CongestionControl(backends="nothing")
    with pytest.raises(LabError, match="namespaces may not choose cubic, nothing here"):
        lab.up(LabSpec(name=name, congestion_control=wanted))
    assert lab.status(name).state == "down"


def test_a_restarted_nginx_has_a_new_backlog(shaped: Cluster) -> None:
    balancer = shaped.load_balancer
    ssh(balancer, f"sysctl -w net.core.somaxconn=777 && {shaped.server_restart}")
    assert " 777 " in ssh(balancer, "ss -Hltn sport = :80")
    ssh(balancer, f"sysctl -w net.core.somaxconn=4096 && {shaped.server_restart}")
    assert " 4096 " in ssh(balancer, "ss -Hltn sport = :80")


def test_nginx_is_restarted_also_after_its_master_was_killed(shaped: Cluster) -> None:
    folder = Path(f"/run/intop/lab/{SPEC.name}/host-lb")
    ssh(shaped.load_balancer, f"kill -9 $(cat {folder}/nginx.pid)")
    ssh(shaped.load_balancer, shaped.server_restart)
    assert lab.status(SPEC.name).problems == ()


def test_a_restart_that_fails_says_why(shaped: Cluster) -> None:
    configuration = Path(f"/run/intop/lab/{SPEC.name}/host-lb/nginx.conf")
    text = configuration.read_text()
    configuration.write_text(text.replace("listen 80 ", "listen what "))
    try:
        with pytest.raises(subprocess.CalledProcessError) as caught:
            ssh(shaped.load_balancer, shaped.server_restart)
        assert caught.value.returncode == 1
        assert "nginx did not start" in caught.value.stderr
        status = lab.status(SPEC.name)
        assert status.state == "damaged"
        assert status.problems[0].startswith("lb: nginx does not answer")
    finally:
        configuration.write_text(text)
        ssh(shaped.load_balancer, shaped.server_restart)


def test_status_sees_it_whole(shaped: Cluster) -> None:
    status = lab.status(SPEC.name)
    assert (status.state, status.spec, status.problems) == ("up", SPEC, ())
    assert status.processes >= 5 + 4 + 3  # sshd, nginx (a worker may just be starting), apps
    assert SPEC.name in lab.running()


def test_up_again_changes_nothing(shaped: Cluster) -> None:
    def started() -> dict[Path, str]:
        files = Path(f"/run/intop/lab/{SPEC.name}").glob("host-*/*.pid")
        return {file: file.read_text() for file in files}

    before = started()
    assert len(before) == 5 + 4
    start = time.monotonic()
    assert lab.up(SPEC) == shaped == lab.cluster(SPEC.name)
    assert time.monotonic() - start < 2
    assert started() == before


def test_up_with_another_link_asks_to_take_it_down_first(shaped: Cluster) -> None:
    with pytest.raises(LabError, match=r"is up with tbf 300 .* down"):
        lab.up(LabSpec(name=SPEC.name, link=Link(rate_mbit=100)))
    assert lab.cluster(SPEC.name) == shaped


def test_a_lab_that_is_not_up_is_asked_for(name: str) -> None:
    with pytest.raises(LabError, match="intop lab up"):
        lab.cluster(name)
    assert lab.status(name).state == "down"
    for ask in (lab.cluster, lab.status, lab.down):
        with pytest.raises(UsageError, match="allowed"):
            ask("../a")
    with pytest.raises(ValueError, match="allowed"):
        LabSpec(name="a_b")


# -- nothing of it on the machine ----------------------------------------------------------------


def test_the_machines_own_parameters_stay(
    name: str, machine_sysctls: Sysctls, traces: Traces
) -> None:
    def seen() -> dict[str, str]:
        """Without the interfaces of other labs, which come and go."""
        return {
            key: value
            for key, value in machine_sysctls().items()
            if ".intop-" not in key or f".intop-{name}." in key
        }

    def settled(values: dict[str, str]) -> dict[str, str]:
        return {key: value for key, value in values.items() if key not in moving}

    samples = [seen() for _ in range(3)]
    moving = {k for k in samples[0] if any(s.get(k) != samples[0][k] for s in samples)}
    assert len(moving) < 20
    before = settled(samples[0])

    badly_set = Balancing(
        upstream_keepalive=0,
        workers=2,
        tls_key_bits=2048,
        access_log="disk",
        disk_iops=50,
        sysctls=(("net.core.somaxconn", "321"),),
    )
    made = lab.up(LabSpec(name=name, balancing=badly_set))
    balancer = made.load_balancer
    assert_badly_set(name, made.url, balancer, traces)
    assert ssh(balancer, "sysctl -n net.core.somaxconn; ss -Hltn 'sport = 80'").split()[:4] == [
        *("321", "LISTEN", "0", "321")
    ]
    with pytest.raises(LabError, match="netdev_budget"):  # the machine's
        network.start_with(name, [("net.core.netdev_budget", "299")])
    changes = {"net.core.somaxconn": "1234", "net.ipv4.tcp_fin_timeout": "17"}
    for key, value in changes.items():
        assert ssh(balancer, f"sysctl -w {key}={value} >&2; sysctl -n {key}") == f"{value}\n"
    during = settled(seen())
    own = {key: value for key, value in during.items() if f".intop-{name}." in key}
    assert own  # the one interface that is seen on the machine
    assert {key: value for key, value in during.items() if key not in own} == before

    lab.down(name)
    assert settled(seen()) == before
    assert not (state.DISKS_FOLDER / name).exists()


def programs(group: Path) -> set[str]:
    """The names of a control group's processes."""
    result: set[str] = set()
    for pid in group.read_text().split():
        with suppress(FileNotFoundError):
            result.add(Path(f"/proc/{pid}/comm").read_text().strip())
    return result


def assert_badly_set(name: str, url: str, balancer: HostAddress, traces: Traces) -> None:
    """It answers over TLS, and its log is on a slow disk that each write waits for."""
    assert url.startswith("https://")
    untrusted = ssl.create_default_context()
    untrusted.check_hostname = False
    untrusted.verify_mode = ssl.CERT_NONE
    begun = time.monotonic()
    for _ in range(50):  # each line is an operation or more, and the disk does 50 a second
        with urllib.request.urlopen(f"{url}/", context=untrusted, timeout=10) as answer:
            assert answer.status == 200
    assert time.monotonic() - begun > 0.5
    (group,) = (p for p in traces(name) if "cgroup" in p)
    wait_for(
        lambda: {"nginx", "dd"} <= programs(Path(group) / "cgroup.procs"), "a neighbour of nginx"
    )
    message = ssh(balancer, f"lsattr {balancer.state_dir}/../disk/access.log; pgrep -c -x nginx")
    assert "S" in message.split()[0]


def test_down_twice(name: str, traces: Traces) -> None:
    lab.up(LabSpec(name=name))
    removed = lab.down(name)
    assert removed.namespaces == tuple(sorted(network.namespaces(name)))
    assert removed.links == (f"intop-{name}",)
    assert removed.processes >= 16
    assert removed.state
    assert traces(name) == []
    assert not lab.down(name)


def test_two_labs_made_at_once_side_by_side(traces: Traces) -> None:
    first = f"t-{RUN % 1000}"
    second = f"{first}-lb"  # a name that begins like the first one's namespaces
    try:
        ups = [start_up(first), start_up(second)]
        assert [process.wait(timeout=60) for process in ups] == [0, 0]
        assert lab.cluster(first).url != lab.cluster(second).url
        # They answer although the process that made them has ended.
        lab.down(first)
        assert traces(first) == [result for result in traces(first) if second in result]
        status = lab.status(second)
        assert (status.state, status.problems) == ("up", ())
    finally:
        lab.down(first)
        lab.down(second)
    assert traces(first) == []


# -- whatever happens ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sign",
    [
        "/run/intop/lab/{}/keys",
        "/run/netns/intop-{}-b1",
        "/sys/class/net/intop-{}",
        "/run/intop/lab/{}/host-b1/app.log",
        "/run/intop/lab/{}/host-lb/sshd.pid",
        "/run/intop/lab/{}/host-b1/nginx.pid",
    ],
)
def test_a_killed_up_is_cleared_by_down(name: str, sign: str, traces: Traces) -> None:
    process = start_up(name)
    deadline = time.monotonic() + 20
    while not Path(sign.format(name)).exists():
        assert time.monotonic() < deadline
        assert process.poll() is None
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert traces(name)
    assert lab.down(name)
    assert traces(name) == []


def test_down_unmounts_the_log_of_a_killed_up(name: str, traces: Traces) -> None:
    process = start_up(name, 'access_log="memory"')
    folder = Path(f"/run/intop/lab/{name}/host-lb/memory")
    wait_for(lambda: folder.is_mount() and (folder / "access.log").exists(), "no log")
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert lab.down(name)
    assert traces(name) == []


def test_up_after_a_killed_up_builds_anew(name: str) -> None:
    process = start_up(name)
    while not Path(f"/run/netns/intop-{name}-b2").exists():
        assert process.poll() is None
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert lab.status(name).state == "damaged"
    assert name in lab.running()
    lab.up(LabSpec(name=name))
    assert lab.status(name).state == "up"


@pytest.mark.parametrize("reason", [KeyboardInterrupt, LabError])
def test_an_up_that_fails_leaves_nothing(
    name: str, reason: type[BaseException], monkeypatch: pytest.MonkeyPatch, traces: Traces
) -> None:
    started = servers.start_all

    def fail(*arguments: object) -> None:
        started(*arguments)  # type: ignore[arg-type]  # handed through
        raise reason("planted")

    monkeypatch.setattr(servers, "start_all", fail)
    with pytest.raises(reason, match="planted"):
        lab.up(LabSpec(name=name))
    assert traces(name) == []


def test_down_without_the_state_folder(name: str, traces: Traces) -> None:
    lab.up(LabSpec(name=name))
    subprocess.run(["rm", "-r", f"/run/intop/lab/{name}"], check=True)
    assert lab.status(name).state == "damaged"
    assert lab.down(name).processes >= 16
    assert traces(name) == []


def test_down_when_names_are_gone_or_no_namespaces(name: str, traces: Traces) -> None:
    lab.up(LabSpec(name=name))
    # Processes keep the namespace, its name is gone.
    subprocess.run(["ip", "netns", "delete", f"intop-{name}-b1"], check=True)
    subprocess.run(["ip", "netns", "delete", f"intop-{name}-b2"], check=True)
    Path(f"/run/netns/intop-{name}-b2").touch()  # `ip netns add` killed before its mount
    assert lab.down(name).processes >= 16
    assert traces(name) == []


def test_a_process_that_ignores_the_signal_is_ended(name: str, traces: Traces) -> None:
    lab.up(LabSpec(name=name))
    script = "trap '' TERM; while :; do sleep 60; done"
    stubborn = subprocess.Popen(["ip", "netns", "exec", f"intop-{name}-lb", "sh", "-c", script])
    try:
        while processes.command_name(stubborn.pid) != "sh":
            assert stubborn.poll() is None
        assert lab.down(name)
        assert stubborn.wait(timeout=5) != 0
        assert traces(name) == []
    finally:
        stubborn.kill()


def test_down_ends_a_key_maker_that_a_killed_up_left(name: str, traces: Traces) -> None:
    """It runs in the machine's namespace, so only its arguments tell whose it is."""
    keys = Path(f"/run/intop/lab/{name}/keys")
    keys.mkdir(parents=True)
    (keys / "client").touch()  # so that it asks, and waits for an answer
    command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(keys / "client")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as left:
        try:
            while processes.command_name(left.pid) != "ssh-keygen":
                assert left.poll() is None
            assert lab.down(name).processes == 1
            assert left.wait(timeout=5) != 0
            assert traces(name) == []
        finally:
            left.kill()


def test_an_unfinished_lab_json_is_no_lab(name: str) -> None:
    lab.up(LabSpec(name=name))
    Path(f"/run/intop/lab/{name}/lab.json").write_text('{"spec": {"name"')
    with pytest.raises(LabError, match="intop lab up"):
        lab.cluster(name)
    lab.up(LabSpec(name=name))
    assert lab.status(name).state == "up"


def test_a_log_in_memory_and_tied_workers_leave_nothing(name: str, traces: Traces) -> None:
    settings = Balancing(access_log="memory", workers=2, server_cpus="0")
    made = lab.up(LabSpec(name=name, balancing=settings))
    folder = Path(f"/run/intop/lab/{name}/host-lb/memory")
    assert folder.is_mount()
    assert facts_of(made.load_balancer) == "0"
    assert fetched_by_load_generator(name, f"{made.url}/index.html") > 0
    wait_until(
        lambda: None if "GET /index.html" in (folder / "access.log").read_text() else "no line",
        limit_s=20,
    )
    lab.down(name)
    assert traces(name) == []
    beyond = Balancing(server_cpus="1000")
    with pytest.raises(LabError, match="server_cpus: this machine has no processors 1000"):
        lab.up(LabSpec(name=name, balancing=beyond))


def facts_of(balancer: HostAddress) -> str:
    """The processors of its nginx's workers."""
    return ssh(balancer, facts_script()).partition("nginx_cpus=")[2].split("\n")[0]


def test_lab_json_reads_back() -> None:
    badly_set = Balancing(backlog=9, disk_iops=300, sysctls=(("net.core.somaxconn", "321"),))
    for spec in (SPEC, LabSpec(name="a", arch="arm", balancing=badly_set)):
        made = state.Lab(spec, network.choose_subnet([]))
        assert state.from_json(state.to_json(made)) == made
