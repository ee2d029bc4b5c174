"""How often do real canaries call a difference where there is none?

    python -m benchmarks canary-aa

A lab of the scenario static-wan (30 ms, 0.2 % of the packets lost), with sixteen clients in a
process of their own, which intop does not control: files of 10 KB, ten a connection. The canary
changes a key that does nothing there, `tcp_max_reordering` from 300 to 310, so that delivery time
judges. The product's testbed, stage and verdict are used.

Terms, said before any run: 20 canaries, seeds from 1, of at most 8 pairs (2 s after 1 s), margin
1.001, so that nearly any certain difference is one. Wanted: at most 2 of them call a gain or a
harm, which true 5 % keep in 92 % of cases. A block beyond a limit is a harm, too: the limit of P99
is 10 times the default's, and the others are the product's.
"""

import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace

from benchmarks.campaign import begun, labs_up
from benchmarks.harness import Question
from benchmarks.verdicts import lab_of
from intop.deploy.canary.limits import BlockLimits
from intop.deploy.canary.opening import Observation, canary_testbed
from intop.deploy.canary.stage import CanaryRequest, Switchback
from intop.deploy.canary.testbed import Timing
from intop.domain.canary import DELIVERY, P99
from intop.domain.configuration import Configuration
from intop.lab.cluster import cluster
from intop.run.executor import OpenTestbeds, execute
from intop.store import opened

IDLE = Configuration({"net.ipv4.tcp_max_reordering": "310"})
PAIRS, BLOCK_S, WASHOUT_S, MARGIN = 8, 2, 1, 1.001
MAY_CALL = 2
TRAFFIC = """
import http.client, sys, threading, time

def ask(after):
    time.sleep(after)
    while True:
        connection = http.client.HTTPConnection(sys.argv[1], 80, timeout=20)
        try:
            for _ in range(10):
                connection.request("GET", "/size/10k.jpg")
                connection.getresponse().read()
                time.sleep(0.02)
        except OSError:
            time.sleep(0.1)
        finally:
            connection.close()

for n in range(16):
    threading.Thread(target=ask, args=(n / 20,), daemon=True).start()
sys.stdin.read()
"""


@dataclass(frozen=True)
class Called:
    """The outcome of a canary."""

    outcome: str
    stopped: str
    pairs: int
    lost: int
    """Blocks that do not count."""
    p99: float
    """The ratio canary / default."""
    delivery: float


class RealAA(Question[int, Called]):
    """Canaries of nothing on a lab of our own."""

    result = Called
    seeds = 20
    may_end_early = True

    def cells(self) -> Mapping[str, int]:
        return {f"canary {seed}": seed for seed in self.seed_range()}

    @contextmanager
    def bed(self) -> Iterator[None]:
        study, spec = lab_of("static-wan")
        spec = replace(spec, balancing=replace(spec.balancing, access_log="disk"))
        (arch,) = study.clusters
        self.study = replace(study, clusters={arch: (spec,)})
        with labs_up(self.study), traffic(spec.name):
            yield

    def measure(self, cell: int) -> Called:
        timing = Timing(block_s=BLOCK_S, washout_s=WASHOUT_S)
        # The machine may have other work, which no limit shall take for a harm.
        limits = BlockLimits(p99_times=10)
        with tempfile.TemporaryDirectory() as folder, opened(f"{folder}/canary.db") as store:
            task = begun(store, replace(self.study, seed=cell))
            (host,) = (each.load_balancer for each in task.clusters())
            observation = Observation(timing=timing, limits=limits)
            with canary_testbed(task, host, IDLE, observation) as testbed:
                testbed.needs_delivery = True
                request = CanaryRequest(
                    configuration=IDLE,
                    title="nothing",
                    pairs=PAIRS,
                    block_s=BLOCK_S,
                    washout_s=WASHOUT_S,
                    margin=MARGIN,
                    limits=limits,
                    only_new=testbed.sources.only_new,
                    sees_delivery=testbed.sources.delivery is not None,
                )
                result = execute(Switchback(task, request), on=OpenTestbeds([testbed]))
        p99, delivery = result.side(P99), result.side(DELIVERY)
        assert p99 is not None
        assert delivery is not None
        assert result.judged_by == DELIVERY
        return Called(
            outcome=result.outcome,
            stopped=result.stopped,
            pairs=result.pairs,
            lost=len(result.left_out),
            p99=p99.ratio,
            delivery=delivery.ratio,
        )

    def progress(self, name: str, result: Called) -> str:
        return f"{name}: {result}"

    def table(self, results: Mapping[str, Called]) -> Iterator[str]:
        yield "| canary | outcome | pairs | blocks lost | P99 | delivery time |"
        yield "|---:|---|---:|---:|---:|---:|"
        for name, r in results.items():
            outcome = f"{r.outcome} {r.stopped}".strip()
            number, ratios = name.removeprefix("canary "), f"{r.p99:.2f} | {r.delivery:.2f}"
            yield f"| {number} | {outcome} | {r.pairs} | {r.lost} | {ratios} |"

    def missed(self, results: Mapping[str, Called]) -> list[str]:
        called = [n for n, r in results.items() if r.outcome in ("gain", "harm")]
        return called if len(called) > MAY_CALL else []


@contextmanager
def traffic(lab: str) -> Iterator[None]:
    """Requests of clients that intop does not control, until the block ends."""
    address = cluster(lab).url.rpartition("/")[2]
    words = ["ip", "netns", "exec", f"intop-{lab}-lg", sys.executable, "-c", TRAFFIC, address]
    with subprocess.Popen(words, stdin=subprocess.PIPE) as process:
        try:
            yield
        finally:
            process.kill()
