"""Jobs: what a campaign asks of whoever measures on a replica, and who holds them."""

from dataclasses import dataclass
from typing import Literal, get_args

from intop.domain.configuration import Configuration
from intop.domain.parameter import Tuned
from intop.domain.probing import Probe
from intop.domain.trial import Conditions, PlannedTrial
from intop.domain.workload import Workload

Kind = Literal["open", "trial", "refusal"]
"""`open` asks what a replica offers, `refusal` whether it refuses a configuration."""

JobState = Literal["offered", "claimed", "done", "failed"]

LEASE_S = 30.0
"""How long a worker holds a job without a sign of life (s)."""


@dataclass(frozen=True, kw_only=True)
class Spot:
    """One replica of a study's cluster, by its place in the study's file (from 0 on)."""

    study: str
    arch: str
    replica: int

    def __str__(self) -> str:
        return f"{self.study} {self.arch} replica {self.replica + 1}"


@dataclass(frozen=True, kw_only=True)
class Request:
    """What a worker can't know by its own copy of the study.

    `workload` and `tunes` are what the command at work has, with its options. A worker has its own,
    and does nothing where these say more (`run/requested.py`). A trial is pruned above
    `prune_above_ms`; a `configuration` goes with a question whether it is refused.
    """

    workload: Workload
    tunes: tuple[Tuned, ...]
    tries_durations: bool = False
    prune_above_ms: float | None = None
    configuration: Configuration | None = None


@dataclass(frozen=True, kw_only=True)
class Job:
    """One piece of work on one replica.

    Of a trial, `planned` is its place in the plan of `stage`, and `attempt` counts from 0. Raises
    ValueError where these don't fit together.
    """

    id: int
    kind: Kind
    campaign_id: int
    spot: Spot
    workload: str
    request: Request
    stage: str = ""
    planned: PlannedTrial | None = None
    attempt: int = 0

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
    """A job in somebody's hands.

    `token` grows each time that the job is claimed (a fencing token): a result that comes with an
    older one is refused.
    """

    job: Job
    worker: str
    token: int


@dataclass(frozen=True, kw_only=True)
class Opened:
    """What a worker answers when it has opened a replica for a campaign."""

    name: str
    conditions: Conditions
    probe: Probe


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """What a kernel said against a value; `key` is empty where it took all."""

    host: str = ""
    key: str = ""
    value: str = ""
    got: str | None = None


@dataclass(frozen=True, kw_only=True)
class JobStatus:
    """How far a job is, and which `replica` it is given to (below 0: to no worker).

    `answer` is what a worker said to a question, `why` is why the job failed, and `problem` what
    last kept a worker from it. `is_free` says that nobody holds it, or that the lease has run out.
    """

    state: JobState
    answer: Opened | Refusal | None
    why: str
    problem: str
    is_free: bool
    replica: int


@dataclass(frozen=True, kw_only=True)
class WorkerStatus:
    """A worker's last sign of life, `silent_s` seconds ago.

    `reach` are the replicas that it serves, without those that it has trouble with; `doing` says
    what it is at, in words. `trials` and `failures` count since it began; a failure is trouble with
    a replica.
    """

    name: str
    started_at: str
    silent_s: float
    doing: str
    reach: tuple[Spot, ...]
    trials: int
    failures: int

    @property
    def is_alive(self) -> bool:
        """Whether it has been heard of lately."""
        return self.silent_s < 3 * LEASE_S


@dataclass(frozen=True, kw_only=True)
class CampaignProgress:
    """How far a campaign of a store is.

    `planned` places of its stages' plans have been made, `measured` of them have a trial. Of what
    workers are asked for, `waiting` jobs are free and `held` are in somebody's hands.
    """

    campaign: int
    study: str
    started_at: str
    finished_at: str | None
    planned: int
    measured: int
    waiting: int = 0
    held: int = 0


@dataclass(frozen=True, kw_only=True)
class Fleet:
    """All campaigns of a store, the oldest first, and all workers, the one heard last first."""

    store: str
    campaigns: tuple[CampaignProgress, ...]
    workers: tuple[WorkerStatus, ...]
