"""A real lab on which something changes between two sessions of a campaign."""

import os
import platform
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from intop.config.study import load_study
from intop.errors import IncomparableError
from intop.lab.state import STATE_FOLDER
from intop.run.opening import cluster_testbed
from kit.real_campaigns import BASELINE, contexts


def test_a_campaign_goes_on_only_with_the_nginx_conf_that_it_began_with(
    make_study: Callable[..., Any], tmp_path: Path
) -> None:
    made = make_study("x86")
    conf = STATE_FOLDER / made.labs[0] / "host-lb" / "nginx.conf"
    text = conf.read_text()
    with contexts(load_study(made.folder / "intop.toml"), tmp_path) as context:
        task = next(iter(context.subjects()))
        with cluster_testbed(task) as ready:
            began = ready.conditions
            trial = ready.trial(BASELINE, "collect", 0)
            softirq = trial.metrics[ready.name].max_cpu_softirq
            # A busy machine's ticks, by which the kernel counts it, may all miss a short trial's.
            for attempt in range(1, 20):
                if softirq == 0:
                    again = ready.trial(BASELINE, "collect", attempt)
                    softirq = again.metrics[ready.name].max_cpu_softirq
        task.store.write_plan(task.subject, "collect", [BASELINE])
        task.store.add(task.subject, trial)
        kernel, cpus = platform.release(), os.cpu_count()
        assert (cpus, 8) == (began.cpus, len(began.nginx_conf))
        host, _, load = began.generator.rpartition(", ")
        assert load == "load on CPUs 0-1"
        assert host.endswith(f" CPUs, Linux {kernel}" if cpus != 1 else f"Linux {kernel}")
        assert began.backends.startswith(f"3 x {host}, nginx 1.")
        metrics = trial.metrics[ready.name]
        assert cpus == metrics.cpus
        assert softirq is not None
        assert 0 < softirq < 1
        assert metrics.softnet_squeezes is not None

        # Neither comments nor a killed session that left no nginx behind are a change.
        conf.write_text(f"# looked at\n{text}")
        made.balancer(f"kill $(cat {conf.parent}/nginx.pid)")
        with cluster_testbed(task) as ready:
            assert began == ready.conditions

        conf.write_text(text.replace("keepalive_timeout 65;", "keepalive_timeout 5;"))
        with pytest.raises(IncomparableError) as caught, cluster_testbed(task):
            pass
        assert f"  nginx_conf: {began.nginx_conf} against " in str(caught.value)
        assert f"nginx.conf on {ready.name}, or a file that it includes, was changed" in str(
            caught.value
        )
