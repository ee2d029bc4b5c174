"""A worker: measures the jobs of campaigns on the replicas that it can reach.

It looks for a job, opens the job's replica, and only then claims jobs there: the guard on the host
decides which of several workers measures on a replica. While it measures, a thread renews the lease
and says that the worker lives.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from threading import Event, Thread

from intop.config.study import Study
from intop.document.progress import Progress
from intop.domain.job import LEASE_S, Job, Lease, Opened, Refusal, Spot, WorkerStatus
from intop.domain.trial import Trial
from intop.domain.workload import Workload
from intop.errors import (
    BaselineError,
    IncomparableError,
    IntopError,
    NginxRefusedError,
    ResultMissingError,
    StoredRowError,
    UnreadableJobError,
    UsageError,
)
from intop.hosts.host import Connect
from intop.run.cluster_testbed import ClusterTestbed
from intop.run.context import Context, Task
from intop.run.opening import cluster_testbed
from intop.run.requested import requested_study, requested_workload
from intop.store import Store, Subject
from intop.store.rows import now
from intop.words import inert

POLL_S = 0.2
"""The time between two looks for work (s)."""

LINGER_S = 10.0
"""The time that a replica is held for the next job (s): opening it takes seconds."""

GOODBYE_S = 5.0
"""The longest wait of a worker for its own last sign of life (s)."""

BACK_OFF_S = 10.0
"""The time that a replica is left alone after it could not be opened (s)."""

OF_THE_JOB = (
    *(UsageError, IncomparableError, BaselineError, ResultMissingError, StoredRowError),
    *(NginxRefusedError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError),
)
"""The errors that fail a job: no other worker would do better.

The last ones come from rows that no intop has written. All others are the replica's or the store's.
"""

Open = Callable[[Task, int], AbstractContextManager[ClusterTestbed]]
"""Opens a replica for a task, by its place in the study's file."""


@dataclass
class Counted:
    """The counts of a worker: trials by status, and trouble with replicas."""

    trials: dict[str, int] = field(default_factory=dict)
    late: int = 0
    failures: int = 0

    @property
    def measured(self) -> int:
        """All stored trials."""
        return sum(self.trials.values())


@dataclass(kw_only=True)
class Worker:
    """Serves the replicas `spots` of these studies, whose campaigns are in one store."""

    name: str
    studies: Mapping[str, Study]
    spots: Sequence[Spot]
    store: Store
    connect: Connect
    progress: Progress
    open_replica: Open = cluster_testbed
    lease_s: float = LEASE_S
    counted: Counted = field(default_factory=Counted)
    doing: str = "waiting for work"
    """Its present work, in words."""
    started_at: str = field(default_factory=now)
    _back_at: dict[Spot, float] = field(default_factory=dict)
    _lost: set[Spot] = field(default_factory=set)
    """The replicas that the last try could not open, or has lost."""
    _lease: Lease | None = None
    _broken: Exception | None = None

    def run(self, *, idle_s: float | None = None) -> None:
        """Work until it is interrupted, or until there was nothing to do for `idle_s` seconds.

        Trouble with a replica is said, and the replica left alone for a while. A job that can't be
        done fails with its reason. Raises what opening the store does, and KeyboardInterrupt.
        """
        quiet_since = time.monotonic()
        with self._heard():
            while idle_s is None or time.monotonic() - quiet_since < idle_s:
                if self._broken is not None:
                    raise self._broken
                job = self._next()
                if job is None:
                    time.sleep(POLL_S)
                    continue
                self._serve(job)
                quiet_since = time.monotonic()

    def reach(self) -> tuple[Spot, ...]:
        """Return the replicas that it serves, without those that it leaves alone."""
        at = time.monotonic()
        return tuple(spot for spot in self.spots if self._back_at.get(spot, 0.0) <= at)

    @property
    def serves(self) -> tuple[Spot, ...]:
        """The replicas that others may count on, without those that are lost until now."""
        return tuple(spot for spot in self.spots if spot not in self._lost)

    @property
    def leases(self) -> int:
        """The number of jobs that it holds."""
        return int(self._lease is not None)

    def status(self) -> WorkerStatus:
        """Return its status for others."""
        return WorkerStatus(
            name=self.name,
            started_at=self.started_at,
            silent_s=0.0,
            doing=self.doing,
            reach=self.serves,
            trials=self.counted.measured,
            failures=self.counted.failures,
        )

    def _next(self) -> Job | None:
        while True:
            try:
                return self.store.jobs.next(self.reach())
            except UnreadableJobError as error:
                self._reject(error.job, error)

    def _serve(self, job: Job) -> None:
        """Open a job's replica, and do all jobs of its campaign there."""
        self.doing = inert(f"opening {job.spot} for campaign {job.campaign_id}")
        try:
            task = self._task(job)
            with self.open_replica(task, job.spot.replica) as testbed:
                self._lost.discard(job.spot)
                self._work(testbed, job, task)
        except OF_THE_JOB as error:
            self._reject(job.id, error, job.spot)
        except IntopError as error:
            self._back_at[job.spot] = time.monotonic() + BACK_OFF_S
            self._lost.add(job.spot)
            self._trouble(f"{job.spot}: {error}")
            self.store.jobs.note(job, inert(f"{self.name}: {error}"))
        finally:
            self.doing = "waiting for work"

    def _work(self, testbed: ClusterTestbed, first: Job, task: Task) -> None:
        """Do a campaign's jobs on a replica that is open for a task, until LINGER_S without one.

        It also ends for another campaign that waits for the replica, and for a job that wants the
        replica opened otherwise.
        """
        spot, linger_until = first.spot, time.monotonic() + LINGER_S
        while time.monotonic() < linger_until and self._broken is None:
            try:
                lease = self._claim(first)
                if lease is None and self.store.jobs.next([spot]) is not None:
                    return
            except UnreadableJobError as error:
                self._reject(error.job, error)
                continue
            if lease is None:
                time.sleep(POLL_S)
                continue
            try:
                is_alike = self._is_alike(lease.job, task)
            except OF_THE_JOB as error:
                self._fail(lease, error)
                continue
            if not is_alike:
                self.store.jobs.release(lease)
                return
            self._do(testbed, lease)
            linger_until = time.monotonic() + LINGER_S

    def _claim(self, first: Job) -> Lease | None:
        """Claim the next job like the first one. Raises UnreadableJobError."""
        return self.store.jobs.claim(
            first.spot,
            first.campaign_id,
            first.workload,
            worker=self.name,
            lease_s=self.lease_s,
        )

    def _do(self, testbed: ClusterTestbed, lease: Lease) -> None:
        job = lease.job
        self._lease = lease
        self.doing = inert(_in_words(job))
        try:
            if job.planned is not None:
                self._measure(testbed, lease)
            elif job.kind == "open":
                answer = Opened(
                    name=testbed.name, conditions=testbed.conditions, probe=testbed.probe
                )
                self.store.jobs.answer(lease, answer)
            else:
                self.store.jobs.answer(lease, _refusal(testbed, job))
        except OF_THE_JOB as error:
            self._fail(lease, error)
        except BaseException:  # Ctrl-C too
            self.store.jobs.release(lease)
            raise
        finally:
            self._lease = None
            self.doing = f"holding {job.spot} for campaign {job.campaign_id}"

    def _measure(self, testbed: ClusterTestbed, lease: Lease) -> None:
        """Measure a trial and store it. Raises HostError where the replica is lost."""
        job = lease.job
        if job.planned is None:
            raise ValueError(f"job {job.id} is no trial's")
        if job.attempt:
            testbed.wait_until_quiet()
        trial = testbed.trial(job.planned, job.stage, job.attempt, job.request.prune_above_ms)
        if self.store.jobs.complete(lease, trial):
            self.counted.trials[trial.status] = self.counted.trials.get(trial.status, 0) + 1
            self.progress.step(_described(job, trial))
        else:
            self.counted.late += 1
            self.progress.say(
                f"{_in_words(job)}: came too late, another worker has the trial by now"
            )
        if trial.status == "disturbed":
            testbed.check_connections()

    def _fail(self, lease: Lease, error: Exception) -> None:
        """Fail a held job that can't be done."""
        why = f"{lease.job.spot}: {_reason(error)}"
        self._trouble(why)
        self.store.jobs.fail(lease, inert(f"{self.name} says of {why}"))

    def _reject(self, job: int, error: Exception, spot: Spot | None = None) -> None:
        """Fail a job that can't be done, unless somebody has claimed it."""
        why = _reason(error) if spot is None else f"{spot}: {_reason(error)}"
        self._trouble(why)
        self.store.jobs.reject(job, inert(f"{self.name} says of {why}"))

    def _trouble(self, text: str) -> None:
        self.counted.failures += 1
        self.progress.say(text)

    def _wanted(self, job: Job) -> tuple[Study, Workload]:
        """Return a job's study and workload from the worker's own file. Raises UsageError."""
        study = requested_study(job, self.studies[job.spot.study])
        return study, requested_workload(job, study)

    def _is_alike(self, job: Job, task: Task) -> bool:
        """Whether a replica that is open for a task is right for a job. Raises UsageError."""
        study, workload = self._wanted(job)
        wanted = study.tunes, workload, job.request.tries_durations
        return wanted == (task.context.study.tunes, task.workload, task.tries_durations)

    def _task(self, job: Job) -> Task:
        """Return the task of a job. Raises one of OF_THE_JOB."""
        study, workload = self._wanted(job)
        campaign = self.store.campaign(job.campaign_id)
        context = Context(
            study=study,
            store=self.store,
            campaign=campaign,
            connect=self.connect,
            progress=self.progress,
            archs=(job.spot.arch,),
            workloads=(workload,),
        )
        subject = Subject(campaign=campaign, arch=job.spot.arch, workload=job.workload)
        return Task(
            context=context,
            subject=subject,
            workload=workload,
            tries_durations=job.request.tries_durations,
        )

    @contextmanager
    def _heard(self) -> Iterator[None]:
        """Say that the worker lives, and renew its lease, for as long as it works."""
        ended = Event()

        def beat() -> None:
            try:
                while not ended.is_set():
                    self.store.workers.heard(self.status())
                    if ended.is_set():  # meanwhile: nobody waited for a store that was away
                        self.store.workers.ended(self.name)
                        return
                    if (lease := self._lease) is not None:
                        self.store.jobs.renew(lease, self.lease_s)
                    ended.wait(self.lease_s / 3)
            except Exception as error:  # noqa: BLE001 - it is raised where the worker works
                if not ended.is_set():
                    self._broken = error

        thread = Thread(target=beat, name="heartbeat", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join(GOODBYE_S)  # it may wait for the store
            self.store.workers.ended(self.name)


def _reason(error: Exception) -> str:
    """Return an error in words, with the name of one that is not ours."""
    return str(error) if isinstance(error, IntopError) else f"{type(error).__name__}: {error}"


def _refusal(testbed: ClusterTestbed, job: Job) -> Refusal:
    if job.request.configuration is None:
        raise ValueError(f"job {job.id} has no configuration")
    error = testbed.refusal(job.request.configuration)
    if error is None:
        return Refusal()
    return Refusal(host=error.host, key=error.key, value=error.value, got=error.got)


def _in_words(job: Job) -> str:
    """Return such as: campaign 3, web x86 replica 2, slt: trial 17 of collect."""
    where = f"campaign {job.campaign_id}, {job.spot}, {job.workload}"
    if job.planned is None:
        return f"{where}: {job.kind}"
    again = f", attempt {job.attempt + 1}" if job.attempt else ""
    return f"{where}: trial {job.planned.index} of {job.stage}{again}"


def _described(job: Job, trial: Trial) -> str:
    name = trial.conditions.judged_by
    latency = "" if trial.histogram is None else f", {name} {trial.judged_ms:.1f} ms"
    return f"{_in_words(job)}: {trial.status}{latency}"
