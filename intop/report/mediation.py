"""What each mechanism brings of a gain, as a document."""

from collections.abc import Iterator

from intop.domain.baseline import HOST
from intop.domain.mediation import Mediated, Mediation
from intop.domain.stats import Interval
from intop.domain.verdict import Verdict
from intop.report.document.columns import Column, columns
from intop.report.document.model import Notes, Section, Table
from intop.report.verdict import sentence as verdict_sentence
from intop.report.words import counted, percent


def mediation(title: str, found: Mediation | Verdict) -> Section:
    """The table of mechanisms, and what can't be told."""
    if isinstance(found, Verdict):
        told = Notes((verdict_sentence(found),))
        return Section(
            title=f"{title}: there is no gain to explain, nothing was measured", blocks=(told,)
        )
    table = (mediation_table(found),) if found.mechanisms else ()
    return Section(
        title=f"{title}: {sentence(found)}", blocks=(*table, Notes(tuple(mediation_notes(found))))
    )


def mediation_table(found: Mediation) -> Table:
    """A row for each mechanism that was taken away."""
    against = found.against or HOST
    return Table(
        name="mediation",
        title="What each mechanism brings of the gain",
        origin="measured",
        columns=(
            Column("mechanism", "text"),
            Column("taken away by", "key"),
            *columns("span", f"{against} / winner", "without it"),
            Column(f"share of the gain ({percent(found.level)} interval)", "text"),
        ),
        rows=tuple(
            (one.block.mechanism, one.block.told, one.gain, one.left, _share(one))
            for one in found.mechanisms
        ),
    )


def sentence(found: Mediation) -> str:
    """Such as: syn-backlog brings 92 % of the gain (81 to 103 %)."""
    told = [
        f"{one.block.mechanism} brings {_percents(one.share)}"
        for one in found.mechanisms
        if one.share is not None
    ]
    if told:
        return "; ".join(told)
    if found.mechanisms or found.untold:
        return "what the mechanisms bring of the gain can't be told"
    return "no known mechanism, so nothing was measured"


def mediation_notes(found: Mediation) -> Iterator[str]:
    """How it was measured, and what it can't tell."""
    if found.mechanisms:
        yield (
            f"{counted(found.rounds, 'round')} with and without each mechanism, on both sides. "
            "Ratios are of P99; the share is of its logarithm, so 0 % is nothing of the gain and "
            "100 % all of it."
        )
    for one in found.mechanisms:
        yield f"{one.block.mechanism}: {one.about}"
        if one.own:
            yield (
                f"{one.block.mechanism}: the winner sets {', '.join(one.own)} itself, so what is "
                "left is the gain of its other keys"
            )
    for mechanism, reason in found.untold.items():
        yield (
            f"{mechanism} was not taken away: {reason}. Name values that do: intop explain --why "
            f"--block {mechanism}:KEY=VALUE"
        )


def _share(one: Mediated) -> str:
    if one.share is not None:
        return _percents(one.share, of="")
    if one.left is None:
        return one.detail or "not measured"
    return "the gain is not clear in these rounds"


def _percents(share: Interval, of: str = " of the gain") -> str:
    low, mean, high = (f"{100 * part:.0f}" for part in (share.low, share.value, share.high))
    return f"{mean} %{of} ({low} to {high} %)"
