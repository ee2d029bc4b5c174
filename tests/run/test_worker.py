"""Workers and the command that asks them, by one store, with testbeds whose trials are made up."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import count
from threading import Event, Thread
from typing import Any, cast

import pytest

from benchmarks.campaign import measured
from builders.testbeds import FakeTestbed, probe_of
from builders.trials import places, trial
from intop.campaign.sentinels import with_sentinels
from intop.domain.agreement import Agreement, agreement
from intop.domain.configuration import DEFAULT, Configuration
from intop.domain.job import Lease, Spot, WorkerStatus
from intop.domain.probing import Probe
from intop.domain.trial import PlannedTrial, Trial
from intop.errors import HostLockedError, IncomparableError, IntopError
from intop.run import remote, worker
from intop.run.all_replicas import remote_replicas
from intop.run.cluster_testbed import ClusterTestbed
from intop.run.context import Task
from intop.run.executor import OpenTestbeds
from intop.run.worker import Worker
from intop.store import Store, opened
from intop.store.rows import now

pytestmark = pytest.mark.timeout(300)
PROBE = probe_of({"net.core.somaxconn": "128"})


@dataclass
class Fleet:
    """Replicas and workers of the study of `task`."""

    task: Task
    testbeds: list[FakeTestbed]
    workers: list[Worker] = field(default_factory=list)
    threads: list[Thread] = field(default_factory=list)
    opened: list[tuple[str, int]] = field(default_factory=list)
    errors: dict[int, IntopError] = field(default_factory=dict)
    """What opening a replica raises, once."""
    ended: Event = field(default_factory=Event)

    def worker(self, name: str, *replicas: int) -> Worker:
        """One that serves these replicas."""
        study = self.task.context.study

        @contextmanager
        def open_replica(task: Task, replica: int) -> Iterator[ClusterTestbed]:
            if error := self.errors.pop(replica, None):
                raise error
            assert task.workload == self.task.workload
            self.opened.append((name, replica))
            if replica == 0 and task.store.get(task.subject, Probe) is None:
                task.store.put(task.subject, PROBE)  # as `cluster_testbed` does
            yield cast("ClusterTestbed", self.testbeds[replica])

        return Worker(
            name=name,
            studies={study.name: study},
            spots=[Spot(study=study.name, arch="x86", replica=n) for n in replicas],
            store=self.task.store,
            connect=self.task.context.connect,
            progress=self.task.context.progress,
            open_replica=open_replica,
        )

    def start(self, name: str, *replicas: int) -> Worker:
        """The same, at work in a thread."""
        made = self.worker(name, *replicas)

        def run() -> None:
            while not self.ended.is_set():
                made.run(idle_s=0.3)

        # Where it fails, nobody measures: the test ends by its limit, and pytest shows why.
        thread = Thread(target=run, daemon=True)
        thread.start()
        self.workers.append(made)
        self.threads.append(thread)
        return made

    def stage(self, name: str = "collect", count: int = 6) -> list[Trial]:
        plan = with_sentinels([p.configuration for p in places(count)], 2, 2)
        return measured(self.task, name, plan)

    def end(self) -> None:
        self.ended.set()
        for thread in self.threads:
            thread.join(timeout=60)
            assert not thread.is_alive()


@pytest.fixture
def fleet(
    testbed: FakeTestbed, url: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[int], Fleet]]:
    monkeypatch.setattr(worker, "POLL_S", 0.02)
    monkeypatch.setattr(worker, "LINGER_S", 0.1)
    monkeypatch.setattr(worker, "BACK_OFF_S", 0.3)
    monkeypatch.setattr(remote, "POLL_S", 0.02)
    monkeypatch.setattr(remote, "LOOK_EVERY_S", 0.05)
    made: list[Fleet] = []

    with opened(url) as store:

        def make(count: int) -> Fleet:
            context = testbed.task.context
            study = replace(
                context.study, workers=True, clusters={"x86": context.study.clusters["x86"] * count}
            )
            campaign = store.begin(study.name, seed=1, tool_version="0")
            context = replace(context, study=study, store=store, campaign=campaign, testbeds=None)
            subject = replace(testbed.task.subject, campaign=campaign)
            task = replace(testbed.task, context=context, subject=subject)
            testbeds = [Opening(task, name=f"lb-{n}", output=testbed.output) for n in range(count)]
            made.append(Fleet(task, list(testbeds)))
            return made[-1]

        yield make
        for one in made:
            one.end()


@dataclass
class Opening(FakeTestbed):
    """A testbed with what a worker says of one that it has opened."""

    probe: Probe = PROBE

    @property
    def conditions(self) -> Any:
        return trial(DEFAULT, 5_000).conditions


def test_workers_measure_what_a_command_asks_for(fleet: Callable[[int], Fleet]) -> None:
    made = fleet(1)
    made.start("one", 0)
    trials = made.stage()
    assert [t.planned.index for t in trials] == [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    assert trials == made.task.trials("collect")
    assert [*range(10)] == made.testbeds[0].measured
    assert made.workers[0].counted.measured == 10
    assert made.task.store.jobs.waiting() == {}
    # What is measured is measured.
    assert trials == made.stage()


def test_replicas_are_measured_on_by_whoever_serves_them(fleet: Callable[[int], Fleet]) -> None:
    made = fleet(3)
    made.start("one", 0, 1)
    made.start("two", 2)
    made.stage()
    rounds = made.task.context.study.budget.agree_rounds
    agreement = made.task.store.get(made.task.subject, Agreement)
    assert agreement is not None
    assert tuple(r.name for r in agreement.replicas) == ("lb-0", "lb-1", "lb-2")
    assert [one.measured[rounds:] for one in made.testbeds] == [[0, 3, 6, 9], [1, 4, 7], [2, 5, 8]]
    assert {replica for name, replica in made.opened if name == "two"} == {2}


def test_a_command_of_workers_goes_on_with_what_is_known(fleet: Callable[[int], Fleet]) -> None:
    made = fleet(2)
    made.start("one", 0, 1)
    made.stage()
    made.stage("screen", 2)
    with OpenTestbeds() as held:
        assert [one.name for one in held.of(made.task)] == ["lb-0", "lb-1"]


def test_a_replica_without_a_worker_leaves_its_trials_to_others(
    fleet: Callable[[int], Fleet], monkeypatch: pytest.MonkeyPatch, testbed: FakeTestbed
) -> None:
    made = fleet(2)
    made.start("one", 0, 1)
    made.stage()
    made.end()
    monkeypatch.setattr(remote, "PATIENCE_S", 0.3)
    made.ended.clear()
    before = [len(one.measured) for one in made.testbeds]
    made.start("two", 1)
    assert len(made.stage("screen")) == 10
    assert [len(one.measured) - n for one, n in zip(made.testbeds, before, strict=True)] == [0, 10]
    assert "replica 1 has no worker" in testbed.output.getvalue()


def agreed(task: Task, *names: str, drifted: str = "") -> None:
    """These replicas measure the same, but for one that has drifted since."""
    result = agreement({name: [5.0, 5.1, 5.2] for name in names}, level=0.95)
    task.store.put(task.subject, result.without(drifted) if drifted else result)


def test_no_trial_goes_to_a_replica_that_was_set_aside(
    fleet: Callable[[int], Fleet], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote, "PATIENCE_S", 0.0)
    monkeypatch.setattr(remote, "LOOK_EVERY_S", 0.0)
    made = fleet(3)
    task, plan = made.task, places(1)
    task.store.write_plan(task.subject, "collect", plan)
    request = remote.request_of(task)
    jobs = task.store.jobs
    job = jobs.offer(task.subject, "collect", plan[0], attempt=0, replica=0, request=request)
    one, two, three = (Spot(study=task.context.study.name, arch="x86", replica=n) for n in range(3))
    task.store.workers.heard(made.worker("others", 1, 2).status())

    def looks() -> set[Spot]:
        """Where the job may be after three looks."""
        search = remote._Search(task, one, remote.Absence(), turn=0)
        for _ in range(3):
            status = jobs.status(job)
            assert status is not None
            search.look(job, status)
        return {spot for spot in (one, two, three) if jobs.next([spot])}

    assert {one} == looks()  # nobody knows yet whether they are alike
    agreed(task, "lb-0", "lb-1", "lb-2", drifted="lb-1")
    assert {three} == looks()


def test_nobody_counts_on_a_replica_that_a_worker_could_not_open(
    fleet: Callable[[int], Fleet], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also while it tries again: a host that is off makes it wait for its connection."""
    made = fleet(2)
    made.errors[1] = HostLockedError("lb-1", "another session holds it")
    worker = made.worker("one", 0, 1)
    spots = worker.spots
    assert tuple(spots) == worker.status().reach
    task, plan = made.task, places(1)
    task.store.write_plan(task.subject, "collect", plan)
    request = remote.request_of(task)
    task.store.jobs.offer(task.subject, "collect", plan[0], attempt=0, replica=1, request=request)
    worker.run(idle_s=0.1)
    assert (spots[0],) == worker.status().reach
    time.sleep(0.4)  # more than BACK_OFF_S here
    assert tuple(spots) == worker.reach()
    assert (spots[0],) == worker.status().reach
    worker.run(idle_s=0.1)
    assert tuple(spots) == worker.status().reach
    assert [plan[0].index] == made.testbeds[1].measured


def test_a_trial_comes_back_to_a_replica_that_has_a_worker_again(
    fleet: Callable[[int], Fleet], monkeypatch: pytest.MonkeyPatch, testbed: FakeTestbed
) -> None:
    monkeypatch.setattr(remote, "PATIENCE_S", 0.0)
    monkeypatch.setattr(remote, "LOOK_EVERY_S", 0.0)
    task = fleet(2).task
    agreed(task, "lb-0", "lb-1")
    study = task.context.study.name
    spots = [Spot(study=study, arch="x86", replica=n) for n in (0, 1)]
    plan = places(1)
    task.store.write_plan(task.subject, "collect", plan)
    jobs, request = task.store.jobs, remote.request_of(task)
    job = jobs.offer(task.subject, "collect", plan[0], attempt=0, replica=0, request=request)

    def hears(name: str, spot: Spot) -> None:
        status = WorkerStatus(
            name=name,
            started_at=now(),
            silent_s=0.0,
            doing="",
            reach=(spot,),
            trials=0,
            failures=0,
        )
        task.store.workers.heard(status)

    search = remote._Search(task, spots[0], remote.Absence(), turn=0)

    def looks() -> None:
        status = jobs.status(job)
        assert status is not None
        search.look(job, status)

    hears("two", spots[1])
    for _ in range(4):  # the other one is busy meanwhile
        looks()
    result = jobs.next(spots)
    assert (job, spots[1]) == (result and result.id, result and result.spot)
    task.store.workers.ended("two")
    hears("one", spots[0])
    looks()
    result = jobs.next(spots)
    assert (job, spots[0]) == (result and result.id, result and result.spot)
    message = testbed.output.getvalue()
    assert message.count("replica 1 has no worker: this trial goes to replica 2") == 1
    assert message.count("replica 1 has a worker again: this trial comes back") == 1


def test_workers_get_what_a_process_that_died_was_measuring_itself(
    fleet: Callable[[int], Fleet],
) -> None:
    """The trial that it had taken is no worker's, until whoever asks for it gives it to one."""
    made = fleet(1)
    task, plan = made.task, places(1)
    task.store.write_plan(task.subject, "collect", plan)
    taken = task.store.jobs.take(
        task.subject,
        "collect",
        plan[0],
        attempt=0,
        request=remote.request_of(task),
        worker="dead",
        lease_s=0.5,
    )
    made.start("one", 0)
    made.stage("screen", 1)
    with remote_replicas(task) as (one,):
        assert plan[0] == one.trial(plan[0], "collect", 0).planned
    assert not task.store.jobs.complete(taken, trial())


def test_a_worker_without_a_heartbeat_takes_no_more(
    fleet: Callable[[int], Fleet], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = fleet(1)
    one = made.worker("one", 0)
    one.lease_s = 0.03  # three beats in that
    heard = count()

    def fails(_: WorkerStatus) -> None:
        if next(heard) > 3:
            raise IntopError("the store is gone")

    monkeypatch.setattr(one.store.workers, "heard", fails)
    plan = places(1)
    made.task.store.write_plan(made.task.subject, "collect", plan)
    jobs, request = made.task.store.jobs, remote.request_of(made.task)
    monkeypatch.setattr(worker, "LINGER_S", 60.0)
    jobs.offer(made.task.subject, "collect", plan[0], attempt=0, replica=0, request=request)
    with pytest.raises(IntopError, match="the store is gone"):
        one.run(idle_s=60)


def test_a_trial_whose_worker_died_is_measured_by_another(fleet: Callable[[int], Fleet]) -> None:
    made = fleet(1)
    store, subject = made.task.store, made.task.subject
    made.start("first", 0)
    made.stage("screen", 2)
    made.end()
    made.ended.clear()
    taken: list[Lease] = []

    def die() -> None:
        """Claim the first trial that comes, and never be heard of again."""
        spot = Spot(study=subject.campaign.study, arch="x86", replica=0)
        while not taken:
            lease = store.jobs.claim(
                spot, subject.campaign.id, subject.workload, worker="dead", lease_s=0.5
            )
            taken.extend([lease] if lease else [])
            time.sleep(0.02)
        made.start("second", 0)

    thread = Thread(target=die, daemon=True)
    thread.start()
    trials = made.stage()
    thread.join()
    planned = taken[0].job.planned
    assert planned is not None
    assert planned.index in made.testbeds[0].measured
    # It was not dead, only slow.
    late = replace(trials[0], planned=planned, seconds=500.0)
    assert not store.jobs.complete(taken[0], late)
    assert trials == made.task.trials("collect")
    assert [name for name, _ in store.jobs.late(subject)] == ["dead"]


def test_a_host_that_is_in_use_is_tried_again(
    fleet: Callable[[int], Fleet], testbed: FakeTestbed
) -> None:
    made = fleet(1)
    made.errors[0] = HostLockedError("lb-0", "is held by campaign 7")
    made.start("one", 0)
    assert len(made.stage()) == 10
    assert made.workers[0].counted.failures == 1
    assert "held by campaign 7" in testbed.output.getvalue()


def test_what_no_worker_could_do_ends_the_command(fleet: Callable[[int], Fleet]) -> None:
    made = fleet(1)
    made.errors[0] = IncomparableError("kernel: 6.1 against 6.2")
    made.start("one", 0)
    with pytest.raises(IntopError, match=r"one says of .* replica 1: kernel: 6.1 against 6.2"):
        made.stage()
    assert len(made.stage()) == 10


def test_a_disturbed_trial_is_measured_again(fleet: Callable[[int], Fleet]) -> None:
    made = fleet(1)
    made.testbeds[0].statuses = ["ok", "disturbed", "ok"]
    made.start("one", 0)
    assert {t.status for t in made.stage()} == {"ok"}
    assert [*range(10), 1] == made.testbeds[0].measured
    assert made.testbeds[0].waited == 1
    assert made.workers[0].counted.trials == {"ok": 10, "disturbed": 1}


def test_a_worker_asks_the_kernel(fleet: Callable[[int], Fleet]) -> None:
    made = fleet(1)
    made.testbeds[0].refuses = {"net.core.somaxconn": "128"}
    made.start("one", 0)
    with remote_replicas(made.task) as (one,):
        assert one.refusal(DEFAULT) is None
        error = one.refusal(Configuration({"net.core.somaxconn": "9"}))
    assert error is not None
    assert (error.key, error.value, error.got) == ("net.core.somaxconn", "9", "128")


def test_a_pruning_limit_reaches_the_worker(fleet: Callable[[int], Fleet]) -> None:
    made = fleet(1)
    made.start("one", 0)
    with remote_replicas(made.task) as (one,):
        plan = [PlannedTrial(index=0, role="design", configuration=DEFAULT)]
        made.task.store.write_plan(made.task.subject, "screen", plan)
        one.trial(plan[0], "screen", 0, 77.5)
    assert made.testbeds[0].limits_ms == [77.5]


def test_a_worker_that_ends_is_no_longer_known(
    fleet: Callable[[int], Fleet],
) -> None:
    made = fleet(1)
    made.start("one", 0)
    made.stage()
    assert "one" in {w.name for w in made.task.store.workers.all()}
    made.end()
    assert made.task.store.workers.all() == []


def test_workers_of_one_store_serve_several_campaigns(fleet: Callable[[int], Fleet]) -> None:
    made = fleet(1)
    made.start("one", 0)
    store: Store = made.task.store
    other = store.begin(made.task.context.study.name, seed=2, tool_version="0")
    context = replace(made.task.context, campaign=other)
    task = replace(made.task, context=context, subject=replace(made.task.subject, campaign=other))
    second = Fleet(task, made.testbeds)
    thread = Thread(target=second.stage, daemon=True)
    thread.start()
    made.stage()
    thread.join(timeout=60)
    assert len(second.task.trials("collect")) == 10
    assert len(made.task.trials("collect")) == 10
