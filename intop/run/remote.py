"""Replicas that workers measure on: this process only asks, through the store."""

import os
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from threading import Event

from intop.domain.agreement import Agreement
from intop.domain.configuration import Configuration
from intop.domain.job import JobSettings, JobStatus, Opened, Refusal, Spot
from intop.domain.probing import Probe, Probed
from intop.domain.trial import PlannedTrial, Trial
from intop.errors import IntopError, RefusedValueError
from intop.run.available_space import probed_of
from intop.run.context import Task

POLL_S = 0.1
"""Seconds between questions to the store whether a job is done."""

PATIENCE_S = 60.0
"""The time without a worker after which a replica's trials go to other replicas (s)."""

LOOK_EVERY_S = 1.0
"""Seconds between questions to the store which workers there are."""

SAY_EVERY_S = 60.0
"""Seconds between messages that no worker is there."""


@dataclass
class Absence:
    """The time since which a replica has had no worker (monotonic); None while it has one."""

    since: float | None = None


@dataclass(frozen=True, kw_only=True)
class RemoteTestbed:
    """A replica, by its place in the study's file, on which workers measure."""

    task: Task
    replica: int
    name: str
    probe: Probe
    probed: Probed
    aborted: Event = field(default_factory=Event, compare=False)
    absence: Absence = field(default_factory=Absence, compare=False)

    @property
    def applied(self) -> str:
        """Raises NotImplementedError: a soak and an apply connect by themselves."""
        raise NotImplementedError

    def trial(
        self, planned: PlannedTrial, stage: str, attempt: int, prune_above_ms: float | None = None
    ) -> Trial:
        """Have a configuration measured. The trial is stored when this returns.

        Where the replica has had no worker for PATIENCE_S, an agreeing replica with a worker
        measures it: the same one for all arms of a round. Raises IntopError where no worker can.
        """
        task = self.task
        job = task.store.jobs.offer(
            task.subject,
            stage,
            planned,
            attempt=attempt,
            replica=self.replica,
            request=request_of(task, prune_above_ms=prune_above_ms),
        )
        _wait(task, job, self.replica, self.aborted, absence=self.absence, turn=planned.turn)
        trial = task.store.attempt(task.subject, stage, planned.index, attempt)
        if trial is None:
            raise IntopError(
                f"{task.title}: trial {planned.index} of {stage} was withdrawn by another process "
                "that asks for this campaign's trials, too. End one of them"
            )
        return trial

    def refusal(self, configuration: Configuration) -> RefusedValueError | None:
        """Return the kernel's refusal of a configuration, by a worker that tries it."""
        request = request_of(self.task, configuration=configuration)
        job = self.task.store.jobs.ask(self.task.subject, self.replica, "refusal", request)
        answer = _wait(self.task, job, self.replica, self.aborted)
        if not isinstance(answer, Refusal) or not answer.key:
            return None
        return RefusedValueError(answer.host, answer.key, answer.value, answer.got)

    def check_connections(self) -> None:
        """Do nothing: the worker checks, after a disturbed trial."""

    def wait_until_quiet(self) -> None:
        """Do nothing: the worker waits, before it measures a disturbed trial again."""

    def abort(self) -> None:
        """Wait for no trial any more. A worker ends and stores what it has begun."""
        self.aborted.set()


def request_of(
    task: Task,
    *,
    prune_above_ms: float | None = None,
    configuration: Configuration | None = None,
) -> JobSettings:
    """Return the facts of a task that a worker can't know by itself."""
    return JobSettings(
        workload=task.workload,
        tunes=task.context.study.tunes,
        tries_durations=task.tries_durations,
        prune_above_ms=prune_above_ms,
        configuration=configuration,
    )


def this_process() -> str:
    """Return the default name of a worker."""
    return f"{socket.gethostname()}:{os.getpid()}"


def known(task: Task, probe: Probe, names: Sequence[str]) -> list[RemoteTestbed]:
    """Return the replicas that a campaign has measured on."""
    probed = probed_of(task.context.study, probe)
    return [
        RemoteTestbed(
            task=task,
            replica=n,
            name=name,
            probe=probe if n == 0 else probe.replicas.get(name, probe),
            probed=probed,
        )
        for n, name in enumerate(names)
    ]


def opened_by_workers(task: Task, count: int) -> list[Opened]:
    """Return all replicas, once a worker has opened each of them. Raises what `_wait` does."""
    jobs, request = task.store.jobs, request_of(task)
    asked = [jobs.ask(task.subject, n, "open", request) for n in range(count)]
    opened: list[Opened] = []
    try:
        for n, job in enumerate(asked):
            answer = _wait(task, job, n, Event())
            if not isinstance(answer, Opened):
                raise IntopError(f"{task.title}: nobody said what replica {n + 1} is: {answer}")
            opened.append(answer)
    finally:
        for job in asked[len(opened) :]:
            jobs.withdraw(job)
    return opened


def as_opened(task: Task, opened: Sequence[Opened]) -> list[RemoteTestbed]:
    """Return the testbeds of replicas that workers have just opened, in the study's order."""
    return [
        RemoteTestbed(
            task=task,
            replica=n,
            name=each.name,
            probe=each.probe,
            probed=probed_of(task.context.study, each.probe),
        )
        for n, each in enumerate(opened)
    ]


def _wait(
    task: Task,
    job: int,
    replica: int,
    aborted: Event,
    *,
    absence: Absence | None = None,
    turn: int | None = None,
) -> Opened | Refusal | None:
    """Wait until a job is done, and return the answer; None for a trial.

    A trial that nobody holds goes to another replica by its `turn`, if its own has no worker.
    Raises IntopError for a job that failed or was aborted.
    """
    jobs = task.store.jobs
    spot = Spot(study=task.context.study.name, arch=task.subject.arch, replica=replica)
    search = _Search(task, spot, absence or Absence(), turn)
    while (status := jobs.status(job)) is not None:
        if status.state == "done":
            jobs.withdraw(job)
            return status.answer
        if status.state == "failed" or aborted.is_set():
            jobs.withdraw(job)
            raise IntopError(f"{task.title}: {status.why or 'given up'}")
        if status.is_free:
            search.look(job, status)
        time.sleep(POLL_S)
    return None


@dataclass
class _Search:
    """The search for a worker of a job that nobody holds."""

    task: Task
    spot: Spot
    absence: Absence
    turn: int | None
    problem: str = ""
    looked_at: float = 0.0
    said_at: float = field(default_factory=time.monotonic)

    def look(self, job: int, status: JobStatus) -> None:
        """Say what keeps workers from the job, and move it to another replica where that helps."""
        if status.problem not in ("", self.problem):
            self.problem = status.problem
            self._say(f"replica {self.spot.replica + 1}: {status.problem}")
        at = time.monotonic()
        if at - self.looked_at < LOOK_EVERY_S:
            return
        self.looked_at = at
        reach = sorted(_reached(self.task, self.spot))
        if self.spot.replica in reach:
            self.absence.since = None
            why = (
                "has a worker again: this trial comes back"
                if status.replica >= 0
                else "gets a trial that another process has not ended"
            )
            self._move(job, status.replica, self.spot.replica, why)
        elif self.absence.since is None:
            self.absence.since = at
        elif (
            self.turn is not None
            and at - self.absence.since >= PATIENCE_S
            and (alike := [n for n in _alike(self.task) if n in reach])
        ):
            replica = alike[self.turn % len(alike)]
            why = f"has no worker: this trial goes to replica {replica + 1}"
            self._move(job, status.replica, replica, why)
        if not reach and at - self.said_at >= SAY_EVERY_S:
            self.said_at = at
            self._say(
                "no worker is there. On a machine that reaches the cluster: intop worker "
                f"--config STUDY --arch {self.spot.arch}"
            )

    def _move(self, job: int, before: int, replica: int, why: str) -> None:
        """Move the job to a replica, unless it is there."""
        if replica != before and self.task.store.jobs.move(job, replica):
            self._say(f"replica {self.spot.replica + 1} {why}")

    def _say(self, text: str) -> None:
        self.task.context.progress.say(f"{self.task.title}: {text}")


def _alike(task: Task) -> tuple[int, ...]:
    """Return the replicas that agree with the first; none while that is unknown."""
    agreement = task.store.get(task.subject, Agreement)
    return agreement.in_use if agreement is not None else ()


def _reached(task: Task, spot: Spot) -> set[int]:
    """Return the replicas of the task's cluster that a living worker serves."""
    return {
        served.replica
        for worker in task.store.workers.all()
        if worker.is_alive
        for served in worker.reach
        if (served.study, served.arch) == (spot.study, spot.arch)
    }
