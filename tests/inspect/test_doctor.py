"""What a doctor makes of what hosts say."""

import json
from dataclasses import replace
from itertools import cycle
from typing import Any

import pytest

from builders.doctored import (
    MACHINE,
    NGINX,
    RUNS,
    SHOWS,
    TOOLS,
    WRITABLE,
    Answers,
    Examine,
    cluster,
)
from intop.config.study import Study
from intop.domain.cluster import HostAddress
from intop.domain.workload import Clients
from intop.hosts.facts import facts_script
from intop.hosts.host import Completed
from intop.hosts.readiness import READINESS
from intop.hosts.sysctl import PROBE
from intop.inspect.doctor import examine

PROXY = 'LISTEN 0 4096 *:80 *:* users:(("docker-proxy",pid=9,fd=4))\n'


def test_a_healthy_cluster_has_no_problem_and_every_key_is_told(
    examined: Examine, study: Study
) -> None:
    (result,) = examined()
    assert (result.problems, result.warnings) == ((), ())
    assert result.offered == ("net.core.somaxconn", "net.ipv4.tcp_rmem", "vm.swappiness")
    assert result.refused["net.ipv4.tcp_adv_win_scale"] == "has no effect: since kernel 6.6"
    keys = {p.key for p in study.catalogue.parameters}
    assert keys == set(result.offered) | set(result.refused)
    assert [host.name for host in result.hosts] == ["a-lg", "a-lb", "a-b1"]
    generator, balancer, backend = result.hosts
    assert ({}, keys, {}) == (generator.keys, set(balancer.keys), backend.keys)
    swappiness = balancer.keys["vm.swappiness"]
    assert (
        swappiness.scope,
        swappiness.reading.access,
        swappiness.reading.value,
        swappiness.reason,
    ) == ("machine", "writable", "60", "")
    gone = balancer.keys["kernel.sched_latency_ns"]
    assert gone.reading.access == "missing"
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
    (result,) = examine(
        (cluster(),), replace(study, **changes), lambda address: Answers(address, tools=tools)
    )
    assert (result.load_tool, result.problems) == (expected, ())


def test_each_workload_may_have_another_tool(study: Study) -> None:
    slt, dlt = study.workloads["slt"], study.workloads["dlt"]
    workloads = {"slt": slt, "dlt": replace(dlt, arrivals="poisson")}
    (result,) = examine((cluster(),), replace(study, workloads=workloads), Answers)
    assert (result.load_tool, result.problems) == ("wrk2 4.0.0, engine LuaJIT 2.1.0-beta3", ())


def test_generators_that_share_a_load_need_the_same_tool(examined: Examine) -> None:
    more = (HostAddress(name="a-lg2", role="load-generator", hostname="192.0.2.2"),)
    shared = cluster(more_generators=more)
    (result,) = examined(shared)
    assert (result.load_tool, result.problems) == ("wrk2 4.0.0", ())
    assert [host.name for host in result.hosts] == ["a-lg", "a-lb", "a-lg2", "a-b1"]
    (result,) = examined(shared, a_lg2={"tools": LUAJIT})
    (problem,) = result.problems
    assert problem.startswith("a-lg2: has engine LuaJIT 2.1.0-beta3 (/usr/bin/luajit), and a-lg ha")
    (result,) = examined(shared, a_lg2={"tools": TOOLS.replace("/opt/wrk2/bin", "/usr/local/bin")})
    (problem,) = result.problems
    assert "has wrk2 4.0.0 (/usr/local/bin/wrk2), and a-lg has wrk2 4.0.0 (/opt/wrk2/" in problem


def test_a_load_for_processors_that_a_generator_lacks_is_a_problem(examined: Examine) -> None:
    pinned = replace(cluster(), load_generator=replace(cluster().load_generator, load_cpus="96"))
    (result,) = examined(pinned)
    (problem,) = result.problems
    assert problem.startswith("a-lg: its load can't run on the processors 96 (load_cpus): taskset")


OPEN = "the state folder /var/lib/intop can't be trusted: others can change what is in it"


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
        ("a_lg", {"has": f"untrusted {OPEN}\ncan_store\n"}, f"a-lg: {OPEN}"),
        ("a_lb", {"has": f"untrusted {OPEN}\ncan_store\n"}, f"a-lb: {OPEN}"),
        ("a_lg", {"tools": ""}, "a-lg: has no luajit on its PATH, which runs intop's load"),
        (
            "a_lg",
            {"answers": {"/a": (404, 9, "status")}},
            "a-lg: /a: answers 404: correct the path in the study",
        ),
        (
            "a_lg",
            {"answers": {"/a": (0, 0, "refused"), "/d?r=1": (0, 0, "refused")}},
            "a-lg: /a, /d?r=1: the connection is refused: see that the server",
        ),
        ("a_lg", {"answers": {"/d?r=1": (200, 0, "")}}, "/d?r=1: answers 200 with an empty body"),
        ("a_lg", {"answers": {"/a": (200, -1, "")}}, "a-lg: engine.lua: length is -1"),
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
    (result,) = examined(**{host: answers})
    assert any(problem in line for line in result.problems), result.problems
    assert len(result.problems) == 1


def test_every_path_of_every_workload_is_asked_for_once(examined: Examine) -> None:
    (result,) = examined()
    assert [(one.path, one.status, one.bytes, one.seconds) for one in result.fetched] == [
        ("/a", 200, 512, 0.0015),
        ("/d?r=1", 200, 512, 0.0015),
    ]


def test_paths_are_asked_for_where_another_host_is_not_reached(examined: Examine) -> None:
    (result,) = examined(a_b1={"unreachable": True}, a_lg={"answers": {"/a": (502, 9, "status")}})
    assert [line[:n] for line, n in zip(result.problems, (14, 21), strict=True)] == [
        "a-b1: no route",
        "a-lg: /a: answers 502",
    ]


def test_each_class_of_clients_asks_in_its_manner(study: Study) -> None:
    classes = (Clients(name="a", headers=("Host: a",), http="2"), Clients(name="b", method="POST"))
    slt = replace(study.workloads["slt"], clients=classes)
    asked: list[str] = []

    class Listens(Answers):
        def run(self, command: str, *, stdin: str = "", timeout_s: float = 30.0) -> Completed:
            asked.extend([command] if "engine.lua" in command else [])
            return super().run(command, stdin=stdin, timeout_s=timeout_s)

    (result,) = examine((cluster(),), replace(study, workloads={"slt": slt}), Listens)
    assert [(one.path, one.headers) for one in result.fetched] == [("/a", ("Host: a",))]
    (command,) = asked
    assert "--http 2 --header 'Host: a'" in command


def test_every_load_generator_asks(examined: Examine) -> None:
    more = (HostAddress(name="a-lg2", role="load-generator", hostname="192.0.2.2"),)
    (result,) = examined(
        cluster(more_generators=more), a_lg2={"answers": {"/a": (502, 9, "status")}}
    )
    assert [line[:22] for line in result.problems] == ["a-lg2: /a: answers 502"]
    assert [one.status for one in result.fetched] == [200, 200]


def test_where_nothing_can_be_put_no_path_is_asked_for(examined: Examine) -> None:
    (result,) = examined(a_lg={"has": "free 71582432\n"})
    assert result.fetched == ()
    assert [line[:34] for line in result.problems] == ["a-lg: /var/lib/intop can't be made"]


def test_what_serves_in_nginxs_place_may_listen(examined: Examine) -> None:
    own = cluster(programs=("docker-proxy",))
    assert examined(own, a_lb={"listens": PROXY})[0].problems == ()
    both = examined(a_lb={"listens": PROXY + NGINX})
    assert both[0].problems == ()


def test_a_load_that_does_not_fit_into_nginxs_workers_is_told_of(
    examined: Examine, study: Study
) -> None:
    slt = replace(study.workloads["slt"], connections=3000, rate_rps=9000)
    load = "the load's 3,000 connections, 2 for each that is passed on, make 3,000 for each of 2"

    def warned(**changes: str) -> list[str]:
        (result,) = examine(
            (cluster(),),
            replace(study, workloads={"slt": slt}),
            lambda address: Answers(address, **(changes if address.name == "a-lb" else {})),
        )
        assert result.problems == ()
        return list(result.warnings)

    assert warned() == []
    narrow = RUNS.replace("worker 65536", "worker 1024")
    (message,) = warned(nginx=narrow)
    assert message == (
        f"a-lb: a worker of nginx may open 1,024 files, and {load}: write [Service] and "
        "LimitNOFILE=8192 to /etc/systemd/system/nginx.service.d/nofile.conf, then: systemctl "
        "daemon-reload && systemctl restart nginx.service"
    )
    (message,) = warned(nginx=narrow.replace("unit nginx.service\n", ""))
    assert message.endswith(": write worker_rlimit_nofile 8192; at the top of its configuration")
    (message,) = warned(
        nginx=narrow, shows=SHOWS.replace("events", "worker_rlimit_nofile 9;\nevents")
    )
    assert message.endswith(
        f"{load}: write worker_rlimit_nofile 8192; in place of the one in its configuration"
    )
    (message,) = warned(shows=SHOWS.replace("worker_connections 16384;", ""))
    assert message == (
        f"a-lb: a worker of nginx takes 512 connections (worker_connections), and {load}: write "
        "worker_connections 8192; into its block events"
    )
    # A worker that ends soon is none; without any, or with several nginx, nothing can be said.
    for nginx in (RUNS.replace("worker 65536\n", ""), f"master 7\n{narrow}"):
        assert warned(nginx=nginx) == []
    (message,) = warned(shows="")
    assert message.startswith("worker_connections was not looked at: a-lb: no nginx")


def test_who_listens_is_not_known_to_everybody(examined: Examine) -> None:
    """Without root `ss` names no programs; without `ss` there is another problem."""
    (result,) = examined(a_lb={"listens": "LISTEN 0 511 0.0.0.0:80 0.0.0.0:*\n"})
    assert result.problems == ()
    (result,) = examined(a_lb={"listens": "", "has": "can_store\nlacks ss\n"})
    assert len(result.problems) == 1
    (result,) = examined(a_lb={"listens": "unseen\n"})
    assert result.problems == ()


def test_all_that_is_wrong_is_told_at_once(examined: Examine) -> None:
    (result,) = examined(a_lg={"tools": "", "clock_s": 1e9}, a_lb={"has": "lacks ip\n", "keys": {}})
    assert len(result.problems) == 5
    (result,) = examined(
        a_lg={"unreachable": True},
        a_lb={"has": "can_store\nlacks ip\n"},
        a_b1={"lost": facts_script()},
    )
    assert [line[:n] for line, n in zip(result.problems, (14, 15, 15), strict=True)] == [
        "a-lg: no route",
        "a-lb: has no ip",
        "a-b1: no answer",
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
        (
            "a_lb",
            {"files": "etc/sysctl.d\t/etc/sysctl.d/1.conf\n>sysctl -w a.b=1\n\nend\t\n"},
            "a-lb: /etc/sysctl.d/1.conf:1: a command in place of KEY = VALUE, so no program sets",
        ),
        ("a_lb", {"status": HELD}, "a-lb: is held, and its watchdog is dead. Run: intop rollback"),
        (
            "a_b1",
            {"facts": MACHINE.replace("uid=0", "uid=7")},
            "a-b1: is reached without root, which will do. Only what its kernel",
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
    (result,) = examined(**{host: answers})
    (message,) = result.warnings
    assert message.startswith(warning)
    assert result.problems == ()


def test_a_tuner_elsewhere_is_no_matter(examined: Examine) -> None:
    (result,) = examined(a_b1={"has": "can_store\ntuner tuned\n"})
    assert result.warnings == ()


CONGESTION, AVAILABLE, ALLOWED = (
    f"net.ipv4.tcp_{word}congestion_control" for word in ("", "available_", "allowed_")
)


def test_choices_that_a_host_is_without_are_told_with_the_reason(examined: Examine) -> None:
    keys = WRITABLE | {CONGESTION: "bbr", AVAILABLE: "reno bbr cubic htcp", ALLOWED: "reno bbr"}
    child = MACHINE.replace("namespace=first", "namespace=child")
    (result,) = examined(a_lb={"keys": keys})
    assert set(result.lost[CONGESTION]) == {
        "westwood",
        "vegas",
        "bic",
        "hybla",
        "illinois",
        "veno",
        "yeah",
        "dctcp",
    }
    assert result.lost[CONGESTION]["westwood"] == "modprobe tcp_westwood"
    (result,) = examined(a_lb={"keys": keys, "facts": child})
    assert result.lost[CONGESTION]["cubic"] == f"not in {ALLOWED}"
    assert result.lost[CONGESTION]["yeah"] == "modprobe tcp_yeah"
    both = examined(
        cluster("a"),
        cluster("b"),
        a_lb={"keys": keys},
        b_lb={"keys": keys | {AVAILABLE: "reno bbr cubic"}},
    )
    assert both[0].lost[CONGESTION]["htcp"] == "not on all replicas"
    assert both[1].lost[CONGESTION]["htcp"] == "modprobe tcp_htcp"
    assert [one.problems for one in both] == [()] * 2


def test_what_one_replica_lacks_is_left_out_for_both_and_named(examined: Examine) -> None:
    fewer = {k: v for k, v in WRITABLE.items() if k != "vm.swappiness"}
    both = examined(cluster("a"), cluster("b"), b_lb={"keys": fewer})
    assert len({one.hosts[1].name for one in both}) == 2
    for one in both:
        assert one.offered == ("net.core.somaxconn", "net.ipv4.tcp_rmem")
        assert one.problems == ()
    here, there = both
    reason = "this kernel doesn't have it"
    assert here.refused["vm.swappiness"] == f"not on all replicas: on b-lb, {reason}"
    assert there.refused["vm.swappiness"] == reason
    # What each host says of itself is another matter.
    assert here.hosts[1].keys["vm.swappiness"].reason == ""
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
    assert here.problems == ()
    (problem,) = there.problems
    assert problem.startswith("a-lb and b-lb are no replicas of each other: kernel: 6.18.44")
    assert "link: not described against 10 Gbit/s" in problem
    assert "vm.swappiness: 60 against 10" in problem
    assert "Make them alike, or take one of them out of" in problem


def test_a_replica_that_cannot_be_reached_leaves_the_other_as_it_is(examined: Examine) -> None:
    here, there = examined(cluster("a"), cluster("b"), b_b1={"unreachable": True})
    assert here.problems == ()
    assert len(here.offered) == 3
    assert there.problems == ("b-b1: no route",)
    assert [host.name for host in there.hosts] == ["b-lg", "b-lb"]
    assert (there.offered, there.refused) == ((), {})


def test_too_few_connections_for_what_an_answer_takes_are_a_problem(
    study: Study, examined: Examine
) -> None:
    (result,) = examined(a_lg={"us": 2_002_000})
    slow = [problem for problem in result.problems if "Little's law" in problem]
    assert len(study.workloads) == len(slow)
    assert slow[0].startswith("a-lg: slt: ")
    assert " connections carry at most " in slow[0]
    assert "write connections = " in slow[0]


def test_think_time_counts_where_a_load_has_too_few_connections(study: Study) -> None:
    slt = replace(study.workloads["slt"], clients=(Clients(think_ms=60_000, method="POST"),))
    (result,) = examine((cluster(),), study, Answers, workloads=[slt])
    (problem,) = result.problems
    assert "think_ms 60000 included" in problem


def test_connections_that_may_be_too_few_are_a_warning(study: Study) -> None:
    """The first answer has the time of its connection in it, so it may be half of that."""
    slt = replace(study.workloads["slt"], rate_rps=100, connections=10, paths=("/a",))
    (result,) = examine(
        (cluster(),), study, lambda address: Answers(address, us=150_000), workloads=[slt]
    )
    assert result.problems == ()
    (warning,) = result.warnings
    assert warning.startswith("a-lg: slt may have too few connections: for 100 requests/s")


def test_a_connection_for_each_request_is_found_and_explained(study: Study) -> None:
    direct = SHOWS.replace(
        "http { }", "http { server { location / { proxy_pass http://10.0.0.3:8080; } } }"
    )
    slt = replace(study.workloads["slt"], rate_rps=1_000, connections=64)
    (result,) = examine(
        (cluster(),), study, lambda address: Answers(address, shows=direct), workloads=[slt]
    )
    kept, ports = result.warnings
    assert kept.startswith("a-lb: proxy_pass at /etc/nginx/nginx.conf:2 (http, server, location)")
    assert ports.startswith("a-lb: each request opens a connection to a backend, 1,000/s to each")
    assert result.problems == ()


def test_a_full_conntrack_is_a_warning(study: Study) -> None:
    limits = "ports 32768 60999\ntracked 65000\ntracked_most 65536\n"
    (result,) = examine((cluster(),), study, lambda address: Answers(address, limits=limits))
    (warning,) = result.warnings
    assert warning.startswith("a-lb: conntrack follows 65,000 of at most 65,536 connections")


PAGE = "Active connections: 1 \nserver accepts handled requests\n 5 4 9 \n"
PAGE += "Reading: 0 Writing: 1 Waiting: 0 \n"
STATUS = "http://127.0.0.1:8080/nginx_status"


@pytest.mark.parametrize(
    ("page", "behaviour"),
    [
        ("HTTP/1.1 404 Not Found\nServer: nginx\n\n<html>", "answers 404 Not Found, so"),
        ("HTTP/1.1 301 Moved\n\n", "answers 301 Moved, so"),
        ("HTTP/1.1 200 OK\n\nIt works!", "answers with another text than stub_status has ('It"),
        ("HTTP/1.1 200 OK\n\n", "answers with another text than stub_status has, so"),
        ("SSH-2.0-OpenSSH", "answers with something else than HTTP ('SSH-2.0-OpenSSH'), so"),
        ("", "does not answer within 0.5 s, so trials will lack nginx's own counters"),
    ],
)
def test_a_page_of_nginx_that_is_not_there_is_told_with_the_next_step(
    examined: Examine, page: str, behaviour: str
) -> None:
    (result,) = examined(cluster(stub_status=STATUS), a_lb={"page": page})
    (warning,) = result.warnings
    assert warning.startswith(f"a-lb: stub_status: {STATUS} {behaviour}")
    assert "listens on 127.0.0.1:8080 the block location = /nginx_status { stub_status;" in warning
    assert result.problems == ()


def test_a_page_of_nginx_that_is_there_needs_no_word(examined: Examine) -> None:
    page = f"HTTP/1.1 200 OK\nServer: nginx\n\n{PAGE}"
    (result,) = examined(cluster(stub_status=STATUS), a_lb={"page": page})
    assert (result.problems, result.warnings) == ((), ())


def test_a_page_of_nginx_that_trials_do_not_read_is_not_asked_for(examined: Examine) -> None:
    (result,) = examined(cluster(stub_status=STATUS, emulation="qemu"), a_lb={"page": "SSH"})
    assert (result.problems, result.warnings) == ((), ())


def test_each_backend_has_its_turn_and_another_file_is_a_problem(study: Study) -> None:
    """Two backends answer by turns. Two paths that were asked for in turn would hide the second."""
    lengths = cycle([100, 200])

    class Turns(Answers):
        def run(self, command: str, *, stdin: str = "", timeout_s: float = 30.0) -> Completed:
            done = super().run(command, stdin=stdin, timeout_s=timeout_s)
            if "engine.lua" not in command:
                return done
            answers = map(json.loads, done.stdout.splitlines())
            printed = (json.dumps(each | {"length": next(lengths)}) for each in answers)
            return replace(done, stdout="".join(f"{line}\n" for line in printed))

    b2 = HostAddress(name="a-b2", role="backend", hostname="192.0.2.2")
    both = replace(cluster(), backends=(*cluster().backends, b2), static_paths=("/a", "/b"))
    slt = {"slt": study.workloads["slt"]}
    (result,) = examine((both,), replace(study, workloads=slt), Turns)
    (line,) = result.problems
    assert line.startswith("a-lg: /a, /b: has 100 and 200 bytes by turns")
    assert len(result.fetched) == 2


def test_a_connection_with_few_requests_is_a_warning(study: Study) -> None:
    few = replace(study.workloads["slt"], rate_rps=10, connections=32, duration_s=2)
    (result,) = examine((cluster(),), replace(study, workloads={"slt": few}), Answers)
    expected = "a-lg: slt: a connection carries 0.6 requests in a trial of 2 s"
    assert [line[: len(expected)] for line in result.warnings] == [expected]
    new = (replace(few.clients[0], requests_per_connection=1),)
    closing = replace(study, workloads={"slt": replace(few, clients=new)})
    assert examine((cluster(),), closing, Answers)[0].warnings == ()
