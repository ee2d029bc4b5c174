"""The lab's own link, by lua/link.lua: is it the link that was asked for, and what does it cost?

    python -m benchmarks.link                 the link itself, in some 2 minutes
    python -m benchmarks.link --guest         and beside netem in a guest, in some 10 more

Delay is measured from just before a packet is sent to the kernel's own time stamp of its arrival,
so that a late reader is no delay. What TCP carries is sent by the same LuaJIT program everywhere.
In the guest both links are asked for the same: all of the delay, the loss and the bottleneck are on
what the guest sends. Needs root. Prints Markdown; ends with 1 where a bound is not met.
"""

import argparse
import itertools
import os
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from ipaddress import IPv4Network
from pathlib import Path
from statistics import fmean

from benchmarks.namespaces import CLIENT, SERVER, linked, socket_of
from intop.domain.cluster import Direction, LabSpec, Link, native_arch
from intop.hosts.host import output
from intop.hosts.ssh import SshHost, connect
from intop.lab import client_link, network, servers
from intop.lab import cluster as lab
from intop.lab.commands import run
from intop.lab.state import STATE_FOLDER

SO_RCVBUFFORCE, SO_TIMESTAMPNS = 33, 35
"""Of the kernel's include/uapi/asm-generic/socket.h; Python does not name them."""
NAME = "linkbench"
PORT = 4000
DELAY_BOUND_MS = 0.3
CPU_BOUND = 0.25
RATE_BOUND = 0.9
"""Of the rate asked for: what TCP carries of it, behind 40 bytes of headers and 14 of Ethernet."""
NETEM_BOUND = 0.15
RATE_MBIT, GUEST_RATE_MBIT = 50, 10
"""Of the bottleneck: an emulated guest that sends single packets carries little more."""
RTTS_MS = (20, 80)
LOSSES = (0.0, 1.0)
CONTROLS = ("cubic", "bbr")
Cell = tuple[int, float, str]
"""A round trip in ms, a loss in %, and a congestion control."""

SENDER = r"""
-- Send as much as is taken to whoever connects, for some seconds, by one congestion control.
local ffi = require("ffi")
local C = ffi.C
ffi.cdef[[
   struct address { uint16_t family, port; uint32_t host; char zero[8]; };
   struct moment { long s, us; };
   int socket(int, int, int); int bind(int, const void *, uint32_t); int listen(int, int);
   int accept(int, void *, void *); long send(int, const void *, size_t, int); int close(int);
   int setsockopt(int, int, int, const void *, uint32_t); int gettimeofday(struct moment *, void *);
]]
local port, control, seconds = tonumber(arg[1]), arg[2], tonumber(arg[3])
local address, one = ffi.new("struct address"), ffi.new("int[1]", 1)
address.family, address.port = 2, math.floor(port / 256) + port % 256 * 256
local listening = C.socket(2, 1, 0)
C.setsockopt(listening, 1, 2, one, 4) -- SO_REUSEADDR
assert(C.setsockopt(listening, 6, 13, control, #control) == 0, control) -- TCP_CONGESTION
assert(C.bind(listening, address, 16) == 0 and C.listen(listening, 1) == 0)
print("listening")
io.flush()
local function now()
   local moment = ffi.new("struct moment")
   C.gettimeofday(moment, nil)
   return tonumber(moment.s) + tonumber(moment.us) / 1e6
end
local fd, data = C.accept(listening, nil, nil), ffi.new("char[65536]")
local limit = ffi.new("long[2]", 1, 0)
C.setsockopt(fd, 1, 21, limit, 16) -- SO_SNDTIMEO
local last = now() + seconds
while now() < last do C.send(fd, data, 65536, 0x4000) end
C.close(fd)
"""


@dataclass
class Table:
    """A table of Markdown, printed row by row, and how many of its bounds were not met."""

    missed: int = 0

    def head(self, *cells: str) -> None:
        print(f"\n| {' | '.join(cells)} |\n|{'---|' * len(cells)}")

    def row(self, *cells: str, ok: bool | None = None) -> None:
        self.missed += ok is False
        mark = {True: "yes", False: "no", None: ""}[ok]
        print(f"| {' | '.join((*cells, mark))} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--guest", action="store_true", help="beside netem in a guest, too")
    parser.add_argument("--only-guest", action="store_true", help="nothing else")
    parser.add_argument("--seconds", type=float, default=8.0, help="of a transfer (default: 8)")
    parser.add_argument("--repeats", type=int, default=3, help="of a transfer (default: 3)")
    parser.add_argument(
        "--cell", nargs=3, metavar=("MS", "PERCENT", "CONTROL"), help="of transfers this one only"
    )
    arguments = parser.parse_args()
    cells: list[Cell] = list(itertools.product(RTTS_MS, LOSSES, CONTROLS))
    if arguments.cell:
        rtt, loss, control = arguments.cell
        cells = [(int(rtt), float(loss), control)]
    table = Table()
    if not arguments.only_guest:
        with tempfile.TemporaryDirectory() as folder:
            delays(table, Path(folder))
            losses(table, Path(folder))
            rates(table, Path(folder), arguments.seconds)
            transfers(table, Path(folder), cells, arguments.seconds, arguments.repeats)
    if arguments.guest or arguments.only_guest:
        beside_netem(table, cells, arguments.seconds, arguments.repeats)
    sys.exit(1 if table.missed else 0)


# -- packets -------------------------------------------------------------------------------------


def delays(table: Table, folder: Path) -> None:
    """How late packets are, at 5,000 a second."""
    table.head("delay asked (ms)", "packets/s", "P50 (ms)", "P99", "P99.9", "bound", "met")
    for asked, per_s in ((10, 1000), (10, 5000), (40, 5000)):
        with linked(NAME, Link(delay_ms=asked), folder) as ends:
            late = sorted(d - asked for d in sent(*ends, count=4 * per_s, per_s=per_s).values())
        p50, p99, p999 = (late[int(len(late) * share)] for share in (0.5, 0.99, 0.999))
        cells = [f"+{value:.3f}" for value in (p50, p99, p999)]
        ok = abs(p99) <= DELAY_BOUND_MS
        table.row(str(asked), str(per_s), *cells, f"P99 {DELAY_BOUND_MS}", ok=ok)


def losses(table: Table, folder: Path) -> None:
    """How many are lost."""
    table.head("loss asked (%)", "packets", "lost", "99 % interval of the binomial", "met")
    count, z = 50_000, 2.576
    for percent in (0.1, 0.5, 2.0):
        with linked(NAME, Link(loss_percent=percent), folder) as ends:
            lost = count - len(sent(*ends, count=count, per_s=10_000))
        share = percent / 100
        middle, half = count * share, z * (count * share * (1 - share)) ** 0.5
        within = f"{middle - half:.0f} to {middle + half:.0f}"
        ok = abs(lost - middle) <= half
        table.row(f"{percent:g}", str(count), str(lost), within, ok=ok)


def sent(server: str, client: str, *, count: int, per_s: float) -> dict[int, float]:
    """The delay of each packet that arrived, in ms, by its number."""
    found: dict[int, float] = {}
    message, stamp = struct.Struct("=qq"), struct.Struct("=qq")
    with (
        socket_of(server, socket.SOCK_DGRAM) as here,
        socket_of(client, socket.SOCK_DGRAM, 1.0) as there,
    ):
        there.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 16 << 20)
        there.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        there.bind((CLIENT, PORT))
        here.connect((CLIENT, PORT))

        def receive() -> None:
            while True:
                try:
                    data, control, _, _ = there.recvmsg(200, 64)
                except TimeoutError:
                    return
                number, sent_ns = message.unpack_from(data)
                seconds, ns = stamp.unpack(control[0][2])
                if number >= 0:
                    found[number] = (seconds * 10**9 + ns - sent_ns) / 1e6

        here.send(message.pack(-1, 0))  # so that ARP is over
        time.sleep(0.2)
        thread = threading.Thread(target=receive)
        thread.start()
        # Nothing shall come between the time that a packet carries and its way to the kernel.
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
        begin = time.monotonic()
        for number in range(count):
            while (left := begin + number / per_s - time.monotonic()) > 0:
                time.sleep(left)
            here.send(message.pack(number, time.time_ns()) + bytes(84))
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
        thread.join()
    return found


# -- TCP -----------------------------------------------------------------------------------------


def rates(table: Table, folder: Path, seconds: float) -> None:
    """What is carried, and the CPU time of our process meanwhile."""
    table.head("rate asked (Mbit/s)", "carried (TCP, cubic)", "of a core", "bound", "met")
    for mbit in (100, 200):
        link = Link(rate_mbit=mbit, limit_kb=8 * mbit, delay_ms=10)
        with linked(NAME, link, folder) as (server, client):
            pid = client_link.pid(NAME, "lg", folder)
            before, begin = cpu_s(pid), time.monotonic()
            with sender(server, "cubic", seconds):
                carried = received(client, SERVER)
            share = (cpu_s(pid) - before) / (time.monotonic() - begin)
        ok = carried >= RATE_BOUND * mbit and (mbit > 100 or share < CPU_BOUND)
        bound = f"{RATE_BOUND:.0%} of it" + (f", {CPU_BOUND:.0%} of a core" if mbit <= 100 else "")
        table.row(str(mbit), f"{carried:.1f}", f"{share:.1%}", bound, ok=ok)


def cpu_s(pid: int | None) -> float:
    """The CPU time that a process has used."""
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def transfers(
    table: Table, folder: Path, cells: Sequence[Cell], seconds: float, repeats: int
) -> None:
    """What congestion controls make of links."""
    table.head("round trip (ms)", "loss (%)", "control", f"Mbit/s of {RATE_MBIT}, this kernel", "")
    for rtt, loss, control in cells:
        found = []
        for seed in range(1, repeats + 1):
            link = one_sided(RATE_MBIT, rtt, loss, seed)
            with (
                linked(NAME, link, folder) as (server, client),
                sender(server, control, seconds),
            ):
                found.append(received(client, SERVER))
        table.row(str(rtt), f"{loss:g}", control, in_words(found))


def one_sided(rate_mbit: int, rtt_ms: float, loss_percent: float, seed: int) -> Link:
    """All that a link does, on what goes to the client, with a buffer of 41 ms."""
    return Link(
        rate_mbit=rate_mbit,
        limit_kb=5 * rate_mbit,
        delay_ms=rtt_ms,
        loss_percent=loss_percent,
        seed=seed,
        up=Direction(),
    )


@contextmanager
def sender(namespace: str, control: str, seconds: float) -> Iterator[None]:
    """The sender in a namespace, listening."""
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as script:
        script.write(SENDER)
        script.flush()
        words = ["luajit", script.name, str(PORT), control, str(seconds)]
        command = ["ip", "netns", "exec", namespace, *words]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            process.stdout.readline()
            yield


def received(namespace: str, server: str) -> float:
    """Mbit/s of all that the server sends."""
    total, buffer = 0, bytearray(1 << 20)
    with socket_of(namespace) as client:
        client.connect((server, PORT))
        begin = last = time.monotonic()
        while count := client.recv_into(buffer):
            total, last = total + count, time.monotonic()
    return total * 8 / (last - begin) / 1e6


def in_words(found: list[float]) -> str:
    """The mean, and all in their order."""
    return f"{fmean(found):.1f} ({', '.join(f'{one:.1f}' for one in found)})"


# -- beside netem --------------------------------------------------------------------------------


def beside_netem(table: Table, cells: Sequence[Cell], seconds: float, repeats: int) -> None:
    """The same sender, a guest with Debian's kernel, behind our link and behind its own netem."""
    spec = LabSpec(name=NAME, arch=native_arch(), kind="vm")
    ours_of = f"our link (Mbit/s of {GUEST_RATE_MBIT})"
    bound = f"within {NETEM_BOUND:.0%}"
    table.head("round trip (ms)", "loss (%)", "control", ours_of, "netem", "ratio", bound)
    try:
        made = lab.up(spec, lambda text: print(text, file=sys.stderr))
        subnet = IPv4Network(str(lab.status(NAME).network))
        with closing(connect(made.load_balancer)) as guest:
            guest.put("/run/intop/bench", {"send.lua": SENDER})
            # netem loses what TCP hands down at once. That is a packet then, and so it is for both:
            # an emulated guest that paces single packets sends fewer of them.
            output(guest, "ip link set dev eth0 gso_max_segs 1")
            for rtt, loss, control in cells:
                ours, theirs = [], []
                for seed in range(1, repeats + 1):
                    link = one_sided(GUEST_RATE_MBIT, rtt, loss, seed)
                    with joined(subnet, link):
                        ours.append(from_guest(guest, subnet, control, seconds))
                    with netem(guest, link):
                        theirs.append(from_guest(guest, subnet, control, seconds))
                ratio = fmean(ours) / fmean(theirs)
                both = in_words(ours), in_words(theirs)
                ok = abs(ratio - 1) <= NETEM_BOUND
                table.row(str(rtt), f"{loss:g}", control, *both, f"{ratio:.2f}", ok=ok)
    finally:
        lab.down(NAME)


def from_guest(guest: SshHost, subnet: IPv4Network, control: str, seconds: float) -> float:
    """Mbit/s that the load generator gets of the guest."""
    words = f"luajit /run/intop/bench/send.lua {PORT} {control} {seconds}"
    output(guest, "ip tcp_metrics flush")
    output(guest, f"({words} > /run/intop/bench/said 2>&1 &)")
    output(guest, "until grep -q listening /run/intop/bench/said; do sleep 0.1; done")
    return received(network.namespace(NAME, "lg"), network.address(subnet, network.BALANCER))


@contextmanager
def joined(subnet: IPv4Network, link: Link) -> Iterator[None]:
    """Our link, before the load generator of a lab that was made without one."""
    folder = servers.Folders(STATE_FOLDER / NAME).host("lg")
    client_link.build(NAME, subnet, "lg", link, "process", folder)
    try:
        yield
    finally:
        if (pid := client_link.pid(NAME, "lg", folder)) is not None:
            os.kill(pid, 9)
        while client_link.pid(NAME, "lg", folder) is not None:
            time.sleep(0.02)
        for part, device in (("sw", client_link.port("lg")), ("lg", client_link.INTERFACE)):
            run(["ip", "-netns", network.namespace(NAME, part), "link", "delete", device])


@contextmanager
def netem(guest: SshHost, link: Link) -> Iterator[None]:
    """netem on the guest's interface, with the bucket of the lab before the buffer."""
    add = "tc qdisc add dev eth0"
    shape = f"delay {link.delay_ms:g}ms loss {link.loss_percent:g}%"
    assert link.rate_mbit is not None
    bucket = " ".join(network.bucket(link.rate_mbit, 32, link.limit_kb))
    output(guest, f"{add} root handle 1: netem limit 10000 {shape}; {add} parent 1:1 {bucket}")
    try:
        yield
    finally:
        output(guest, "tc qdisc del dev eth0 root")


if __name__ == "__main__":
    main()
