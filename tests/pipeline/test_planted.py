"""That verdicts are right, on a real lab: a wait and a good key that are planted are called so."""

from pathlib import Path

import pytest

from benchmarks.campaign import begun, judged, measured
from benchmarks.verdicts import SIDE, Wait, one_sided
from intop.domain.cluster import CongestionControl
from intop.domain.configuration import DEFAULT, Configuration
from intop.domain.trial import PlannedTrial
from intop.run.context import Task
from intop.store import opened
from kit.scenario_labs import on_a_lab

DEEP = Configuration({"net.core.somaxconn": "4096", "net.ipv4.tcp_max_syn_backlog": "4096"})
"""On a host with queues of 128 and 32 and no SYN cookies: no SYN waits for its second try, which is
a second later. The difference is large and the queues are long, since other tests run meanwhile."""

WIDE = Configuration({"net.ipv4.tcp_rmem": "4096 131072 6291456"})
"""On a host whose receive buffers are 32 KB at most, with uploads of 60 KB."""


@pytest.mark.long
def test_a_wait_is_called_worse(tmp_path: Path) -> None:
    # Of cubic backends, whose answers wait for nothing else.
    name, cubic = "scenarios/bbr-backends.toml", CongestionControl()
    lab = on_a_lab(name, "dlt", pairs=5, congestion_control=cubic)
    with lab as study, opened(str(tmp_path / "w.db")) as store:
        task: Task = begun(store, study, testbeds=one_sided(Wait(60)))
        verdict = judged(task, SIDE, DEFAULT)
        assert verdict.outcome == "worse", verdict


@pytest.mark.long
def test_good_keys_are_called_a_gain(tmp_path: Path) -> None:
    name = "scenarios/bursts.toml"
    with on_a_lab(name, "slt", pairs=3) as study, opened(str(tmp_path / "g.db")) as store:
        task = begun(store, study)
        verdict = judged(task, "deep", DEEP)
        assert verdict.latency_outcome == "gain", verdict
        assert verdict.causes is not None
        assert (verdict.causes.pairs, verdict.causes.counters > 5) == (3, True)
        for trial in store.trials(task.subject, "judge"):
            counted = trial.counters[trial.replica]
            assert trial.histogram is not None
            # Which asked for this itself, after each second of the load.
            assert counted.total("nginx.requests") > trial.histogram.total
            assert counted.highest("nginx.active") >= 1
            dropped = counted.total("TcpExt.ListenDrops")
            assert (dropped == 0) == (trial.configuration == DEEP), dropped


def test_clients_tell_what_a_receive_window_held_back(tmp_path: Path) -> None:
    name = "scenarios/uploads.toml"
    with on_a_lab(name, "dlt", pairs=3) as study, opened(str(tmp_path / "u.db")) as store:
        plan = [
            PlannedTrial(index=n, role="baseline", configuration=one)
            for n, one in enumerate((DEFAULT, WIDE))
        ]
        trials = measured(begun(store, study), "collect", plan)
    (client,) = (n for n, host in trials[0].metrics.items() if host.p99_ms is not None)
    narrow, wide = (t.counters[client].total("upstreams.rwnd_limited_ms") for t in trials)
    assert narrow > 2 * wide, (narrow, wide)
    assert "sockets" not in trials[0].counters[client].unread
