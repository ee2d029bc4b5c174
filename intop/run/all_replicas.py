"""Opening all replicas of a task's cluster that agree, here or by workers."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from intop.domain.agreement import Agreement
from intop.domain.probing import Probe
from intop.errors import IncomparableError
from intop.run.context import Task
from intop.run.executor import OpenTestbeds, execute
from intop.run.opening import cluster_testbed
from intop.run.remote import as_opened, known, opened_by_workers
from intop.run.replicas import Replica, Replicas, check_alike, in_common
from intop.run.testbed import Testbed

FIRST = "replica 1"
"""The name of the only replica until its trials say it."""


@contextmanager
def replicas(task: Task) -> Iterator[tuple[Testbed, ...]]:
    """Open every replica that agrees with the first; agreement is tested once per subject.

    Raises IncomparableError when they are of different kinds, and what `Task.check_ready`,
    `cluster_testbed` and measuring do.
    """
    task.check_ready()
    count = len(task.context.study.clusters[task.subject.arch])
    agreement = task.store.get(task.subject, Agreement)
    places = range(count) if agreement is None else _still_there(task, agreement, count)
    if agreement is not None and len(agreement.replicas) != count:
        task.context.progress.say(
            f"{task.title}: this campaign began with {len(agreement.replicas)} replicas, and goes "
            f"on with {len(places)} of them; --new begins one with {count}"
        )
    with ExitStack() as stack:
        ready = [stack.enter_context(cluster_testbed(task, n)) for n in places]
        for n, testbed in zip(places, ready, strict=True):
            if agreement is not None and testbed.name != (name := agreement.replicas[n].name):
                raise _changed(task, f"replica {n + 1} was {name}, not {testbed.name}")
        for testbed in ready[1:]:
            check_alike(task, ready[0], testbed)
        ready = in_common(ready)
        yield tuple(ready if agreement or count == 1 else _agreeing(task, ready))


@contextmanager
def remote_replicas(task: Task) -> Iterator[tuple[Testbed, ...]]:
    """Ask workers to open every replica of a task that agrees with the first.

    A campaign begins once there is a worker for each of them.

    Raises:
        IncomparableError: when the replicas are of different kinds.
        IntopError: with the words of a worker that can't open a replica.
    """
    count = len(task.context.study.clusters[task.subject.arch])
    probe = task.store.get(task.subject, Probe)
    agreement = task.store.get(task.subject, Agreement)
    if probe is not None and agreement is not None:
        places = _still_there(task, agreement, count)
        ready = known(task, probe, [replica.name for replica in agreement.replicas])
        ready = [ready[n] for n in places]
    elif probe is not None and count == 1:
        ready = known(task, probe, [FIRST])
    else:
        opened = opened_by_workers(task, count)
        for replica in opened[1:]:
            check_alike(task, opened[0], replica)
        ready = in_common(as_opened(task, opened))
        ready = ready if count == 1 else _agreeing(task, ready)
    try:
        yield tuple(ready)
    finally:
        for testbed in ready:
            testbed.abort()


def _still_there(task: Task, agreement: Agreement, count: int) -> list[int]:
    """Return the places of replicas in use that the study has. Raises IncomparableError."""
    places = [n for n in agreement.in_use if n < count]
    if not places:
        used = ", ".join(agreement.replicas[n].name for n in agreement.in_use)
        raise _changed(task, f"it measured on {used} of {len(agreement.replicas)} replicas")
    return places


def _changed(task: Task, what: str) -> IncomparableError:
    return IncomparableError(
        f"{task.title}: the replicas are not those with which this campaign began: {what}. Put "
        f"the earlier ones back into {task.context.study.path}, or begin a campaign with --new"
    )


def _agreeing(task: Task, ready: Sequence[Replica]) -> list[Replica]:
    """Measure which replicas agree with the first, and return these."""
    agreement = execute(Replicas(task, [testbed.name for testbed in ready]), on=OpenTestbeds(ready))
    return [ready[n] for n in agreement.in_use]
