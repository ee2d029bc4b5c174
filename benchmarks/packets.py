"""How faithful the engine is where wrk2 cannot follow: its latencies beside packet times.

An nginx of its own serves small files on loopback, over HTTP and TLS. tcpdump takes the time of all
packets meanwhile. By these a request takes from its first packet (the SYN of a new connection, else
that of the request) to the last one with data of its answer. The engine counts from when the
request was due, so it adds how late it sends, and the time from the last packet until it has read
it. Both see the same requests, so there is one run of each kind for each seed.

Prints a table in Markdown; progress is on stderr. Needs nginx, luajit, openssl, tcpdump, and root.
"""

import argparse
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

from intop.domain.histogram import Histogram
from intop.domain.workload import ALIKE, Arrivals, Clients
from intop.hosts.load.tools import FIND_TOOL, command, parse_found, parse_output
from intop.hosts.load.types import PATHS_FILE, Load, LoadTool
from intop.resources import shipped

PERCENTILES = (50.0, 99.0, 99.9)
SHARE, LIMIT_MS = 0.05, 0.5
"""The contract: within 5 % or 0.5 ms, whichever is more."""
CONNECTIONS = 64
ONCE = Clients(requests_per_connection=1)


@dataclass(frozen=True)
class Kind:
    """One kind of load: `rate_rps` is what one processor carries with room to spare."""

    name: str
    rate_rps: float
    clients: Clients = ALIKE
    arrivals: Arrivals = "constant"
    is_tls: bool = False


KINDS = (
    Kind("keep-alive", 1000),
    Kind("keep-alive, Poisson", 1000, arrivals="poisson"),
    Kind("a new connection each", 500, ONCE),
    Kind("a new connection each, Poisson", 500, ONCE, "poisson"),
    Kind("TLS, keep-alive", 500, is_tls=True),
    Kind("TLS, a new connection each", 100, ONCE, is_tls=True),
)

NGINX = """\
daemon off;
master_process off;
pid {folder}/nginx.pid;
error_log {folder}/nginx.log error;
events {{ worker_connections 4096; }}
http {{
{temp}    access_log off;
    sendfile on;
    keepalive_requests 100000000;
    server {{
        listen 127.0.0.1:{plain};
        listen 127.0.0.1:{tls} ssl;
        ssl_certificate {folder}/server.pem;
        ssl_certificate_key {folder}/server.key;
        root {folder}/files;
    }}
}}
"""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=3, help="of each kind (default: 3)")
    parser.add_argument("--seconds", type=int, default=10, help="of a run (default: 10)")
    parser.add_argument(
        "--kinds", nargs="+", choices=range(1, len(KINDS) + 1), type=int, help="of load (all)"
    )
    arguments = parser.parse_args()
    kinds = [k for n, k in enumerate(KINDS, 1) if n in (arguments.kinds or range(len(KINDS) + 1))]
    for program in ("nginx", "luajit", "openssl", "tcpdump"):
        if shutil.which(program) is None:
            sys.exit(f"{program} is not installed: apt-get install {program}")
    found = subprocess.run(["sh", "-c", FIND_TOOL], capture_output=True, text=True, check=True)
    engine = next(tool for tool in parse_found(found.stdout) if tool.name == "engine")
    print("| load | requests | | engine (ms) | packets (ms) | difference | within 5 % or 0.5 ms |")
    print("|---|---:|---|---:|---:|---:|---|")
    missed = False
    with tempfile.TemporaryDirectory() as name, nginx(Path(name)) as ports:
        for kind in kinds:
            pairs = [
                measured(kind, engine, Path(name), ports, arguments.seconds, seed)
                for seed in range(arguments.runs)
            ]
            for q in PERCENTILES:
                ours, theirs = (
                    [h.percentile_ms(q) for h in side] for side in zip(*pairs, strict=True)
                )
                difference = median(a - b for a, b in zip(ours, theirs, strict=True))
                is_within = abs(difference) <= max(LIMIT_MS, SHARE * median(theirs))
                missed = missed or not is_within
                total = sum(ours.total for ours, _ in pairs)
                print(
                    f"| {kind.name}, {kind.rate_rps:g}/s | {total} | P{q:g} | "
                    f"{median(ours):.3f} | {median(theirs):.3f} | {difference:+.3f} | "
                    f"{'yes' if is_within else '**no**'} |",
                    flush=True,
                )
    sys.exit(1 if missed else 0)


@contextmanager
def nginx(folder: Path) -> Iterator[dict[bool, int]]:
    """A running nginx with one process; its ports with and without TLS."""
    (folder / "files").mkdir()
    for number, size in enumerate((1_000, 20_000, 100_000)):
        (folder / f"files/{number}").write_text("x" * size)
    folder.chmod(0o755)  # nginx started by root gives root up
    for script in shipped("lua").glob("*.lua"):
        shutil.copy(script, folder)
    (folder / PATHS_FILE).write_text("/0\n/1\n/2\n")
    words = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-batch"]
    words += ["-subj", "/CN=t", "-keyout", f"{folder}/server.key", "-out", f"{folder}/server.pem"]
    subprocess.run(words, check=True, capture_output=True)
    ports = {}
    for is_tls in (False, True):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            ports[is_tls] = taken.getsockname()[1]
    temp = "".join(
        f"    {kind}_temp_path {folder}/temp-{kind};\n"
        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    config = folder / "nginx.conf"
    config.write_text(NGINX.format(folder=folder, plain=ports[False], tls=ports[True], temp=temp))
    server = subprocess.Popen(["nginx", "-e", f"{folder}/nginx.log", "-c", str(config)])
    try:
        time.sleep(1)
        if server.poll() is not None:
            sys.exit("nginx did not start; what it said is above")
        yield ports
    finally:
        server.terminate()
        server.wait()


def measured(
    kind: Kind, engine: LoadTool, folder: Path, ports: dict[bool, int], seconds: int, seed: int
) -> tuple[Histogram, Histogram]:
    """The latencies of one run, by the engine and by the packets."""
    port = ports[kind.is_tls]
    load = Load(
        script="slt",
        url=f"{'https' if kind.is_tls else 'http'}://127.0.0.1:{port}",
        rate_rps=kind.rate_rps,
        connections=CONNECTIONS,
        threads=1,
        duration_s=seconds,
        seed=seed,
        arrivals=kind.arrivals,
        clients=kind.clients,
    )
    # Kept connections are warm, so that their handshake is in no latency.
    load = replace(load, warmup_s=0 if kind.clients is ONCE else 1)
    file = folder / "packets.pcap"
    words = ["tcpdump", "-i", "lo", "-n", "-s", "80", "-B", "65536", "-w", str(file)]
    words += ["--time-stamp-precision=nano", "tcp", "port", str(port)]
    capture = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
    time.sleep(1)
    said = subprocess.run(
        ["sh", "-c", command(engine, load, str(folder))], capture_output=True, text=True, check=True
    )
    result = parse_output(said.stdout, engine, load)
    time.sleep(1)
    capture.terminate()
    _, told = capture.communicate()
    if "\n0 packets dropped by kernel" not in told:
        sys.exit(f"tcpdump lost packets, so nothing is compared: {told}")
    times = latencies_us(file.read_bytes(), port, is_new=kind.clients is ONCE, is_tls=kind.is_tls)
    packets = Histogram.from_pairs((round(us), 1) for us in times[-result.requests :])
    print(
        f"{kind.name} {seed}: {result.requests} requests, {len(times)} by the packets, "
        f"errors {dict(result.errors)}, P99 {result.histogram.percentile_ms(99):.3f} and "
        f"{packets.percentile_ms(99):.3f} ms, lag {result.lag_ms:.3f} ms",
        file=sys.stderr,
    )
    if result.errors or len(times) < result.requests:
        sys.exit("the run met errors, or the packets have fewer requests: nothing is compared")
    return result.histogram, packets


def latencies_us(pcap: bytes, port: int, *, is_new: bool, is_tls: bool) -> list[float]:
    """The time of each request in µs, in the order of their first packets.

    On kept connections every packet with data from the client begins a request, apart from those
    of a TLS handshake: the first two of a connection.
    """
    began: dict[int, float] = {}
    ended: dict[int, float] = {}
    sent: dict[int, int] = {}
    done: list[tuple[float, float]] = []

    def finish(client: int) -> None:
        if client in began and client in ended:
            done.append((began[client], ended[client] - began[client]))
        began.pop(client, None)
        ended.pop(client, None)

    for at_us, source, target, flags, length in packets(pcap):
        from_client = target == port
        client = source if from_client else target
        is_syn = bool(flags & 2)
        if from_client and is_syn:
            finish(client)
            sent[client] = 0
            if is_new:
                began[client] = at_us
        elif from_client and length:
            sent[client] = sent.get(client, 0) + 1
            if not is_new and sent[client] > (2 if is_tls else 0):
                finish(client)
                began[client] = at_us
        elif not from_client and length and not flags & 1:
            ended[client] = at_us
    for client in list(began):
        finish(client)
    return [latency for _, latency in sorted(done)]


def packets(pcap: bytes) -> Iterator[tuple[float, int, int, int, int]]:
    """Of each TCP packet: its time in µs, its two ports, its flags, and its bytes of data."""
    ethernet, header = 14, 24
    at = header
    first: float | None = None
    while at + 16 <= len(pcap):
        seconds, nanoseconds, kept, _ = struct.unpack_from("<IIII", pcap, at)
        at += 16
        start = at + ethernet
        total, words = struct.unpack_from("!H", pcap, start + 2)[0], pcap[start] & 15
        tcp = start + 4 * words
        source, target = struct.unpack_from("!HH", pcap, tcp)
        offset, flags = 4 * (pcap[tcp + 12] >> 4), pcap[tcp + 13]
        now = seconds * 1e6 + nanoseconds / 1e3
        first = now if first is None else first
        yield now - first, source, target, flags, total - 4 * words - offset
        at += kept


if __name__ == "__main__":
    main()
