"""Roll-outs as documents."""

from collections.abc import Sequence

from intop.deploy.rollout import HostRollout, Rollout
from intop.document.model import Verbatim
from intop.sentences import verdict_sentence

NOTHING = "no verdict is a gain: there is nothing to apply"


COSTS = "--accept-costs goes on although a guardrail is broken"


def rollouts(finished: Sequence[Rollout]) -> list[Verbatim]:
    """A line for each host, and how to undo it."""
    lines: list[str] = []
    for rollout in finished:
        lines += [f"{rollout.title}: {_host_line(host)}" for host in rollout.hosts]
        if rollout.is_stopped:
            lines.append(f"{rollout.title}: {_stopped(rollout)}")
        elif any(not host.lasting for host in rollout.hosts):
            lines.append(
                f"{rollout.title}: the values last until the host is started anew; with --persist "
                "they would come back then"
            )
    if any(host.outcome != "stopped" for rollout in finished for host in rollout.hosts):
        lines.append("See what has become of it: intop status. Undo it: intop rollback")
    return [Verbatim(tuple(lines))]


def _host_line(host: HostRollout) -> str:
    files = f", with {', '.join(host.lasting)}" if host.lasting else ""
    if host.outcome == "already":
        return f"{host.host}: has these values already{files}"
    reason = verdict_sentence(host.verdict) if host.verdict else "not measured"
    if host.outcome == "stopped":
        return f"{host.host}: NOT applied, it keeps the values that it had: {reason}"
    return f"{host.host}: applied{files}: {reason}"


def _stopped(rollout: Rollout) -> str:
    *earlier, last = rollout.hosts
    which = "the first one" if not earlier else last.host
    costs = last.verdict is not None and last.verdict.broken
    why = f"breaks a guardrail ({COSTS})" if costs else "shows too little"
    parts = [f"the roll-out stops, since {which} {why}"]
    if last.verdict is not None and last.verdict.outcome == "undecided":
        parts.append(f"more rounds may tell: --rounds {2 * last.verdict.pairs}")
    if rollout.untouched:
        parts.append(f"not touched: {', '.join(rollout.untouched)}")
    if earlier:
        parts.append(f"what was applied before stays: {', '.join(h.host for h in earlier)}")
    return "; ".join(parts)
