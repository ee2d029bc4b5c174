"""The part of a gain that each mechanism brings, as a document."""

from collections.abc import Iterator

from intop.document.columns import Column, columns
from intop.document.model import Notes, Section, Table
from intop.domain.baseline import HOST
from intop.domain.mediation import Mediated, Mediation
from intop.domain.stats import Interval
from intop.domain.verdict import Verdict
from intop.sentences import verdict_sentence
from intop.words import counted, percent


def mediation(title: str, result: Mediation | Verdict) -> Section:
    """Return the table of mechanisms, and what can't be known; or the verdict that is no gain."""
    if isinstance(result, Verdict):
        title = f"{title}: there is no gain to explain, nothing was measured"
        return Section(title=title, blocks=(Notes((verdict_sentence(result),)),))
    table = (mediation_table(result),) if result.mechanisms else ()
    notes = Notes(tuple(mediation_notes(result)))
    return Section(title=f"{title}: {sentence(result)}", blocks=(*table, notes))


def mediation_table(mediation: Mediation) -> Table:
    """Return a row for each mechanism that was taken away."""
    against = mediation.against or HOST
    return Table(
        name="mediation",
        title="What each mechanism brings of the gain",
        origin="measured",
        columns=(
            Column("mechanism", "text"),
            Column("taken away by", "key"),
            *columns("span", f"{against} / winner", "without it"),
            Column(f"share of the gain ({percent(mediation.level)} interval)", "text"),
        ),
        rows=tuple(
            (m.block.mechanism, m.block.summary, m.gain, m.left, _share(m))
            for m in mediation.mechanisms
        ),
    )


def sentence(mediation: Mediation) -> str:
    """Return such as: syn-backlog brings 92 % of the gain (81 to 103 %)."""
    shares = [
        f"{m.block.mechanism} brings {_percents(m.share)}"
        for m in mediation.mechanisms
        if m.share is not None
    ]
    if shares:
        return "; ".join(shares)
    if mediation.mechanisms or mediation.untold:
        return "what the mechanisms bring of the gain can't be told"
    return "no known mechanism, so nothing was measured"


def mediation_notes(mediation: Mediation) -> Iterator[str]:
    """Yield how it was measured, and what it can't tell."""
    if mediation.mechanisms:
        yield (
            f"{counted(mediation.rounds, 'round')} with and without each mechanism, on both sides. "
            "Ratios are of latency; the share is of its logarithm, so 0 % is nothing of the gain "
            "and 100 % all of it."
        )
    for mediated in mediation.mechanisms:
        yield f"{mediated.block.mechanism}: {mediated.about}"
        if mediated.own:
            yield (
                f"{mediated.block.mechanism}: the winner sets {', '.join(mediated.own)} itself, so "
                "what is left is the gain of its other keys"
            )
    for mechanism, reason in mediation.untold.items():
        yield (
            f"{mechanism} was not taken away: {reason}. Name values that do: intop causes "
            f"--block {mechanism}:KEY=VALUE"
        )


def _share(mediated: Mediated) -> str:
    if mediated.share is not None:
        return _percents(mediated.share, of="")
    if mediated.left is None:
        return mediated.detail or "not measured"
    return "the gain is not clear in these rounds"


def _percents(share: Interval, of: str = " of the gain") -> str:
    low, mean, high = (f"{100 * part:.0f}" for part in (share.low, share.value, share.high))
    return f"{mean} %{of} ({low} to {high} %)"
