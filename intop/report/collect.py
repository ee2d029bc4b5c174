"""Collected trials as a document: their status, the drift of the default, noise and replicas."""

import math

from intop.domain.agreement import Agreement, Replica
from intop.domain.collection import Collected
from intop.domain.drift import Drift
from intop.domain.replicates import Noise
from intop.report.document.columns import Value, numbers, texts
from intop.report.document.model import Section, tabled
from intop.report.words import percent_change


def collected(title: str, found: Collected) -> Section:
    """What the trials of a stage look like, by status, the default's drift, and the noise."""
    rows: list[tuple[Value, ...]] = []
    for name, default in (("default", True), ("configurations", False)):
        trials = [t for t in found.trials if t.configuration.is_default == default]
        latencies = [t.p99_ms for t in trials if t.usable]
        odd = [t.status for t in trials if t.status != "ok"]
        counts = ", ".join(f"{odd.count(s)} {s}" for s in sorted(set(odd)))
        ends = (min(latencies), max(latencies)) if latencies else ()
        low, high = (f"{end:.1f} ms" for end in ends) if ends else (None, None)
        rows.append((name, str(len(trials)), low, high, counts or "none"))
    sentences = [
        f"{found.replicates} of these trials are replicates",
        noise_sentence("configurations", found.noise),
        noise_sentence("the default", found.default_noise),
        drift_sentence(found.drift),
    ]
    if found.replicas is not None:
        sentences += replica_sentences(found.replicas)
    heads = (*texts(""), *numbers("trials", "lowest P99", "highest P99"), *texts("not ok"))
    return tabled(f"{title}: trials", heads, rows, sentences)


def replica_sentences(found: Agreement) -> list[str]:
    """Which replicas agree with the first one, and which were set aside later, a sentence each."""
    _, *others = found.replicas
    return [replica_sentence(replica) for replica in others] + [
        f"replica {one.name} was set aside: "
        + (f"its load made {one.disturbs} slower" if one.disturbs else "it drifted later")
        for one in found.replicas
        if one.is_set_aside
    ]


def replica_sentence(replica: Replica) -> str:
    """Such as: replica lab-b-lb agrees: ... 0.97 (0.81 to 1.16)."""
    ratio = replica.ratio
    if ratio is None:
        return (
            f"replica {replica.name} is left out: too few trials of the default could be used, "
            "on it or on the first one"
        )
    told = "agrees" if replica.agrees else "is left out, it measures something else"
    return f"replica {replica.name} {told}: the first one's P99 / its P99 {ratio}"


def noise_sentence(name: str, found: Noise) -> str:
    """Such as: noise of the default: a trial's P99 scatters by 7 % (95 % interval 4 to 18 %, ...).

    That is one standard deviation of log P99, as the percentage above.
    """
    if found.sd is None or found.low is None or found.high is None:
        return f"noise of {name}: can't be told, nothing was measured twice"
    sd, low, high = (
        # One degree of freedom at a high level has an interval beyond what a float can hold.
        percent_change(math.exp(min(x, 700.0))).lstrip("+")
        for x in (found.sd, found.low, found.high)
    )
    return (
        f"noise of {name}: a trial's P99 scatters by {sd} % ({found.level:.0%} interval {low} to "
        f"{high} %, degrees of freedom: {found.freedom})"
    )


def drift_sentence(found: Drift) -> str:
    """Such as: drift of the default: +3 % over 12 min (95 % interval -5 to +12 %).

    Where the interval leaves out zero, it says so, and how much of the scatter that explains.
    """
    if found.change is None or found.share is None:
        return (
            f"drift of the default: can't be told from {found.sentinels} of its trials, which are "
            f"too few, or not far enough apart"
        )
    low, high = percent_change(found.change.low), percent_change(found.change.high)
    told = (
        f"drift of the default: {percent_change(found.change.value)} % over {_span(found.hours)} "
        f"({found.level:.0%} interval {low} to {high} %)"
    )
    if not found.is_separated:
        return f"{told}, not separated from zero"
    return f"{told}, separated from zero: {found.share:.0%} of its scatter"


def _span(hours: float) -> str:
    """Hours in the unit that people would use."""
    if hours >= 3:
        return f"{hours:.0f} h"
    return f"{hours * 60:.0f} min" if hours >= 1 / 60 else f"{hours * 3600:.0f} s"
