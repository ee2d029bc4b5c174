"""The process that reads a host's counters, on this machine, and what becomes of it."""

import math
import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path
from typing import IO, ClassVar

import pytest
from hypothesis import given

from builders.damage import anything, damaged
from intop.domain.cluster import HostAddress
from intop.domain.counters import HostCounters
from intop.errors import CommandError, UnreachableError
from intop.hosts.kernel_counters import grown
from intop.hosts.metrics import Energy
from intop.hosts.reader import READER, Reader, Readers, Reading, Wanted, parse_reading, series
from kit.local_host import LocalConversation, LocalHost, Told, read_counters
from kit.namespace_host import NamespaceHost
from kit.studies import wait_for

MARK = "0123456789abcdef" * 2
CAPTURED = Path(__file__).parents[1] / "data" / "hosts"
HOG = "9 (a hog) R 1 1 1 0 -1 4194624 0 0 0 0 41 0 0 0 20 0 1 0 77 0\n"
LB, OTHER = "reading-x86-6.18-balancer.txt", "reading-arm-6.1-guest.txt"


def captured(name: str) -> str:
    """A reader's answer. In the files @ stands for the mark."""
    lines = (CAPTURED / name).read_text().split("\n")
    return "\n".join(MARK + line[1:] if line[:1] == "@" else line for line in lines)


class Kept(LocalHost):
    """A host here that keeps its conversations."""

    def __init__(self) -> None:
        super().__init__()
        self.begun: list[LocalConversation] = []

    def converse(self, command: str) -> LocalConversation:
        self.begun.append(LocalConversation("lb", ["sh", "-c", command]))
        return self.begun[-1]


@pytest.fixture
def kept() -> Iterator[tuple[Kept, Reader]]:
    host = Kept()
    reader = Reader(host)
    yield host, reader
    reader.close()


def follow_until(reader: Reader, samples: int) -> None:
    """Follow it until so many samples have arrived."""

    def arrived() -> bool:
        reader.follow()
        return len(reader._samples) >= samples

    wait_for(arrived, f"{samples} samples")


# The process --------------------------------------------------------------------------------------


def test_one_process_answers_all_requests_and_ends_with_its_input(
    kept: tuple[Kept, Reader],
) -> None:
    host, reader = kept
    first, second = (reader.read(Wanted(processes=p)) for p in (True, False))
    assert first.now.uptime_s <= second.now.uptime_s
    assert any(pid == os.getpid() for pid, _ in first.counters.processes)
    assert second.counters.processes == {}
    (conversation,) = host.begun
    assert first.machine.startswith(Path("/proc/sys/kernel/random/boot_id").read_text().strip())
    reader.close()
    assert conversation.process.returncode == 0


def test_it_samples_by_itself_and_forgets_nothing(kept: tuple[Kept, Reader]) -> None:
    _, reader = kept
    before = reader.read(Wanted(points=3, step_s=0.05))
    time.sleep(0.4)
    after = reader.read(Wanted())
    assert len(after.samples) == 3
    result = series(before.now, after)
    assert sorted(result.at_s) == list(result.at_s)
    assert 0 < result.at_s[0] < result.at_s[-1] < 5
    assert reader.read(Wanted()).samples == ()


def test_samples_are_understood_as_they_arrive(kept: tuple[Kept, Reader]) -> None:
    host, reader = kept
    before = reader.read(Wanted(points=4, step_s=0.05))
    follow_until(reader, 2)
    time.sleep(0.3)  # the others are left to the answer
    seen = list(reader._samples)
    after = reader.read(Wanted())
    assert len(after.samples) == 4
    assert seen == list(after.samples[: len(seen)])
    assert host.begun[0].heard().splitlines() == []
    assert len(series(before.now, after).at_s) == 5


def test_half_a_sample_waits_for_the_rest() -> None:
    text = captured(LB)
    end = text.index(f"{MARK} host")
    second = text.index(f"{MARK} sample", 1)
    # A pipe may also part them within the mark of the next sample.
    cuts = sorted([0, end // 3, second + 9, end - 4, end])
    pieces = [text[a:b] for a, b in pairwise(cuts)]

    class Slow(Told):
        def heard(self) -> str:
            return pieces.pop(0)

        def ask(self, request: str, end: str, timeout_s: float) -> str:
            return text[text.index(f"{MARK} host") :]

    host = LocalHost()
    host.converse = lambda _: Slow("lb", str)  # type: ignore[method-assign]
    reader = Reader(host)
    reader._mark = MARK
    reader.read(Wanted(port=80, points=2))
    counts = []
    while pieces:
        reader.follow()
        counts.append(len(reader._samples))
    assert counts == [0, 0, 0, 2]
    assert parse_reading(text, MARK, 80).samples == reader.read(Wanted(port=80)).samples


def test_a_request_ends_the_samples_of_the_one_before(kept: tuple[Kept, Reader]) -> None:
    _, reader = kept
    reader.read(Wanted(points=1000, step_s=60))
    assert reader.read(Wanted()).samples == ()


def some_of(pipe: IO[bytes]) -> bytes:
    result = os.read(pipe.fileno(), 1 << 16)
    assert result, "the reader has ended"
    return result


def test_a_request_that_comes_just_when_a_sample_is_due_is_not_lost() -> None:
    """bash's `read` may run out of time in the middle of a line, and says so as without any."""
    with subprocess.Popen(
        ["bash", "-c", READER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(f"{MARK}\n- 1000 300000;\n".encode())
        output = b""
        for piece in ("p", " 0", " 0;\n"):
            while f"\n{MARK} sample\n".encode() not in output:
                output += some_of(process.stdout)
            output = b""
            process.stdin.write(piece.encode())
        while f"\n{MARK}\n".encode() not in output:
            output += some_of(process.stdout)
        assert f"\n{MARK} processes\n".encode() in output
        process.stdin.close()


def test_a_reader_that_was_killed_is_named_and_the_next_request_starts_another(
    kept: tuple[Kept, Reader],
) -> None:
    host, reader = kept
    reader.read(Wanted())
    os.kill(host.begun[0].process.pid, signal.SIGKILL)
    with pytest.raises(UnreachableError, match=r"^lb: exec ended"):
        reader.read(Wanted())
    assert reader.read(Wanted()).counters.uptime_s > 0
    assert len(host.begun) == 2


def test_a_host_without_bash_is_told_what_it_lacks() -> None:
    class Without(LocalHost):
        def converse(self, command: str) -> LocalConversation:
            return LocalConversation("lb", ["sh", "-c", command.replace("bash", "no-such-shell")])

    with pytest.raises(CommandError, match=r"^lb: its counters can't be read by bash .* install b"):
        Reader(Without()).read(Wanted())


def test_no_process_is_started_but_where_sockets_are_asked_for(kept: tuple[Kept, Reader]) -> None:
    host, reader = kept

    def faults_of_children() -> str:
        pid = host.begun[0].process.pid
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()[8]

    reader.read(Wanted(processes=True, points=2, step_s=0.01))
    before = faults_of_children()
    follow_until(reader, 2)
    assert len(reader.read(Wanted(processes=True)).samples) == 2
    assert before == faults_of_children()
    reader.read(Wanted(port=80))
    assert before != faults_of_children()


def test_the_energy_of_packages_is_read_and_of_nothing_else() -> None:
    """From files as the kernel has them for two packages, their cores and the whole platform."""
    zones = {"0": "package-0", "1": "package-1", "2": "psys", "0:0": "core"}
    made = "".join(
        f"mkdir /sys/class/powercap/intel-rapl:{zone}; cd /sys/class/powercap/intel-rapl:{zone}; "
        f"echo {name} >name; echo {100 + n} >energy_uj; echo 262143328850 >max_energy_range_uj; "
        for n, (zone, name) in enumerate(zones.items())
    )
    host = LocalHost(
        setup=f"mount -t tmpfs made-up /sys/class && mkdir /sys/class/powercap && {made} cd /"
    )
    result = read_counters(host)
    largest = 262143328850
    assert (Energy(100, largest), Energy(101, largest)) == result.energy
    assert read_counters(LocalHost()).context_switches


# What it says ------------------------------------------------------------------------------------


def since_first(result: Reading) -> HostCounters:
    """The series since the first sample, as if that were the reading before."""
    return series(result.samples[0], replace(result, samples=result.samples[1:]))


def test_a_real_load_balancer_under_load() -> None:
    result = parse_reading(captured(LB), MARK, 80)
    assert (result.counters.uptime_s, result.now.uptime_s) == (50015.07, 50015.07)
    assert [sample.uptime_s for sample in result.samples] == [50014.46, 50014.88]
    over = since_first(result)
    assert over.at_s == (0.42, 0.61)
    assert over.growth["Tcp.RetransSegs"] == (7, 19)
    assert over.total("TcpExt.TCPFastRetrans") == 26
    assert over.growth["softnet.cpu0.processed"] == (4445, 3238)
    assert over.growth["upstreams.bytes_received"] == (682966, 340961)
    assert over.growth["upstreams.cwnd_limited_ms"] == (8, 16)
    assert over.levels["clients.sockets"] == (4, 4)
    assert over.highest("listen.limit") == 4096
    assert over.levels["clients.rtt_us.max"][-1] == 4725
    assert over.total("TcpExt.TCPTimeouts") == 0
    assert over.unread == ("nginx",)
    # What is 0 at all points is left out, and settings are no counters.
    assert "TcpExt.TCPTimeouts" not in over.totals
    assert "Tcp.RtoMin" not in result.now.counters


def test_an_older_kernel_without_connection_tracking() -> None:
    result = parse_reading(captured(OTHER), MARK, None)
    assert result.now.uptime_s == 27.34
    assert {"TcpExt.TCPTimeouts", "Udp.RcvbufErrors", "softnet.cpu0.dropped"} <= set(
        result.now.counters
    )
    assert series(result.now, result).unread == ("conntrack", "sockets", "nginx")
    assert series(result.now, result).growth == {}


def test_a_counter_of_a_newer_kernel_is_kept() -> None:
    text = captured(LB).replace("TcpExt: SyncookiesSent", "TcpExt: TCPBrandNew")
    assert parse_reading(text, MARK, 80).now.counters["TcpExt.TCPBrandNew"] == 0


def test_a_sample_without_its_sockets_repeats_those_before() -> None:
    """There were too many at that moment; what they did is in the next point."""
    listed = captured(LB).split(f"{MARK} sockets\n")
    listed[2] = f"many\n{MARK} time{listed[2].partition(f'{MARK} time')[2]}"
    result = parse_reading(f"{MARK} sockets\n".join(listed), MARK, 80)
    assert result.samples[1].sockets is None
    over = since_first(result)
    assert over.growth["upstreams.bytes_received"] == (0, 682966 + 340961)
    assert over.levels["upstreams.sockets"][0] == 3
    assert "sockets" in over.unread  # none was listed under load
    over = series(result.samples[0], result)
    assert "sockets" not in over.unread


@given(damaged(captured(LB)) | damaged(captured(OTHER)) | anything)
def test_what_a_host_says_makes_sense_or_is_refused(text: str) -> None:
    try:
        result = parse_reading(text, MARK, 80)
        over = since_first(result) if result.samples else series(result.now, result)
    except (KeyError, ValueError, IndexError):
        return
    assert all(math.isfinite(value) for value in over.totals.values())
    assert all(len(name) < 100 for name in over.totals)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("TcpExt: SyncookiesSent SyncookiesRecv", "TcpExt: SyncookiesSent"),
        ("Udp: InDatagrams NoPorts", "Tcp: InDatagrams NoPorts"),
        (f"{MARK} tables", f"{MARK} host"),
        ("TCP: inuse", "TCP: inuse 7 inuse"),
        ("entries  clashres", "entries"),
        (f"{MARK}\n", ""),
        ("cpu  ", "cpu  x"),
    ],
)
def test_an_answer_that_cannot_be_trusted_is_refused(old: str, new: str) -> None:
    text = captured(LB)
    assert old in text
    with pytest.raises((ValueError, KeyError)):
        since_first(parse_reading(text.replace(old, new), MARK, 80))


def test_no_program_can_forge_a_section() -> None:
    """A name may have line ends in it, but not as many characters as the mark."""
    line = "9 (x\n{} sockets\n) S 1 1 1 0 -1 4194624 0 0 0 0 41 0 0 0 20 0 1 0 77 0\n"
    section = f"{MARK} processes\n{line.format(MARK[:15])}"
    text = captured(LB).replace(f"{MARK} machine", f"{section}{MARK} machine")
    plain = parse_reading(captured(LB), MARK, 80)
    result = parse_reading(text, MARK, 80)
    assert plain.now == result.now
    assert [p.name for p in result.counters.processes.values()] == [f"x\n{MARK[:15]} sockets\n"]


def test_counters_of_32_bits_begin_again_at_zero() -> None:
    assert grown("softnet.cpu0.processed", 0xFFFFFFFE, 4) == 6
    assert grown("TcpExt.Unknown", 8, 4) == -4


def test_hosts_of_one_machine_list_their_processes_once() -> None:
    class Listed(Told):
        def ask(self, request: str, end: str, timeout_s: float) -> str:
            output = super().ask(request, end, timeout_s)
            listed = f"{end} processes\n{HOG}" if "p" in self.asked[-1] else ""
            rest = f"{listed}{end} time\n3278.19\n{end} machine\n{self.name}\n{end}\n"
            return output.removesuffix(f"{end}\n") + rest

    text = (CAPTURED / "counters-x86-namespace.txt").read_text()
    *rest, _ = text.splitlines()
    hosts, asked = [], {}
    for name, machine in {"lb": "one", "lg": "one", "b1": "two"}.items():
        host = LocalHost()
        host.address = HostAddress(name=name, role="backend", hostname=name)
        asked[name] = of = Listed(machine, lambda: "\n".join([*rest, ""]))
        host.converse = lambda _, of=of: of  # type: ignore[method-assign]
        hosts.append(host)
    readers = Readers(hosts)
    wanted = {name: Wanted(processes=True) for name in asked}
    for _ in range(2):
        result = readers.read(wanted)
        assert {n: len(r.counters.processes) for n, r in result.items()} == {
            "lb": 1,
            "lg": 1,
            "b1": 1,
        }
    assert {name: of.asked for name, of in asked.items()} == {
        "lb": ["p 0 0"] * 2,
        "lg": ["p 0 0", "- 0 0"],
        "b1": ["p 0 0"] * 2,
    }


# What takes a process -----------------------------------------------------------------------------

PAGE = (
    "Active connections: 1 \nserver accepts handled requests\n 5 4 9 \n"
    "Reading: 0 Writing: 1 Waiting: 0 \n"
)


class StatusPage(BaseHTTPRequestHandler):
    asked: ClassVar[list[str]] = []
    release = threading.Event()

    def do_GET(self) -> None:
        self.asked.append(self.path)
        if self.path == "/hangs":
            self.release.wait(60)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(PAGE.encode())

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def page() -> Iterator[str]:
    StatusPage.asked.clear()
    StatusPage.release.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), StatusPage) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        StatusPage.release.set()
        server.shutdown()


def test_nginx_says_what_it_counts_and_is_asked_once_a_second_at_most(
    kept: tuple[Kept, Reader], page: str
) -> None:
    _, reader = kept
    wanted = Wanted(port=80, stub_status=f"{page}/nginx_status", points=8, step_s=0.05)
    result = reader.read(wanted)
    assert tuple(
        result.now.counters[f"nginx.{name}"] for name in ("accepts", "dropped", "requests")
    ) == (5, 1, 9)
    follow_until(reader, 8)
    after = reader.read(replace(wanted, points=0))
    assert StatusPage.asked == ["/nginx_status"] * 2
    assert len(after.samples) == 8
    assert not any(sample.sockets for sample in after.samples)
    earlier = {**result.now.counters, "nginx.requests": 2}
    over = series(replace(result.now, counters=earlier), after)
    assert "nginx" not in over.unread
    # Between two pages it is not seen to grow.
    assert over.growth["nginx.requests"] == (*[0] * 8, 7)
    assert over.levels["nginx.writing"] == (1.0,) * 9


@pytest.mark.parametrize("path", ["/hangs", ":1/nothing-listens"])
def test_a_page_that_does_not_come_is_not_waited_for(
    kept: tuple[Kept, Reader], page: str, path: str
) -> None:
    _, reader = kept
    at = f"http://127.0.0.1{path}" if path.startswith(":") else f"{page}{path}"
    result = reader.read(Wanted(stub_status=at))
    assert not any(name.startswith("nginx.") for name in result.now.counters)
    assert "nginx" in series(result.now, result).unread


# In a namespace -----------------------------------------------------------------------------------

OVERFLOW = """
import socket, sys, time
server = socket.create_server(("127.0.0.1", 8099), backlog=1)
server.listen(1)
clients = [socket.socket() for _ in range(8)]
for client in clients:
    client.setblocking(False)
    client.connect_ex(("127.0.0.1", 8099))
time.sleep(0.2)
print("planted", flush=True)
sys.stdin.read()
"""


def test_a_planted_overflow_of_an_accept_queue_is_seen(host: NamespaceHost) -> None:
    assert host.run("ip link set lo up").exit_code == 0
    reader = Reader(host)
    before = reader.read(Wanted(port=8099, points=3, step_s=0.1)).now
    planted = LocalConversation("lb", host.words(shlex.join([sys.executable, "-c", OVERFLOW])))
    try:
        planted.ask("", "planted", 10)
        time.sleep(0.3)  # until the last sample
        result = series(before, reader.read(Wanted(port=8099)))
    finally:
        planted.close()
        reader.close()
    assert 0 < result.total("TcpExt.ListenOverflows") <= result.total("TcpExt.ListenDrops")
    assert result.total("Tcp.ActiveOpens") == 8
    assert (result.highest("listen.queue"), result.highest("listen.limit")) == (2, 1)
    # What came in and was not accepted is clients', and their own ends are upstreams'.
    assert result.highest("clients.sockets") == 2
    assert 2 <= result.highest("upstreams.sockets") <= 8
    assert "sockets" not in result.unread
    assert all(p >= 0 for of in result.growth.values() for p in of)
