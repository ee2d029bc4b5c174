"""The measurements and writes of a command: no host is asked, and the store is only read."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from intop.config.study import Study
from intop.domain.campaign_status import StageStatus, SubjectStatus
from intop.domain.cluster import HostAddress, LabSpec
from intop.domain.parameter import RISKS, barred
from intop.domain.probing import Probe
from intop.domain.ranking import Ranking
from intop.domain.workload import Workload
from intop.errors import LabError
from intop.features import tune_places
from intop.inspect.dry_run_result import DryRun, Intended, Touched
from intop.inspect.load_room import problems, rooms_after, rooms_on_lab, short_connections
from intop.inspect.status import campaign_status
from intop.run import registry
from intop.run.available_space import probed_of
from intop.run.context import cluster_of
from intop.run.effort import RETRIED_AT_MOST, Span
from intop.run.prospect import Prospect
from intop.store import Campaign, Store, Subject, shown


@dataclass(frozen=True, kw_only=True)
class DryRunRequest:
    """The stages of a dry run, of the latest campaign."""

    stages: tuple[str, ...]
    new: bool = False
    """Whether a campaign begins."""
    again: bool = False
    """Whether a stage of its own is measured again that is through."""
    samples: int | None = None
    """The number in place of the file's."""
    rounds: int | None = None
    """The number in place of the file's."""
    of_its_own: object = None
    """The request to a stage of its own, of the type that the stage knows."""


def of_tune() -> tuple[str, ...]:
    """Return the stages of `tune`, in its order."""
    return tuple(tune_places())


def dry_run(
    study: Study,
    store: Store | None,
    archs: Sequence[str],
    workloads: Sequence[Workload],
    request: DryRunRequest,
) -> DryRun:
    """Return what these stages would do on these architectures under these workloads."""
    study = _as_asked(study, request)
    asked = () if request.stages == of_tune() else request.stages
    status = campaign_status(study, store, archs, workloads, new=request.new, asked=asked)
    campaign = None if store is None or request.new else store.latest(study.name)
    return DryRun(
        study=study.name,
        store=shown(study.store),
        campaign=status.campaign,
        is_finished=status.finished_at is not None,
        hosts=tuple(touched for arch in archs for touched in _touched(study, arch)),
        intended=tuple(
            _intended(study, store, campaign, each, request) for each in status.subjects
        ),
    )


def _as_asked(study: Study, request: DryRunRequest) -> Study:
    budget = study.budget
    if request.samples is not None:
        budget = replace(budget, screen_trials=request.samples, collect_trials=request.samples)
    if request.rounds is not None:
        budget = replace(budget, judge_pairs=request.rounds)
    return replace(study, budget=budget)


def _touched(study: Study, arch: str) -> Iterable[Touched]:
    for replica in study.clusters[arch]:
        try:
            cluster = cluster_of(replica)
        except LabError as error:
            yield Touched(arch=arch, problem=str(error))
            continue
        load_hosts = (host for host in cluster.hosts if host != cluster.load_balancer)
        yield Touched(
            arch=arch,
            written=(_called(cluster.load_balancer),),
            others=tuple(map(_called, load_hosts)),
        )


def _called(host: HostAddress) -> str:
    return host.name if host.name == host.hostname else f"{host.name} ({host.hostname})"


def _intended(
    study: Study,
    store: Store | None,
    campaign: Campaign | None,
    subject: SubjectStatus,
    request: DryRunRequest,
) -> Intended:
    by_name = {stage.name: stage for stage in subject.stages}
    # The first stage prepares a campaign.
    preparing = [stage.name for stage in registry.of_tune() if stage.prepares]
    first = [n for n in preparing if n not in request.stages and n in by_name and by_name[n].left]
    stages = [
        _by_itself(study, by_name.get(name), name, subject, request)
        if registry.is_own(name)
        else by_name[name]
        for name in ((*first, *request.stages) if request.stages else ())
        if registry.is_own(name) or name in by_name
    ]
    keys, chosen = _allowed(study), None
    probe: Probe | None = None
    if store is not None and campaign is not None:
        about = Subject(campaign=campaign, arch=subject.arch, workload=subject.workload)
        probe = store.get(about, Probe)
        ranking = store.get(about, Ranking)
        chosen = ranking.space if ranking else None
    if probe is not None:
        keys = tuple(p.key for p in probed_of(study, probe).space.parameters)
    return Intended(
        subject=subject,
        stages=tuple(stages),
        keys=keys,
        varied=_varied(keys, chosen, {stage.name for stage in stages if stage.left}),
        is_probed=probe is not None,
        lacking=tuple(_lacking(subject, by_name, request)),
        warnings=tuple(_of_connections(study, subject)),
    )


def _of_connections(study: Study, subject: SubjectStatus) -> Iterable[str]:
    """Return warnings of too many connections, and for each class of clients of too few.

    Of latencies only the think time and a lab's links are known: nobody was asked.
    """
    workload = study.workloads[subject.workload]
    lines = short_connections(subject.arch, workload)
    for replica in study.clusters[subject.arch]:
        rooms = (
            rooms_on_lab(workload, replica)
            if isinstance(replica, LabSpec)
            else rooms_after(workload, 0.0)
        )
        lines += problems(subject.arch, rooms)
    return dict.fromkeys(lines)  # replicas have the same lines


def _by_itself(
    study: Study,
    stage: StageStatus | None,
    name: str,
    subject: SubjectStatus,
    request: DryRunRequest,
) -> StageStatus:
    """Return a stage of its own: it goes on, or begins (again) by the request."""
    prospect = Prospect(
        study=study,
        workload=study.workloads[subject.workload],
        arch=subject.arch,
        request=request.of_its_own,
    )
    expected = registry.stage(name).expected(prospect)
    if stage is not None and (stage.left or not request.again):
        return stage
    time = expected.time
    if time is None and subject.trial_s is not None:
        left_s = expected.trials * subject.trial_s
        time = Span(likely_s=left_s, most_s=RETRIED_AT_MOST * left_s)
    return StageStatus(
        name=name,
        state="to come",
        trials=expected.trials,
        bound="at most",
        left_s=None if time is None else time.likely_s,
        most_s=None if time is None else time.most_s,
    )


def _allowed(study: Study) -> tuple[str, ...]:
    """Return the keys that the study allows; a host may have fewer."""
    highest = RISKS.index(study.max_risk)
    return tuple(
        p.key
        for p in study.parameters
        if RISKS.index(p.risk) <= highest
        and any(fnmatchcase(p.key, w) for w in study.wanted)
        and not barred(p.key, study.wanted)
    )


def _varied(
    keys: tuple[str, ...], chosen: Collection[str] | None, measured: Collection[str]
) -> tuple[str, ...]:
    """Return the keys that get other values than their own. The default's trials vary nothing."""
    stages = [registry.stage(name) for name in measured]
    if all(stage.prepares or stage.observes for stage in stages):
        return ()
    if chosen is None or "screen" in measured or any(map(registry.is_own, measured)):
        return keys
    return tuple(chosen)


def _lacking(
    subject: SubjectStatus, by_name: Mapping[str, StageStatus], request: DryRunRequest
) -> Iterable[str]:
    for name in request.stages:
        for need in registry.stage(name).needs:
            if need not in request.stages and by_name[need].state != "done":
                command = registry.stage(need).command
                yield (
                    f"{subject.title}: {name} needs {command} before. Run: intop {command} --arch "
                    f"{subject.arch} --workload {subject.workload}"
                )
        if name == "explain" and by_name.get(name, by_name["judge"]).state == "left out":
            yield f"{subject.title}: the verdict is no gain, so nothing would be measured"
