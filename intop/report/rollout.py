"""A roll-out as text: what is to be done where, and what was done.

A line is never broken: it may hold a value to copy.
"""

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.text import Text

from intop.domain.rollout import HostRollout, HostStep, Rollout, RolloutPlan
from intop.report.verdict import sentence

KEEP_THE_DEFAULTS = "keep the defaults: no verdict is a gain, so there is nothing to apply"


def planned(plans: Sequence[RolloutPlan]) -> list[RenderableType]:
    """What would be done, host by host, and what is in its way."""
    if not plans:
        return [Text(KEEP_THE_DEFAULTS)]
    return [Text("\n".join(line for plan in plans for line in _plan_lines(plan)))]


def done(rollouts: Sequence[Rollout]) -> list[RenderableType]:
    """A line for each host, and how to undo it."""
    lines: list[str] = []
    for rollout in rollouts:
        lines += [f"{rollout.title}: {_host_line(host)}" for host in rollout.hosts]
        if rollout.is_stopped:
            lines.append(f"{rollout.title}: {_stopped(rollout)}")
        elif any(not host.file for host in rollout.hosts):
            lines.append(
                f"{rollout.title}: the values last until the host is started anew; with --persist "
                "they would come back then"
            )
    if any(host.outcome != "stopped" for rollout in rollouts for host in rollout.hosts):
        lines.append("See what has become of it: intop status. Undo it: intop rollback")
    return [Text("\n".join(lines))]


def _plan_lines(plan: RolloutPlan) -> Iterator[str]:
    deployment = plan.deployment
    yield (
        f"{deployment.title}: {deployment.origin} of study {deployment.study}, campaign "
        f"{deployment.campaign} ({sentence(deployment.verdict)})"
    )
    yield from (f"    {c.key} = {c.value}    (default {c.default})" for c in deployment.changes)
    for number, host in enumerate(plan.hosts, start=1):
        name = f"{host.host} (the canary)" if number == 1 else host.host
        yield f"  {number}. {name}: {_step(plan, host)}"
        yield from (f"     {host.host}: {d.where}: {d.detail}" for d in host.overruled)


def _step(plan: RolloutPlan, host: HostStep) -> str:
    if host.problem:
        return f"NOT POSSIBLE: {host.problem.removeprefix(f'{host.host}: ')}"
    if host.has_it:
        return "has these values already, and is left alone"
    file = f", write {host.file}" if host.file else ", until it is started anew"
    return (
        f"measure them against the default in up to {plan.rounds} rounds; if that is a gain, set "
        f"{len(plan.deployment.changes)} keys{file}"
    )


def _host_line(host: HostRollout) -> str:
    if host.outcome == "already":
        return f"{host.host}: has these values already"
    told = sentence(host.verdict) if host.verdict else "not measured"
    if host.outcome == "stopped":
        return f"{host.host}: NOT applied, it has its values from before: {told}"
    return f"{host.host}: applied{f', with {host.file}' if host.file else ''}: {told}"


def _stopped(rollout: Rollout) -> str:
    *earlier, last = rollout.hosts
    which = "the canary" if not earlier else last.host
    told = [f"the roll-out stops, since {which} shows too little"]
    if rollout.untouched:
        told.append(f"not touched: {', '.join(rollout.untouched)}")
    if earlier:
        told.append(f"what was applied before stays: {', '.join(h.host for h in earlier)}")
    return "; ".join(told)
