"""A campaign of a few trials with replicates, and what models are to be given of it."""

import math

import pytest

from benchmarks.campaign import measured
from builders.testbeds import FakeTestbed, probe_of
from intop.domain.configuration import DEFAULT, Configuration
from intop.domain.trial import PlannedTrial
from intop.learn.samples import Samples

KEY = "net.ipv4.tcp_fin_timeout"
ONE, OTHER = Configuration({KEY: "30"}), Configuration({KEY: "45"})


def collect(testbed: FakeTestbed) -> None:
    """The default three times, one configuration twice, once disturbed, and another one once."""
    order = [DEFAULT, ONE, OTHER, DEFAULT, ONE, ONE, DEFAULT]
    latencies = [1_000, 400, 2_000, 1_000, 1_600, 1, 1_000]
    plan = [
        PlannedTrial(index=n, role="design", configuration=configuration)
        for n, configuration in enumerate(order)
    ]
    testbed.latency = lambda p: latencies[p.index]
    retries = testbed.task.context.study.budget.retries
    testbed.statuses = [*("ok",) * 5, "disturbed", "ok", *("disturbed",) * retries]
    testbed.task.store.put(testbed.task.subject, probe_of({KEY: "60"}))
    measured(testbed.task, "collect", plan)


def check(samples: Samples) -> None:
    """The default, and the two others, each with all of its trials."""
    assert samples.values.tolist() == [[60], [30], [45]]
    assert [len(trials) for trials in samples.measured] == [3, 2, 1]
    # 0.8 ms is the geometric mean of 0.4 and 1.6.
    assert [0, math.log(0.8), math.log(2)] == pytest.approx(samples.log_target, abs=1e-3)
