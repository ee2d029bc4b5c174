"""Debian's servers side by side on the lab, over 10 to 1,000 connections: an article's chart.

    python -m benchmarks.servers --store build/servers.db --figure docs/images/servers.svg

Each server in turn is the load balancer of a lab without a link, with two workers, and answers one
page of 1 KB from a file. HAProxy and Varnish have no files, and ask the lab's three nginx for it:
HAProxy for each request, Varnish once. The product's `sweep --over connections --closed` measures
the host's own values at POINTS, in ROUNDS rounds of trials of SECONDS after a second of warm-up, in
a random order within each round. nginx comes once more at the end: what has drifted meanwhile is
seen there.

The memory of a trial is here the proportional set size (PSS) of the server's own processes, at its
highest in the load: the namespaces of a lab have the machine's memory in common. The load is sent
by one thread. Where that used more than BUSY of a processor, it and not the server may be what
bounds the rate; such points are marked.

Terms, before it is measured: every point of every server has ROUNDS usable trials, less than 1 % of
whose requests fail. Who is first is no claim, on two processors that the load shares.

What is in the store is not measured again. Prints Markdown; ends with 1 where a term is not met.
Needs root, and the servers' packages (`sh intop/lab/system-packages.sh lab tests`).
"""

import argparse
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import cycle
from pathlib import Path
from statistics import fmean

from matplotlib.figure import Figure

from benchmarks.campaign import altered, context_of, labs_up, scenario
from intop.config.study import Study
from intop.domain.cluster import ONLY_PROXIES, Balancing, LabSpec, native_arch
from intop.domain.server import SERVERS, ServerName
from intop.domain.stats import geometric_interval
from intop.domain.trial import PlannedTrial, Trial
from intop.errors import LabError
from intop.lab import network, processes
from intop.report.figures.axes import faint_grid, legend_below, plain_ticks
from intop.report.figures.colours import BLUE, GREY, ORANGE
from intop.report.figures.drawing import drawn
from intop.run.cluster_testbed import ClusterTestbed
from intop.stages.sweep import Request, sweep
from intop.store import Store, opened

ORDER: tuple[ServerName, ...] = (
    *("nginx", "apache", "lighttpd", "varnish", "haproxy", "caddy", "h2o"),
)
AGAIN = "nginx again"
POINTS = "10,20,40,70,100,150,200,300,450,600,800,1000"
ROUNDS, SECONDS, WARMUP_S = 3, 3, 1
PAGE = "/size/1k.jpg"
WORKERS = 2
NAME = "servers"
BUSY = 0.9
WATCH_S = 0.5
"""Between two looks at a server's memory."""
MARKS = ("o", "s", "^", "D", "v", "P", "X", "o")
Row = tuple[str, Mapping[int, list[Trial]]]
"""A server, and its trials by the number of connections."""


@dataclass(frozen=True, kw_only=True)
class Watched(ClusterTestbed):
    """A testbed whose trials have the memory of the server's own processes."""

    def trial(
        self,
        planned: PlannedTrial,
        stage: str,
        attempt: int,
        prune_above_ms: float | None = None,
    ) -> Trial:
        with watching(self.rig.cluster.server.programs) as seen:
            made = super().trial(planned, stage, attempt, prune_above_ms)
        if not made.metrics or not seen:
            return made
        name = self.rig.load_balancer.address.name
        own = replace(made.metrics[name], memory_mib=max(seen))
        return replace(made, metrics={**made.metrics, name: own})


@contextmanager
def watching(programs: Sequence[str]) -> Iterator[list[float]]:
    """The memory (MiB) of these programs on the lab's load balancer, look by look."""
    seen: list[float] = []
    over = threading.Event()

    def watch() -> None:
        while not over.wait(WATCH_S):
            seen.append(memory_mib(programs))

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield seen
    finally:
        over.set()
        thread.join()


def memory_mib(programs: Sequence[str]) -> float:
    """The PSS of these programs on the lab's load balancer, in MiB."""
    place = network.NAMESPACE_FOLDER / network.namespace(NAME, network.BALANCER)
    here, total_kib = processes.identity(place), 0
    for pid in processes.all_processes():
        folder = Path(f"/proc/{pid}")
        try:
            if processes.command_name(pid) in programs and (
                processes.identity(folder / "ns" / "net") == here
            ):
                total_kib += _pss_kib((folder / "smaps_rollup").read_text())
        except OSError:  # it has ended
            continue
    return total_kib / 1024


def _pss_kib(text: str) -> int:
    return next(int(line.split()[1]) for line in text.splitlines() if line.startswith("Pss:"))


# -- measuring -----------------------------------------------------------------------------------


def study_of(server: ServerName, label: str, arguments: argparse.Namespace) -> Study:
    """One page by one server. A saturated load is the point of it here, and disturbs nothing."""
    base = scenario("lab")
    spec = LabSpec(
        name=NAME,
        arch=native_arch(),
        balancing=Balancing(
            server=server, serves_files=server not in ONLY_PROXIES, workers=WORKERS
        ),
    )
    workload = replace(
        base.workloads["slt"],
        rate_rps=1000.0,
        connections=100,
        duration_s=arguments.seconds,
        warmup_s=WARMUP_S,
        paths=(PAGE,),
    )
    return replace(
        base,
        name=f"servers-{label.replace(' ', '-')}",
        clusters={spec.arch: (spec,)},
        workloads={"slt": workload},
        budget=replace(
            base.budget,
            max_load_cpu=2.0,
            max_lag=1.0,
            max_foreign_cores=arguments.max_foreign_cores,
        ),
        load_tool="engine",
    )


def measured(store: Store, study: Study, label: str, request: Request) -> Row:
    """A server's trials; what the store has is not measured again."""
    testbeds = altered(lambda ready: Watched(**vars(ready)))
    with labs_up(study):
        context = context_of(store, study, testbeds=testbeds)
        (task,) = context.subjects()
        sweep(task, request)
    found: dict[int, list[Trial]] = {int(point): [] for point in (request.points or "").split(",")}
    for trial in task.trials("sweep"):
        if trial.planned.connections in found and trial.status != "disturbed":
            found[trial.planned.connections].append(trial)
    return label, found


# -- what is shown -------------------------------------------------------------------------------


def tables(rows: Sequence[Row]) -> Iterator[str]:
    """A table of each quantity: a line for each number of connections, a column for each server."""
    yield from table(rows, "requests/s (load bound: *)", _rate)
    yield from table(rows, "P99 in ms, geometric mean (95 %)", _p99)
    yield from table(rows, "memory of the server in MiB (PSS)", _memory)
    yield from table(rows, "CPU of the machine in %", _cpu)


def table(rows: Sequence[Row], title: str, cell: Callable[[Sequence[Trial]], str]) -> Iterator[str]:
    labels = [SERVERS[label].title if label in SERVERS else label for label, _ in rows]
    yield f"{title}:\n"
    yield f"| connections | {' | '.join(labels)} |"
    yield f"|---:|{'---:|' * len(rows)}"
    for connections in rows[0][1]:
        cells = [cell([t for t in found[connections] if t.usable]) for _, found in rows]
        yield f"| {connections} | {' | '.join(cells)} |"
    yield ""


def _rate(trials: Sequence[Trial]) -> str:
    if not trials:
        return "-"
    rates = [t.achieved_rps for t in trials]
    bound = "*" if fmean(load_cpu(t) for t in trials) > BUSY else ""
    return f"{fmean(rates):,.0f}{bound} ({min(rates):,.0f} to {max(rates):,.0f})"


def _p99(trials: Sequence[Trial]) -> str:
    if len(trials) < 2:
        return "-"
    mean = geometric_interval([t.p99_ms for t in trials], level=0.95)
    return f"{mean.mean:.1f} ({mean.low:.1f} to {mean.high:.1f})"


def _memory(trials: Sequence[Trial]) -> str:
    return f"{fmean(t.balancer.memory_mib for t in trials):.1f}" if trials else "-"


def _cpu(trials: Sequence[Trial]) -> str:
    return f"{100 * fmean(t.balancer.cpu for t in trials):.0f}" if trials else "-"


def load_cpu(trial: Trial) -> float:
    """The share of a processor that the load's thread used."""
    return next(iter(trial.metrics.values())).load_cpu or 0.0


def unmet(rows: Sequence[Row], rounds: int) -> list[str]:
    """A line for each point at which the terms are not met."""
    return [
        f"{label} at {connections} connections: {len(ok)} of {rounds} trials are usable without "
        f"failures: {'; '.join(t.detail for t in trials if t not in ok) or 'disturbed'}"
        for label, found in rows
        for connections, trials in found.items()
        if len(ok := [t for t in trials if t.status == "ok"]) < rounds
    ]


def draw(rows: Sequence[Row], path: Path) -> None:
    """Rate, P99 and memory along the connections, a line for each server."""
    quantities: tuple[tuple[str, Callable[[Trial], float]], ...] = (
        ("requests/s", lambda t: t.achieved_rps),
        ("P99 in ms", lambda t: t.p99_ms),
        ("memory in MiB", lambda t: t.balancer.memory_mib),
    )

    def paint(figure: Figure) -> None:
        panels = figure.subplots(3, 1, sharex=True)
        for axes, (name, value) in zip(panels, quantities, strict=True):
            others = cycle(((BLUE, "-"), (GREY, "-"), (BLUE, "--"), (GREY, "--")))
            own = {"nginx": (ORANGE, "-"), AGAIN: (ORANGE, ":")}
            for (label, found), mark in zip(rows, MARKS, strict=False):
                shown = [(n, fmean(map(value, ok))) for n, t in found.items() if (ok := usable(t))]
                colour, style = own.get(label) or next(others)
                axes.plot(
                    [n for n, _ in shown],
                    [mean for _, mean in shown],
                    marker=mark,
                    markersize=4,
                    linewidth=1.2,
                    linestyle=style,
                    color=colour,
                    label=SERVERS[label].title if label in SERVERS else label,
                )
            axes.set_ylabel(name)
            axes.set_xscale("log")
            faint_grid(axes)
        panels[0].set_ylim(bottom=0)
        for axes in panels[1:]:
            axes.set_yscale("log")
            plain_ticks(axes.yaxis, axes.get_ylim())
        plain_ticks(panels[0].xaxis, list(rows[0][1]))
        panels[-1].set_xlabel("connections")
        legend_below(figure, panels[0])

    about = f"a page of 1 KB, {WORKERS} workers"
    drawn("servers", "Debian's servers", paint, about=about, height=8.0).write(path)


def usable(trials: Sequence[Trial]) -> list[Trial]:
    """Those that say something."""
    return [t for t in trials if t.usable]


def main() -> None:
    arguments = parsed()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # the lab is taken down all the same
    request = Request(
        axis="connections",
        loop="closed",
        points=arguments.points,
        rounds=arguments.rounds,
        seconds=arguments.seconds,
    )
    plan: list[tuple[ServerName, str]] = [(server, server) for server in arguments.servers]
    if "nginx" in arguments.servers and len(arguments.servers) > 1:
        plan.append(("nginx", AGAIN))
    with opened(str(arguments.store)) as store:
        try:
            rows = [
                measured(store, study_of(server, label, arguments), label, request)
                for server, label in plan
            ]
        except LabError as error:
            sys.exit(str(error))
    for line in tables(rows):
        print(line)
    if arguments.figure:
        draw(rows, arguments.figure)
    missed = unmet(rows, arguments.rounds)
    print("\n".join(missed) or "Every point has all of its trials, without failures.")
    sys.exit(1 if missed else 0)


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--store", type=Path, default=Path("build/servers.db"))
    parser.add_argument("--figure", type=Path, help="SVG or PNG that is written")
    parser.add_argument("--servers", nargs="+", choices=ORDER, default=ORDER)
    parser.add_argument("--points", default=POINTS, help="numbers of connections")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--seconds", type=int, default=SECONDS, help="of a trial")
    parser.add_argument(
        "--max-foreign-cores", type=float, default=0.4, help="as in [budget]: to try it, a thousand"
    )
    arguments = parser.parse_args()
    arguments.store.parent.mkdir(parents=True, exist_ok=True)
    return arguments


if __name__ == "__main__":
    main()
