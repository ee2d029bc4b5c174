"""Campaigns on measurements that were recorded: what answers in place of hosts.

The product's own stages run on it in a store of its own, without a host and without waiting:

    with campaign(offer, answer, url) as task:
        execute(Collect(task, 20))
        execute(Refine(task))
"""

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from io import StringIO
from typing import Any

import numpy as np

from benchmarks.campaign import bbr_backends, context_of
from intop.campaign.refine.stage import Refine
from intop.campaign.train.stage import Train
from intop.config.catalogue import Catalogue
from intop.config.study import Study
from intop.document.progress import LineProgress
from intop.domain.cluster import LabSpec, native_arch
from intop.domain.configuration import Configuration
from intop.domain.constraints import Listing
from intop.domain.histogram import Histogram, bucket_us
from intop.domain.parameter import Component, Parameter
from intop.domain.probing import HostFacts, Probe, Probed, Reading
from intop.domain.space import Space
from intop.domain.training import TREE_MODELS
from intop.domain.trial import Conditions, HostMetrics, PlannedTrial, Status, Trial
from intop.domain.workload import Budget
from intop.errors import RefusedValueError
from intop.learn.samples import Samples
from intop.run.available_space import probed_of
from intop.run.context import Task
from intop.run.testbed import Testbed
from intop.store import opened
from intop.version import __version__

REQUESTS = 100_000
"""Of a recorded trial. So many tell its tail to a millionth."""
BEYOND_P99, IN_TAIL = REQUESTS // 100 + 1, REQUESTS // 10
"""How many of them take P99 or longer, and how many are its tail."""
LONGEST_US = 60_000_000
"""After a minute a request has timed out."""
LOWEST_MS = 10.0
"""The lowest value of a table as a latency: far from where a histogram has whole microseconds."""
EVERYTHING_BYTES = 1 << 60
"""A memory that narrows no range."""


@dataclass(frozen=True)
class Shot:
    """What is recorded of a trial. A failed or disturbed one has latencies only for rivals."""

    configuration: Configuration
    p99_ms: float
    tail_ms: float
    status: Status = "ok"


Answer = Callable[[PlannedTrial, str], Shot]
"""What a trial of a stage comes to. What it raises ends the stage, and the store stays as it is."""


@dataclass(frozen=True)
class Offer:
    """A study, and what its host said: the space that its campaigns have."""

    study: Study
    probe: Probe

    @cached_property
    def space(self) -> Space:
        """All that can be tuned."""
        return probed_of(self.study, self.probe).space

    def with_budget(self, **changes: Any) -> "Offer":
        """The same with another budget."""
        budget: Budget = replace(self.study.budget, **changes)
        return replace(self, study=replace(self.study, budget=budget))


def recorded_study(study: Study) -> Study:
    """The study as it is measured on a testbed that has one answer to each trial.

    No trial is measured again or pruned, and failures don't end a stage.
    """
    budget = replace(study.budget, prune_factor=0.0, retries=0, max_failures=1_000_000)
    return replace(study, budget=budget)


def offer(catalogue: Catalogue, defaults: Mapping[str, str]) -> Offer:
    """The lab's study on another catalogue, all of whose keys are there with these values."""
    whole = bbr_backends()
    arch = native_arch()
    study = replace(
        recorded_study(whole),
        name="recorded",
        max_risk="high",
        own_catalogue=catalogue,
        clusters={arch: (LabSpec(name="recorded", arch=arch),)},
        workloads={"slt": whole.workloads["slt"]},
        optional=frozenset(),
    )
    facts = HostFacts(
        machine="recorded",
        kernel="6.18.0",
        cpu="recorded",
        cpus=1,
        memory_bytes=EVERYTHING_BYTES,
        page_bytes=4096,
        in_namespace=False,
        is_root=True,
        nginx="recorded",
        clock_s=0.0,
    )
    readings = {key: Reading("writable", value) for key, value in defaults.items()}
    return Offer(study, Probe(facts=facts, readings=readings))


def table_offer(samples: Samples, default: int) -> Offer:
    """The offer of a table of whole numbers: its rows and no others, one of which is the default.

    Raises ValueError for other numbers, and for a table whose numbers all stay the same.
    """
    if not np.array_equal(samples.values, np.rint(samples.values)):
        raise ValueError("not all of its options are whole numbers")
    rows = samples.values.astype(int).tolist()
    parameters = tuple(
        Parameter(
            key=variable.key,
            kind="integer",
            unit="",
            scope="machine",
            risk="low",
            mechanism="an option of a table",
            document="",
            components=(Component(name="", low=int(variable.low), high=int(variable.high)),),
            scale=variable.scale,
        )
        for variable in samples.variables
    )
    listing = Listing(columns=tuple(p.key for p in parameters), rows=tuple(map(tuple, rows)))
    defaults = {p.key: str(n) for p, n in zip(parameters, rows[default], strict=True)}
    return offer(Catalogue(parameters, (listing,)), defaults)


IDLE = HostMetrics(
    cpu=0.0,
    steal=0.0,
    memory_mib=0.0,
    time_wait=0,
    listen_overflows=0,
    listen_drops=0,
    retransmits=0,
    cpu_pressure=0.0,
    memory_before_mib=0.0,
    time_wait_before=0,
)
"""Tables have no metrics of hosts: all trials have the same."""


class RecordedTestbed:
    """A testbed that answers with what was recorded."""

    name = "recorded"
    applied = ""

    def __init__(self, task: Task, probed: Probed, answer: Answer) -> None:
        self.probed = probed
        self._task = task
        self._answer = answer

    def trial(
        self,
        planned: PlannedTrial,
        stage: str,
        attempt: int,
        prune_above_ms: float | None = None,  # noqa: ARG002
    ) -> Trial:
        """What the configuration was measured with."""
        shot = self._answer(planned, stage)
        workload = self._task.workload
        usable = shot.status not in ("failed", "disturbed")
        return Trial(
            planned=planned,
            stage=stage,
            attempt=attempt,
            status=shot.status,
            detail="" if shot.status == "ok" else "as it was recorded",
            conditions=Conditions(
                arch=self._task.subject.arch,
                machine="recorded",
                kernel="recorded",
                cpu="recorded",
                nginx="recorded",
                load_tool="recorded",
                workload=workload.name,
                script="",
                rate_rps=workload.rate_rps,
                connections=workload.connections,
                threads=workload.threads,
                duration_s=workload.counted_s,
                timeout_s=workload.timeout_s,
                link="",
                paths="",
            ),
            started_at="2026-01-01T00:00:00+00:00",
            seconds=0.0,
            seed=0,
            tool_version=__version__,
            histogram=histogram(shot.p99_ms, shot.tail_ms) if usable else None,
            achieved_rps=workload.rate_rps,
            metrics={"generator": IDLE, self.name: IDLE, "backend": IDLE},
            replica=self.name,
        )

    def refusal(self, configuration: Configuration) -> RefusedValueError | None:
        """Nothing is refused."""

    def check_connections(self) -> None:
        """There are none."""

    def wait_until_quiet(self) -> None:
        """It always is."""

    def abort(self) -> None:
        """Nothing is ever under way."""


@contextmanager
def campaign(offered: Offer, answer: Answer, url: str = "sqlite://") -> Iterator[Task]:
    """The campaign in a store, which is begun if it is empty; by default in memory only."""

    @contextmanager
    def testbeds(task: Task) -> Iterator[tuple[Testbed, ...]]:
        yield (RecordedTestbed(task, probed_of(offered.study, offered.probe), answer),)

    with opened(url, in_memory=url == "sqlite://") as store:
        silent = LineProgress(StringIO())
        context = context_of(store, offered.study, progress=silent, testbeds=testbeds)
        (task,) = context.subjects()
        if store.get(task.subject, Probe) is None:
            store.put(task.subject, offered.probe)
        yield task


class Onward(Refine):
    """A refinement that spends its budget, also where nothing better is expected."""

    ends_early = False


class TrainTrees(Train):
    """A training of the families that are searched: what it finds of them is the same."""

    families = TREE_MODELS


def histogram(p99_ms: float, tail_ms: float) -> Histogram:
    """One with this P99, up to a bucket's width, and, as exactly as can be, this tail (ms).

    What is not of the tail is as long as the tail's shortest. Where the tail is longer than P99,
    so are the requests beyond P99.
    """
    p99_us = bucket_us(round(1_000 * p99_ms))
    log_p99, log_sum = math.log(p99_us), IN_TAIL * math.log(1_000 * tail_ms)
    if log_sum <= IN_TAIL * log_p99:
        count = IN_TAIL - BEYOND_P99
        rest = _latencies((log_sum - BEYOND_P99 * log_p99) / count, count)
        shortest = rest[0][0]
        return Histogram.from_pairs(
            [(shortest, REQUESTS - IN_TAIL), *rest, (p99_us, BEYOND_P99)],
        )
    count = BEYOND_P99 - 1
    rest = _latencies((log_sum - (IN_TAIL - count) * log_p99) / count, count)
    return Histogram.from_pairs([(p99_us, REQUESTS - count), *rest])


def _latencies(mean_log: float, count: int) -> list[tuple[int, int]]:
    """So many latencies (us, count) in two neighbouring buckets, with this mean logarithm.

    None is longer than LONGEST_US: a few requests can't make up for any tail.
    """
    mean_log = min(mean_log, math.log(LONGEST_US))
    # Rounding must not lead to the bucket beyond: where all are alike, that is P99's own.
    upper = bucket_us(math.ceil(math.exp(mean_log) * (1 - 1e-9)))
    lower = upper - 1
    while bucket_us(lower) == upper:
        lower -= 1
    share = (mean_log - math.log(lower)) / (math.log(upper) - math.log(lower))
    above = min(count, round(share * count))
    return [(us, many) for us, many in ((lower, count - above), (upper, above)) if many]
