"""Each scenario has the bottleneck that its text names, on a real lab of its own.

A counter of the kernel shows it, or a percentile with and without its cause.
"""

import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median

import pytest

from benchmarks.campaign import begun, measured
from intop.config.study import load_study
from intop.domain.cluster import CongestionControl, Link
from intop.domain.configuration import DEFAULT, Configuration
from intop.domain.trial import PlannedTrial, Trial
from intop.resources import shipped
from intop.store import opened
from kit.scenario_labs import on_a_lab

pytestmark = pytest.mark.long

FOLDER = shipped("configs") / "scenarios"
CELLS = [
    (path.stem, arch, workload)
    for path in sorted(FOLDER.glob("*.toml"))
    for study in [load_study(path)]
    for arch in study.clusters
    for workload in study.workloads
]
TRIALS = 3


def trials_of(
    cell: tuple[str, str, str], configuration: Configuration = DEFAULT, **changes: object
) -> list[Trial]:
    """Trials of one configuration in a scenario, whose lab has these changes."""
    name, arch, workload = cell
    plan = [
        PlannedTrial(index=n, role="baseline", configuration=configuration) for n in range(TRIALS)
    ]
    file = f"scenarios/{name}.toml"
    with (
        tempfile.TemporaryDirectory() as folder,
        on_a_lab(file, workload, pairs=2, arch=arch, **changes) as study,
        opened(str(Path(folder) / "trials.db")) as store,
    ):
        return measured(begun(store, study), "collect", plan)


def percentile(trials: Sequence[Trial], percent: float) -> float:
    """Return the median over trials, in ms."""
    values = []
    for trial in trials:
        assert trial.histogram is not None, trial
        values.append(trial.histogram.percentile_ms(percent))
    return median(values)


def counted(trials: Sequence[Trial], counter: str, *, by_clients: bool = False) -> float:
    """Return the sum over trials of a counter of the load balancer, or of the first client."""
    total = 0.0
    for trial in trials:
        (client, *_) = (n for n, host in trial.metrics.items() if host.p99_ms is not None)
        total += trial.counters[client if by_clients else trial.replica].total(counter)
    return total


def a_window_holds_clients_back(trials: Sequence[Trial]) -> None:
    busy = counted(trials, "clients.busy_ms")
    assert counted(trials, "clients.cwnd_limited_ms") > 0.9 * busy > 0


def a_receive_window_holds_uploads_back(trials: Sequence[Trial]) -> None:
    busy = counted(trials, "upstreams.busy_ms", by_clients=True)
    held = counted(trials, "upstreams.rwnd_limited_ms", by_clients=True)
    assert held > 0.3 * busy > 0


def readers_hold_the_server_back(trials: Sequence[Trial]) -> None:
    held = counted(trials, "clients.rwnd_limited_ms")
    assert held > 0.3 * counted(trials, "clients.busy_ms") > 0


def packets_are_lost(trials: Sequence[Trial]) -> None:
    requests = sum(trial.histogram.total for trial in trials if trial.histogram is not None)
    assert counted(trials, "Tcp.RetransSegs") > requests


def the_listening_queue_drops(trials: Sequence[Trial]) -> None:
    assert counted(trials, "TcpExt.ListenDrops") > 10


def a_lost_syn_is_sent_again(trials: Sequence[Trial]) -> None:
    assert counted(trials, "TcpExt.TCPSynRetrans", by_clients=True) > 10
    assert percentile(trials, 99) >= 1000


def the_balancer_waits_for_a_timer(trials: Sequence[Trial]) -> None:
    timers = ("TcpExt.TCPTimeouts", "TcpExt.TCPLossProbes")
    assert sum(counted(trials, name) for name in timers) > 10


BY_A_COUNTER: Mapping[str, Callable[[Sequence[Trial]], None]] = {
    "bursts": the_listening_queue_drops,
    "downloads": packets_are_lost,
    "dynamic-wan": a_window_holds_clients_back,
    "guest-downloads": packets_are_lost,
    "guest-uploads": a_receive_window_holds_uploads_back,
    "mixed-clients": a_window_holds_clients_back,
    "short-connections": a_lost_syn_is_sent_again,
    "slow-readers": readers_hold_the_server_back,
    "small-objects": the_balancer_waits_for_a_timer,
    "static-wan": a_window_holds_clients_back,
    "uploads": a_receive_window_holds_uploads_back,
}

KEPT_WINDOW = Configuration({"net.ipv4.tcp_slow_start_after_idle": "0"})
WIDE_LINK = {"link": Link(rate_mbit=1000, limit_kb=1000)}
NO_LOSS = {"link": Link(delay_ms=30)}
CUBIC = {"congestion_control": CongestionControl()}


def without_its_cause(cell: tuple[str, str, str]) -> list[Trial]:
    name, *_ = cell
    if name in ("idle-wan", "guest-idle"):
        return trials_of(cell, KEPT_WINDOW)
    changes = {"bbr-backends": CUBIC, "guest-loss": NO_LOSS, "upstreams": WIDE_LINK}
    return trials_of(cell, **changes[name])


BY_DIFFERENCE = {
    "bbr-backends": (99, 2.0),
    "guest-idle": (50, 1.3),
    "guest-loss": (99, 1.3),
    "idle-wan": (50, 1.3),
    "upstreams": (99, 2.0),
}
"""A percentile, and how many times it is lower at least, without the cause."""
NONE = {("bbr-backends", "dlt")}
"""Cells whose text says that they have no bottleneck."""


def test_each_scenario_has_its_evidence() -> None:
    assert {name for name, *_ in CELLS} == {*BY_A_COUNTER, *BY_DIFFERENCE}


@pytest.mark.parametrize("cell", CELLS, ids="-".join)
def test_the_bottleneck_of_its_text_is_there(cell: tuple[str, str, str]) -> None:
    name, _, workload = cell
    trials = trials_of(cell)
    if (name, workload) in NONE:
        assert percentile(trials, 99) < 30
    elif name in BY_A_COUNTER:
        BY_A_COUNTER[name](trials)
    else:
        percent, times = BY_DIFFERENCE[name]
        without = percentile(without_its_cause(cell), percent)
        assert percentile(trials, percent) > times * without
