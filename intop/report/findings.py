"""The content of a report: all that a campaign has stored, in order for readers."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from intop.domain.across import Across
from intop.domain.agreement import Agreement
from intop.domain.canary import Canary
from intop.domain.comparison import Compared
from intop.domain.deployment import Deployment
from intop.domain.drift import Sentinels
from intop.domain.explanation import Explanation
from intop.domain.mediation import Mediation
from intop.domain.pilot import Pilot
from intop.domain.probing import HostFacts
from intop.domain.ranking import Ranking
from intop.domain.refined import Refined
from intop.domain.search import Search
from intop.domain.sides import Latencies
from intop.domain.soak import Soak
from intop.domain.sweep import Sweep
from intop.domain.training import Training
from intop.domain.trial import Conditions, Status
from intop.domain.trimmed import Trimmed
from intop.domain.verdict import Verdict

Reason = Literal["refused value", "failed", "disturbed", "pruned", "overloaded"]
"""The end of an attempt that is no ordinary result."""


@dataclass(frozen=True, kw_only=True)
class StageRecord:
    """The record of one stage's plan. Where nothing was measured the times are empty."""

    stage: str
    description: str
    planned: int
    """Places of the plan."""
    measured: int
    """Places that have a trial."""
    by_status: Mapping[Status, int]
    """The last attempts by status."""
    repeated: int
    """The attempts before the last ones."""
    started_at: str
    """The start of the first trial (UTC, ISO 8601)."""
    ended_at: str
    """The start of the last trial."""
    seconds: float
    """The sum over all attempts, loads of replicas at once counted one by one."""


@dataclass(frozen=True, kw_only=True)
class RefusedTrials:
    """Attempts of one stage that ended alike."""

    stage: str
    reason: Reason
    attempts: int
    configurations: int
    detail: str
    """The words of the first one stand for all of them."""


@dataclass(frozen=True, kw_only=True)
class RefusedKeys:
    """Keys of the catalogue that could not be tuned on the hosts, for one kind of reason."""

    reason: str
    keys: tuple[str, ...]
    details: Mapping[str, str]
    """Reports about single keys beyond that."""


@dataclass(frozen=True, kw_only=True)
class JudgedPair:
    """The two trials of one round of a verdict, latency in ms."""

    round: int
    default_ms: float
    tuned_ms: float


@dataclass(frozen=True, kw_only=True)
class Judged:
    """The trials behind a verdict."""

    conditions: Conditions
    pairs: tuple[JudgedPair, ...]
    latencies: Latencies


@dataclass(frozen=True, kw_only=True)
class Missing:
    """A result that is missing, and the stage and the command that make it."""

    what: str
    stage: str
    command: str


@dataclass(frozen=True, kw_only=True)
class Findings:
    """The results of a campaign for one architecture and workload; None is not there."""

    arch: str
    workload: str
    conditions: tuple[Conditions, ...]
    """The conditions of all trials but the preparing ones and those of a roll-out, the first first.
    """
    facts: HostFacts | None
    stages: tuple[StageRecord, ...]
    pilot: Pilot | None
    agreement: Agreement | None
    ranking: Ranking | None
    refined: Refined | None
    training: Training | None
    search: Search | None
    trimmed: Trimmed | None
    verdict: Verdict | None
    judged: Judged | None
    sweeps: tuple[Sweep, ...]
    soak: Soak | None
    canary: Canary | None
    """The latest canary, whatever configuration it tried."""
    across: Across | None
    mediation: Mediation | None
    explanation: Explanation | None
    deployment: Deployment | None
    undeployable: str
    """The reason why there is no deployment of a gain."""
    sentinels: Sentinels
    """All usable trials of the default among these, with their trend."""
    refused_trials: tuple[RefusedTrials, ...]
    offered: int
    """The number of keys that could be tuned."""
    refused_keys: tuple[RefusedKeys, ...]
    missing: tuple[Missing, ...]
    """Results that could still be made."""

    @property
    def title(self) -> str:
        """The title, such as `x86 slt`."""
        return f"{self.arch} {self.workload}"


@dataclass(frozen=True, kw_only=True)
class Report:
    """A campaign as it is stored. All times are UTC in ISO 8601."""

    study: str
    campaign: int
    seed: int
    started_at: str
    finished_at: str | None
    made_at: str
    tool_version: str
    """The version of the intop that made this."""
    tool_versions: tuple[str, ...]
    """The versions of the intop that measured its trials."""
    level: float
    findings: tuple[Findings, ...]
    compared: Compared | None
    """None where there is one architecture only, or `not_compared` says why."""
    not_compared: str
