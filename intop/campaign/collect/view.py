"""Collected trials as a document: their status, the drift of the default, noise and replicas."""

from intop.document.columns import Value, numbers, texts
from intop.document.model import Section, tabled
from intop.domain.agreement import Agreement
from intop.domain.drift import Drift
from intop.domain.replicates import Collected, Noise
from intop.domain.stats import exponential
from intop.domain.trial import judged_by
from intop.sentences import replica_sentence
from intop.words import percent, percent_change


def collected(title: str, collected: Collected) -> Section:
    """Return the trials of a stage by status, the default's drift, and the noise."""
    rows: list[tuple[Value, ...]] = []
    for name, default in (("default", True), ("configurations", False)):
        trials = [t for t in collected.trials if t.configuration.is_default == default]
        latencies = [t.judged_ms for t in trials if t.usable]
        odd = [t.status for t in trials if t.status != "ok"]
        counts = ", ".join(f"{odd.count(s)} {s}" for s in sorted(set(odd)))
        ends = (min(latencies), max(latencies)) if latencies else ()
        low, high = (f"{end:.1f} ms" for end in ends) if ends else (None, None)
        rows.append((name, str(len(trials)), low, high, counts or "none"))
    sentences = [
        f"{collected.replicates} of these trials are replicates",
        noise_sentence("configurations", collected.noise),
        noise_sentence("the default", collected.default_noise),
        drift_sentence(collected.drift),
    ]
    if collected.replicas is not None:
        sentences += replica_sentences(collected.replicas)
    name = judged_by(collected.trials)
    ends_of = (f"lowest {name}", f"highest {name}")
    heads = (*texts(""), *numbers("trials", *ends_of), *texts("not ok"))
    return tabled(f"{title}: trials", heads, rows, sentences)


def replica_sentences(agreement: Agreement) -> list[str]:
    """Return a sentence for each replica: agreement with the first, or why it was set aside."""
    _, *peers = agreement.replicas
    return [replica_sentence(replica) for replica in peers] + [
        f"replica {replica.name} was set aside: "
        + (f"its load made {replica.disturbs} slower" if replica.disturbs else "it drifted later")
        for replica in agreement.replicas
        if replica.is_set_aside
    ]


def noise_sentence(name: str, noise: Noise) -> str:
    """Return such as: noise of the default: a trial scatters by 7 % (95 % interval 4 to 11 %).

    That is one standard deviation of log latency, as the percentage above.
    """
    if noise.sd is None or noise.low is None or noise.high is None:
        return f"noise of {name}: can't be told, nothing was measured twice"
    sd, low, high = (
        # One degree of freedom at a high level has an interval beyond what a float can hold.
        percent_change(exponential(x)).lstrip("+")
        for x in (noise.sd, noise.low, noise.high)
    )
    return (
        f"noise of {name}: a trial scatters by {sd} % ({percent(noise.level)} interval {low} to "
        f"{high} %, degrees of freedom: {noise.freedom})"
    )


def drift_sentence(drift: Drift) -> str:
    """Return such as: drift of the default: +3 % over 12 min (95 % interval -5 to +12 %).

    Where the interval leaves out zero, it says so, and how much of the scatter that explains.
    """
    if drift.change is None or drift.share is None:
        return (
            f"drift of the default: can't be told from {drift.sentinels} of its trials, which are "
            f"too few, or not far enough apart"
        )
    low, high = percent_change(drift.change.low), percent_change(drift.change.high)
    sentence = (
        f"drift of the default: {percent_change(drift.change.value)} % over {_span(drift.hours)} "
        f"({percent(drift.level)} interval {low} to {high} %)"
    )
    if not drift.is_separated:
        return f"{sentence}, not separated from zero"
    return f"{sentence}, separated from zero: {drift.share:.0%} of its scatter"


def _span(hours: float) -> str:
    """Hours in the unit that people would use."""
    if hours >= 3:
        return f"{hours:.0f} h"
    return f"{hours * 60:.0f} min" if hours >= 1 / 60 else f"{hours * 3600:.0f} s"
