"""Deployments of a campaign: the configuration of a verdict of gain, with all evidence."""

from collections.abc import Mapping

from intop.campaign.collected import required_space, why_gone
from intop.domain.across import WINNER, Across, AcrossByName, about
from intop.domain.configuration import Configuration
from intop.domain.deployment import Change, Deployment, Origin
from intop.domain.explanation import Contribution, Explanation
from intop.domain.nginx.directive import NginxFacts
from intop.domain.nginx.standing import Directives
from intop.domain.parameter import normalised
from intop.domain.probing import Probe
from intop.domain.sweep import Sweeps, winners_sweeps
from intop.domain.trimmed import Trimmed
from intop.domain.verdict import Verdict
from intop.errors import ResultMissingError, UsageError
from intop.run import prerequisites
from intop.run.context import Context, Task
from intop.sentences import verdict_sentence


def deployments(
    context: Context,
    *,
    whole: bool = False,
    accept_costs: bool = False,
    configuration: str = "",
) -> dict[str, Deployment | None]:
    """Return the deployment of each architecture of the context; None: keep the defaults.

    That is the smallest set where its own verdict is a gain and it keeps the share of the winner's
    gain that is wanted (`Explanation.obstacle`), else, and with `whole`, the winner. Latency that
    is lower by breaking a guardrail is none, and said so, but with `accept_costs`. With a
    `configuration`, such as a baseline, it is that one, by its newest verdict of `across`.

    Architectures without any verdict are said to be left out. Raises ResultMissingError where none
    has one, UsageError where several workloads of the context have a gain (a host can have one
    configuration only), or where the study has changed since, and lacks a key.
    """
    if whole and configuration:
        raise UsageError("--winner and --configuration exclude each other: leave one of them out")
    by_arch: dict[str, Deployment | None] = {}
    missing: list[ResultMissingError] = []
    for arch in context.archs:
        try:
            by_arch[arch] = _of_arch(
                context,
                arch,
                whole=whole,
                accept_costs=accept_costs,
                configuration=configuration,
            )
        except ResultMissingError as error:
            missing.append(error)
    if not by_arch:
        raise missing[0]
    for absent in missing:
        context.progress.say(f"left out: {absent}")
    return by_arch


def sole_deployment(
    context: Context,
    *,
    whole: bool = False,
    accept_costs: bool = False,
    configuration: str = "",
) -> Deployment | None:
    """Return the one deployment of the context; None: keep the defaults. Reads only the store.

    `whole`, `accept_costs` and `configuration` as in `deployments`.

    Raises UsageError where several architectures have a gain, ResultMissingError where none has a
    verdict.
    """
    by_arch = deployments(
        context, whole=whole, accept_costs=accept_costs, configuration=configuration
    )
    gains = {arch: deployment for arch, deployment in by_arch.items() if deployment is not None}
    if len(gains) > 1:
        raise UsageError(
            f"{' and '.join(gains)} have a gain each, with other values. Export one at a time: "
            f"--arch {next(iter(gains))}"
        )
    for arch in by_arch.keys() - gains.keys():
        context.progress.say(f"{arch}: no verdict is a gain: there is nothing to deploy")
    return next(iter(gains.values()), None)


def task_of(context: Context, deployment: Deployment) -> Task:
    """Return the architecture and workload that a deployment is for, as a task to measure."""
    return next(
        task
        for task in context.subjects()
        if (task.subject.arch, task.workload.name) == (deployment.arch, deployment.workload)
    )


def nginx_of(context: Context, deployment: Deployment) -> tuple[Directives, NginxFacts]:
    """The study's catalogue of directives, and what the nginx was that they were measured on.

    Raises UsageError where the campaign has looked at no nginx.
    """
    task = task_of(context, deployment)
    probe = task.store.get(task.subject, Probe)
    if probe is None or probe.nginx is None:
        raise UsageError(f"{deployment.title}: the campaign has tuned no directive of nginx")
    return context.study.directives, probe.nginx.facts


def _of_arch(
    context: Context, arch: str, *, whole: bool, accept_costs: bool, configuration: str
) -> Deployment | None:
    tasks = [task for task in context.subjects() if task.subject.arch == arch]
    verdicts = [(task, _verdict(task, configuration)) for task in tasks]
    known = [(task, verdict) for task, verdict in verdicts if verdict is not None]
    if not known:
        command = f"across {configuration}" if configuration else "tune"
        workload = tasks[0].workload.name if configuration and len(tasks) == 1 else ""
        line = prerequisites.command_line(context.study, [command], arch, workload)
        about_it = f" on {configuration}" if configuration else ""
        raise ResultMissingError(f"{arch}: no verdict{about_it} yet. Run: {line}")
    gains: list[tuple[Task, Verdict]] = []
    for task, verdict in known:
        costs = verdict.outcome == "no gain: it costs"
        if verdict.is_gain or (costs and accept_costs):
            gains.append((task, verdict))
        else:
            then = ". To deploy it all the same: --accept-costs" if costs else ""
            then = then or _next_step(task, verdict, configuration)
            context.progress.say(f"{task.title}: {verdict_sentence(verdict)}{then}")
    if len(gains) > 1:
        names = [task.workload.name for task, _ in gains]
        raise UsageError(
            f"{arch} has a gain for {' and for '.join(names)}, and a host can have one "
            f"configuration only. Say which: --workload {names[0]}"
        )
    if not gains:
        return None
    return _deployment(*gains[0], whole=whole, configuration=configuration)


def _verdict(task: Task, configuration: str) -> Verdict | None:
    """Return the campaign's verdict, or the newest one on a configuration."""
    if not configuration:
        return task.store.get(task.subject, Verdict)
    across = _across(task, configuration)
    return None if across is None else across.verdict_under(task.workload.name)


def _across(task: Task, configuration: str) -> Across | None:
    measured = task.store.get(task.subject, AcrossByName)
    return None if measured is None else measured.named(configuration)


def _next_step(task: Task, verdict: Verdict, configuration: str) -> str:
    """Return what to type where a verdict is no gain: "" where nothing would help."""
    fresh = None if configuration else _verdict(task, WINNER)
    if fresh is not None and fresh.is_gain and fresh.configuration == verdict.configuration:
        return ". Its newest verdict is a gain. Run: intop plan --configuration winner"
    if not configuration or verdict.outcome != "undecided":
        return ""
    command = f"across {configuration} --rounds {2 * verdict.rounds}"
    where = task.subject.arch, task.workload.name
    line = prerequisites.command_line(task.context.study, [command], *where)
    return f". More rounds may tell. Run: {line}"


def _deployment(task: Task, verdict: Verdict, *, whole: bool, configuration: str) -> Deployment:
    explanation = task.store.get(task.subject, Explanation)
    if explanation is not None and explanation.winner != verdict.configuration:
        explanation = None
    whole = whole or bool(configuration)
    smallest = explanation if not whole and explanation and not explanation.obstacle else None
    measured = explanation.contributions if explanation else _trimmed(task, verdict)
    origin: Origin = "winner" if configuration in ("", WINNER) else "baseline"
    across = _across(task, configuration) or task.store.get(task.subject, Across)
    campaign = task.subject.campaign
    return Deployment(
        study=campaign.study,
        campaign=campaign.id,
        started_at=campaign.started_at,
        arch=task.subject.arch,
        workload=task.workload.name,
        origin="smallest set" if smallest else origin,
        verdict=smallest.verdict if smallest else verdict,
        kept=smallest.kept if smallest else None,
        instead=explanation.obstacle if explanation and not whole else "",
        changes=_changes(task, smallest.minimal if smallest else verdict.configuration, measured),
        sweeps=winners_sweeps(task.store.get(task.subject, Sweeps), verdict),
        across=about(across, verdict),
    )


def _trimmed(task: Task, verdict: Verdict) -> tuple[Contribution, ...]:
    """Return what was measured of the changes of a trimmed winner.

    Of a single one that is the verdict: when it was left out, others stood in for it.
    """
    trimmed, configuration = task.store.get(task.subject, Trimmed), verdict.configuration
    if trimmed is None or trimmed.configuration != configuration:
        return ()
    defaults = required_space(task).defaults
    if len(configuration.values) == 1:
        ((key, value),) = configuration.values.items()
        ratio = verdict.interval
        before = (defaults[key],)
        return (Contribution(keys=(key,), before=before, after=(value,), left_out=ratio),)
    return tuple(
        Contribution(
            keys=change.keys,
            before=tuple(defaults[key] for key in change.keys),
            after=tuple(configuration.values[key] for key in change.keys),
            left_out=change.ratio,
        )
        for change in trimmed.left_out
        if configuration.values.keys() >= {*change.keys}
    )


def _changes(
    task: Task, configuration: Configuration, measured: tuple[Contribution, ...]
) -> tuple[Change, ...]:
    """Return the keys that differ from the campaign's default, first those with evidence."""
    space = required_space(task)
    parameters = {p.key: p for p in space.parameters}
    if gone := configuration.values.keys() - parameters.keys():
        raise UsageError(
            f"{task.title}: the verdict is about {', '.join(sorted(gone))}, which the study no "
            f"longer tunes ({why_gone(task, gone)}). In [study], put parameters, catalogue and "
            "max_risk back as they were"
        )
    for key, value in configuration.values.items():
        is_own = value == normalised(space.defaults[key])
        if not is_own and (unfit := parameters[key].unfit(value)):
            raise UsageError(
                f"{task.title}: the verdict is about {key} = {value!r}, which is {unfit}. "
                "Nothing of it is deployed: tune again"
            )
    contributions: Mapping[str, Contribution] = {key: c for c in measured for key in c.keys}
    ordered = [key for key in contributions if key in configuration.values]
    ordered += [key for key in configuration.values if key not in contributions]
    return tuple(
        Change(
            key=key,
            value=configuration.values[key],
            default=space.defaults[key],
            contribution=contributions.get(key),
            mechanism=parameters[key].mechanism,
            risk=parameters[key].risk,
            document=parameters[key].document,
        )
        for key in ordered
        if configuration.values[key] != space.defaults[key]
    )
