"""Settling: on hosts that answer by a script, and on a real lab."""

import json
import os
from collections.abc import Iterator
from dataclasses import replace

import pytest

from builders.trials import cluster
from intop.domain.cluster import HostAddress, LabSpec, Link
from intop.domain.workload import Clients, Workload
from intop.errors import CommandError
from intop.hosts.host import Completed, output
from intop.hosts.load.streams import streams
from intop.hosts.load.tools import command, parse_output
from intop.hosts.load.types import PATHS_FILE
from intop.hosts.rig import Rig, connected, load_directory, load_tool
from intop.hosts.settle import LOOK, SOCKETS, Unsettled, settle
from intop.hosts.sockets import Sock, parse_sockets, port_of
from intop.hosts.ssh import connect
from intop.lab import cluster as lab
from intop.resources import shipped
from kit.local_host import LocalHost

RESTART = "systemctl restart nginx"
TARGET = "198.18.0.20:80"
SSH = "ESTAB 0 96 198.18.0.20:22 198.18.0.1:49340 timer:(on,204ms,0) ino:3508772 sk:476a <->\n"
OLD, NEW = (
    f"LISTEN 0 4096 0.0.0.0:80 0.0.0.0:* ino:{inode} sk:747b cgroup:unreachable:1 <->\n"
    for inode in (3506057, 3506058)
)


def sock(state: str, local: str, peer: str) -> str:
    return f"{state:10} 0 0 {local} {peer} ino:0 sk:c44\n"


LEFT = sock("LAST-ACK", TARGET, "198.18.0.10:40000")
GONE = ""


class Actor(LocalHost):
    """A host that plays a part: each look finds the next of `looks`, the last one for ever.

    `listens` is what it finds beside them.
    """

    def __init__(self, address: HostAddress, log: list[tuple[str, str]]) -> None:
        self.address = address
        self._log = log
        self.listens = NEW
        self.looks = [(0, SSH)]
        self.restart = Completed(0, SSH, "")
        self.flush = Completed(0, "", "")

    def run(self, command: str, *, stdin: str = "", timeout_s: float = 30.0) -> Completed:
        self._log.append((self.address.name, command))
        if command != LOOK:
            return self.restart
        (waiting, sockets), *later = self.looks
        self.looks = later or self.looks
        return replace(self.flush, stdout=f"waiting {waiting}\n{sockets}{self.listens}")


class Stage:
    """A cluster of three actors, and perhaps a second load generator."""

    def __init__(self, url: str = "http://198.18.0.20", *more: HostAddress) -> None:
        self.log: list[tuple[str, str]] = []
        made = cluster(url=url, server_restart=RESTART, more_generators=more)
        self.hosts = {address.name: Actor(address, self.log) for address in made.hosts}
        self.hosts["lb"].listens = NEW.replace(":80 ", f":{port_of(made)} ")
        self.rig = Rig(made, tuple(self.hosts.values()))

    def looks(self, name: str) -> int:
        return self.log.count((name, LOOK))

    def settled(self, *, max_time_wait: int = 100, limit_s: float = 60) -> str:
        result = settle(self.rig, max_time_wait=max_time_wait, limit_s=limit_s)
        return "; ".join(filter(None, (result.left, result.unknown)))


def test_nginx_is_restarted_first_then_every_host_is_looked_at_once() -> None:
    stage = Stage()
    assert stage.settled() == ""
    assert stage.log[0] == ("lb", f"{SOCKETS}\n{RESTART}")
    assert {(name, LOOK) for name in stage.hosts} == set(stage.log[1:])
    assert len(stage.log[1:]) == 3


def test_it_is_waited_for_sockets_in_time_wait() -> None:
    stage = Stage()
    stage.hosts["b1"].looks = [(500, ""), (200, ""), (100, "")]
    assert stage.settled() == ""
    assert stage.looks("b1") == 3


def test_it_is_waited_until_nobody_sends_for_a_closed_connection() -> None:
    for name in ("lg", "lb", "b1"):
        stage = Stage()
        stage.hosts["lb"].restart = Completed(0, LEFT.replace("LAST-ACK", "ESTAB"), "")
        stage.hosts[name].looks = [(0, LEFT), (0, LEFT), (0, GONE)]
        assert stage.settled() == ""
        assert stage.looks(name) == 3


def test_what_does_not_settle_is_said() -> None:
    stage = Stage()
    stage.hosts["b1"].looks = [(500, LEFT)]
    stage.hosts["lg"].looks = [(300, "")]
    assert stage.settled(limit_s=0) == (
        "b1 still has 1 connections of the load before; b1 still has 500 sockets in TIME_WAIT"
    )


def test_connections_that_come_meanwhile_are_somebody_elses() -> None:
    """Such as of a monitor, or of a load on another cluster with the same hosts."""
    stage = Stage()
    stage.hosts["lb"].looks = [(0, sock("ESTAB", TARGET, "198.18.0.99:40000") + LEFT)]
    stage.hosts["b1"].looks = [
        (0, sock("LAST-ACK", "198.18.0.31:80", f"198.18.0.99:{port}")) for port in (4000, 4001)
    ]
    assert stage.settled() == ""
    assert stage.looks("b1") == 2


@pytest.mark.parametrize("state", ["ESTAB", "CLOSE-WAIT", "FIN-WAIT-1"])
def test_a_connection_that_outlives_nginx_is_waited_for(state: str) -> None:
    stage = Stage()
    stage.hosts["lb"].restart = Completed(0, sock("ESTAB", TARGET, "198.18.0.10:40000"), "")
    stage.hosts["lb"].looks = [(0, sock(state, TARGET, "198.18.0.10:40000"))]
    assert stage.settled(limit_s=0) == "lb still has 1 connections of the load before"


@pytest.mark.parametrize("name", ["lg", "lg2"])
def test_a_load_that_still_runs_is_waited_for(name: str) -> None:
    second = HostAddress(name="lg2", role="load-generator", hostname="lg2")
    stage = Stage("http://198.18.0.20", second)
    running = sock("ESTAB", "198.18.0.10:40000", TARGET)
    stage.hosts[name].looks = [(0, running), (0, running), (0, sock("FIN-WAIT-2", "a:1", TARGET))]
    assert stage.settled() == ""
    assert stage.looks(name) == 3


@pytest.mark.parametrize("url", ["http://198.18.0.21", "http://198.18.0.20:81", "http://lb"])
def test_the_load_generator_may_have_a_load_on_another_cluster(url: str) -> None:
    stage = Stage(url)
    stage.hosts["lg"].looks = [(0, sock("ESTAB", "198.18.0.10:40000", TARGET))]
    assert stage.settled(limit_s=0) == ""


def test_sockets_that_send_nothing_are_not_waited_for() -> None:
    stage = Stage()
    harmless = sock("FIN-WAIT-2", TARGET, "a:1") + sock("CLOSE-WAIT", "198.18.0.20:3306", "b:2")
    stage.hosts["lb"].restart = Completed(0, harmless + SSH, "")
    stage.hosts["lb"].looks = [(0, harmless + SSH)]
    assert stage.settled(limit_s=0) == ""


def test_an_nginx_that_keeps_its_socket_is_told_of() -> None:
    """`nginx -s reload` does; somaxconn is read when a socket begins to listen."""
    stage = Stage()
    stage.hosts["lb"].restart = Completed(0, OLD, "")
    assert stage.settled() == ""
    stage.hosts["lb"].listens = OLD
    assert (
        f"lb still listens on the socket from before: `{RESTART}` does not open" in stage.settled()
    )


def test_an_nginx_that_does_not_come_back_is_told_of() -> None:
    stage = Stage()
    stage.hosts["lb"].restart = Completed(1, SSH, "emerg: bind() failed")
    with pytest.raises(CommandError, match=r"^lb: exit code 1 of `systemctl .* bind\(\) failed$"):
        stage.settled()


def test_an_nginx_that_listens_elsewhere_is_told_of() -> None:
    """Such as in a container with a network of its own, on which tuned keys don't act."""
    stage = Stage()
    stage.hosts["lb"].listens = NEW.replace("0.0.0.0:80 ", "127.0.0.1:80 ") + NEW.replace(
        ":80 ", ":8080 "
    )
    with pytest.raises(
        CommandError, match=r"^lb: after `systemctl restart nginx`, nothing listens on port 80 in"
    ):
        stage.settled(limit_s=0)


def test_it_is_waited_for_an_nginx_that_takes_its_time_to_listen() -> None:
    stage = Stage()
    stage.hosts["lb"].listens = ""
    stage.hosts["lb"].looks = [(0, SSH), (0, SSH), (0, SSH + NEW)]
    assert stage.settled() == ""
    assert stage.looks("lb") == 3


def test_a_load_balancer_that_does_not_forget_is_told_of() -> None:
    stage = Stage()
    stage.hosts["lb"].flush = Completed(127, "", "sh: ip: not found")
    with pytest.raises(CommandError, match=r"^lb: exit code 127 of `ip tcp_metrics flush`.*not fo"):
        stage.settled()


def test_a_load_balancer_whose_sockets_are_not_known_is_told_of() -> None:
    stage = Stage()
    stage.hosts["lb"].looks = [(0, "unseen\n")]
    stage.hosts["lb"].listens = ""
    with pytest.raises(CommandError, match=r"^lb: its sockets can't be listed by `ss`"):
        stage.settled()


def test_other_hosts_may_lack_root_or_iproute2_and_it_is_recorded() -> None:
    stage = Stage()
    for name in ("lg", "b1"):
        stage.hosts[name].flush = Completed(1, "", "RTNETLINK answers: Operation not permitted")
    stage.hosts["b1"].looks = [(0, "unseen\n")]
    assert settle(stage.rig, max_time_wait=100, limit_s=60) == Unsettled(
        unknown="b1: connections were not looked at; lg, b1: TCP metrics were kept"
    )


def test_ipv4_by_an_ipv6_socket_is_ipv4() -> None:
    (result,) = parse_sockets(["ESTAB 0 0 [::ffff:198.18.0.20]:80 [2001:db8::1]:4000 ino:7 sk:1"])
    assert Sock("ESTAB", TARGET, "2001:db8::1:4000", "7") == result


# On a real lab ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def rig() -> Iterator[Rig]:
    spec = LabSpec(name=f"t-s{os.getpid() % 10_000}", link=Link(rate_mbit=75))
    try:
        with connected(lab.up(spec), connect) as rig:
            yield rig
    finally:
        lab.down(spec.name)


def on_all(rig: Rig, command: str) -> dict[str, str]:
    return rig.on_all(lambda host: output(host, command))


def listening(rig: Rig) -> tuple[str, str]:
    """Inode and queue length of the load balancer's listening socket."""
    (line,) = output(rig.load_balancer, "ss -Htlne 'sport = :80' 2>/dev/null").splitlines()
    return next(word for word in line.split() if word.startswith("ino:")), line.split()[2]


def short_connections(rig: Rig, rate_rps: int, seconds: int) -> float:
    """Return the requests/s that were reached, each with a connection of its own, for 2 KB."""
    directory = f"{load_directory(rig.load_generator)}-short"
    scripts = {file.name: file.read_text() for file in shipped("lua").glob("*.lua")}
    rig.load_generator.put(directory, {**scripts, PATHS_FILE: "/img/icon-1.png\n"})
    workload = Workload(
        name="slt",
        kind="slt",
        rate_rps=rate_rps,
        connections=64,
        threads=2,
        duration_s=seconds,
        warmup_s=0,
        timeout_s=10,
        clients=(Clients(requests_per_connection=1),),
    )
    tool = load_tool(rig, workload, "engine")
    ((_, load),) = streams(workload, rig.cluster, seed=1)
    text = output(rig.load_generator, command(tool, load, directory), timeout_s=seconds + 60)
    return parse_output(text, tool, load).achieved_rps


def test_after_many_short_connections_the_lab_is_in_a_defined_state(rig: Rig) -> None:
    """Nothing in flight, nothing queued, nothing learned, and a fresh listening socket."""
    before = listening(rig)
    output(rig.load_balancer, "echo 1234 > /proc/sys/net/core/somaxconn")
    assert short_connections(rig, 1000, 3) > 900
    left = sum(int(text) for text in on_all(rig, "ss -Htan state time-wait | wc -l").values())
    assert left > 1500
    assert any("198.18." in text for text in on_all(rig, "ip tcp_metrics show").values())

    assert settle(rig, max_time_wait=20_000, limit_s=20) == Unsettled()

    inode, queue = listening(rig)
    assert before[0] != inode
    assert queue == "1234"
    shown = output(rig.load_balancer, "tc -j -s qdisc show dev eth0 root")
    assert json.loads(shown)[0]["backlog"] == 0
    sockets = on_all(rig, "ss -Htan state connected exclude established exclude time-wait")
    assert {text.strip() for text in sockets.values()} == {""}
    # The controller's own connections go on, and are learned from.
    for text in on_all(rig, "ip tcp_metrics show").values():
        assert all(line.split()[0].endswith(".1") for line in text.splitlines())


def test_time_wait_that_is_too_much_is_waited_for_up_to_the_limit(rig: Rig) -> None:
    short_connections(rig, 300, 1)
    assert "sockets in TIME_WAIT" in settle(rig, max_time_wait=0, limit_s=0.5).left


def test_a_reload_does_not_open_the_listening_socket_anew(rig: Rig) -> None:
    folder = rig.cluster.server_restart.split()[-1].rpartition("/")[0]
    reload = f"kill -HUP $(cat {folder}/nginx.pid)"
    kept = Rig(replace(rig.cluster, server_restart=reload), rig.hosts)
    assert "does not open it anew" in settle(kept, max_time_wait=20_000, limit_s=5).left


def test_an_nginx_in_another_network_namespace_is_an_error(rig: Rig) -> None:
    """It starts, and its restart succeeds, but the keys that are set are those of other sockets."""
    folder = rig.cluster.server_restart.split()[-1].rpartition("/")[0]
    nginx = f"nginx -e {folder}/nginx.log -c {folder}/nginx.conf"
    stop = f"kill $(cat {folder}/nginx.pid); while [ -e {folder}/nginx.pid ]; do sleep 0.02; done"
    elsewhere = Rig(
        replace(rig.cluster, server_restart=f"{stop}; unshare --net {nginx}"), rig.hosts
    )
    try:
        with pytest.raises(CommandError, match=r"nothing listens on port 80 in the network names"):
            settle(elsewhere, max_time_wait=20_000, limit_s=1)
        (pid,) = output(rig.load_balancer, f"cat {folder}/nginx.pid").split()
        assert output(rig.load_balancer, f"cat /proc/{pid}/comm").strip() == "nginx"
        output(rig.load_balancer, stop)
    finally:
        assert settle(rig, max_time_wait=20_000, limit_s=20) == Unsettled()
