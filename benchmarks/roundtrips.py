"""What it takes to set 30 keys and to put them back, in each trial, beside its load.

A round trip is a command on the load balancer: `Host.run` is called, and its answer waited for.
How often a packet's way there and back is waited for meanwhile (SSH opens a channel for each
command) shows when the same steps are made through a proxy that delays all that the load balancer
sends: it is what they take longer, over that delay. Prints Markdown.
"""

import argparse
import math
import os
import socket
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from queue import SimpleQueue
from statistics import fmean
from typing import Any
from unittest.mock import patch

from benchmarks.campaign import begun, short_buffer
from intop.domain.cluster import HostAddress, native_arch
from intop.domain.configuration import DEFAULT, Configuration
from intop.domain.trial import PlannedTrial
from intop.hosts.guard import GuardedHost
from intop.hosts.host import Completed
from intop.hosts.ssh import SshHost, connect
from intop.lab import cluster as lab
from intop.learn.design import latin_hypercube
from intop.run import cluster_testbed
from intop.store import opened

KEYS = 30
LIMIT = 4
"""Round trips, each way."""
STEPS = {
    "take": "take the host: script, lock, snapshot, watchdog",
    "apply": "apply a configuration, read it back",
    "restore": "restore, read it back",
    "give back": "give the host back",
}


@dataclass(frozen=True)
class Step:
    """How many commands it took, and how many seconds."""

    commands: int
    seconds: float


@dataclass
class Watch:
    """The steps by name, and the seconds of whole trials."""

    steps: dict[str, list[Step]] = field(default_factory=lambda: defaultdict(list))
    trials_s: list[float] = field(default_factory=list)
    _commands: int = 0

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Note what happens inside."""
        commands, started = self._commands, time.monotonic()
        yield
        self.steps[name].append(Step(self._commands - commands, time.monotonic() - started))

    def run(self, work: Callable[..., Completed]) -> Callable[..., Completed]:
        """`SshHost.run`, counted. The lease's thread takes no part in a step."""

        def counted(host: SshHost, *arguments: Any, **options: Any) -> Completed:
            if threading.current_thread() is threading.main_thread():
                self._commands += 1
            return work(host, *arguments, **options)

        return counted

    def apply(self, work: Callable[..., None]) -> Callable[..., None]:
        """The guard's `apply`, which restores when it is given the default."""

        def watched(guard: GuardedHost, configuration: Any) -> None:
            with self.step("restore" if configuration.is_default else "apply"):
                work(guard, configuration)

        return watched

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Count and time the steps that are made inside."""
        with ExitStack() as stack:
            for place, name, work in (
                (SshHost, "run", self.run(SshHost.run)),
                (GuardedHost, "apply", self.apply(GuardedHost.apply)),
                (cluster_testbed, "guarded", self.guarded(cluster_testbed.guarded)),
            ):
                stack.enter_context(patch.object(place, name, work))
            yield

    def guarded(self, work: Callable[..., Any]) -> Callable[..., Any]:
        """The guard's hold on a host, from taking it to giving it back."""

        @contextmanager
        def watched(*arguments: Any, **options: Any) -> Iterator[GuardedHost]:
            with ExitStack() as held:
                with self.step("take"):
                    session = held.enter_context(work(*arguments, **options))
                yield session
                with self.step("give back"):
                    held.close()

        return watched


class Delay:
    """A proxy on loopback that hands on at once what we send, and late what comes back."""

    def __init__(self, hostname: str, port: int, delay_s: float) -> None:
        self._behind = (hostname, port)
        self._delay_s = delay_s
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listening.getsockname()[1])
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        """Take no more connections; those that are open end with their peers."""
        self._listening.close()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                ours, _ = self._listening.accept()
                theirs = socket.create_connection(self._behind)
                for end in (ours, theirs):  # Nagle's delay would only be added to ours
                    end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                for one, other, delay_s in ((ours, theirs, 0.0), (theirs, ours, self._delay_s)):
                    late: SimpleQueue[tuple[float, bytes]] = SimpleQueue()
                    threading.Thread(target=_read, args=(one, late, delay_s), daemon=True).start()
                    threading.Thread(target=_write, args=(other, late), daemon=True).start()


def _read(source: socket.socket, late: "SimpleQueue[tuple[float, bytes]]", delay_s: float) -> None:
    data = b"first"
    while data:
        try:
            data = source.recv(65536)
        except OSError:
            data = b""
        late.put((time.monotonic() + delay_s, data))


def _write(sink: socket.socket, late: "SimpleQueue[tuple[float, bytes]]") -> None:
    with sink, suppress(OSError):
        while True:
            due, data = late.get()
            time.sleep(max(0.0, due - time.monotonic()))
            if not data:
                return
            sink.sendall(data)


def main() -> None:
    arguments = parsed()
    near, far = measured(arguments.trials, arguments.seconds, arguments.delay_ms / 1000)
    print("\n".join(table(near, far, arguments.seconds, arguments.delay_ms)))


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=8, help="(8)")
    parser.add_argument("--seconds", type=int, default=5, help="that are counted (5)")
    parser.add_argument("--delay-ms", type=float, default=50, help="of the proxy (50)")
    return parser.parse_args()


def measured(trials: int, seconds: int, delay_s: float) -> tuple[Watch, Watch]:
    """Trials of configurations of 30 keys on a lab of our own; then the steps alone, by proxy."""
    study = short_buffer()
    spec = replace(study.clusters[native_arch()][0], name=f"r{os.getpid() % 10_000}")
    workload = replace(study.workloads["slt"], duration_s=seconds)
    # What other programs took from the load does not matter here.
    budget = replace(study.budget, max_foreign_cores=math.inf)
    study = replace(
        study, clusters={spec.arch: (spec,)}, workloads={"slt": workload}, budget=budget
    )
    try:
        cluster = lab.up(spec)
        with tempfile.TemporaryDirectory() as folder, opened(f"{folder}/trips.db") as store:
            with cluster_testbed.cluster_testbed(begun(store, study)) as ready:
                offered = [parameter.key for parameter in ready.probed.space.parameters]
            task = begun(store, replace(study, wanted=tuple(offered[:KEYS])))
            near = Watch()
            with near.watching(), cluster_testbed.cluster_testbed(task) as ready:
                design = latin_hypercube(ready.probed.space, trials, seed=1)
                for number, configuration in enumerate(design):
                    planned = PlannedTrial(index=number, role="design", configuration=configuration)
                    near.trials_s.append(ready.trial(planned, "collect", 1).seconds)
            with late(cluster.load_balancer, delay_s, Path(folder)) as address:
                return near, by_proxy(address, design)
    finally:
        lab.down(spec.name)


@contextmanager
def late(address: HostAddress, delay_s: float, folder: Path) -> Iterator[HostAddress]:
    """The same host behind the proxy, where it has the same key."""
    with closing(Delay(address.hostname, address.port or 22, delay_s)) as proxy:
        known = folder / "known_hosts"
        lines = [line.split() for line in Path(str(address.known_hosts)).read_text().splitlines()]
        known.write_text(
            "".join(
                f"[127.0.0.1]:{proxy.port} {' '.join(key)}\n"
                for name, *key in lines
                if name == address.hostname
            )
        )
        yield replace(address, hostname="127.0.0.1", port=proxy.port, known_hosts=str(known))


def by_proxy(address: HostAddress, design: Sequence[Configuration]) -> Watch:
    """Every step for each configuration, without loads."""
    watch = Watch()
    with watch.watching(), closing(connect(address)) as host:
        for configuration in design:
            with cluster_testbed.guarded(host, list(configuration.values)) as guard:
                guard.apply(configuration)
                guard.apply(DEFAULT)
    return watch


def table(near: Watch, far: Watch, seconds: int, delay_ms: float) -> list[str]:
    """A line for each step: round trips, ms, and how often the way was waited for."""
    rows = []
    for name, title in STEPS.items():
        steps = near.steps[name]
        commands = " to ".join(str(n) for n in sorted({step.commands for step in steps}))
        ms = [1000 * step.seconds for step in steps]
        late_ms = 1000 * fmean(step.seconds for step in far.steps[name])
        cells = [title, commands, f"{fmean(ms):.0f}", f"{min(ms):.0f} to {max(ms):.0f}"]
        rows.append(f"| {' | '.join(cells)} | {(late_ms - fmean(ms)) / delay_ms:.1f} |")
    trial_s = fmean(near.trials_s)
    both_s = sum(fmean(step.seconds for step in near.steps[n]) for n in ("apply", "restore"))
    return [
        f"{len(near.trials_s)} trials, {KEYS} keys, at most {LIMIT} round trips each way:",
        "",
        "| step | round trips | ms, mean | lowest to highest | waits for the way there and back |",
        "|---|---:|---:|---:|---:|",
        *rows,
        "",
        (
            f"A trial took {trial_s:.2f} s: {seconds} s were the load's, {1000 * both_s:.0f} ms "
            f"({both_s / trial_s:.1%}) setting the keys and putting them back."
        ),
    ]


if __name__ == "__main__":
    main()
