"""Jobs: what a campaign asks of the workers that measure on its replicas, and who holds them."""

from dataclasses import dataclass
from typing import Literal, get_args

from intop.domain.configuration import Configuration
from intop.domain.parameter import Tuned
from intop.domain.probing import Probe
from intop.domain.trial import Conditions, PlannedTrial
from intop.domain.workload import Workload

Kind = Literal["open", "trial", "refusal"]
"""`open` asks for what a replica offers, `refusal` whether it refuses a configuration."""

JobState = Literal["offered", "claimed", "done", "failed"]

LEASE_S = 30.0
"""Seconds for which a worker holds a job without a sign of life."""


@dataclass(frozen=True, kw_only=True)
class Spot:
    """One replica of a study's cluster."""

    study: str
    arch: str
    replica: int
    """The replica by its place in the study's file, from 0 on."""

    def __str__(self) -> str:
        return f"{self.study} {self.arch} replica {self.replica + 1}"


@dataclass(frozen=True, kw_only=True)
class JobSettings:
    """The settings of a job that a worker's own copy of the study may not have."""

    workload: Workload
    """The workload with the options of the command at work. A worker does nothing where its own
    copy says less (`run/requested.py`). The same holds for `tunes`."""
    tunes: tuple[Tuned, ...]
    tries_durations: bool = False
    prune_above_ms: float | None = None
    """A trial is pruned above that."""
    configuration: Configuration | None = None
    """The configuration that may be refused."""


@dataclass(frozen=True, kw_only=True)
class Job:
    """One piece of work on one replica. Raises ValueError where its parts don't fit together."""

    id: int
    kind: Kind
    campaign_id: int
    spot: Spot
    workload: str
    request: JobSettings
    stage: str = ""
    planned: PlannedTrial | None = None
    """The trial's place in the plan of `stage`."""
    attempt: int = 0
    """The number of the attempt, from 0 on."""

    def __post_init__(self) -> None:
        if self.kind not in get_args(Kind):
            raise ValueError(f"{self.kind!r} is no kind of job")
        if (self.kind == "trial") != (self.planned is not None):
            has = "a place in no plan" if self.planned is None else "a place in a plan"
            raise ValueError(f"a job of kind {self.kind} has {has}")
        if self.kind == "refusal" and self.request.configuration is None:
            raise ValueError("a job of kind refusal has no configuration")
        if self.attempt < 0:
            raise ValueError(f"attempt {self.attempt} is below 0")


@dataclass(frozen=True, kw_only=True)
class Lease:
    """A job that a worker holds."""

    job: Job
    worker: str
    token: int
    """It grows each time that the job is claimed (a fencing token): a result with an older one is
    refused."""


@dataclass(frozen=True, kw_only=True)
class Opened:
    """A replica that a worker has opened for a campaign."""

    name: str
    conditions: Conditions
    probe: Probe


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """A kernel's refusal of a value."""

    host: str = ""
    key: str = ""
    """Empty where the kernel took all."""
    value: str = ""
    got: str | None = None


@dataclass(frozen=True, kw_only=True)
class JobStatus:
    """The progress of a job."""

    state: JobState
    answer: Opened | Refusal | None
    """The worker's answer to a question."""
    why: str
    """The reason why the job failed."""
    problem: str
    """The last reason that kept a worker from it."""
    is_free: bool
    """Whether nobody holds it, or the lease has run out."""
    replica: int
    """The replica that it is given to, below 0 for no worker."""


@dataclass(frozen=True, kw_only=True)
class WorkerStatus:
    """A worker's last sign of life."""

    name: str
    started_at: str
    silent_s: float
    """Seconds since that."""
    doing: str
    """Its work at that time, in words."""
    reach: tuple[Spot, ...]
    """The replicas that it serves, without those that it has trouble with."""
    trials: int
    """Since it began, like `failures`."""
    failures: int
    """Troubles with a replica."""

    @property
    def is_alive(self) -> bool:
        """Whether it has been heard of lately."""
        return self.silent_s < 3 * LEASE_S


@dataclass(frozen=True, kw_only=True)
class CampaignProgress:
    """The progress of a campaign in a store."""

    campaign: int
    study: str
    started_at: str
    finished_at: str | None
    planned: int
    """Places of its plans."""
    measured: int
    """Places that have a trial."""
    waiting: int = 0
    """Jobs that are free."""
    held: int = 0
    """Jobs that a worker holds."""


@dataclass(frozen=True, kw_only=True)
class Fleet:
    """All campaigns and workers of a store."""

    store: str
    campaigns: tuple[CampaignProgress, ...]
    """The oldest first."""
    workers: tuple[WorkerStatus, ...]
    """The one heard last first."""
