"""What the doctor makes of answers, and of a real cluster that is not as it should be."""

import json
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from intop.config.study import Study, load_study
from intop.domain.cluster import Cluster, HostAddress
from intop.domain.configuration import DEFAULT, Configuration
from intop.domain.diagnosis import Diagnosis
from intop.domain.trial import PlannedTrial
from intop.domain.workload import Clients
from intop.errors import CommandError, IncomparableError, IntopError, UnreachableError
from intop.hosts.facts import FACTS
from intop.hosts.guard import guarded
from intop.hosts.host import Completed
from intop.hosts.load.tools import FIND_TOOL
from intop.hosts.nginx import RUNNING
from intop.hosts.nginx_conf import SHOW
from intop.hosts.readiness import READINESS
from intop.hosts.sockets import LISTENING
from intop.hosts.ssh import connect
from intop.hosts.sysctl import PROBE
from intop.lab.content import static_paths
from intop.report.progress import LineProgress
from intop.run.campaigns import new
from intop.run.cluster_testbed import ClusterTestbed, cluster_testbed
from intop.run.context import Context, Task
from intop.run.doctor import check_ready, examine
from intop.run.executor import replicas
from intop.run.replicas import check_alike, in_common
from intop.store import Subject, opened
from samples import trial
from shipped_studies import lab_study

DATA = Path(__file__).parents[1] / "data"
MACHINE = (DATA / "hosts" / "facts-x86-namespace.txt").read_text()
MACHINE = MACHINE.replace("namespace=child", "namespace=first")
TOOLS = (DATA / "load" / "found-all.txt").read_text()
NGINX = 'LISTEN 0 511 0.0.0.0:80 0.0.0.0:* users:(("nginx",pid=811,fd=6))\n'
PROXY = 'LISTEN 0 4096 *:80 *:* users:(("docker-proxy",pid=9,fd=4))\n'
RUNS = """\
master 811
nofile 1024
worker 65536
worker 65536
unit nginx.service
unit_nofile 1024
version nginx version: nginx/1.22.1
build configure arguments: --with-threads
kernel 6.1.0-30-amd64
cpus 2
page 4096
"""
SHOWS = """\
nginx_conf
# configuration file /etc/nginx/nginx.conf:
events { worker_connections 16384; }
http { }
"""
WRITABLE = {
    "net.core.somaxconn": "4096",
    "net.ipv4.tcp_rmem": "4096 131072 6291456",
    "vm.swappiness": "60",
    "net.ipv4.tcp_adv_win_scale": "1",
}


@dataclass
class Answers:
    """A host as a text for each question; what `lost` names is asked in vain.

    `answers` are status, length and problem of the paths that do not answer with a page.
    """

    address: HostAddress
    facts: str = MACHINE
    has: str = "can_store\nfree 71582432\n"
    status: str = ""
    keys: Mapping[str, str] = field(default_factory=lambda: dict(WRITABLE))
    tools: str = TOOLS
    listens: str = NGINX
    nginx: str = RUNS
    shows: str = SHOWS
    answers: Mapping[str, tuple[int, int, str]] = field(default_factory=dict)
    clock_s: float | None = None
    lost: str = ""

    def run(self, command: str, *, stdin: str = "", timeout_s: float = 30.0) -> Completed:
        if self.lost and self.lost == command:
            raise CommandError(self.address.name, "no answer within 30 s")
        if command == PROBE:
            told = (
                f"{path}\twritable\t{self.keys[path.replace('/', '.')]}\n"
                if path.replace("/", ".") in self.keys
                else f"{path}\tmissing\t\n"
                for path in stdin.split()
            )
            return Completed(0, "".join(told), "")
        if "engine.lua" in command:
            return Completed(0, self._fetched(stdin.split()), "")
        texts = {FACTS: self.facts, READINESS: self.has, FIND_TOOL: self.tools}
        texts |= {LISTENING: self.listens, RUNNING: self.nginx, SHOW: self.shows}
        if command in texts:
            return Completed(0, texts[command], "")
        if command.startswith("date"):
            return Completed(0, f"{self.clock_s or time.time()}\n", "")
        if command.startswith("taskset"):
            return Completed(1, "", "taskset: failed to set pid 0's affinity: Invalid argument\n")
        assert "guard.sh" in command, command
        return Completed(0, f"{self.status}end\t0\n", "")

    def _fetched(self, paths: Sequence[str]) -> str:
        found = []
        for path in paths:
            status, length, problem = self.answers.get(path, (200, 512, ""))
            numbers = {"status": status, "length": length, "crc32": 7, "us": 1500}
            found.append(json.dumps({"path": path, "problem": problem, **numbers}))
        return "".join(f"{line}\n" for line in found)

    def put(self, directory: str, files: Mapping[str, str]) -> None:
        """Nothing but the load scripts, where no campaign has its own."""
        assert "load-generator" == self.address.role
        assert f"{self.address.state_dir}/doctor" == directory
        assert {".lua"} == {Path(name).suffix for name in files}

    def close(self) -> None:
        pass


def cluster(letter: str = "a", **changes: Any) -> Cluster:
    lg, lb, b1 = (
        HostAddress(name=f"{letter}-{short}", role=role, hostname="192.0.2.1")
        for short, role in (("lg", "load-generator"), ("lb", "load-balancer"), ("b1", "backend"))
    )  # type: ignore[misc]
    made = Cluster(
        arch="x86",
        load_generator=lg,
        load_balancer=lb,
        backends=(b1,),
        url="http://192.0.2.1",
        nginx_restart="true",
        static_paths=("/a",),
        dynamic_path="/d",
    )
    return replace(made, **changes)


@pytest.fixture(scope="module")
def study() -> Study:
    return lab_study()


Examine = Callable[..., list[Diagnosis]]


@pytest.fixture
def examined(study: Study) -> Examine:
    """Diagnoses of clusters whose hosts, by name with _ for the hyphen, have other answers."""

    def ask(*clusters: Cluster, **changes: dict[str, Any]) -> list[Diagnosis]:
        def connected(address: HostAddress) -> Answers:
            other = changes.get(address.name.replace("-", "_"), {})
            if other.get("unreachable"):
                raise UnreachableError(address.name, "no route")
            return Answers(address, **other)

        return examine(clusters or (cluster(),), study, connected)

    return ask


def test_a_healthy_cluster_has_no_problem_and_every_key_is_told(
    examined: Examine, study: Study
) -> None:
    (found,) = examined()
    assert ((), ()) == (found.problems, found.warnings)
    assert ("net.core.somaxconn", "net.ipv4.tcp_rmem", "vm.swappiness") == found.offered
    assert found.refused["net.ipv4.tcp_adv_win_scale"] == "has no effect: since kernel 6.6"
    keys = {p.key for p in study.catalogue.parameters}
    assert keys == set(found.offered) | set(found.refused)
    assert ["a-lg", "a-lb", "a-b1"] == [host.name for host in found.hosts]
    generator, balancer, backend = found.hosts
    assert ({}, keys, {}) == (generator.keys, set(balancer.keys), backend.keys)
    swappiness = balancer.keys["vm.swappiness"]
    assert ("machine", "writable", "60", "") == (
        swappiness.scope,
        swappiness.reading.access,
        swappiness.reading.value,
        swappiness.reason,
    )
    gone = balancer.keys["kernel.sched_latency_ns"]
    assert "missing" == gone.reading.access
    assert gone.reason.startswith("this kernel doesn't have it: none after 5.12 does, and what")


LUAJIT = TOOLS[TOOLS.index("tool /usr/bin/luajit") :]


@pytest.mark.parametrize(
    ("tools", "changes", "expected"),
    [
        (TOOLS, {}, "wrk2 4.0.0"),
        (TOOLS, {"load_tool": "engine"}, "engine LuaJIT 2.1.0-beta3"),
        (LUAJIT, {}, "engine LuaJIT 2.1.0-beta3"),
    ],
)
def test_the_load_tool_is_told(
    study: Study, tools: str, changes: dict[str, Any], expected: str
) -> None:
    (found,) = examine(
        (cluster(),), replace(study, **changes), lambda address: Answers(address, tools=tools)
    )
    assert (expected, ()) == (found.load_tool, found.problems)


def test_each_workload_may_have_another_tool(study: Study) -> None:
    slt, dlt = study.workloads["slt"], study.workloads["dlt"]
    workloads = {"slt": slt, "dlt": replace(dlt, arrivals="poisson")}
    (found,) = examine((cluster(),), replace(study, workloads=workloads), Answers)
    assert ("wrk2 4.0.0, engine LuaJIT 2.1.0-beta3", ()) == (found.load_tool, found.problems)


def test_generators_that_share_a_load_need_the_same_tool(examined: Examine) -> None:
    more = (HostAddress(name="a-lg2", role="load-generator", hostname="192.0.2.2"),)
    shared = cluster(more_generators=more)
    (found,) = examined(shared)
    assert ("wrk2 4.0.0", ()) == (found.load_tool, found.problems)
    assert ["a-lg", "a-lb", "a-lg2", "a-b1"] == [host.name for host in found.hosts]
    (found,) = examined(shared, a_lg2={"tools": LUAJIT})
    (problem,) = found.problems
    assert problem.startswith("a-lg2: has engine LuaJIT 2.1.0-beta3 (/usr/bin/luajit), and a-lg ha")
    (found,) = examined(shared, a_lg2={"tools": TOOLS.replace("/opt/wrk2/bin", "/usr/local/bin")})
    (problem,) = found.problems
    assert "has wrk2 4.0.0 (/usr/local/bin/wrk2), and a-lg has wrk2 4.0.0 (/opt/wrk2/" in problem


def test_a_load_for_processors_that_a_generator_lacks_is_a_problem(examined: Examine) -> None:
    pinned = replace(cluster(), load_generator=replace(cluster().load_generator, load_cpus="96"))
    (found,) = examined(pinned)
    (problem,) = found.problems
    assert problem.startswith("a-lg: its load can't run on the processors 96 (load_cpus): taskset")


@pytest.mark.parametrize(
    ("host", "answers", "problem"),
    [
        ("a_lg", {"unreachable": True}, "a-lg: no route"),
        ("a_b1", {"unreachable": True}, "a-b1: no route"),
        ("a_b1", {"clock_s": 1e9}, "s off ours: let NTP set it"),
        ("a_lb", {"facts": MACHINE.replace("uid=0", "uid=7")}, "a-lb: is reached without root, so"),
        (
            "a_lb",
            {"facts": MACHINE.replace("nginx=nginx/1.22.1", "nginx=")},
            "a-lb: has no nginx on its PATH",
        ),
        (
            "a_lb",
            {"facts": MACHINE.replace("x86_64", "aarch64")},
            "a-lb: is a aarch64 machine, and cluster x86 accepts x86_64, i686",
        ),
        ("a_lb", {"has": "can_store\nlacks ss\n"}, "a-lb: has no ss: apt-get install iproute2, on"),
        ("a_lb", {"has": "free 71582432\n"}, "a-lb: /var/lib/intop can't be made or written"),
        (
            "a_lg",
            {"has": "can_store\nfree 3072\n"},
            "a-lg: /var/lib/intop has 3 MiB free, 16 are needed: make room there",
        ),
        ("a_lg", {"tools": ""}, "a-lg: has no luajit on its PATH, which runs intop's load"),
        (
            "a_lg",
            {"answers": {"/a": (404, 9, "status")}},
            "a-lg: /a: answers 404: correct the path in the study",
        ),
        (
            "a_lg",
            {"answers": {"/a": (0, 0, "refused"), "/d?r=1": (0, 0, "refused")}},
            "a-lg: /a, /d?r=1: the connection is refused: see that nginx",
        ),
        ("a_lg", {"answers": {"/d?r=1": (200, 0, "")}}, "/d?r=1: answers 200 with an empty body"),
        ("a_lg", {"answers": {"/a": (200, -1, "")}}, "a-lg: engine.lua: length is '-1'"),
        ("a_lb", {"listens": ""}, "a-lb: nothing listens on port 80 in the network namespace"),
        (
            "a_lb",
            {"listens": PROXY},
            "a-lb: docker-proxy listens on port 80, and not nginx. If it passes connections on",
        ),
        ("a_lb", {"keys": {}}, "a-lb: offers none of the catalogue's parameters"),
        ("a_lb", {"lost": PROBE}, "a-lb: no answer within 30 s"),
        ("a_b1", {"lost": READINESS}, "a-b1: no answer within 30 s"),
        ("a_b1", {"facts": "nonsense"}, "a-b1: its description can't be read"),
    ],
)
def test_what_keeps_a_campaign_from_starting_is_a_problem(
    examined: Examine, host: str, answers: dict[str, Any], problem: str
) -> None:
    (found,) = examined(**{host: answers})
    assert any(problem in line for line in found.problems), found.problems
    assert 1 == len(found.problems)


def test_every_path_of_every_workload_is_asked_for_once(examined: Examine) -> None:
    (found,) = examined()
    assert [("/a", 200, 512, 0.0015), ("/d?r=1", 200, 512, 0.0015)] == [
        (one.path, one.status, one.bytes, one.seconds) for one in found.fetched
    ]


def test_paths_are_asked_for_where_another_host_is_not_reached(examined: Examine) -> None:
    (found,) = examined(a_b1={"unreachable": True}, a_lg={"answers": {"/a": (502, 9, "status")}})
    assert ["a-b1: no route", "a-lg: /a: answers 502"] == [
        line[:n] for line, n in zip(found.problems, (14, 21), strict=True)
    ]


def test_each_class_of_clients_asks_in_its_manner(study: Study) -> None:
    classes = (Clients(name="a", headers=("Host: a",), http="2"), Clients(name="b", method="POST"))
    slt = replace(study.workloads["slt"], clients=classes)
    asked: list[str] = []

    class Listens(Answers):
        def run(self, command: str, *, stdin: str = "", timeout_s: float = 30.0) -> Completed:
            asked.extend([command] if "engine.lua" in command else [])
            return super().run(command, stdin=stdin, timeout_s=timeout_s)

    (found,) = examine((cluster(),), replace(study, workloads={"slt": slt}), Listens)
    assert [("/a", ("Host: a",))] == [(one.path, one.headers) for one in found.fetched]
    (command,) = asked
    assert "--http 2 --header 'Host: a'" in command


def test_every_load_generator_asks(examined: Examine) -> None:
    more = (HostAddress(name="a-lg2", role="load-generator", hostname="192.0.2.2"),)
    (found,) = examined(
        cluster(more_generators=more), a_lg2={"answers": {"/a": (502, 9, "status")}}
    )
    assert ["a-lg2: /a: answers 502"] == [line[:22] for line in found.problems]
    assert [200, 200] == [one.status for one in found.fetched]


def test_where_nothing_can_be_put_no_path_is_asked_for(examined: Examine) -> None:
    (found,) = examined(a_lg={"has": "free 71582432\n"})
    assert () == found.fetched
    assert ["a-lg: /var/lib/intop can't be made"] == [line[:34] for line in found.problems]


def test_what_serves_in_nginxs_place_may_listen(examined: Examine) -> None:
    own = cluster(programs=("docker-proxy",))
    assert () == examined(own, a_lb={"listens": PROXY})[0].problems
    both = examined(a_lb={"listens": PROXY + NGINX})
    assert () == both[0].problems


def test_a_load_that_does_not_fit_into_nginxs_workers_is_told_of(
    examined: Examine, study: Study
) -> None:
    slt = replace(study.workloads["slt"], connections=3000)
    load = "the load's 3,000 connections, 2 for each that is passed on, make 3,000 for each of 2"

    def warned(**changes: str) -> list[str]:
        (found,) = examine(
            (cluster(),),
            replace(study, workloads={"slt": slt}),
            lambda address: Answers(address, **(changes if address.name == "a-lb" else {})),
        )
        assert () == found.problems
        return list(found.warnings)

    assert [] == warned()
    narrow = RUNS.replace("worker 65536", "worker 1024")
    (told,) = warned(nginx=narrow)
    assert told == (
        f"a-lb: a worker of nginx may open 1,024 files, and {load}: write [Service] and "
        "LimitNOFILE=8192 to /etc/systemd/system/nginx.service.d/nofile.conf, then: systemctl "
        "daemon-reload && systemctl restart nginx.service"
    )
    (told,) = warned(nginx=narrow.replace("unit nginx.service\n", ""))
    assert told.endswith(": write worker_rlimit_nofile 8192; at the top of its configuration")
    (told,) = warned(nginx=narrow, shows=SHOWS.replace("events", "worker_rlimit_nofile 9;\nevents"))
    assert told.endswith(
        f"{load}: write worker_rlimit_nofile 8192; in place of the one in its configuration"
    )
    (told,) = warned(shows=SHOWS.replace("worker_connections 16384;", ""))
    assert told == (
        f"a-lb: a worker of nginx takes 512 connections (worker_connections), and {load}: write "
        "worker_connections 8192; into its block events"
    )
    # A worker that ends soon is none; without any, or with several nginx, nothing can be said.
    for nginx in (RUNS.replace("worker 65536\n", ""), f"master 7\n{narrow}"):
        assert [] == warned(nginx=nginx)
    (told,) = warned(shows="")
    assert told.startswith("worker_connections was not looked at: a-lb: no nginx")


def test_who_listens_is_not_known_to_everybody(examined: Examine) -> None:
    """Without root `ss` names no programs; without `ss` there is another problem."""
    (found,) = examined(a_lb={"listens": "LISTEN 0 511 0.0.0.0:80 0.0.0.0:*\n"})
    assert () == found.problems
    (found,) = examined(a_lb={"listens": "", "has": "can_store\nlacks ss\n"})
    assert 1 == len(found.problems)
    (found,) = examined(a_lb={"listens": "unseen\n"})
    assert () == found.problems


def test_all_that_is_wrong_is_told_at_once(examined: Examine) -> None:
    (found,) = examined(a_lg={"tools": "", "clock_s": 1e9}, a_lb={"has": "lacks ip\n", "keys": {}})
    assert 5 == len(found.problems)
    (found,) = examined(
        a_lg={"unreachable": True}, a_lb={"has": "can_store\nlacks ip\n"}, a_b1={"lost": FACTS}
    )
    assert ["a-lg: no route", "a-lb: has no ip", "a-b1: no answer"] == [
        line[:n] for line, n in zip(found.problems, (14, 15, 15), strict=True)
    ]


HELD = "holder\troot@desk (process 7)\nwatchdog\tdead\n"
FOREIGN = "foreign\tvm/swappiness\t10\t20\tprintf 60 > /proc/sys/vm/swappiness\n"


@pytest.mark.parametrize(
    ("host", "answers", "warning"),
    [
        ("a_lb", {"has": "can_store\ntuner tuned\n"}, "a-lb: tuned runs there and may set keys"),
        (
            "a_lb",
            {"has": "can_store\nschedule /etc/cron.d/tune\n"},
            "a-lb: /etc/cron.d/tune sets sysctls again and again",
        ),
        (
            "a_lb",
            {"status": FOREIGN},
            "a-lb: vm.swappiness was left at 10 and is 20 now; by hand: printf 60 > /proc/sys/vm/",
        ),
        ("a_lb", {"status": HELD}, "a-lb: is held, and its watchdog is dead: intop rollback"),
        (
            "a_b1",
            {"facts": MACHINE.replace("uid=0", "uid=7")},
            "a-b1: is reached without root, so its kernel keeps what it learned",
        ),
        ("a_b1", {"has": "can_store\nlacks ss\nlacks ip\n"}, "a-b1: has no ss, ip, so what a load"),
        (
            "a_lg",
            {"has": "can_store\nlacks luajit\n"},
            "a-lg: has no luajit, so what the paths answer was not looked at. On Debian and Ubuntu",
        ),
        (
            "a_lg",
            {"answers": {"/a": (301, 169, "")}},
            "a-lg: /a: answers with a redirect, and the load doesn't follow it",
        ),
    ],
)
def test_what_may_come_in_the_way_is_a_warning(
    examined: Examine, host: str, answers: dict[str, Any], warning: str
) -> None:
    (found,) = examined(**{host: answers})
    (told,) = found.warnings
    assert told.startswith(warning)
    assert () == found.problems


def test_a_tuner_elsewhere_is_no_matter(examined: Examine) -> None:
    (found,) = examined(a_b1={"has": "can_store\ntuner tuned\n"})
    assert () == found.warnings


CONGESTION, AVAILABLE, ALLOWED = (
    f"net.ipv4.tcp_{word}congestion_control" for word in ("", "available_", "allowed_")
)


def test_choices_that_a_host_is_without_are_told_with_the_reason(examined: Examine) -> None:
    keys = WRITABLE | {CONGESTION: "bbr", AVAILABLE: "reno bbr cubic htcp", ALLOWED: "reno bbr"}
    child = MACHINE.replace("namespace=first", "namespace=child")
    (found,) = examined(a_lb={"keys": keys})
    assert {"westwood", "vegas", "bic", "hybla", "illinois", "veno", "yeah", "dctcp"} == set(
        found.lost[CONGESTION]
    )
    assert "modprobe tcp_westwood" == found.lost[CONGESTION]["westwood"]
    (found,) = examined(a_lb={"keys": keys, "facts": child})
    assert f"not in {ALLOWED}" == found.lost[CONGESTION]["cubic"]
    assert "modprobe tcp_yeah" == found.lost[CONGESTION]["yeah"]
    both = examined(
        cluster("a"),
        cluster("b"),
        a_lb={"keys": keys},
        b_lb={"keys": keys | {AVAILABLE: "reno bbr cubic"}},
    )
    assert "not on all replicas" == both[0].lost[CONGESTION]["htcp"]
    assert "modprobe tcp_htcp" == both[1].lost[CONGESTION]["htcp"]
    assert [()] * 2 == [one.problems for one in both]


# Replicas -----------------------------------------------------------------------------------------


def test_what_one_replica_lacks_is_left_out_for_both_and_named(examined: Examine) -> None:
    fewer = {k: v for k, v in WRITABLE.items() if k != "vm.swappiness"}
    both = examined(cluster("a"), cluster("b"), b_lb={"keys": fewer})
    assert 2 == len({one.hosts[1].name for one in both})
    for one in both:
        assert ("net.core.somaxconn", "net.ipv4.tcp_rmem") == one.offered
        assert () == one.problems
    here, there = both
    reason = "this kernel doesn't have it"
    assert here.refused["vm.swappiness"] == f"not on all replicas: on b-lb, {reason}"
    assert there.refused["vm.swappiness"] == reason
    # What each host says of itself is another matter.
    assert "" == here.hosts[1].keys["vm.swappiness"].reason
    assert reason == there.hosts[1].keys["vm.swappiness"].reason


def test_ranges_go_by_the_smallest_memory_and_each_host_shows_its_own(examined: Examine) -> None:
    memory = "memory_kib=24684084"
    assert memory in MACHINE
    small = MACHINE.replace(memory, f"memory_kib={512 * 1024}")
    both = examined(cluster("a"), cluster("b"), b_lb={"facts": small})
    limit = int(0.05 * 512 * 1024 * 1024)
    key = "net.ipv4.tcp_rmem"
    assert [limit, limit] == [one.ranges[key][2][1] for one in both]
    assert [64 << 20, limit] == [one.hosts[1].keys[key].ranges[2][1] for one in both]


def test_replicas_of_other_kinds_are_named_with_what_differs(examined: Examine) -> None:
    other = {
        "facts": MACHINE.replace("kernel=6.18.44", "kernel=6.19.0"),
        "keys": WRITABLE | {"vm.swappiness": "10"},
    }
    here, there = examined(cluster("a"), cluster("b", link="10 Gbit/s"), b_lb=other)
    assert () == here.problems
    (problem,) = there.problems
    assert problem.startswith("a-lb and b-lb are no replicas of each other: kernel: 6.18.44")
    assert "link: not described against 10 Gbit/s" in problem
    assert "vm.swappiness: 60 against 10" in problem
    assert "Make them alike, or take one of them out of" in problem


def test_a_replica_that_cannot_be_reached_leaves_the_other_as_it_is(examined: Examine) -> None:
    here, there = examined(cluster("a"), cluster("b"), b_b1={"unreachable": True})
    assert () == here.problems
    assert 3 == len(here.offered)
    assert ("b-b1: no route",) == there.problems
    assert ["b-lg", "b-lb"] == [host.name for host in there.hosts]
    assert ((), {}) == (there.offered, there.refused)


# The real thing -----------------------------------------------------------------------------------

READ_ONLY = "mount --bind /proc/sys /proc/sys && mount -o remount,ro,bind /proc/sys"
WRITABLE_AGAIN = "umount /proc/sys"
WITHOUT_SOME = "mount -t tmpfs none /proc/sys/net/ipv6/route"
ALL_AGAIN = "umount /proc/sys/net/ipv6/route"
OVER_ANOTHER = "mount --bind /proc/sys/vm/dirty_bytes /proc/sys/net/ipv4/tcp_fin_timeout"
"""Its own value, 0, is one that the kernel does not take."""
ITSELF_AGAIN = "umount /proc/sys/net/ipv4/tcp_fin_timeout"
GONE = [
    f"net.ipv6.route.{name}"
    for name in ("gc_elasticity", "gc_interval", "gc_min_interval_ms", "gc_thresh", "gc_timeout")
] + ["net.ipv6.route.mtu_expires"]


@dataclass
class Lab:
    """Two replicas on this machine."""

    study: Any

    def on_balancer(self, number: int, command: str) -> None:
        """As its sshd sees the balancer, and whatever that starts: mounts are for those only."""
        name = self.study.labs[number]
        pid = Path(f"/run/intop/lab/{name}/host-lb/sshd.pid").read_text().strip()
        inside = ["nsenter", "--mount", "--net", "--target", pid, "sh", "-c", command]
        subprocess.run(inside, check=True, timeout=20)

    def names(self) -> list[str]:
        return [f"{name}-lb" for name in self.study.labs]


@pytest.fixture
def lab(make_study: Callable[..., Any]) -> Lab:
    return Lab(make_study("x86", replicas=2))


@pytest.fixture
def task(lab: Lab) -> Iterator[Task]:
    study = load_study(lab.study.folder / "intop.toml")
    with opened(str(lab.study.folder / "own.db")) as store:
        context = Context(
            study=study,
            store=store,
            campaign=new(store, study),
            connect=connect,
            progress=LineProgress(StringIO()),
            archs=("x86",),
            workloads=(study.workloads["slt"],),
        )
        subject = Subject(campaign=context.campaign, arch="x86", workload="slt")
        yield Task(context=context, subject=subject, workload=study.workloads["slt"])


def in_use(task: Task) -> tuple[list[ClusterTestbed], str]:
    """The testbeds that a stage would measure on, and what was said meanwhile."""
    told = StringIO()
    task = replace(task, context=replace(task.context, progress=LineProgress(told)))
    with ExitStack() as stack:
        ready = [stack.enter_context(cluster_testbed(task, n)) for n in (0, 1)]
        check_alike(*ready)
        return in_common(ready), told.getvalue()


@contextmanager
def held(task: Task, number: int) -> Iterator[None]:
    """As a campaign holds a load balancer."""
    host = connect(task.clusters()[number].load_balancer)
    try:
        with guarded(host, ["net.core.somaxconn"]):
            yield
    finally:
        host.close()


def keys_of(one: ClusterTestbed) -> list[str]:
    return [p.key for p in one.probed.space.parameters]


def test_a_real_cluster_that_is_not_as_it_should_be(
    lab: Lab, task: Task, machine_sysctls: Callable[[], dict[str, str]]
) -> None:
    catalogue = {p.key for p in task.context.study.catalogue.parameters}
    before = {key: value for key, value in machine_sysctls().items() if key in catalogue}
    here, there = lab.study.json("doctor")
    assert [] == here["problems"] == there["problems"]
    everything = here["offered"]
    assert 100 < len(everything)
    assert set(GONE) < set(everything)
    out, _ = lab.study.run("doctor", "--write-test")
    count = len(everything)
    for name in lab.names():
        assert f"{name}: {count} of {count} keys took their own values when written" in out
    assert 1 == out.count("out of bounds: the same as above")
    # Of which each path has a line in each cluster's table.
    assert 2 * 25 == sum("/" in line.split()[0] for line in out.splitlines() if line.split())
    assert 55 + 2 * 29 > len(out.splitlines())

    # A host that is held is left alone, and says by whom.
    with held(task, 0):
        out, _ = lab.study.run("doctor", "--write-test")
    assert f"{lab.names()[0]}: held by " in out
    assert f"WARNING  {lab.names()[0]}: is held, so nothing was written there" in out
    assert f"{lab.names()[1]}: {count} of {count} keys took" in out

    lab.on_balancer(1, READ_ONLY)
    here, there = lab.study.json("doctor", expected=(1,))
    assert [] == here["offered"] == there["offered"]
    reason = "can't be written: /proc/sys is mounted read-only, as in a container"
    assert {reason} == {there["refused"][key] for key in everything}
    assert {f"not on all replicas: on {lab.names()[1]}, {reason}"} == {
        here["refused"][key] for key in everything
    }
    assert [f"{lab.names()[1]}: offers none of the catalogue's parameters"] == there["problems"]
    lab.on_balancer(1, WRITABLE_AGAIN)

    # A key with the same value on both, which one of them does not take again.
    lab.on_balancer(1, OVER_ANOTHER)
    lab.on_balancer(0, OVER_ANOTHER.replace("dirty_bytes", "dirty_background_bytes"))
    lab.on_balancer(1, WITHOUT_SOME)
    here, there = lab.study.json("doctor", "--write-test")
    lost = {*GONE, "net.ipv4.tcp_fin_timeout"}
    assert lost == set(everything) - set(here["offered"]) == set(everything) - set(there["offered"])
    refusal = "can't be written: the kernel refuses its own value, Invalid argument"
    assert refusal == there["refused"]["net.ipv4.tcp_fin_timeout"]

    # And so it is in a campaign, from the first trial on.
    ready, said = in_use(task)
    assert [sorted(set(everything) - lost)] * 2 == [sorted(keys_of(one)) for one in ready]
    assert f"x86 slt: {GONE[0]} is left out: not on all replicas: on {lab.names()[1]}, " in said
    assert "parameters can be tuned, and " in said
    assert f"x86 slt: net.ipv4.tcp_fin_timeout is left out: {refusal}" in said

    # Once there are trials, the space is what it was, and a host that offers another is refused.
    once = Configuration({"net.ipv4.tcp_adv_win_scale": "2"})
    made = [
        replace(trial(configuration, index=n), conditions=ready[0].conditions)
        for n, configuration in enumerate((DEFAULT, once))
    ]
    task.store.write_plan(task.subject, "collect", [made[0].planned])
    task.store.add(task.subject, made[0])
    again, said = in_use(task)
    assert [keys_of(one) for one in ready] == [keys_of(one) for one in again]
    assert said == ""
    lab.on_balancer(0, WITHOUT_SOME)
    with pytest.raises(IncomparableError, match=r"(?s)gc_elasticity: \d+ against missing.*--new"):
        in_use(task)
    lab.on_balancer(0, ALL_AGAIN)
    # So is one whose plan tunes a key that is known by now to have no effect.
    task.store.write_plan(task.subject, "collect", [made[1].planned])
    with pytest.raises(IncomparableError, match=r"tcp_adv_win_scale: tuned against left out, has"):
        in_use(task)
    lab.on_balancer(1, ALL_AGAIN)
    lab.on_balancer(1, ITSELF_AGAIN)
    lab.on_balancer(0, ITSELF_AGAIN)
    assert before.items() <= machine_sysctls().items()


def test_paths_that_do_not_answer_on_a_real_cluster(lab: Lab) -> None:
    lost, name = static_paths()[3], lab.study.labs[1]
    page = Path(f"/run/intop/lab/{name}/content{lost}")
    elsewhere = page.with_name("elsewhere")
    # Before anybody asked for it: nginx remembers for a minute what it has found.
    page.rename(elsewhere)
    out, _ = lab.study.run("doctor", expected=(1,))
    assert f"PROBLEM  {name}-lg: {lost}: answers 404: correct the path in the study" in out
    assert 1 == out.count("PROBLEM")
    # Nor does a campaign begin.
    _, said = lab.study.run("collect", "--workload", "slt", expected=(1,))
    assert f"PROBLEM  {name}-lg: {lost}: answers 404" in said
    assert "the cluster is not ready, and nothing was written to any host" in said
    assert [] == lab.study.trials("replicas")

    elsewhere.rename(page)
    for one in lab.study.json("doctor"):
        assert [] == one["problems"]
        assert 25 == len(one["fetched"])
        assert {(200, "")} == {(path["status"], path["problem"]) for path in one["fetched"]}
        assert all(path["bytes"] > 0 and path["seconds"] > 0 for path in one["fetched"])


def test_an_nginx_whose_sockets_are_not_those_that_are_tuned(lab: Lab) -> None:
    name = lab.study.labs[0]
    folder = f"/run/intop/lab/{name}/host-lb"
    stop = f"kill $(cat {folder}/nginx.pid); while [ -e {folder}/nginx.pid ]; do sleep 0.02; done"
    start = f"nginx -e {folder}/nginx.log -c {folder}/nginx.conf"
    lab.on_balancer(0, f"{stop}; unshare --net {start}")
    here, there = lab.study.json("doctor", expected=(1,))
    assert [] == there["problems"]
    # Its lab's network leads to the namespace that nginx has left.
    elsewhere, refused = sorted(here["problems"], key=lambda line: "refused" in line)
    assert f"{name}-lb: nothing listens on port 80 in the network namespace" in elsewhere
    assert "the connection is refused" in refused
    lab.on_balancer(0, f"{stop}; sh {folder}/nginx-restart")
    assert [[], []] == [one["problems"] for one in lab.study.json("doctor")]


# Before a campaign -------------------------------------------------------------------------------


Begin = Callable[..., Task]


@pytest.fixture
def begin(study: Study, tmp_path: Path) -> Iterator[Begin]:
    """A new campaign on one cluster, whose hosts, by name, have other answers."""
    with opened(str(tmp_path / "store.db")) as store:

        def made(told: StringIO, *, force: bool = False, **changes: dict[str, Any]) -> Task:
            own = replace(study, clusters={"x86": (cluster(),)})
            context = Context(
                study=own,
                store=store,
                campaign=new(store, own),
                connect=lambda a: Answers(a, **changes.get(a.name.replace("-", "_"), {})),
                progress=LineProgress(told),
                archs=("x86",),
                workloads=(own.workloads["slt"],),
                force=force,
            )
            subject = Subject(campaign=context.campaign, arch="x86", workload="slt")
            return Task(context=context, subject=subject, workload=own.workloads["slt"])

        yield made


NOT_READY = {"a_lb": {"facts": MACHINE.replace("nginx/1.22.1", "")}, "a_lg": {"clock_s": 5.0}}


def test_a_problem_keeps_a_campaign_from_starting(begin: Begin) -> None:
    """Before a testbed is opened, which would fail the test: it puts files on hosts."""
    with pytest.raises(IntopError) as caught, replicas(begin(StringIO(), **NOT_READY)):
        pytest.fail("a campaign starts")
    told = str(caught.value)
    assert 2 == told.count("\n  PROBLEM  a-")
    assert "a-lb: has no nginx on its PATH" in told
    assert "a-lg: its clock is" in told
    assert "intop doctor --arch x86\n" in told
    assert told.endswith("--force")


def test_with_force_it_goes_on_and_says_so(begin: Begin) -> None:
    told = StringIO()
    check_ready(begin(told, force=True, **NOT_READY))
    assert "it goes on by --force" in told.getvalue()
    assert 2 == told.getvalue().count("PROBLEM  a-")


def test_warnings_stop_nothing(begin: Begin) -> None:
    told = StringIO()
    lacks = {"has": "can_store\nfree 71582432\nlacks ss\n"}
    check_ready(begin(told, a_b1=lacks))
    assert "x86: 1 warning: intop doctor --arch x86" in told.getvalue()


def test_only_the_paths_of_its_workloads_keep_a_campaign_from_starting(begin: Begin) -> None:
    told = StringIO()
    check_ready(begin(told, a_lg={"answers": {"/d?r=1": (502, 9, "status")}}))
    assert "" == told.getvalue()
    with pytest.raises(IntopError, match=r"(?s)not ready.*a-lg: /a: answers 502: .*--force"):
        check_ready(begin(told, a_lg={"answers": {"/a": (502, 9, "status")}}))


def test_a_campaign_that_has_begun_is_not_asked_again(begin: Begin) -> None:
    task = begin(StringIO(), **NOT_READY)
    planned = PlannedTrial(index=0, role="baseline", configuration=DEFAULT)
    task.store.write_plan(task.subject, "screen", [planned])
    check_ready(task)
    other = replace(task, subject=replace(task.subject, arch="arm"))
    with pytest.raises(KeyError, match="arm"):
        check_ready(other)
