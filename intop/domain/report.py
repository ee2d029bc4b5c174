"""What a report is made of: everything that a campaign has stored, put in order for readers."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from intop.domain.across import Across
from intop.domain.agreement import Agreement
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
from intop.domain.trial import AnyTrial, Conditions, Status
from intop.domain.verdict import Verdict
from intop.errors import RefusedValueError

Reason = Literal["refused value", "failed", "disturbed", "pruned", "overloaded"]
"""How an attempt ended that is no ordinary result."""

_NUMBER = re.compile(r"\d+(\.\d+)?")


@dataclass(frozen=True, kw_only=True)
class StageRecord:
    """What became of one stage's plan.

    Of `planned` places `measured` have a trial, and `by_status` counts the last attempts at them;
    `repeated` are the attempts before those. `started_at` and `ended_at` are of the first and the
    last trial (UTC, ISO 8601), `seconds` the sum over all attempts, loads of replicas at once
    counted one by one. Where nothing was measured the times are empty.
    """

    stage: str
    description: str
    planned: int
    measured: int
    by_status: Mapping[Status, int]
    repeated: int
    started_at: str
    ended_at: str
    seconds: float


@dataclass(frozen=True, kw_only=True)
class RefusedTrials:
    """Attempts of one stage that ended alike: the first one's words stand for all of them."""

    stage: str
    reason: Reason
    attempts: int
    configurations: int
    detail: str


@dataclass(frozen=True, kw_only=True)
class RefusedKeys:
    """Keys of the catalogue that could not be tuned on the hosts, for one kind of reason.

    `details` has what was said beyond that of single keys.
    """

    reason: str
    keys: tuple[str, ...]
    details: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class JudgedPair:
    """The two trials of one round of a verdict, P99 in ms."""

    round: int
    default_p99_ms: float
    tuned_p99_ms: float


@dataclass(frozen=True, kw_only=True)
class Judged:
    """What a verdict rests on: its pairs, the latencies of their trials, and the conditions."""

    conditions: Conditions
    pairs: tuple[JudgedPair, ...]
    latencies: Latencies


@dataclass(frozen=True, kw_only=True)
class Missing:
    """What is not there yet, and the stage and the command that make it."""

    what: str
    stage: str
    command: str


@dataclass(frozen=True, kw_only=True)
class Findings:
    """All that a campaign has of one architecture under one workload; None is not there.

    `missing` names what could still be made. `conditions` are those of all trials but the
    preparing ones and those of a roll-out, the first first. `sentinels` are all usable trials of
    the default among these, with their trend. `undeployable` says why there is no deployment of a
    gain. `offered` keys could be tuned; `refused_keys` could not.
    """

    arch: str
    workload: str
    conditions: tuple[Conditions, ...]
    facts: HostFacts | None
    stages: tuple[StageRecord, ...]
    pilot: Pilot | None
    agreement: Agreement | None
    ranking: Ranking | None
    refined: Refined | None
    training: Training | None
    search: Search | None
    verdict: Verdict | None
    judged: Judged | None
    sweeps: tuple[Sweep, ...]
    soak: Soak | None
    across: Across | None
    mediation: Mediation | None
    explanation: Explanation | None
    deployment: Deployment | None
    undeployable: str
    sentinels: Sentinels
    refused_trials: tuple[RefusedTrials, ...]
    offered: int
    refused_keys: tuple[RefusedKeys, ...]
    missing: tuple[Missing, ...]

    @property
    def title(self) -> str:
        """Such as `x86 slt`."""
        return f"{self.arch} {self.workload}"


StepKind = Literal["measured", "computed", "measured, not in the paper"]


@dataclass(frozen=True, kw_only=True)
class Step:
    """A step of the pipeline: the command that carries it out, and what it does.

    `hands_on` has the paper's names of its result, for static and dynamic requests where they
    differ.
    """

    command: str
    does: str
    kind: StepKind
    hands_on: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Report:
    """A campaign as it is stored. All times are UTC in ISO 8601.

    `tool_versions` are those that its trials were measured by, `tool_version` the one that made
    this. `pipeline` are the steps of any campaign. `compared` is None where there is one
    architecture only, or `not_compared` says why.
    """

    study: str
    campaign: int
    seed: int
    started_at: str
    finished_at: str | None
    made_at: str
    tool_version: str
    tool_versions: tuple[str, ...]
    level: float
    pipeline: tuple[Step, ...]
    findings: tuple[Findings, ...]
    compared: Compared | None
    not_compared: str


def stage_records(
    planned: Mapping[str, int],
    attempts: Sequence[AnyTrial],
    descriptions: Mapping[str, str],
) -> tuple[StageRecord, ...]:
    """What became of each stage's plan, which has so many places, in the order of `descriptions`.

    What was never planned is left out.
    """
    made: dict[str, list[AnyTrial]] = defaultdict(list)
    for trial in attempts:
        made[trial.stage].append(trial)
    return tuple(
        _record(stage, description, planned[stage], made[stage])
        for stage, description in descriptions.items()
        if planned.get(stage)
    )


def _record(
    stage: str, description: str, planned: int, attempts: Sequence[AnyTrial]
) -> StageRecord:
    last = {t.planned.index: t for t in attempts}
    statuses = [t.status for t in last.values()]
    times = sorted(t.started_at for t in attempts)
    return StageRecord(
        stage=stage,
        description=description,
        planned=planned,
        measured=len(last),
        by_status={status: statuses.count(status) for status in dict.fromkeys(statuses)},
        repeated=len(attempts) - len(last),
        started_at=times[0] if times else "",
        ended_at=times[-1] if times else "",
        seconds=sum(t.seconds for t in attempts),
    )


def refused_trials(attempts: Iterable[AnyTrial]) -> tuple[RefusedTrials, ...]:
    """Attempts that are no ordinary results, by stage, status and what they say but for numbers.

    Stages come in the order of their first attempts.
    """
    attempts = list(attempts)
    order = list(dict.fromkeys(trial.stage for trial in attempts))
    groups: dict[tuple[str, Reason, str], list[AnyTrial]] = defaultdict(list)
    for trial in attempts:
        if reason := _reason(trial):
            words = _NUMBER.sub("#", trial.detail)
            groups[trial.stage, reason, words].append(trial)
    ordered = sorted(groups.items(), key=lambda item: (order.index(item[0][0]), -len(item[1])))
    return tuple(
        RefusedTrials(
            stage=stage,
            reason=reason,
            attempts=len(made),
            configurations=len({t.configuration.digest for t in made}),
            detail=made[0].detail,
        )
        for (stage, reason, _), made in ordered
    )


def _reason(trial: AnyTrial) -> Reason | None:
    if trial.status == "ok":
        return None
    if trial.status == "failed" and RefusedValueError.SAID in trial.detail:
        return "refused value"
    return trial.status


def refused_keys(refused: Mapping[str, str]) -> tuple[RefusedKeys, ...]:
    """Reasons by key, put together by their kind: what is before the first ": "."""
    kinds: dict[str, dict[str, str]] = defaultdict(dict)
    for key, why in refused.items():
        kind, _, detail = why.partition(": ")
        kinds[kind][key] = detail
    ordered = sorted(kinds.items(), key=lambda item: -len(item[1]))
    return tuple(
        RefusedKeys(
            reason=kind,
            keys=tuple(details),
            details={key: detail for key, detail in details.items() if detail},
        )
        for kind, details in ordered
    )
