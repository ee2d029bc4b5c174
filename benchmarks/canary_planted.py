"""Do real canaries call a planted gain or harm, and how soon?

    python -m benchmarks canary-planted
    python -m benchmarks canary-planted "gain 1.2" --results build/gain.json

A lab of the scenario static-wan has traffic in a process of its own, which intop does not control.
Clients ask for 170 to 330 files of 10 KB a second, in a day of two minutes. Every four seconds on
average they ask for 25 more at once. A quarter of the clients keep a connection for 40 requests,
the others for two. A client sends the end of its request 60 ms late, which nginx counts. With the
canary's value of `tcp_fin_timeout`, which does nothing by itself, it does so sooner or later by the
planted ratio.

Terms, said before any canary ended: ten canaries of each kind, seeds from 1, of at most 40 pairs
(4 s after 1 s), with the product's margin and limits. Wanted: of 20 gains and of 20 harms at least
19 are called rightly, and each harm of four times is stopped in the canary's first or second block.
The outcome of a canary that loses blocks counts like any other. Counted: the files that clients
asked for while the canary's value was there, and failed ones. Beside them: the pairs of a fixed
horizon, which is Student's t with a power of 95 % for the mean and the standard deviation of this
kind's pairs. A first bed, of dynamic pages, could not carry its traffic (P99 of 0.8 s), and was
given up without an outcome.
"""

import argparse
import math
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from statistics import fmean, median, stdev

from scipy import stats

from benchmarks.campaign import begun, labs_up
from benchmarks.canary_lab import canary, clients, logging_lab
from benchmarks.harness import Question, UnusableError
from intop.deploy.canary.limits import BlockLimits
from intop.deploy.canary.opening import Observation
from intop.deploy.canary.testbed import Timing
from intop.domain.configuration import Configuration
from intop.domain.rounds import judged_by_round, paired
from intop.store import opened

KEY, TRIED = "net.ipv4.tcp_fin_timeout", "31"
WAIT_MS = 60
RATIOS = {"gain 1.2": 1 / 1.2, "gain 1.5": 1 / 1.5, "harm 1.5": 1.5, "harm 4": 4.0}
PAIRS, BLOCK_S, WASHOUT_S, MARGIN = 40, 4, 1, 1.05
MUST_CALL = 0.95
STOPPED_KIND, STOPPED_WITHIN = "harm 4", 2
LEVEL, POWER, MOST_FIXED = 0.95, 0.95, 1000
TRAFFIC = """
import http.client, math, queue, random, subprocess, sys, threading, time

host, namespace, key, tried, own_ms, tried_ms = sys.argv[1:]
draw, due, lock = random.Random(1), queue.SimpleQueue(), threading.Lock()
value, met, failed = "", 0, 0

def look():
    global value
    command = ["ip", "netns", "exec", namespace, "sysctl", "-n", key]
    while True:
        value = subprocess.run(command, capture_output=True, text=True).stdout.strip()
        time.sleep(0.2)

def day():
    began = at = time.monotonic()
    while True:
        rate = 250 * (1 + 0.32 * math.sin(2 * math.pi * (at - began) / 120))
        at += draw.expovariate(rate)
        time.sleep(max(0, at - time.monotonic()))
        due.put(None)

def bursts():
    while True:
        time.sleep(draw.expovariate(0.25))
        for _ in range(25):
            due.put(None)

def ask(requests):
    global met, failed
    while True:
        connection = http.client.HTTPConnection(host, 80, timeout=20)
        try:
            connection.connect()
            for _ in range(requests):
                due.get()
                is_tried = value == tried
                connection.sock.sendall(b"GET /size/10k.jpg HTTP/1.1\\r\\nHost: lab\\r\\n")
                time.sleep(int(tried_ms if is_tried else own_ms) / 1000)
                connection.sock.sendall(b"\\r\\n")
                answer = http.client.HTTPResponse(connection.sock, method="GET")
                answer.begin()
                answer.read()
                with lock:
                    met += is_tried
                    failed += answer.status != 200
        except (OSError, http.client.HTTPException):
            with lock:
                failed += 1
        finally:
            connection.close()

works = [(look,), (day,), (bursts,)] + 36 * [(ask, 40)] + 108 * [(ask, 2)]
for work, *words in works:
    threading.Thread(target=work, args=words, daemon=True).start()
for _ in sys.stdin:
    with lock:
        print(met, failed, flush=True)
        met = failed = 0
"""
"""The clients. For each line of standard input they say the files that were asked for with the
canary's value since the last one, and all that failed."""

Cell = tuple[str, int]
"""The planted kind, and a seed."""


@dataclass(frozen=True)
class Called:
    """The outcome of a canary."""

    outcome: str
    stopped: str
    pairs: int
    blocks: int
    """Blocks with the configuration."""
    lost: int
    """Blocks that do not count."""
    met: int
    """Files that clients got, which they had asked for with the configuration's value."""
    failed: int
    """Files that failed in all."""
    logs: list[float]
    """The logarithms of P99, canary / default, of each pair."""


class Planted(Question[Cell, Called]):
    """Canaries of a known effect on a lab of our own."""

    result = Called
    seeds = 10
    may_end_early = True

    @classmethod
    def options(cls, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("kind", nargs="*", help=f"of {', '.join(RATIOS)}; all by default")

    def cells(self) -> Mapping[str, Cell]:
        kinds = self.given.kind or RATIOS
        if unknown := set(kinds) - RATIOS.keys():
            raise UnusableError(f"unknown: {', '.join(sorted(unknown))}")
        return {f"{kind}, {seed}": (kind, seed) for kind in kinds for seed in self.seed_range()}

    @contextmanager
    def bed(self) -> Iterator[None]:
        self.study, self.spec = logging_lab("static-wan")
        with labs_up(self.study):
            yield

    def measure(self, cell: Cell) -> Called:
        kind, seed = cell
        tried_ms = str(round(WAIT_MS * RATIOS[kind]))
        words = (f"intop-{self.spec.name}-lb", KEY, TRIED, str(WAIT_MS), tried_ms)
        timing = Timing(block_s=BLOCK_S, washout_s=WASHOUT_S)
        observation = Observation(timing=timing, limits=BlockLimits())
        with (
            tempfile.TemporaryDirectory() as folder,
            opened(f"{folder}/canary.db") as store,
            clients(self.spec.name, TRAFFIC, *words) as traffic,
        ):
            task = begun(store, replace(self.study, seed=seed))
            tried = Configuration({KEY: TRIED})
            result = canary(task, tried, observation, pairs=PAIRS, margin=MARGIN, title=kind)
            assert traffic.stdin is not None
            assert traffic.stdout is not None
            traffic.stdin.write("\n")
            traffic.stdin.flush()
            met, failed = map(int, traffic.stdout.readline().split())
            trials = task.trials("canary")
        p99s = judged_by_round([t for t in trials if t.planned.round is not None])
        pairs = paired(p99s.get("default", {}), p99s.get("canary", {}))
        return Called(
            outcome=result.outcome,
            stopped=result.stopped,
            pairs=result.pairs,
            blocks=sum(t.planned.arm == "canary" for t in trials),
            lost=len(result.left_out),
            met=met,
            failed=failed,
            logs=[math.log(tried / own) for own, tried in zip(*pairs, strict=True)],
        )

    def progress(self, name: str, result: Called) -> str:
        return f"{name}: {replace(result, logs=[])}"

    def table(self, results: Mapping[str, Called]) -> Iterator[str]:
        yield (
            "| planted | called rightly | P99, canary / default | pairs (median, most) | fixed "
            "horizon | blocks with it | requests met (median, most) | failed | lost |"
        )
        yield "|---|---:|---:|---:|---:|---:|---:|---:|---:|"
        for kind, rows in by_kind(results).items():
            logs = [log for r in rows for log in r.logs]
            ratio = f"{math.exp(fmean(logs)):.2f}" if logs else "-"
            pairs, met = [r.pairs for r in rows], [r.met for r in rows]
            cells = [
                kind,
                f"{sum(is_right(kind, r) for r in rows)} of {len(rows)}",
                ratio,
                f"{median(pairs):g}, {max(pairs)}",
                fixed_horizon(logs) or "-",
                f"{max(r.blocks for r in rows)} at most",
                f"{median(met):g}, {max(met)}",
                sum(r.failed for r in rows),
                sum(r.lost for r in rows),
            ]
            yield f"| {' | '.join(map(str, cells))} |"

    def missed(self, results: Mapping[str, Called]) -> list[str]:
        missed = []
        for sign in ("gain", "harm"):
            right = [is_right(name, r) for name, r in results.items() if name.startswith(sign)]
            if sum(right) < math.ceil(MUST_CALL * len(right)):
                missed.append(f"{sign}s: {sum(right)} of {len(right)}")
        for kind, rows in by_kind(results).items():
            late = [r for r in rows if not r.stopped or r.blocks > STOPPED_WITHIN]
            if kind == STOPPED_KIND and late:
                missed.append(f"{kind}: {len(late)} were not stopped in time")
        return missed


def by_kind(results: Mapping[str, Called]) -> dict[str, list[Called]]:
    """Return the canaries of each kind."""
    kinds: dict[str, list[Called]] = {}
    for name, result in results.items():
        kinds.setdefault(name.partition(",")[0], []).append(result)
    return kinds


def is_right(kind: str, result: Called) -> bool:
    """Return whether the outcome is the planted one."""
    return result.outcome == kind.partition(" ")[0]


def fixed_horizon(logs: Sequence[float]) -> int:
    """Return the pairs with which Student's t shows a difference; 0 where none of up to MOST_FIXED.

    `logs` are the logarithms of the ratios of pairs. The noncentral t gives the power.
    """
    if len(logs) < 2 or not (scatter := stdev(logs)):
        return 0
    size = abs(fmean(logs)) / scatter
    for pairs in range(2, MOST_FIXED + 1):
        needed = stats.t.ppf((1 + LEVEL) / 2, pairs - 1)
        if stats.nct.sf(needed, pairs - 1, size * math.sqrt(pairs)) >= POWER:
            return pairs
    return 0
