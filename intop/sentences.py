"""Results in one sentence each: the same words in a status, a plan, a report and an error."""

import math
from collections.abc import Mapping

from intop.domain.across import Across
from intop.domain.agreement import Replica
from intop.domain.explanation import Kept
from intop.domain.further import Further
from intop.domain.soak import Soak
from intop.domain.stats import Interval
from intop.domain.sweep import UNITS, Axis, Sweep
from intop.domain.verdict import LatencyOutcome, Verdict
from intop.words import counted, duration, interval, number, percent

NOT_SHOWN: LatencyOutcome = "no significant gain"
ALONG: Mapping[Axis, str] = {
    "rate": "at other rates",
    "connections": "with other numbers of connections",
    "cores": "with other numbers of workers",
    "file": "with other files",
}


def verdict_sentence(verdict: Verdict) -> str:
    """Return such as: gain: P99 is 3.1 times lower (95 % interval 2.2 to 4.4).

    Against a baseline it names that one. It says which guardrails are unclear or broken, and which
    other latencies are certainly higher; without a gain, all that certainly differ.
    """
    differences = latency_differences(verdict, only_worse=verdict.latency_outcome != NOT_SHOWN)
    next_step = further_pairs(verdict.further) if verdict.further and not verdict.is_gain else ""
    return "; ".join(filter(None, (_outcome(verdict), differences, next_step)))


def further_pairs(further: Further) -> str:
    """Return such as: some 10 more pairs, 4 minutes: intop verify --more 10."""
    minutes = ""
    if further.seconds is not None:
        minutes = f", {counted(max(1, math.ceil(further.seconds / 60)), 'minute')}"
    return f"some {further.pairs} more pairs{minutes}: intop verify --more {further.pairs}"


def latency_differences(verdict: Verdict, *, only_worse: bool = False) -> str:
    """Return the latencies that certainly differ, or are certainly higher.

    Such as: P50 is 1.70 times (1.66 to 1.75) lower, P99.9 3.10 times (2.20 to 4.00) higher.
    """
    parts: list[str] = []
    for name, ratio in verdict.certain.items():
        is_lower = ratio.value > 1
        if is_lower and only_worse:
            continue
        verb = "" if parts else " is"
        parts.append(f"{name}{verb} {_times(ratio)} {'lower' if is_lower else 'higher'}")
    return ", ".join(parts)


def _times(ratio: Interval) -> str:
    """Return a ratio, or its inverse where that is above 1: 1.70 times (1.66 to 1.75)."""
    above = ratio.inverse if ratio.value < 1 else ratio
    return f"{above.value:.2f} times ({above.limits})"


def _outcome(verdict: Verdict) -> str:
    """Return the outcome by latency and guardrails."""
    than = f" than with {verdict.against}" if verdict.against else ""
    within = f"{percent(verdict.level)} interval {verdict.interval.limits}"
    if verdict.failures:
        return f"worse: trials of the tuned side that failed: {verdict.failures}"
    match verdict.outcome:
        case "gain":
            return f"gain: {verdict.gain}"
        case "gain, but":
            return f"gain, but {verdict.doubts}: {verdict.gain}"
        case "no gain: it costs":
            return f"{verdict.short}: {verdict.costs}, though {verdict.gain}"
        case "worse":
            times = f"{1 / verdict.ratio:.2f} times"
            return f"worse: {verdict.judged_by} is {times} higher{than} (ratio's {within})"
    besides = f"; besides, {verdict.costs}" if verdict.broken else ""
    return f"{_not_shown(verdict)} (ratio {verdict.ratio:.2f}, {within}){besides}"


def _not_shown(verdict: Verdict) -> str:
    """Return what the interval of a gain that is not shown says, and what to do by it."""
    over = f" over {verdict.against}" if verdict.against else ""
    if verdict.outcome == "undecided":
        return f"undecided{over}, more pairs would tell"
    is_all = not verdict.against and all(ratio.high < 1 for ratio in verdict.certain.values())
    of = "" if is_all or over else f" of {verdict.judged_by}"
    then = ": keep the defaults" if is_all else ""
    if verdict.excludes_gain:
        return f"no gain{of}{over} larger than {verdict.ratio_high:.2f} times{then}"
    return f"no significant gain{of}{over}{then}"


def across_sentence(across: Across) -> str:
    """Return such as: winner under 11 workloads: gain in 4, worse in 2."""
    parts = [f"gain in {len(across.gains)}"] if across.gains else ["no significant gain"]
    parts += [f"worse in {len(across.worse)}"] if across.worse else []
    count = counted(len(across.workloads), "workload")
    return f"{across.name} under {count}: {', '.join(parts)}"


def worse_here(across: Across) -> str:
    """Return such as: worse here: large (P99 is 1.30 times higher (1.10 to 1.54)), api (...)."""
    places = [f"{under.workload} ({'; '.join(under.harms)})" for under in across.worse]
    return f"worse here: {', '.join(places) or 'in none of these workloads'}"


def sweep_sentence(sweep: Sweep) -> str:
    """Return such as: at other rates: tuned gain at 50, 100, worse at 150 requests/s."""
    names = [arm.name for arm in sweep.arms[1:]]
    parts = [f"{name} {_outcomes(sweep, name)}" for name in names] or [f"{sweep.reference} alone"]
    parts += [
        f"{c.arm} carries {more_or_less(c.ratio)}" for c in sweep.capacities if c.ratio is not None
    ]
    return f"{ALONG[sweep.axis]}: {'; '.join(parts)}"


def more_or_less(ratio: Interval) -> str:
    """Return such as: 38 % more (20 to 58)."""
    shares = [100 * (value - 1) for value in (ratio.value, ratio.low, ratio.high)]
    if shares[0] < 0:
        shares = [-shares[0], -shares[2], -shares[1]]
        return "{:.0f} % less ({:.0f} to {:.0f})".format(*shares)
    return "{:.0f} % more ({:.0f} to {:.0f})".format(*shares)


def _outcomes(sweep: Sweep, arm: str) -> str:
    """Return such as: gain at 50, 100, worse at 150 requests/s."""
    places: dict[str, list[str]] = {}
    for point, arm_at in sweep.along(arm):
        places.setdefault(arm_at.outcome, []).append(point.label)
    parts = [f"{outcome} at {', '.join(labels)}" for outcome, labels in places.items()]
    return f"{', '.join(parts)} {UNITS[sweep.axis]}".rstrip()


def kept_sentence(kept: Kept, judged_by: str) -> str:
    """Return such as: keeps 97 % of the gain (interval 80 to 114 %): P99 5.10 times lower, ..."""
    if kept.full.value <= 1:
        return "how much of the gain is kept can't be told: the winner had none in these rounds"
    short = f", {kept.lack}" if kept.lack else ""
    return (
        f"keeps {percent_below(kept.share)} of the gain (interval {100 * kept.low:.0f} to "
        f"{100 * kept.high:.0f} %){short}: {judged_by} {kept.smaller.value:.2f} times lower, the "
        f"whole winner {kept.full.value:.2f} times, in the same {kept.rounds} rounds"
    )


def percent_below(share: float) -> str:
    """Rounded down, so that what falls short of a round number does not look like it."""
    return f"{math.floor(100 * share + 1e-9)} %"


def soak_sentence(soak: Soak) -> str:
    """Return such as: soak of 1 h 0 min: no leak, nginx's memory +0.1 MiB/h (-0.2 to +0.4)."""
    sentence = f"soak of {duration(soak.hours * 3600)}: "
    if soak.broken:
        sentence += f"ended early, {broken_limit(soak)}; "
    sentence += {"not known": "whether there is a leak is not known"}.get(soak.leak, soak.leak)
    memory = next((t for t in soak.trends if t.quantity == "nginx memory"), None)
    if memory is None or memory.per_hour is None:
        return sentence
    per_hour = memory.per_hour
    return (
        f"{sentence}, nginx's memory {interval(per_hour.value, per_hour.low, per_hour.high, '+')} "
        f"{memory.unit} an hour"
    )


def broken_limit(soak: Soak) -> str:
    """Return such as: P99 above 50 ms in 3 blocks in a row."""
    limits = soak.limits
    what = {
        "P99": f"P99 above {number(limits.p99_ms or 0.0)} ms",
        "errors": f"more than {100 * (limits.errors or 0.0):g} % of requests failed",
        "memory": f"nginx's memory above {number(limits.memory_mib or 0.0)} MiB",
        "no answers": "no request was answered",
    }.get(soak.broken, "")
    return f"{what} in {counted(limits.in_a_row, 'block')}" + (
        " in a row" if limits.in_a_row > 1 else ""
    )


def replica_sentence(replica: Replica) -> str:
    """Return such as: replica lab-b-lb agrees: ... 0.97 (0.81 to 1.16)."""
    ratio = replica.ratio
    if ratio is None:
        return (
            f"replica {replica.name} is left out: too few trials of the default could be used, "
            "on it or on the first one"
        )
    state = "agrees" if replica.agrees else "is left out, it measures something else"
    return f"replica {replica.name} {state}: the first one's latency / its own {ratio}"
