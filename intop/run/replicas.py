"""Replicas of a cluster, which are used together once they have been measured to agree."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from intop.domain.agreement import Agreement, agreement
from intop.domain.configuration import DEFAULT
from intop.domain.job import Opened
from intop.domain.probing import Probe, other_values
from intop.domain.trial import PlannedTrial, Trial
from intop.errors import IncomparableError
from intop.run.available_space import lists_of_choices, probed_of
from intop.run.comparability import COMMON
from intop.run.context import Task
from intop.run.prospect import Prospect
from intop.run.stage import Batch, Expected, SoFar, Stage
from intop.sentences import replica_sentence

if TYPE_CHECKING:
    from intop.run.cluster_testbed import ClusterTestbed
    from intop.run.remote import RemoteTestbed

Replica = TypeVar("Replica", "ClusterTestbed", "RemoteTestbed")

LEVEL = 0.99
"""The level of the comparison of replicas. A false alarm costs half of the speed, and a missed
difference is no larger than the interval says."""


def replicas_in_use(task: Task) -> int:
    """Return how many replicas the task's trials are measured on."""
    agreement = task.store.get(task.subject, Agreement)
    return 1 if agreement is None else len(agreement.in_use)


class Replicas(Stage[Agreement]):
    """The default on all replicas at once, to see whether they agree.

    The replicas that agree with the first are used together from then on.
    """

    name = "replicas"
    description = "whether the clusters that are alike measure alike"
    command = "collect"
    result_type = Agreement
    prepares = True
    is_apart = True

    def __init__(self, task: Task, names: Sequence[str]) -> None:
        super().__init__(task)
        self.names = names

    def ask(self, so_far: SoFar) -> Batch | None:
        if so_far.plan:
            return so_far.unfinished
        places = range(self.budget.agree_rounds * len(self.names))
        return Batch(
            [PlannedTrial(index=n, role="baseline", configuration=DEFAULT) for n in places]
        )

    def result(self, trials: Sequence[Trial]) -> Agreement:
        result = agreement({name: _latencies(trials, name) for name in self.names}, level=LEVEL)
        for replica in result.replicas[1:]:
            self.task.context.progress.say(f"{self.task.title}: {replica_sentence(replica)}")
        return result

    @classmethod
    def is_wanted(cls, prospect: Prospect) -> bool:
        return len(prospect.study.clusters[prospect.arch]) > 1

    @classmethod
    def unplanned(cls, prospect: Prospect) -> Expected:
        return Expected(trials=prospect.budget.agree_rounds * prospect.replicas)


def check_alike(
    task: Task, first: "ClusterTestbed | Opened", second: "ClusterTestbed | Opened"
) -> None:
    """Refuse two replicas whose trials can't be mixed. Raises IncomparableError."""
    study = task.context.study
    differences = first.conditions.differences(second.conditions, COMMON)
    differences += other_values(first.probe, second.probe, lists_of_choices(study))
    if differences:
        raise IncomparableError(
            f"{task.title}: {first.name} and {second.name} are no replicas of each other "
            f"({first.name} against {second.name}):\n  " + "\n  ".join(differences) + "\n"
            f"Make them alike, or take one of them out of {study.path}"
        )


def in_common(ready: Sequence[Replica]) -> list[Replica]:
    """Return the replicas with the space that all of them offer.

    The first stage stores it. Raises IncomparableError when a replica offers less by now.
    """
    first, *peers = ready
    task = first.task
    # The first replica, whose probe is the campaign's, may have been set aside.
    probe = task.store.get(task.subject, Probe) or first.probe
    if not (peers or probe.replicas):
        return list(ready)
    if not task.store.trials(task.subject):
        probe = replace(probe, replicas={replica.name: replica.probe for replica in peers})
        task.store.put(task.subject, probe)
    probed = probed_of(task.context.study, probe)
    keys = {p.key for p in probed.space.parameters}
    for key in sorted({p.key for p in first.probed.space.parameters} - keys):
        task.context.progress.say(f"{task.title}: {key} is left out: {probed.refused[key]}")
    for replica in peers:
        if lacking := keys - {p.key for p in replica.probed.space.parameters}:
            raise IncomparableError(
                f"{task.title}: {replica.name} has no {', '.join(sorted(lacking))} to be tuned any "
                "more, and the campaign has. Bring it back, or start anew with --new"
            )
    return [replace(replica, probed=probed) for replica in ready]


def _latencies(trials: Iterable[Trial], replica: str) -> list[float]:
    return [t.judged_ms for t in trials if t.usable and t.replica == replica]
