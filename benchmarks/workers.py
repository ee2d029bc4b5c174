"""Workers on one PostgreSQL: how many trials an hour, and what is lost when things die.

    python -m benchmarks.workers speed
    python -m benchmarks.workers faults

Eight labs are the replicas of one cluster. SSH, the guard and every write to a load balancer are
real, and so is PostgreSQL, behind a TCP relay in a network namespace of its own. Only the load is
simulated: a trial sleeps for `--seconds` and takes its latencies from a fixed function of the
stage, the place in the plan and the configuration. The command that asks is the product's own
executor; the workers are its own, each a process that serves one replica.

The terms, fixed before anything was measured:

speed   One worker and eight, each for `--minutes`, 5 s a trial, on a plan without an end. Trials
        an hour are those stored from the first one on until the time is over. Wanted: eight make
        at least 7 times as many as one.
faults  A campaign of 1,000 trials or more (a screening of SCREENED and a collection of COLLECTED
        configurations with their sentinels, and a refinement of REFINED trials, each chosen by all
        before it), once undisturbed and once with faults; both with the
        same seed and 1 s a trial. Every 10 s a worker drawn at random is killed with -9 and started
        again. Ten times PostgreSQL is restarted (`fast` and `immediate` in turn) and ten times the
        network to it is cut for CUT_S seconds, in turn, every 15 s. Wanted: each place of the plan
        has its trial once; plan, trials' latencies and ranking (but for the drift over time that it
        tells) are those of the undisturbed run; and 60 s after the end each load balancer has the
        sysctls from before.

Prints Markdown. Needs root.
"""

import argparse
import asyncio
import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from threading import Event, Thread
from typing import Any

import numpy as np

from benchmarks.campaign import context_of, labs_up, scenario
from intop.config.study import Study
from intop.domain.cluster import LabSpec, native_arch
from intop.domain.configuration import DEFAULT
from intop.domain.histogram import Histogram
from intop.domain.job import Spot
from intop.domain.ranking import Ranking
from intop.domain.trial import PlannedTrial, Trial
from intop.hosts import ssh
from intop.lab import network
from intop.lab.commands import run
from intop.report.progress import LineProgress
from intop.run.cluster_testbed import ClusterTestbed, cluster_testbed
from intop.run.context import Task
from intop.run.executor import execute
from intop.run.worker import Worker
from intop.stages.collect import Collect
from intop.stages.refine import Refine
from intop.stages.screen import Screen
from intop.store import opened
from intop.version import __version__
from tests.postgres import Server, running

REPLICAS = 8
SCREENED, COLLECTED, REFINED = 240, 660, 24
ENDLESS = 100_000
KILL_EVERY_S, FAULT_EVERY_S, CUT_S = 10.0, 15.0, 5.0
FAULTS = 20
RESTORED_S = 60.0

NAMESPACE, OURS, THEIRS, PORT = "intop-benchdb", "198.18.254.1", "198.18.254.2", 5432


# The simulated load ------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Simulated(ClusterTestbed):
    """A replica on which everything is real but the load."""

    seconds: float

    def trial(
        self,
        planned: PlannedTrial,
        stage: str,
        attempt: int,
        prune_above_ms: float | None = None,  # noqa: ARG002 - nothing is bad enough
    ) -> Trial:
        started, clock = datetime.now(UTC), time.monotonic()
        try:
            self.guard.apply(planned.configuration)
            time.sleep(self.seconds)
        finally:
            self.guard.apply(DEFAULT)
        return Trial(
            planned=planned,
            stage=stage,
            attempt=attempt,
            status="ok",
            detail="",
            conditions=self.conditions,
            started_at=started.isoformat(timespec="seconds"),
            seconds=time.monotonic() - clock,
            seed=self.task.seed(stage, planned.index, attempt),
            tool_version=__version__,
            histogram=latencies(stage, planned),
            achieved_rps=self.task.workload.rate_rps,
            replica=self.name,
        )


def latencies(stage: str, planned: PlannedTrial) -> Histogram:
    """Some keys act, all else is noise that hangs on the place alone."""
    rng = np.random.default_rng([planned.index, *stage.encode()])
    values = planned.configuration.values
    effect = 0.4 * (values.get("net.ipv4.tcp_slow_start_after_idle") == "0")
    effect += 0.6 * (values.get("net.ipv4.tcp_congestion_control") == "bbr")
    scale = 100_000 * np.exp(0.1 * rng.standard_normal() - effect)
    times = scale * np.exp(0.5 * rng.standard_normal(300))
    return Histogram.from_pairs([(int(us), 1) for us in sorted(times)])


@contextmanager
def simulated(task: Task, replica: int, seconds: float) -> Iterator[ClusterTestbed]:
    """A replica as the product opens it, but for its load."""
    with cluster_testbed(task, replica) as real:
        yield Simulated(**vars(real), seconds=seconds)


# The study ---------------------------------------------------------------------------------------


def study_of(url: str, replicas: int) -> Study:
    """The labs and the store are shared by all processes of a run."""
    arch = native_arch()
    base = scenario("short-buffer")
    budget = replace(
        base.budget,
        screen_trials=SCREENED,
        screen_stable=0,
        collect_trials=COLLECTED,
        refine_trials=REFINED,
    )
    labs = tuple(LabSpec(name=f"work{n}", arch=arch) for n in range(replicas))
    return replace(
        base,
        name="workers",
        store=url,
        clusters={arch: labs},
        workloads={"slt": base.workloads["slt"]},
        budget=budget,
        workers=True,
    )


def serve(arguments: argparse.Namespace) -> None:
    """A worker of one replica, until it is ended."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    study = study_of(arguments.store, REPLICAS)
    with opened(study.store, LineProgress().say) as store:
        Worker(
            name=f"worker {arguments.replica + 1}:{os.getpid()}",
            studies={study.name: study},
            spots=[Spot(study=study.name, arch=native_arch(), replica=arguments.replica)],
            store=store,
            connect=ssh.connect,
            progress=LineProgress(),
            open_replica=lambda task, n: simulated(task, n, arguments.seconds),
        ).run()


class Processes:
    """The workers of a run, each a process of its own."""

    def __init__(self, url: str, seconds: float, log: Path) -> None:
        self._words = ["serve", "--store", url, "--seconds", str(seconds)]
        self._log = log
        self._running: dict[int, subprocess.Popen[bytes]] = {}

    def start(self, replica: int) -> None:
        words = [sys.executable, "-m", "benchmarks.workers", *self._words]
        with self._log.open("ab") as log:
            self._running[replica] = subprocess.Popen(
                [*words, "--replica", str(replica)], stdout=log, stderr=log
            )

    def kill(self, replica: int) -> None:
        self._running[replica].kill()
        self._running[replica].wait()

    def end(self) -> None:
        for one in self._running.values():
            one.terminate()
        for one in self._running.values():
            one.wait(timeout=120)


# The database ------------------------------------------------------------------------------------


@contextmanager
def database() -> Iterator[tuple[Server, str]]:
    """A server, and the URL of a database by a link that can be cut."""
    with running(max_connections="100", fsync="on") as server, ExitStack() as stack:
        url = server.database()
        run(["ip", "netns", "add", NAMESPACE])
        stack.callback(run, ["ip", "netns", "delete", NAMESPACE])
        run(
            [
                "ip",
                "link",
                "add",
                "benchdb0",
                "type",
                "veth",
                "peer",
                "benchdb1",
                "netns",
                NAMESPACE,
            ]
        )
        run(["ip", "address", "add", f"{OURS}/30", "dev", "benchdb0"])
        run(["ip", "link", "set", "benchdb0", "up"])
        for words in (
            ["address", "add", f"{THEIRS}/30", "dev", "benchdb1"],
            ["link", "set", "benchdb1", "up"],
        ):
            run(["ip", "-netns", NAMESPACE, *words])
        target = f"{server.folder}/.s.PGSQL.{PORT}"
        relaying = subprocess.Popen(
            [
                "ip",
                "netns",
                "exec",
                NAMESPACE,
                sys.executable,
                "-m",
                "benchmarks.workers",
                "relay",
                "--socket",
                target,
            ]
        )
        stack.callback(relaying.wait)
        stack.callback(relaying.terminate)
        name = url.partition("?")[0].rpartition("/")[2]
        wait_for_relay()
        yield server, f"postgresql+psycopg://intop@{THEIRS}:{PORT}/{name}"


def wait_for_relay(limit_s: float = 30) -> None:
    """Raises OSError where it does not listen in time."""
    deadline = time.monotonic() + limit_s
    while True:
        try:
            socket.create_connection((THEIRS, PORT), timeout=limit_s).close()
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)
        else:
            return


def cut() -> None:
    """No packet passes for CUT_S seconds."""
    run(["ip", "-netns", NAMESPACE, "link", "set", "benchdb1", "down"])
    time.sleep(CUT_S)
    run(["ip", "-netns", NAMESPACE, "link", "set", "benchdb1", "up"])


async def relay(target: str) -> None:
    """Connections to THEIRS, each passed on to the server's socket."""

    async def pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(1 << 16):
                writer.write(data)
                await writer.drain()
        except OSError:
            pass
        finally:
            writer.close()

    async def passed(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there = await asyncio.open_unix_connection(target)
        except OSError:
            writer.close()
            return
        await asyncio.gather(pipe(reader, there[1]), pipe(there[0], writer))

    async with await asyncio.start_server(passed, THEIRS, PORT) as server:
        await server.serve_forever()


# speed -------------------------------------------------------------------------------------------


def speed(arguments: argparse.Namespace) -> int:
    print("| workers | trials | minutes | trials/h |\n|---:|---:|---:|---:|", flush=True)
    hourly: list[float] = []
    with labs_up(study_of("", REPLICAS)):
        for count in (1, REPLICAS):
            made = rate_of(count, arguments)
            hourly.append(made)
    ratio = hourly[1] / hourly[0]
    print(f"\n{REPLICAS} workers make {ratio:.2f} times the trials of one (wanted: 7).")
    return int(ratio < 7)


def rate_of(count: int, arguments: argparse.Namespace) -> float:
    """Trials an hour of so many workers on as many replicas."""
    with database() as (_, url):
        study = replace(study_of(url, REPLICAS))
        clusters = {arch: labs[:count] for arch, labs in study.clusters.items()}
        budget = replace(study.budget, collect_trials=ENDLESS)
        study = replace(study, clusters=clusters, budget=budget)
        workers = Processes(url, arguments.seconds, arguments.log)
        with opened(url, LineProgress().say) as store:
            context = context_of(store, study, progress=LineProgress())
            (task,) = context.subjects()
            asking = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "benchmarks.workers",
                    "ask",
                    "--store",
                    url,
                    "--replicas",
                    str(count),
                ]
            )
            try:
                for n in range(count):
                    workers.start(n)
                while not (first := task.trials("collect")):
                    time.sleep(0.5)
                began = datetime.fromisoformat(first[0].started_at)
                time.sleep(60 * arguments.minutes)
                trials = len(
                    [
                        t
                        for t in task.store.places(task.subject)
                        if t.stage == "collect" and t.status
                    ]
                )
                minutes = (datetime.now(UTC) - began).total_seconds() / 60
            finally:
                asking.kill()
                asking.wait()
                workers.end()
    print(f"| {count} | {trials} | {minutes:.1f} | {60 * trials / minutes:.0f} |", flush=True)
    return 60 * trials / minutes


def ask(arguments: argparse.Namespace) -> None:
    """The command that asks for an endless collection of so many replicas."""
    study = study_of(arguments.store, arguments.replicas)
    study = replace(study, budget=replace(study.budget, collect_trials=2_000))
    with opened(study.store, LineProgress().say) as store:
        (task,) = context_of(store, study).subjects()
        execute(Collect.begin(task))


# faults ------------------------------------------------------------------------------------------


def faults(arguments: argparse.Namespace) -> int:
    with labs_up(study_of("", REPLICAS)):
        before = sysctls()
        calm = campaign(arguments, is_disturbed=False)
        rough = campaign(arguments, is_disturbed=True)
        time.sleep(RESTORED_S)
        changed = [name for name, values in sysctls().items() if values != before[name]]
    checks = {
        "places without a trial": (rough.missing, 0),
        "places with more than one trial that counts": (rough.twice, 0),
        "plan as in the undisturbed run": (rough.plan == calm.plan, True),
        "latencies as in the undisturbed run": (rough.latencies == calm.latencies, True),
        "ranking as in the undisturbed run": (rough.ranking == calm.ranking, True),
        "load balancers with other sysctls than before": (len(changed), 0),
    }
    print("| | undisturbed | with faults |\n|---|---:|---:|")
    print(f"| trials | {calm.trials} | {rough.trials} |")
    print(f"| minutes | {calm.minutes:.1f} | {rough.minutes:.1f} |")
    print(f"| workers killed | {calm.kills} | {rough.kills} |")
    print(f"| PostgreSQL restarted, network cut | 0 | {dict(rough.faults)} |")
    print(f"| results that came too late | {calm.late} | {rough.late} |")
    print("\n| check | found | wanted |\n|---|---:|---:|")
    for name, (found, wanted) in checks.items():
        print(f"| {name} | {found} | {wanted} |")
    return int(any(found != wanted for found, wanted in checks.values()))


@dataclass(kw_only=True)
class Outcome:
    """What is left in the store after a campaign."""

    trials: int
    missing: int
    twice: int
    plan: list[Any]
    latencies: list[Any]
    ranking: str
    late: int
    minutes: float
    kills: int
    faults: Counter[str]


def campaign(arguments: argparse.Namespace, *, is_disturbed: bool) -> Outcome:
    """Both stages of a campaign in a database of its own."""
    kills, done = Counter[str](), Event()
    began = time.monotonic()
    with database() as (server, url):
        study = study_of(url, REPLICAS)
        workers = Processes(url, arguments.seconds, arguments.log)
        with opened(url, LineProgress().say) as store:
            (task,) = context_of(store, study).subjects()
            for n in range(REPLICAS):
                workers.start(n)
            troubles = [Thread(target=disturb, args=(server, workers, kills, done))]
            for trouble in troubles[: int(is_disturbed)]:
                trouble.start()
            try:
                execute(Screen.begin(task))
                execute(Collect.begin(task))
                execute(Refine.begin(task))
            finally:
                done.set()
                for trouble in troubles[: int(is_disturbed)]:
                    trouble.join()
                workers.end()
            minutes = (time.monotonic() - began) / 60
            return outcome(task, minutes, kills)


def disturb(server: Server, workers: Processes, counted: Counter[str], done: Event) -> None:
    """Kill workers, restart the server and cut the network, until the campaign is done."""
    draw, left = random.Random(1), FAULTS
    kill_at = fault_at = time.monotonic() + KILL_EVERY_S
    while not done.wait(0.2):
        if time.monotonic() >= kill_at:
            kill_at += KILL_EVERY_S
            replica = draw.randrange(REPLICAS)
            workers.kill(replica)
            workers.start(replica)
            counted["workers killed"] += 1
        if left and time.monotonic() >= fault_at:
            fault_at += FAULT_EVERY_S
            if left % 2:
                cut()
                counted["network cut"] += 1
            else:
                server.crash() if left % 4 else server.restart()
                counted["restarted"] += 1
            left -= 1


def outcome(task: Task, minutes: float, counted: Counter[str]) -> Outcome:
    store, subject = task.store, task.subject
    stages = ("replicas", "screen", "collect", "refine")
    plan = [(stage, asdict(p)) for stage in stages for p in store.plan(subject, stage)]
    trials = store.trials(subject)
    per_place = Counter((t.stage, t.planned.index) for t in trials)
    ranking = store.get(subject, Ranking)
    if ranking is not None:
        ranking = replace(ranking, drift=None)  # over the time of measurement
    return Outcome(
        trials=len(trials),
        missing=sum((stage, p["index"]) not in per_place for stage, p in plan),
        twice=sum(count > 1 for count in per_place.values()),
        plan=plan,
        latencies=sorted((t.stage, t.planned.index, t.p99_ms) for t in trials),
        ranking=json.dumps(ranking and asdict(ranking), sort_keys=True, default=str),
        late=len(store.jobs.late(subject)),
        minutes=minutes,
        kills=counted.pop("workers killed", 0),
        faults=counted,
    )


def sysctls() -> dict[str, str]:
    """All of the load balancers' that a namespace has of its own, by lab."""
    return {
        f"work{n}": run(
            [
                "ip",
                "netns",
                "exec",
                network.namespace(f"work{n}", network.BALANCER),
                "sysctl",
                "net.ipv4",
                "net.core.somaxconn",
            ]
        )
        for n in range(REPLICAS)
    }


# Command -----------------------------------------------------------------------------------------


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    modes = parser.add_subparsers(dest="mode", required=True)
    for mode, seconds in (("speed", 5.0), ("faults", 1.0)):
        one = modes.add_parser(mode)
        one.add_argument("--seconds", type=float, default=seconds, help=f"a trial ({seconds:g})")
        one.add_argument("--log", type=Path, default=Path("build/workers.log"))
        if mode == "speed":
            one.add_argument("--minutes", type=float, default=4.0, help="each (4)")
    one = modes.add_parser("serve", help="used by the others")
    one.add_argument("--store", required=True)
    one.add_argument("--replica", type=int, required=True)
    one.add_argument("--seconds", type=float, required=True)
    one = modes.add_parser("ask", help="used by the others")
    one.add_argument("--store", required=True)
    one.add_argument("--replicas", type=int, required=True)
    modes.add_parser("relay", help="used by the others").add_argument("--socket", required=True)
    return parser.parse_args()


def main() -> int:
    arguments = parsed()
    if arguments.mode == "serve":
        serve(arguments)
    elif arguments.mode == "ask":
        ask(arguments)
    elif arguments.mode == "relay":
        asyncio.run(relay(arguments.socket))
    else:
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # the labs are taken down
        arguments.log.parent.mkdir(parents=True, exist_ok=True)
        return {"speed": speed, "faults": faults}[arguments.mode](arguments)
    return 0


if __name__ == "__main__":
    sys.exit(main())
