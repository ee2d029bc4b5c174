"""The context of a stage: study, store, campaign and hosts."""

import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from intop.config.study import Study
from intop.document.progress import Progress
from intop.domain.cluster import Cluster, LabSpec
from intop.domain.trial import Trial, latest
from intop.domain.workload import Workload
from intop.errors import LabError, UsageError

if TYPE_CHECKING:
    from intop.hosts.expected import ExpectedAnswers
    from intop.hosts.host import Connect
    from intop.run.at_work import AtWork
    from intop.run.testbed import Testbed
    from intop.store import Campaign, Store, Subject


@dataclass(frozen=True, kw_only=True)
class Context:
    """A study with its store, one campaign of it, a way to its hosts, and who hears of it."""

    study: Study
    store: "Store"
    campaign: "Campaign"
    connect: "Connect"
    progress: Progress
    archs: tuple[str, ...]
    workloads: tuple[Workload, ...]
    force: bool = False
    """Whether a campaign begins in spite of what `intop doctor` calls a problem."""
    dask: str | None = None
    """The address of the Dask scheduler that fits models; None for processes of this machine."""
    at_work: "AtWork | None" = None
    """Tells others by the store what is under way; None where nobody is to hear of it."""
    check_ready: "Callable[[Task], None] | None" = None
    """The look at all hosts before the first trial; None for none."""
    testbeds: "Callable[[Task], AbstractContextManager[tuple[Testbed, ...]]] | None" = None
    """Opens what trials are measured on, if that is not the replicas of the task's cluster."""
    expected: "dict[tuple[str, str], ExpectedAnswers]" = field(default_factory=dict, compare=False)
    """The answers of replicas before their first trial, by the task's title and the balancer."""

    def subjects(self) -> Iterator["Task"]:
        """Yield a task for each architecture with each workload."""
        from intop.store import Subject

        for arch in self.archs:
            for workload in self.workloads:
                subject = Subject(campaign=self.campaign, arch=arch, workload=workload.name)
                yield Task(context=self, subject=subject, workload=workload)


@dataclass(frozen=True, kw_only=True)
class Task:
    """One architecture under one workload."""

    context: Context
    subject: "Subject"
    workload: Workload
    tries_durations: bool = False
    """Whether its trials have other durations than the campaign's, as those of a pilot."""

    @property
    def title(self) -> str:
        """The title, such as `x86 slt`."""
        return f"{self.subject.arch} {self.workload.name}"

    @property
    def store(self) -> "Store":
        """The store of its trials and results."""
        return self.context.store

    def clusters(self) -> tuple[Cluster, ...]:
        """Return its cluster's replicas. Raises LabError for a lab that isn't up."""
        return clusters_of(self.context.study, self.subject.arch)

    def seed(self, *parts: object) -> int:
        """Return a seed (32 bits) by the campaign's seed, the task and these words alone."""
        words = (self.subject.campaign.seed, self.title, *parts)
        return zlib.crc32("/".join(map(str, words)).encode())

    def check_ready(self) -> None:
        """Examine the hosts before a campaign's first trial, as the context has it."""
        if self.context.check_ready is not None:
            self.context.check_ready(self)

    def begin(self, stage: str) -> None:
        """Tell others that a stage begins to work. Raises AtWorkError where another process is."""
        if self.context.at_work is not None:
            self.context.at_work.begin(self.subject, stage)

    def trials(self, *stages: str) -> list[Trial]:
        """Return the last attempt at each trial of these stages, in order of measurement."""
        return latest(self.store.trials(self.subject, *stages))


def clusters_of(study: Study, arch: str) -> tuple[Cluster, ...]:
    """Return an architecture's replicas. Raises LabError for a lab that isn't up."""
    return tuple(cluster_of(replica) for replica in study.clusters[arch])


def cluster_of(replica: Cluster | LabSpec) -> Cluster:
    """Return the cluster of a replica. Raises LabError for a lab that isn't up."""
    if not isinstance(replica, LabSpec):
        return replica
    from intop.lab.cluster import cluster

    return cluster(replica.name)


def chosen_archs(study: Study, arch: str | None) -> tuple[str, ...]:
    """Return the architecture asked for, or all. Raises UsageError for an unknown one."""
    if arch is None:
        return tuple(study.clusters)
    if arch not in study.clusters:
        raise UsageError(
            f"{study.path} has no cluster for {arch}; it has {', '.join(study.clusters)}. "
            f"Add [cluster.{arch}] (see configs/cluster.example.toml)"
        )
    return (arch,)


def taking_part(
    study: Study, arch: str | None, begun: Callable[[str], bool], say: Callable[[str], None]
) -> tuple[str, ...]:
    """Return the architecture asked for, else all but the optional ones whose lab isn't up.

    An architecture that was begun stays: its lab has to be brought up again. Where workers measure,
    nothing need be up here. Raises UsageError for one that the file doesn't have.
    """
    archs = chosen_archs(study, arch)
    if study.workers or arch is not None:
        return archs
    present: list[str] = []
    for arch in archs:
        try:
            if arch in study.optional and not begun(arch):
                clusters_of(study, arch)
        except LabError as error:
            say(f"{arch} is optional in {study.path} and left out: {error}")
        else:
            present.append(arch)
    return tuple(present)


def chosen_workloads(study: Study, workload: str | None) -> tuple[Workload, ...]:
    """Return the workload asked for, or all tuned ones. Raises UsageError for an unknown one."""
    chosen = tuple(
        w for name, w in study.workloads.items() if workload == name or (not workload and w.tuned)
    )
    if not chosen:
        raise UsageError(
            f"{study.path} has no [workload.{workload}]; it has {', '.join(study.workloads)}"
        )
    return chosen
