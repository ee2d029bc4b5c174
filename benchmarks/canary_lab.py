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
from intop.config.study import Study
from intop.deploy.canary.limits import BlockLimits
from intop.deploy.canary.opening import Observation, canary_testbed
from intop.deploy.canary.stage import CanaryRequest, Switchback
from intop.deploy.canary.testbed import Timing
from intop.domain.canary import DELIVERY, P99, Canary
from intop.domain.cluster import LabSpec
from intop.domain.configuration import Configuration
from intop.lab.cluster import cluster
from intop.run.context import Task
from intop.run.executor import OpenTestbeds, execute
from intop.store import opened

IDLE = Configuration({"net.ipv4.tcp_max_reordering": "310"})
PAIRS, BLOCK_S, WASHOUT_S, MARGIN = 8, 2, 1, 1.001
MAY_CALL = 2
TRAFFIC = """
import http.client, sys, threading, time

host, path, pause = sys.argv[1:]

def ask(after):
    time.sleep(after)
    while True:
        connection = http.client.HTTPConnection(host, 80, timeout=20)
        try:
            for _ in range(10):
                connection.request("GET", path)
                connection.getresponse().read()
                time.sleep(float(pause))
        except (OSError, http.client.HTTPException):
            time.sleep(0.1)
        finally:
            connection.close()

for n in range(16):
    threading.Thread(target=ask, args=(n / 20,), daemon=True).start()
sys.stdin.read()
"""
"""Sixteen clients that ask for a path, with ten requests a connection and pauses (s) between."""


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
        self.study, spec = logging_lab("static-wan")
        with labs_up(self.study), clients(spec.name, TRAFFIC, "/size/10k.jpg", "0.02"):
            yield

    def measure(self, cell: int) -> Called:
        timing = Timing(block_s=BLOCK_S, washout_s=WASHOUT_S)
        # The machine may have other work, which no limit shall take for a harm.
        observation = Observation(timing=timing, limits=BlockLimits(p99_times=10))
        with tempfile.TemporaryDirectory() as folder, opened(f"{folder}/canary.db") as store:
            task = begun(store, replace(self.study, seed=cell))
            result = canary(task, IDLE, observation, pairs=PAIRS, margin=MARGIN, title="nothing")
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


def logging_lab(scenario: str) -> tuple[Study, LabSpec]:
    """Return a scenario on one lab of our own, whose balancer writes an access log."""
    study, spec = lab_of(scenario)
    spec = replace(spec, balancing=replace(spec.balancing, access_log="disk"))
    (arch,) = study.clusters
    return replace(study, clusters={arch: (spec,)}), spec


@contextmanager
def clients(lab: str, program: str, *words: str) -> Iterator["subprocess.Popen[str]"]:
    """Traffic that intop does not control: a program in the load generator's place of a lab.

    Its arguments are the balancer's address and these words. It is killed at the end.
    """
    address = cluster(lab).url.rpartition("/")[2]
    command = ["ip", "netns", "exec", f"intop-{lab}-lg", sys.executable, "-c", program]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [*command, address, *words], stdin=pipe, stdout=pipe, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def canary(
    task: Task,
    configuration: Configuration,
    observation: Observation,
    *,
    pairs: int,
    margin: float,
    title: str,
) -> Canary:
    """Carry out a canary on a lab, as `intop canary` does on a host."""
    (host,) = (each.load_balancer for each in task.clusters())
    timing = observation.timing
    with canary_testbed(task, host, configuration, observation) as testbed:
        request = CanaryRequest(
            configuration=configuration,
            title=title,
            pairs=pairs,
            block_s=timing.block_s,
            washout_s=timing.washout_s,
            margin=margin,
            limits=observation.limits,
            only_new=testbed.sources.only_new,
            sees_delivery=testbed.sources.delivery is not None,
        )
        testbed.needs_delivery = request.judged_by == DELIVERY
        return execute(Switchback(task, request), on=OpenTestbeds([testbed]))
