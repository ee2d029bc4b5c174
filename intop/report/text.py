"""What stages found: tables and sentences for people. Formats, and computes nothing."""

import math
from collections.abc import Iterator, Sequence

from intop.domain.agreement import Agreement, Replica
from intop.domain.drift import Drift
from intop.domain.ranking import Effect, Importance, Ranking, Screening
from intop.domain.replicates import Collected, Noise
from intop.domain.search import Convergence, Search
from intop.domain.training import NEAR_CEILING, Training
from intop.report.document.columns import Column, Value, columns, numbers, texts
from intop.report.document.model import Notes, Section, Table, tabled, widened
from intop.report.numbers import counted

BLOCKS = "▁▂▃▄▅▆▇█"
ALGORITHMS = {
    "genetic": "genetic algorithm",
    "annealing": "simulated annealing",
    "swarm": "particle swarm",
    "evolution": "differential evolution",
    "random": "random search",
}
"""Names of the algorithms of a search, for readers."""
LOADS = {"slt": "static files", "dlt": "pages made on request"}
"""What is asked for under a workload."""


MOST_OPEN = 8
"""Parameters that can't be told and are shown nevertheless: the likeliest ones."""


def ranking(title: str, found: Ranking) -> Section:
    """What acts and how the parameters rank, in words and two tables."""
    lines = [cut_sentence(found)]
    if found.screening:
        lines += power_sentences(found.screening)
    if found.saved:
        lines.append(
            f"The choice was stable before the end, so {found.saved} trials that were planned were "
            "not measured."
        )
    if found.drift:
        lines.append(drift_sentence(found.drift))
    importances = _importances(title, found)
    if found.screening is None:
        return Section(title=importances.title, blocks=(*importances.blocks, Notes(tuple(lines))))
    chosen = [e for e in found.screening.effects if e.state == "chosen"]
    still = [e for e in found.screening.effects if e.state == "open"][:MOST_OPEN]
    effects = tabled(
        f"{title}: which parameters act ({found.trials} trials)",
        EFFECT,
        map(effect_cells, (*chosen, *still)),
        lines,
    )
    return Section(title=effects.title, blocks=(*effects.blocks, importances))


def _importances(title: str, found: Ranking) -> Section:
    """The chosen parameters by importance, and where the level of the probes lies among them.

    By how much of the variance of log P99 the error grows when a parameter is shuffled, the
    standard deviation of that over models, how many sets of probes it beats, and its share of what
    the splits of the trees explain.
    """
    chosen = {*found.chosen, *(found.passing if found.screening else ())}
    shown = [i for i in found.importances if i.key in chosen]
    level = found.probe_level
    top = max((level, *(i.permutation for i in found.importances))) or 1.0
    rows = [(*importance_cells(i), "█" * round(20 * i.permutation / top)) for i in shown]
    place = sum(i.permutation > level for i in shown)
    bar = "┄" * round(20 * level / top)
    rows.insert(place, ("probe level", 100 * level, "", "", "", bar))
    return tabled(
        f"{title}: importance of parameters ({found.trials} trials)",
        (*IMPORTANCE, Column("", "text")),
        rows,
    )


EFFECT = (
    Column("parameter", "key"),
    *(Column(name, unit="times") for name in ("effect", "at most")),
    Column("p-value"),
    Column("likely", unit="%"),
    Column("verdict", "text"),
)
"""What the cells of an effect are."""


def effect_cells(item: Effect) -> tuple[Value, ...]:
    """A row of a table of effects."""
    likely = 100 * item.probability
    return (item.key, item.ratio, item.high, item.p_value, likely, item.state)


IMPORTANCE = (
    Column("parameter", "key"),
    *(Column(name, unit="%") for name in ("permutation", "sd", "beats probes", "splits")),
)
"""What the cells of an importance are."""


def importance_cells(item: Importance) -> tuple[Value, ...]:
    """A row of a table of importances."""
    shares = (item.permutation, item.permutation_sd, item.above, item.mean)
    return (item.key, *(100 * share for share in shares))


def cut_sentence(found: Ranking) -> str:
    """What was chosen, and why."""
    return _chosen_sentence(found.screening) if found.screening else _ranked_sentence(found)


def _chosen_sentence(found: Screening) -> str:
    count, chosen = len(found.effects), len(found.keys("chosen"))
    looked = (
        f"by the {' and the '.join(found.responses)} of "
        f"{counted(found.configurations, 'configuration')}"
    )
    if not chosen:
        return f"None of {counted(count, 'parameter')} was found to act, {looked}."
    return (
        f"{chosen} of {counted(count, 'parameter')} {'was' if chosen == 1 else 'were'} found to "
        f"act, {looked}. Of parameters found so, {found.discovery_rate:.0%} at most are expected "
        "to do nothing (false discovery rate)."
    )


def power_sentences(found: Screening) -> list[str]:
    """What the choice may miss, and what becomes of all others."""
    power = f"{found.power:.0%}"
    hinted = (
        f"Expected to act, since they take away what the default shows (hints): "
        f"{', '.join(found.hinted)}. They are held to a lower bar, and all others to a higher one."
    )
    lines = [
        *([hinted] if found.hinted else []),
        f"Effects above {found.detectable:.3g} times would have been found with {power}."
        if found.detectable is not None
        else f"No effect, however strong, would have been found with {power}: measure more trials "
        "(screen_trials) or longer ones (duration_s).",
    ]
    if frozen := len(found.keys("frozen")):
        lines.append(
            f"Frozen at their defaults: {counted(frozen, 'parameter')}. By the data, each changes "
            f"P99 by less than {found.matters:g} times ({found.level:.0%} confidence for each)."
        )
    if still := len(found.keys("open")):
        lines.append(
            f"Open: {counted(still, 'parameter')}. They can't be told, so they stay in the space; "
            "the likelier one acts, the more often it is varied."
        )
    return lines


def _ranked_sentence(found: Ranking) -> str:
    count, passing, chosen = len(found.importances), len(found.passing), len(found.chosen)
    level = (
        f"the probe level, which parameters without effect pass in {found.error_rate:.0%} of "
        "screenings at most"
    )
    if not passing:
        return (
            f"Nothing above noise was found: none of {count} parameters is above {level}. The "
            f"first {chosen} by rank are chosen all the same, so that the campaign can go on; more "
            "trials (screen_trials) or longer ones (duration_s) may show what matters."
        )
    told = f"{passing} of {count} parameters {'is' if passing == 1 else 'are'} above {level}."
    if chosen < passing:
        return f"{told} The {chosen} most important are chosen, which is all that keep allows."
    if chosen > passing:
        return (
            f"{told} The next {chosen - passing} are chosen by their rank alone: they can't be "
            "told from noise, and more trials (screen_trials) may show what matters."
        )
    return f"{told} The others are left out: they can't be told from noise."


def errors(title: str, training: Training) -> Section:
    """Held-out error by family, and what a perfect model would reach."""
    trials = f"{training.trials} trials of {training.configurations} configurations"
    if training.lent:
        trials += f", learned with {training.lent} of the screening"
    title += ": error of the models on configurations they have not seen"
    return Section(
        title=f"{title} ({trials}, {len(training.keys)} parameters)",
        blocks=(error_table(training), Notes(tuple(judgement(training)))),
    )


def error_table(training: Training) -> Table:
    """A row for each family."""
    return Table(
        name="model-errors",
        title="Errors on configurations that were held out",
        columns=(
            Column("family", "text"),
            Column("MAPE", unit="%"),
            *numbers(f"R² of log {training.target}", "rank correlation"),
            *(Column(name, unit="%") for name in ("coverage", "regret")),
            Column("time", unit="s"),
        ),
        rows=tuple(
            (e.family, e.mape, e.r2, e.spearman, 100 * e.coverage, e.regret, e.seconds)
            for e in training.errors
        ),
    )


def judgement(training: Training) -> Iterator[str]:
    """What the errors come to, in sentences."""
    if levels := sorted({e.level for e in training.errors}):
        yield (
            f"Coverage: how many lie in the interval of their prediction, which is to hold "
            f"{few([f'{level:.0%}' for level in levels])}. Regret: by how much the one predicted "
            f"lowest was measured higher than the lowest."
        )
    if training.best:
        yield f"Best by cross-validation: {training.best}."
    yield from _ceiling(training)


def _ceiling(training: Training) -> Iterator[str]:
    """Such as: Noise ceiling: a perfect model would have MAPE 8 %, R² 0.91, ..."""
    found = training.ceiling
    if found is None:
        yield "Noise ceiling: can't be told, nothing was measured twice."
        return
    if found.scale is None:
        by = f"by the {found.configurations} configurations that were measured more than once"
    else:
        by = f"by the latencies in each trial, times {found.scale:.2f} by replicates"
    yield (
        f"Noise ceiling: a perfect model would have MAPE {found.mape:.0f} %, R² {found.r2:.2f} "
        f"and rank correlation {found.spearman:.2f} (a trial scatters by "
        f"{_percent(math.exp(found.sd)).lstrip('+')} %, {by})."
    )
    if training.is_at_ceiling:
        yield (
            f"The error of {training.best} is at most {NEAR_CEILING:g} times that: what is left "
            f"is noise, and another model would not help."
        )


def search(title: str, found: Search) -> Section:
    """Convergence of the search, model by model."""
    column = Column("best by generation", "text")
    notes = (
        "Converged: after how many of the generations the best got no better.",
        "Predicted, not measured; what it is worth, the verdict says.",
    )
    return Section(
        title=f"{title}: search by {algorithms(found) or 'no algorithm'}",
        blocks=(
            widened(run_table(found), column, map(sparkline, found.convergences)),
            Notes(notes),
        ),
    )


def run_table(found: Search) -> Table:
    """A row for each model that was searched."""
    return Table(
        name="convergence",
        title="Convergence by model, after how many of all generations",
        origin="predicted",
        columns=(
            Column("model", "text"),
            *columns("count", "converged at", "generations", "restarts"),
            Column("time", unit="s"),
            Column(f"best predicted {found.quantity}", unit="ms"),
        ),
        rows=tuple(
            (
                r.model,
                r.converged_at,
                len(r.best_ms) - 1,
                r.restarts,
                r.seconds,
                r.best_ms[-1] if r.best_ms else None,
            )
            for r in found.convergences
        ),
    )


def algorithms(found: Search) -> str:
    """What searched, by name."""
    names = dict.fromkeys(ALGORITHMS.get(r.algorithm, r.algorithm) for r in found.convergences)
    return " and ".join(names)


def sparkline(run: Convergence, width: int = 20) -> str:
    """The best predicted P99 by generation, high to low, in at most `width` blocks."""
    values = run.best_ms
    step = max(1, -(-len(values) // width))
    picked = values[::-1][::step][::-1]  # from the end, which must not be missing
    low, high = min(picked), max(picked)
    if high == low:
        return BLOCKS[0] * len(picked)
    return "".join(BLOCKS[round((v - low) / (high - low) * (len(BLOCKS) - 1))] for v in picked)


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
        _percent(math.exp(min(x, 700.0))).lstrip("+")
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
    low, high = _percent(found.change.low), _percent(found.change.high)
    told = (
        f"drift of the default: {_percent(found.change.value)} % over {_span(found.hours)} "
        f"({found.level:.0%} interval {low} to {high} %)"
    )
    if not found.is_separated:
        return f"{told}, not separated from zero"
    return f"{told}, separated from zero: {found.share:.0%} of its scatter"


def _percent(ratio: float) -> str:
    """A ratio as a change in percent; powers of ten from 100-fold on."""
    change = 100 * (ratio - 1)
    return f"{change:+.0f}" if change < 9900 else f"{change:+.0e}"


def _span(hours: float) -> str:
    """Hours in the unit that people would use."""
    if hours >= 3:
        return f"{hours:.0f} h"
    return f"{hours * 60:.0f} min" if hours >= 1 / 60 else f"{hours * 3600:.0f} s"


def few(keys: Sequence[str], limit: int = 4) -> str:
    """The first keys, and how many there are more."""
    more = f" and {len(keys) - limit} more" if len(keys) > limit else ""
    return ", ".join(keys[:limit]) + more
