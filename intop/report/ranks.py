"""How far two rankings agree: rows and sentences, and both as text. Computes nothing."""

from rich.console import Group, RenderableType
from rich.text import Text

from intop.domain.ranks import RankAgreement, RankPair
from intop.report.text import bold, few, new_table

MOST_ROWS = 12


def agreement(title: str, found: RankAgreement) -> RenderableType:
    """The table of two rankings, for a terminal or a text file."""
    table = new_table(*columns(found))
    for row in rows(found):
        table.add_row(*row)
    heading = bold(f"{title}: ranks of the {len(found.common)} parameters that both rank")
    return Group(heading, table, Text("\n".join(notes(found))), "")


def columns(found: RankAgreement) -> tuple[tuple[str, str], ...]:
    """As pairs of a name and "left" or "right"."""
    return (
        ("parameter", "left"),
        (f"rank in {found.one}", "right"),
        (f"rank in {found.other}", "right"),
        ("passes", "left"),
    )


def rows(found: RankAgreement) -> list[tuple[str, ...]]:
    """What is most important on either side."""
    return [
        (pair.key, str(pair.rank_one), str(pair.rank_other), _passes(found, pair))
        for pair in found.ranks[:MOST_ROWS]
    ]


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
    if pair.passes_one is None or pair.passes_other is None:
        return "not known"
    if pair.passes_one and pair.passes_other:
        return "both"
    if pair.passes_one:
        return found.one
    return found.other if pair.passes_other else "neither"
