"""report: everything that is stored of a campaign, for readers. Touches no host."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from intop.deploy.deployable import deployments
from intop.domain.across import Across, about
from intop.domain.agreement import Agreement
from intop.domain.canary import Canary
from intop.domain.comparison import Compared
from intop.domain.deployment import Deployment
from intop.domain.drift import sentinels
from intop.domain.explanation import Explanation
from intop.domain.mediation import Mediation
from intop.domain.pilot import Pilot
from intop.domain.probing import Probe
from intop.domain.ranking import Ranking
from intop.domain.refined import Refined
from intop.domain.search import Search
from intop.domain.sides import Latencies, judged_pairs
from intop.domain.soak import Soak
from intop.domain.sweep import Sweeps, winners_sweeps
from intop.domain.training import Training
from intop.domain.trial import AnyTrial, Outline, latest
from intop.domain.trimmed import Trimmed
from intop.domain.verdict import Verdict
from intop.errors import IncomparableError, RefusedValueError, ResultMissingError, UsageError
from intop.report.compare import compare
from intop.report.findings import (
    Findings,
    Judged,
    JudgedPair,
    Missing,
    Reason,
    RefusedKeys,
    RefusedTrials,
    Report,
    StageRecord,
)
from intop.run import prerequisites, registry
from intop.run.available_space import probed_of
from intop.run.context import Context, Task
from intop.run.prospect import Prospect
from intop.store import Subject
from intop.version import __version__

_NUMBER = re.compile(r"\d+(\.\d+)?")


def gather(context: Context) -> Report:
    """Return the campaign's results for the architectures and workloads of the context.

    What is not there yet is named with the command that makes it. Raises ResultMissingError for a
    campaign in which nothing was measured.
    """
    attempts = {task.subject: task.store.outlines(task.subject) for task in context.subjects()}
    findings = tuple(_findings(task, attempts[task.subject]) for task in context.subjects())
    if not any(subject.stages for subject in findings):
        raise ResultMissingError(
            f"the latest campaign of {context.study.name} has no trials yet, so there is nothing "
            f"to report: {prerequisites.command_line(context.study, ['tune'])}"
        )
    compared, why = _compared(context, findings, attempts)
    campaign = context.campaign
    return Report(
        study=campaign.study,
        campaign=campaign.id,
        seed=campaign.seed,
        started_at=campaign.started_at,
        finished_at=campaign.finished_at,
        made_at=datetime.now(UTC).isoformat(timespec="seconds"),
        tool_version=__version__,
        tool_versions=tuple(
            dict.fromkeys(t.tool_version for outlines in attempts.values() for t in outlines)
        ),
        level=context.study.budget.level,
        findings=findings,
        compared=compared,
        not_compared=why,
    )


def _findings(task: Task, attempts: Sequence[Outline]) -> Findings:
    """Return the findings of one subject by all attempts at its trials."""
    apart = {stage.name for stage in registry.stages() if stage.is_apart}
    compared = [t for t in latest(attempts) if t.stage not in apart]
    get, subject = task.store.get, task.subject
    verdict, explanation = get(subject, Verdict), get(subject, Explanation)
    if verdict is None or (explanation and explanation.winner != verdict.configuration):
        explanation = None  # of another winner
    probe = get(subject, Probe)
    offer = None if probe is None else probed_of(task.context.study, probe)
    deployment, undeployable = _deployment(task, verdict)
    return Findings(
        arch=task.subject.arch,
        workload=task.workload.name,
        conditions=tuple(dict.fromkeys(t.conditions for t in compared)),
        facts=None if probe is None else probe.facts,
        stages=stage_records(
            task.store.planned(task.subject),
            attempts,
            {stage.name: stage.description for stage in registry.stages()},
        ),
        pilot=get(subject, Pilot),
        agreement=get(subject, Agreement),
        ranking=get(subject, Ranking),
        refined=get(subject, Refined),
        training=get(subject, Training),
        search=get(subject, Search),
        trimmed=get(subject, Trimmed),
        verdict=verdict,
        judged=_judged(task, compared, verdict),
        sweeps=winners_sweeps(task.store.get(task.subject, Sweeps), verdict),
        soak=get(subject, Soak),
        canary=get(subject, Canary),
        across=about(get(subject, Across), verdict),
        mediation=_mediation(task, verdict),
        explanation=explanation,
        deployment=deployment,
        undeployable=undeployable,
        sentinels=sentinels(compared, level=task.context.study.budget.level),
        refused_trials=refused_trials(attempts),
        offered=0 if offer is None else len(offer.space.parameters),
        refused_keys=() if offer is None else refused_keys(offer.refused),
        missing=_missing(task),
    )


def _judged(task: Task, trials: Sequence[Outline], verdict: Verdict | None) -> Judged | None:
    """The trials that a verdict rests on, where they are stored."""
    if verdict is None:
        return None
    default, tuned = judged_pairs(trials, verdict)
    if not default:
        return None
    stored = task.store.latencies(task.subject, "judge")
    sides = [
        tuple(stored[t.stage, t.planned.index, t.attempt] for t in side)
        for side in (default, tuned)
    ]
    return Judged(
        conditions=tuned[-1].conditions,
        pairs=tuple(
            JudgedPair(round=a.planned.round, default_ms=a.judged_ms, tuned_ms=b.judged_ms)
            for a, b in zip(default, tuned, strict=True)
            if a.planned.round is not None
        ),
        latencies=Latencies(default=sides[0], tuned=sides[1], against=verdict.against),
    )


def _mediation(task: Task, verdict: Verdict | None) -> Mediation | None:
    """Return the mediation, if it is of this verdict's winner."""
    mediation = task.store.get(task.subject, Mediation)
    return (
        mediation if mediation and verdict and mediation.winner == verdict.configuration else None
    )


def _deployment(task: Task, verdict: Verdict | None) -> tuple[Deployment | None, str]:
    """Return the deployment, or the reason why there is none."""
    if verdict is None or not verdict.is_gain:
        return None, ""
    arch = task.subject.arch
    alone = replace(task.context, archs=(arch,), workloads=(task.workload,))
    try:
        return deployments(alone)[arch], ""
    except (UsageError, ResultMissingError) as error:
        return None, str(error)


def _compared(
    context: Context,
    findings: Sequence[Findings],
    attempts: Mapping[Subject, Sequence[Outline]],
) -> tuple[Compared | None, str]:
    """The two architectures side by side, or why they are not."""
    begun = [a for a in context.archs if any(f.arch == a and f.stages for f in findings)]
    if len(context.archs) < 2 <= len(context.study.clusters):
        return None, f"Only {begun[0]} was asked for: intop report without --arch has both."
    if len(begun) < 2:
        return None, (
            f"Only {begun[0]} was measured. Another cluster is compared with it once the same "
            f"campaign has measured both: intop tune --resume"
        )
    try:
        return compare(context, *begun[:2], attempts=attempts), ""
    except (IncomparableError, ResultMissingError) as error:
        return None, str(error)


def _missing(task: Task) -> tuple[Missing, ...]:
    """Return the results of a whole campaign that this one lacks.

    Whether what needs a verdict will be wanted shows by the verdict only.
    """
    prospect = Prospect.of(task.context.study, task.workload, task.subject, task.store)
    missing: dict[str, Missing] = {}
    for stage in registry.in_tune():
        is_open = prospect.verdict is None and "judge" in stage.needs
        if stage.is_left(prospect) and not is_open and stage.command not in missing:
            command = f"intop {stage.command} --arch {task.subject.arch}"
            missing[stage.command] = Missing(
                what=stage.finds,
                stage=stage.command,
                command=f"{command} --workload {task.workload.name}",
            )
    return tuple(missing.values())


def stage_records(
    planned: Mapping[str, int],
    attempts: Sequence[AnyTrial],
    descriptions: Mapping[str, str],
) -> tuple[StageRecord, ...]:
    """Return the record of each stage that was planned, in the order of `descriptions`."""
    by_stage: dict[str, list[AnyTrial]] = defaultdict(list)
    for trial in attempts:
        by_stage[trial.stage].append(trial)
    return tuple(
        _record(stage, description, planned[stage], by_stage[stage])
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
    """Return attempts that are no ordinary results, by stage, status and words but for numbers.

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
            attempts=len(alike),
            configurations=len({t.configuration.digest for t in alike}),
            detail=alike[0].detail,
        )
        for (stage, reason, _), alike in ordered
    )


def _reason(trial: AnyTrial) -> Reason | None:
    if trial.status == "ok":
        return None
    if trial.status == "failed" and RefusedValueError.SAID in trial.detail:
        return "refused value"
    return trial.status


def refused_keys(refused: Mapping[str, str]) -> tuple[RefusedKeys, ...]:
    """Return reasons by key, put together by their kind: what is before the first ": "."""
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
