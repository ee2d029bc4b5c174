"""How far two rankings agree. Computes nothing."""

from intop.domain.ranking import RankAgreement, RankPair
from intop.report.document.columns import Column, numbers
from intop.report.document.model import Notes, Section, Table
from intop.report.text import few

MOST_ROWS = 12


def agreement(title: str, found: RankAgreement) -> Section:
    """Both ranks of what is most important on either side, the correlations, what both chose."""
    return section(f"{title}: ranks of the {len(found.common)} parameters that both rank", found)


def section(title: str, found: RankAgreement) -> Section:
    """The same below any heading."""
    table = Table(
        columns=(
            Column("parameter", "key"),
            *numbers(f"rank in {found.one}", f"rank in {found.other}"),
            Column("passes", "text"),
        ),
        rows=tuple(
            (pair.key, str(pair.rank_one), str(pair.rank_other), _passes(found, pair))
            for pair in found.ranks[:MOST_ROWS]
        ),
    )
    return Section(title=title, blocks=(table, Notes(notes(found))))


def notes(found: RankAgreement) -> tuple[str, ...]:
    """The correlations, and what both have chosen."""
    both = found.chosen_by_both
    lines = [
        "Rank correlation of the importances: none can be told"
        if found.spearman is None or found.kendall is None
        else f"Rank correlation of the importances: {found.spearman:z.2f} (Spearman), "
        f"{found.kendall:z.2f} (Kendall); what is no more than noise on either side is ranked by "
        "chance, which draws them to zero",
        f"Chosen by both: {len(both)} of {len(found.chosen_one)} in {found.one} and "
        f"{len(found.chosen_other)} in {found.other}" + (f": {few(both, 8)}" if both else ""),
    ]
    return tuple(lines)


def _passes(found: RankAgreement, pair: RankPair) -> str:
    if pair.passes_one and pair.passes_other:
        return "both"
    if pair.passes_one:
        return found.one
    return found.other if pair.passes_other else "neither"
