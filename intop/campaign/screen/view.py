"""A screening as a document: which parameters act, and how far two rankings agree."""

from intop.campaign.collect.view import drift_sentence
from intop.document.columns import Column, Value, numbers
from intop.document.model import Notes, Section, Table, tabled
from intop.domain.ranking import (
    SHARP,
    Effect,
    Importance,
    RankAgreement,
    Ranking,
    RankPair,
    Screening,
)
from intop.words import counted, few, percent

MOST_OPEN = 8
"""Open parameters that are shown nevertheless: the likeliest ones."""
EFFECT = (
    Column("parameter", "key"),
    *(Column(name, unit="times") for name in ("effect", "at most")),
    Column("p-value"),
    Column("likely", unit="%"),
    Column("verdict", "text"),
)
"""Columns of a table of effects."""
IMPORTANCE = (
    Column("parameter", "key"),
    *(Column(name, unit="%") for name in ("permutation", "sd", "beats probes", "splits")),
)
"""Columns of a table of importances."""
MOST_RANKS = 12


def ranking(title: str, ranking: Ranking) -> Section:
    """Return the parameters that act and their ranks, in words and two tables."""
    lines = [cut_sentence(ranking)]
    if ranking.screening:
        lines += power_sentences(ranking.screening)
    if ranking.saved:
        lines.append(
            f"The choice was stable before the end, so {ranking.saved} trials that were planned "
            "were not measured."
        )
    if ranking.drift:
        lines.append(drift_sentence(ranking.drift))
    importances = _importances(title, ranking)
    if ranking.screening is None:
        return Section(title=importances.title, blocks=(*importances.blocks, Notes(tuple(lines))))
    chosen = [e for e in ranking.screening.effects if e.state == "chosen"]
    still = [e for e in ranking.screening.effects if e.state == "open"][:MOST_OPEN]
    effects = tabled(
        f"{title}: which parameters act ({ranking.trials} trials)",
        EFFECT,
        map(effect_cells, (*chosen, *still)),
        lines,
    )
    return Section(title=effects.title, blocks=(*effects.blocks, importances))


def _importances(title: str, ranking: Ranking) -> Section:
    """The chosen parameters by importance, and where the level of the probes lies among them.

    By how much of the variance of log latency the error grows when a parameter is shuffled, the
    standard deviation of that over models, how many sets of probes it beats, and its share of what
    the splits of the trees explain.
    """
    chosen = {*ranking.chosen, *(ranking.passing if ranking.screening else ())}
    shown = [i for i in ranking.importances if i.key in chosen]
    level = ranking.probe_level
    top = max((level, *(i.permutation for i in ranking.importances))) or 1.0
    rows = [(*importance_cells(i), "█" * round(20 * i.permutation / top)) for i in shown]
    place = sum(i.permutation > level for i in shown)
    bar = "┄" * round(20 * level / top)
    rows.insert(place, ("probe level", 100 * level, "", "", "", bar))
    return tabled(
        f"{title}: importance of parameters ({ranking.trials} trials)",
        (*IMPORTANCE, Column("", "text")),
        rows,
    )


def effect_cells(item: Effect) -> tuple[Value, ...]:
    """A row of a table of effects."""
    likely = 100 * item.probability
    return (item.key, item.ratio, item.high, item.p_value, likely, item.state)


def importance_cells(item: Importance) -> tuple[Value, ...]:
    """A row of a table of importances."""
    shares = (item.permutation, item.permutation_sd, item.above, item.mean)
    return (item.key, *(100 * share for share in shares))


def cut_sentence(ranking: Ranking) -> str:
    """Return a sentence about the choice and its reason."""
    return _chosen_sentence(ranking.screening) if ranking.screening else _ranked_sentence(ranking)


def _chosen_sentence(screening: Screening) -> str:
    count, chosen = len(screening.effects), len(screening.keys("chosen"))
    looked = (
        f"by the {' and the '.join(screening.responses)} of "
        f"{counted(screening.configurations, 'configuration')}"
    )
    if not chosen:
        return f"None of {counted(count, 'parameter')} was found to act, {looked}."
    return (
        f"{chosen} of {counted(count, 'parameter')} {'was' if chosen == 1 else 'were'} found to "
        f"act, {looked}. Of parameters found so, {screening.discovery_rate:.0%} at most are "
        "expected to do nothing (false discovery rate)."
    )


def power_sentences(screening: Screening) -> list[str]:
    """Return sentences about missed effects, and about parameters that were not chosen."""
    power = f"{screening.power:.0%}"
    hinted = (
        f"Expected to act, since they take away what the default shows (hints): "
        f"{', '.join(screening.hinted)}. They are held to a lower bar, and all others to a higher "
        "one."
    )
    lines = [
        *([hinted] if screening.hinted else []),
        f"Effects above {screening.detectable:.3g} times would have been found with {power}."
        if screening.detectable is not None
        else f"No effect, however strong, would have been found with {power}: measure more trials "
        "(screen_trials) or longer ones (duration_s).",
    ]
    if (count := screening.sharp_configurations) is not None:
        lines.append(
            f"Effects of {SHARP:g} times need some {count} configurations: intop screen --new "
            f"--samples {count}"
        )
    if frozen := len(screening.keys("frozen")):
        lines.append(
            f"Frozen at their defaults: {counted(frozen, 'parameter')}. By the data, each changes "
            f"{screening.responses[0]} by less than {screening.matters:g} times "
            f"({percent(screening.level)} confidence for each)."
        )
    if still := len(screening.keys("open")):
        lines.append(
            f"Open: {counted(still, 'parameter')}. They can't be told, so they stay in the space; "
            "the likelier one acts, the more often it is varied."
        )
    return lines


def _ranked_sentence(ranking: Ranking) -> str:
    count, passing, chosen = len(ranking.importances), len(ranking.passing), len(ranking.chosen)
    level = (
        f"the probe level, which parameters without effect pass in {ranking.error_rate:.0%} of "
        "screenings at most"
    )
    if not passing:
        return (
            f"Nothing above noise was found: none of {count} parameters is above {level}. The "
            f"first {chosen} by rank are chosen all the same, so that the campaign can go on; more "
            "trials (screen_trials) or longer ones (duration_s) may show what matters."
        )
    sentence = f"{passing} of {count} parameters {'is' if passing == 1 else 'are'} above {level}."
    if chosen < passing:
        return f"{sentence} The {chosen} most important are chosen, which is all that keep allows."
    if chosen > passing:
        return (
            f"{sentence} The next {chosen - passing} are chosen by their rank alone: they can't be "
            "told from noise, and more trials (screen_trials) may show what matters."
        )
    return f"{sentence} The others are left out: they can't be told from noise."


def agreement(title: str, agreement: RankAgreement) -> Section:
    """Return the ranks of both sides' most important parameters, correlations and choices."""
    return rank_section(
        f"{title}: ranks of the {len(agreement.common)} parameters that both rank", agreement
    )


def rank_section(title: str, agreement: RankAgreement) -> Section:
    """The same below any heading."""
    table = Table(
        columns=(
            Column("parameter", "key"),
            *numbers(f"rank in {agreement.first}", f"rank in {agreement.second}"),
            Column("passes", "text"),
        ),
        rows=tuple(
            (pair.key, str(pair.rank_first), str(pair.rank_second), _passes(agreement, pair))
            for pair in agreement.ranks[:MOST_RANKS]
        ),
    )
    return Section(title=title, blocks=(table, Notes(rank_notes(agreement))))


def rank_notes(agreement: RankAgreement) -> tuple[str, ...]:
    """The correlations, and what both have chosen."""
    both = agreement.chosen_by_both
    lines = [
        "Rank correlation of the importances: none can be told"
        if agreement.spearman is None or agreement.kendall is None
        else f"Rank correlation of the importances: {agreement.spearman:z.2f} (Spearman), "
        f"{agreement.kendall:z.2f} (Kendall); what is no more than noise on either side is ranked "
        "by chance, which draws them to zero",
        f"Chosen by both: {len(both)} of {len(agreement.chosen_first)} in {agreement.first} and "
        f"{len(agreement.chosen_second)} in {agreement.second}"
        + (f": {few(both, 8)}" if both else ""),
    ]
    return tuple(lines)


def _passes(agreement: RankAgreement, pair: RankPair) -> str:
    if pair.passes_first and pair.passes_second:
        return "both"
    if pair.passes_first:
        return agreement.first
    return agreement.second if pair.passes_second else "neither"
