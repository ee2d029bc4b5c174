"""What a trial costs beyond its load and its settling, part by part.

Trials of configurations that fill the space of all parameters, as `intop screen` measures them, on
the scenario short-buffer with longer trials. Each is a whole turn: from when the trial before was
stored to when it is stored itself. The load is the seconds that are counted; what the load tool
takes beyond them is a part of its own. Prints Markdown.
"""

import argparse
import math
import os
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from statistics import fmean
from typing import Any
from unittest.mock import patch

from benchmarks.campaign import begun, measured, short_buffer
from intop.domain.cluster import HostAddress, LabSpec, native_arch, other_arch
from intop.domain.trial import PlannedTrial
from intop.domain.workload import Workload
from intop.hosts.guard import GuardedHost
from intop.hosts.host import Completed
from intop.hosts.ssh import SshHost, connect
from intop.lab import cluster as lab
from intop.learn.design import latin_hypercube
from intop.run import cluster_testbed
from intop.run.context import Task
from intop.run.testbed import Testbed
from intop.store import Store, opened

LIMIT = 0.03
"""Of the counted seconds: what a trial may cost beyond load and settling."""
PARTS = {
    "apply": "apply a configuration, read it back",
    "settle": "settle",
    "tool": "the load tool beyond the counted seconds",
    "counters": "counters of all hosts, before and after",
    "restore": "restore",
    "store": "store",
    "rest": "validity, progress, all else",
}

Trials = list[dict[str, float]]
"""The seconds of each trial by part, and as `total`."""


class Watch:
    """Adds up the seconds of a trial's parts."""

    def __init__(self) -> None:
        self.trials: Trials = []
        self._parts: Counter[str] = Counter()
        self._commands: defaultdict[str, list[float]] = defaultdict(list)
        self._started = time.monotonic()

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Add what happens inside to a part of this trial."""
        started = time.monotonic()
        try:
            yield
        finally:
            self._parts[name] += time.monotonic() - started

    def wrapped(self, name: str, work: Callable[..., Any]) -> Callable[..., Any]:
        """The same work, watched."""

        def watched(*arguments: Any, **options: Any) -> Any:
            with self.part(name):
                return work(*arguments, **options)

        return watched

    def applied(self, work: Callable[..., Any]) -> Callable[..., Any]:
        """The guard's `apply`, which restores when it is given the default."""

        def watched(guard: GuardedHost, configuration: Any) -> None:
            with self.part("restore" if configuration.is_default else "apply"):
                work(guard, configuration)

        return watched

    def stored(self, work: Callable[..., Any]) -> Callable[..., Any]:
        """The store's `add`, with which a trial ends."""

        def watched(*arguments: Any) -> None:
            with self.part("store"):
                work(*arguments)
            self._ended()

        return watched

    def connected(self, address: HostAddress) -> "WatchedHost":
        """A connection whose commands are watched."""
        return WatchedHost(connect(address), self._commands[address.role])

    def begin(self) -> None:
        """Start the first trial now."""
        self._started = time.monotonic()
        self._parts.clear()
        self._commands["load-generator"].clear()

    def _ended(self) -> None:
        now = time.monotonic()
        load = max(self._commands["load-generator"])
        parts = {**self._parts, "load": load, "total": now - self._started}
        parts["counters"] = self._parts["measure"] - load
        self.trials.append(parts)
        self._started = now
        self._parts.clear()
        self._commands["load-generator"].clear()


class WatchedHost:
    """A host that keeps the seconds of its commands."""

    def __init__(self, host: SshHost, seconds: list[float]) -> None:
        self._host = host
        self._seconds = seconds

    def run(self, command: str, *, stdin: str = "", timeout_s: float = 30.0) -> Completed:
        """Run it, and note how long it took."""
        started = time.monotonic()
        try:
            return self._host.run(command, stdin=stdin, timeout_s=timeout_s)
        finally:
            self._seconds.append(time.monotonic() - started)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._host, name)


def main() -> None:
    arguments = parsed()
    study = short_buffer()
    arch = other_arch() if arguments.guest else native_arch()
    link = study.clusters[native_arch()][0].link
    kind = "vm" if arguments.guest else "namespaces"
    spec = LabSpec(name=f"k{os.getpid() % 10_000}", arch=arch, kind=kind, link=link)
    workload = replace(study.workloads[arguments.workload], duration_s=arguments.seconds)
    # What other programs took from the load does not matter here: each trial is measured once.
    study = replace(
        study,
        clusters={arch: (spec,)},
        workloads={workload.name: workload},
        budget=replace(study.budget, retries=0, max_foreign_cores=math.inf),
    )
    watch = Watch()
    try:
        lab.up(spec)
        with tempfile.TemporaryDirectory() as folder, opened(f"{folder}/cost.db") as store:
            task = begun(store, study, watch.connected)
            keys = watched_trials(task, watch, arguments.trials)
    finally:
        lab.down(spec.name)
    print("\n".join(table(watch.trials, spec, workload, keys)))


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=8, help="(8)")
    parser.add_argument("--seconds", type=int, default=5, help="that are counted (5)")
    parser.add_argument("--workload", choices=("slt", "dlt"), default="slt", help="(slt)")
    parser.add_argument(
        "--guest", action="store_true", help="with the other architecture's load balancer"
    )
    return parser.parse_args()


def watched_trials(task: Task, watch: Watch, count: int) -> int:
    """Measure that many configurations; returns how many keys each of them sets."""
    keys = 0

    def plan(ready: Testbed) -> list[PlannedTrial]:
        nonlocal keys
        design = latin_hypercube(ready.probed.space, count, seed=1)
        keys = max(len(configuration.values) for configuration in design)
        watch.begin()
        return [
            PlannedTrial(index=number, role="design", configuration=configuration)
            for number, configuration in enumerate(design)
        ]

    with ExitStack() as stack:
        for place, name, work in (
            (GuardedHost, "apply", watch.applied(GuardedHost.apply)),
            (cluster_testbed, "settle", watch.wrapped("settle", cluster_testbed.settle)),
            (cluster_testbed, "measure", watch.wrapped("measure", cluster_testbed.measure)),
            (Store, "add", watch.stored(Store.add)),
        ):
            stack.enter_context(patch.object(place, name, work))
        measured(task, "collect", plan, ends_by_failures=False)
    return keys


def table(trials: Trials, spec: LabSpec, workload: Workload, keys: int) -> list[str]:
    """The parts and what they come to, in ms: mean, lowest and highest."""
    known = ("apply", "settle", "counters", "restore", "store")
    beyond = []
    for parts in trials:
        parts["tool"] = parts["load"] - workload.counted_s
        parts["rest"] = parts["total"] - parts["load"] - sum(parts.get(n, 0.0) for n in known)
        beyond.append(parts["total"] - workload.counted_s - parts.get("settle", 0.0))
    rows = [(title, [t.get(name, 0.0) for t in trials]) for name, title in PARTS.items()]
    rows.append(("**beyond load and settling**", beyond))
    share = fmean(beyond) / workload.counted_s
    return [
        (
            f"{len(trials)} {workload.name} trials of {workload.counted_s} s, {keys} keys, "
            f"{'guest' if spec.kind == 'vm' else 'namespaces'}:"
        ),
        "",
        "| part | ms, mean | lowest to highest |",
        "|---|---:|---:|",
        *(
            f"| {title} | {1000 * fmean(v):.0f} | {1000 * min(v):.0f} to {1000 * max(v):.0f} |"
            for title, v in rows
        ),
        "",
        (
            f"Beyond load and settling: {share:.1%} of {workload.counted_s} s "
            f"({'within' if share <= LIMIT else 'above'} {LIMIT:.0%})."
        ),
    ]


if __name__ == "__main__":
    main()
