"""Replicas of a cluster: opened together, and used together once they have been seen to agree."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager

from intop.domain.agreement import Agreement, agreement
from intop.domain.configuration import DEFAULT
from intop.domain.trial import PlannedTrial, Trial
from intop.pipeline.bench import Bench, bench, check_alike, in_common
from intop.pipeline.carrying import carry_out
from intop.pipeline.context import Task
from intop.report.text import replica_sentence

LEVEL = 0.99
"""Of the comparison of replicas. A false alarm costs half of the speed, and one that is missed is
no more than what the interval tells."""


def replicas_in_use(task: Task) -> int:
    """How many replicas the task's trials are measured on."""
    found = task.store.get(task.subject, Agreement)
    return 1 if found is None else len(found.in_use)


@contextmanager
def benches(task: Task) -> Iterator[tuple[Bench, ...]]:
    """A bench on each replica that agrees with the first one, which the first task finds out.

    Raises IncomparableError when they are of different kinds, and what `bench` and `carry_out` do.
    """
    count = len(task.context.study.clusters[task.subject.arch])
    found = task.store.get(task.subject, Agreement)
    wanted = range(count) if found is None else [n for n in found.in_use if n < count]
    if found is not None and len(found.replicas) != count:
        task.context.progress.say(
            f"{task.title}: this campaign began with {len(found.replicas)} replicas, and goes on "
            f"with {len(list(wanted))} of them; --new begins one with {count}"
        )
    with ExitStack() as stack:
        ready = [stack.enter_context(bench(task, n)) for n in wanted]
        for other in ready[1:]:
            check_alike(ready[0], other)
        ready = in_common(ready)
        if found is None and count > 1:
            found = _compared(task, ready)
            ready = [ready[n] for n in found.in_use]
        yield tuple(ready)


def _compared(task: Task, ready: Sequence[Bench]) -> Agreement:
    """Measure the default on all of them at once, and keep what that says."""
    rounds = task.context.study.budget.agree_rounds
    plan = task.store.plan(task.subject, "replicas")
    if not plan:
        places = range(rounds * len(ready))
        plan = [PlannedTrial(index=n, role="baseline", configuration=DEFAULT) for n in places]
        task.store.write_plan(task.subject, "replicas", plan)
    made = {t.planned.index: t for t in task.trials("replicas")}
    due = [p for p in plan if p.index not in made or not made[p.index].usable]
    progress = task.context.progress
    progress.begin(f"{task.title}: replicas", len(plan), len(plan) - len(due))
    try:
        carry_out(ready, "replicas", due, made, max_failures=0)
    finally:
        progress.end()
    found = agreement({b.name: _p99(made.values(), b.name) for b in ready}, level=LEVEL)
    for replica in found.replicas[1:]:
        progress.say(f"{task.title}: {replica_sentence(replica)}")
    task.store.put(task.subject, found)
    return found


def _p99(trials: Iterable[Trial], replica: str) -> list[float]:
    return [t.p99_ms for t in trials if t.usable and t.replica == replica]
