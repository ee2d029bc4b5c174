"""An explanation as a document: what each change does, and what the fewest of them are worth."""

from collections.abc import Callable, Iterator

from intop.document.columns import Column, Value, columns
from intop.document.model import Notes, Section, Table, widened
from intop.domain.explanation import WANTED_KEYS, Explanation
from intop.domain.stats import Interval
from intop.domain.verdict import Verdict
from intop.sentences import kept_sentence, percent_below, verdict_sentence
from intop.words import capital, few, percent


def explanation(title: str, outcome: Explanation | Verdict) -> Section:
    """The table of contributions, interactions, and the smallest set with its verdict."""
    if isinstance(outcome, Verdict):
        note = Notes((verdict_sentence(outcome),))
        return Section(
            title=f"{title}: there is no gain to explain, nothing was measured", blocks=(note,)
        )
    kept = ("kept" if contribution.is_kept else "dropped" for contribution in outcome.contributions)
    return Section(
        title=f"{title}: what the winner's gain is made of ({outcome.trials} trials)",
        blocks=(
            widened(contribution_table(outcome, _stacked), Column("", "text"), kept),
            Notes(tuple(_lines(title, outcome))),
        ),
    )


def contribution_table(
    explanation: Explanation, cell: Callable[[Interval | None], Value] = lambda ratio: ratio
) -> Table:
    """Return a row for each change, with its ratios."""
    judged_by, level = explanation.verdict.judged_by, percent(explanation.level)
    return Table(
        name="contributions",
        title=f"What each change does (ratios of {judged_by}, {level} intervals)",
        origin="measured",
        columns=(
            Column("change", "key"),
            Column("default", "before"),
            Column("winner", "after"),
            *columns("span", "alone", "left out", "missed"),
        ),
        rows=tuple(
            (
                "\n+ ".join(contribution.keys),
                "\n".join(value or "unset" for value in contribution.before),
                "\n".join(value or "unset" for value in contribution.after),
                *map(cell, (contribution.alone, contribution.left_out, contribution.missed)),
            )
            for contribution in explanation.contributions
        ),
    )


def _stacked(ratio: Interval | None) -> Value:
    """Return a ratio in two lines, so that three of them fit beside the longest keys."""
    return None if ratio is None else str(ratio).replace(" (", "\n(")


def _lines(title: str, explanation: Explanation) -> Iterator[str]:
    yield (
        f"Ratios of {explanation.verdict.judged_by} with {percent(explanation.level)} intervals, "
        "each for itself; above 1 the change helps. Alone: default / default with it. Left out: "
        "winner without it / winner. Missed: smallest set without it / smallest set."
    )
    for why in dict.fromkeys(c.dropped for c in explanation.contributions if c.dropped):
        yield f"Dropped, since {why}: {_names(explanation, why)}."
    if explanation.same:
        yield f"Dropped, since they have the default's value: {few(explanation.same)}."
    for pair in explanation.interactions:
        yield (
            f"{pair.first} and {pair.second} together: {pair.ratio} times what the product of "
            f"both alone would be"
        )
    yield f"{title}: {sentence(explanation)}"
    yield from (f"  {key} = {value}" for key, value in explanation.minimal.values.items())
    yield f"  {kept_sentence(explanation.kept, explanation.verdict.judged_by)}"
    if explanation.obstacle:
        yield f"  So what leaves the campaign is the whole winner: {explanation.obstacle}"
    if explanation.offer is not None:
        keys = explanation.offer.configuration.values
        yield (
            f"  More than {WANTED_KEYS} keys are needed. The best {len(keys)} alone: "
            f"{kept_sentence(explanation.offer.kept, explanation.verdict.judged_by)}"
        )
        yield from (f"    {key} = {value}" for key, value in keys.items())
    if explanation.without_curves:
        yield capital(explanation.without_curves)


def sentence(explanation: Explanation) -> str:
    """Return such as: 3 of 14 keys: gain: P99 is 3.1 times lower (95 % interval 2.2 to 4.4)."""
    count = len(explanation.winner.values)
    return f"{len(explanation.keys)} of {count} keys: {verdict_sentence(explanation.verdict)}"


def smallest(explanation: Explanation) -> str:
    """Return the keys to change, and the share of the gain that they keep."""
    share = (
        ""
        if explanation.kept.full.value <= 1
        else f", {percent_below(explanation.kept.share)} of the gain"
    )
    instead = (
        f"; so the whole winner is deployed: {explanation.obstacle}" if explanation.obstacle else ""
    )
    return f"smallest set: {', '.join(explanation.keys)} ({sentence(explanation)}{share}){instead}"


def _names(explanation: Explanation, why: str) -> str:
    return ", ".join(c.name for c in explanation.contributions if c.dropped == why)
