"""Replicas of a cluster: opened together, and used together once they have been seen to agree."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace

from intop.domain.agreement import Agreement, agreement
from intop.domain.configuration import DEFAULT
from intop.domain.probing import other_values
from intop.domain.trial import PlannedTrial, Trial
from intop.errors import IncomparableError
from intop.pipeline.bench import Bench, bench
from intop.pipeline.carrying import carry_out
from intop.pipeline.context import Task
from intop.pipeline.doctor import check_ready
from intop.pipeline.offer import lists_of_choices, probed_of
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

    Raises IncomparableError when they are of different kinds, and what `check_ready`, `bench` and
    `carry_out` do.
    """
    check_ready(task)
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


def check_alike(one: Bench, other: Bench) -> None:
    """Refuse two replicas whose trials can't be mixed. Raises IncomparableError."""
    differences = one.conditions.differences(other.conditions)
    differences += other_values(one.probe, other.probe, lists_of_choices(one.task.context.study))
    if differences:
        raise IncomparableError(
            f"{one.task.title}: {one.name} and {other.name} are no replicas of each other "
            f"({one.name} against {other.name}):\n  " + "\n  ".join(differences) + "\n"
            f"Make them alike, or take one of them out of {one.task.context.study.path}"
        )


def in_common(ready: Sequence[Bench]) -> list[Bench]:
    """Replicas with the space that all of them offer, which the first stage of all finds out.

    Raises IncomparableError when one offers less by now.
    """
    if len(ready) == 1:
        return list(ready)
    first, *others = ready
    task, probe = first.task, first.probe
    if not task.store.trials(task.subject):
        probe = replace(probe, replicas={b.name: b.probe for b in others})
        task.store.put(task.subject, probe)
    probed = probed_of(task.context.study, probe)
    keys = {p.key for p in probed.space.parameters}
    for key in sorted({p.key for p in first.probed.space.parameters} - keys):
        task.context.progress.say(f"{task.title}: {key} is left out: {probed.refused[key]}")
    for other in others:
        if lacking := keys - {p.key for p in other.probed.space.parameters}:
            raise IncomparableError(
                f"{task.title}: {other.name} has no {', '.join(sorted(lacking))} to be tuned any "
                "more, and the campaign has. Bring it back, or start anew with --new"
            )
    return [replace(b, probe=probe if b is first else b.probe, probed=probed) for b in ready]


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
