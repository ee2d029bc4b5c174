"""What does the reader of a canary cost the host that it reads?

    python -m benchmarks canary-reader

A lab without a link, whose balancer writes an access log and serves small files at a constant rate.
In the trials of one side, the access log and TCP_INFO are read as a canary reads them in a block:
both begin, the log is read every few seconds, and both are read at the end. Nothing reads in the
trials of the other side. The product's verdict compares their P99.

Terms, said before any run: 2,000 requests/s on 64 connections, at two paces. *short*: 24 pairs of 6
s, read as in a block of 10 s, and the log every second, ten times as often as a canary. *default*:
12 pairs of 20 s, read as in a block of 60 s, the log every 10 s. Wanted at both: the host's
processes but nginx take at most 1 % of a core more with the reader than without (means over the
trials), and P99's interval lies within 1 % of 1. The pace *default* was added when a trial of three
short pairs had shown 8 % of a core, after which the reader was made cheaper; it reads a sample of
the log since the first measurement missed 1 %.

Changed after a measurement: until e834e0f8 the time of ended sessions counted in whichever trial
was under way. Until ce98be51 TCP_INFO was read every 0.5 and 3 s, the product's steps of that time,
and since then as the product does.
"""

import argparse
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean
from threading import Event, Thread

from benchmarks.campaign import labs_up
from benchmarks.canary_lab import logging_lab
from benchmarks.harness import Question, UnusableError, positive
from benchmarks.verdicts import SIDE, one_sided, one_verdict
from intop.deploy.canary.opening import lines_per_s, ports_of, sample_step_s
from intop.deploy.canary.sources import Sources
from intop.domain.baseline import HOST
from intop.domain.nginx.access_logs import access_logs
from intop.domain.verdict import Verdict
from intop.hosts.access_log import LogReader, usable_log
from intop.hosts.delivery import DeliveryReader
from intop.hosts.facts import facts_and_conf
from intop.hosts.nginx import serving_conf
from intop.hosts.ssh import connect
from intop.lab import network
from intop.lab.commands import run
from intop.lab.processes import arguments, command_name
from intop.run.cluster_testbed import ClusterTestbed
from intop.store import opened

SCENARIO = "small-objects"
RATE_RPS, CONNECTIONS = 2000, 64
MOST_CORES, MOST_RATIO = 0.01, 1.01
TICK_S = 0.01
"""The unit of the times in /proc/PID/stat."""


@dataclass(frozen=True)
class Pace:
    """How often the reader reads, and the trials in which it does."""

    pairs: int
    seconds: int
    """The seconds of a trial."""
    block_s: int
    """The seconds of a block of the canary whose reader it is."""
    read_s: float
    """The seconds between reads of the log."""


PACES = {
    "short": Pace(pairs=24, seconds=6, block_s=10, read_s=1.0),
    "default": Pace(pairs=12, seconds=20, block_s=60, read_s=10.0),
}


@dataclass(frozen=True)
class Cost:
    """The verdict of a reader, and by arm the cores that the host's processes but nginx take.

    These are the processor seconds of whole trials over the load's seconds.
    """

    verdict: Verdict
    cores: dict[str, float]


@dataclass(frozen=True)
class Reading:
    """The reader is at work in the trials of one side."""

    lab: str
    pace: Pace
    workload: str = "slt"
    cores: dict[str, list[float]] = field(default_factory=lambda: {HOST: [], SIDE: []})

    @contextmanager
    def on(self, testbed: ClusterTestbed, arm: str) -> Iterator[ClusterTestbed]:
        with reader(testbed, self.pace) if arm == SIDE else nullcontext(lambda: None) as finish:
            before = used_s(self.lab)
            yield testbed
            finish()
            after = used_s(self.lab)
        used = sum(seconds - before.get(pid, 0.0) for pid, seconds in after.items())
        self.cores[arm].append(used / self.pace.seconds)

    def truth(self, p99s: object) -> list[float]:
        """Return nothing: it is not known."""
        del p99s
        return []


class ReaderCost(Question[Pace, Cost]):
    """The cost of a canary's reader."""

    result = Cost
    fixed = ("rate",)

    @classmethod
    def options(cls, parser: argparse.ArgumentParser) -> None:
        add = parser.add_argument
        add("--rate", type=positive, default=RATE_RPS, help=f"requests/s ({RATE_RPS})")

    def cells(self) -> Mapping[str, Pace]:
        return PACES

    @contextmanager
    def bed(self) -> Iterator[None]:
        study, spec = logging_lab(SCENARIO)
        spec = replace(spec, link=None)
        ((arch, _),) = study.clusters.items()
        ((name, workload),) = study.workloads.items()
        load = replace(workload, rate_rps=self.given.rate, connections=CONNECTIONS)
        self.study = replace(study, clusters={arch: (spec,)}, workloads={name: load})
        self.lab = spec.name
        with labs_up(self.study):
            yield

    def measure(self, cell: Pace) -> Cost:
        effect = Reading(self.lab, cell)
        ((name, load),) = self.study.workloads.items()
        study = replace(
            self.study,
            workloads={name: replace(load, duration_s=cell.seconds)},
            budget=replace(self.study.budget, judge_pairs=cell.pairs, judge_looks=1),
        )
        with tempfile.TemporaryDirectory() as folder, opened(f"{folder}/reader.db") as store:
            result, _ = one_verdict(store, study, None, effect, one_sided(effect))
        cores = {arm: fmean(times) for arm, times in effect.cores.items()}
        return Cost(result.verdict, cores)

    def table(self, results: Mapping[str, Cost]) -> Iterator[str]:
        yield "| pace | pairs | P99, without / with | P99 without (ms) | cores without | with |"
        yield "|---|---:|---|---:|---:|---:|"
        for name, cost in results.items():
            v = cost.verdict
            ratio = f"{v.ratio:.3f} ({v.ratio_low:.3f} to {v.ratio_high:.3f})"
            cores = " | ".join(f"{cost.cores[arm]:.4f}" for arm in (HOST, SIDE))
            yield f"| {name} | {v.pairs} | {ratio} | {v.default_ms:.2f} | {cores} |"

    def missed(self, results: Mapping[str, Cost]) -> list[str]:
        missed = []
        for name, cost in results.items():
            if (more := cost.cores[SIDE] - cost.cores[HOST]) > MOST_CORES:
                missed.append(f"{name}: {more:.4f} cores")
            v = cost.verdict
            if not 1 / MOST_RATIO <= v.ratio_low <= v.ratio_high <= MOST_RATIO:
                missed.append(f"{name}: P99 from {v.ratio_low:.3f} to {v.ratio_high:.3f}")
        return missed


@contextmanager
def reader(testbed: ClusterTestbed, pace: Pace) -> Iterator[Callable[[], None]]:
    """Read a host's log and TCP_INFO as a canary does in a block.

    Yields what ends it, with a last look at both. Raises UnusableError where nothing was logged.
    """
    with closing(connect(testbed.rig.cluster.load_balancer)) as host:
        _, shown = facts_and_conf(host)
        conf = serving_conf(host, shown)
        logs = tuple(access_logs(conf))
        log = LogReader(host, usable_log(logs), most_per_s=lines_per_s(pace.block_s))
        delivery = DeliveryReader(host, ports_of(conf), step_s=sample_step_s(pace.block_s))
        over, logged = Event(), 0
        # nginx is restarted before the load, and counts its connections from 1 again.
        with closing(Sources(log=log, only_new=False, delivery=delivery)) as sources:
            sources.begin()

            def read() -> None:
                nonlocal logged
                while not over.wait(pace.read_s):
                    logged += sources.requests().logged

            thread = Thread(target=read)
            thread.start()

            def finish() -> None:
                nonlocal logged
                over.set()
                thread.join()
                logged += sources.requests().logged
                sources.counters(1.0)

            try:
                yield finish
            finally:
                over.set()
                thread.join()
    if not logged:
        raise UnusableError("the reader saw no request")


def used_s(lab: str) -> dict[int, float]:
    """Return the processor seconds of the balancer's processes but nginx, by process.

    A process includes its ended children, so a session of sshd includes its commands. The ended
    children of sshd itself are sessions. They were counted while they lived, and are left out.
    """
    listed = run(["ip", "netns", "pids", network.namespace(lab, network.BALANCER)])
    pids = [pid for pid in map(int, listed.split()) if command_name(pid) != "nginx"]
    return {pid: TICK_S * ticks(pid) for pid in pids}


def ticks(pid: int) -> int:
    """Return the ticks of a process and its ended children; 0 for one that has gone."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    # utime, stime, cutime and cstime, behind the name, which may have spaces.
    times = text.rpartition(")")[2].split()[11:15]
    is_listener = "[listener]" in " ".join(arguments(pid))
    return sum(map(int, times[:2] if is_listener else times))
