"""The sources of the gain: the effect of each of the winner's changes."""

from collections.abc import Iterator

from intop.campaign.verify.trim_view import trim_sentence, trim_tables
from intop.document.columns import Column, Value, columns
from intop.document.model import Block, Figure, Paragraph, Table, widened
from intop.domain.explanation import Dependence, Explanation
from intop.explain.view import contribution_table
from intop.report.findings import Findings
from intop.report.page.common import as_sentence, drawing, lacking
from intop.sentences import kept_sentence
from intop.words import capital


def ablation(findings: Findings) -> Iterator[Block]:
    """Return the effect of each of the winner's changes."""
    if findings.verdict is None:
        return
    if findings.trimmed is not None and (findings.trimmed.trials or findings.trimmed.slow):
        yield Paragraph(
            f"Before the verdict, changes that do nothing or bring slow requests were dropped: "
            f"{trim_sentence(findings.trimmed)}."
        )
        yield from trim_tables(findings.trimmed)
    explanation = findings.explanation
    if explanation is None:
        missing = lacking(findings, "explain")
        yield from missing or (Paragraph("There is no gain, so there is nothing to take apart."),)
        return
    judged_by = explanation.verdict.judged_by
    yield Paragraph(
        f"Smaller sets of the winner's changes were measured, in {explanation.trials} trials with "
        f"those of the smallest set's verdict. Smallest set: {', '.join(explanation.keys)}. It "
        f"{kept_sentence(explanation.kept, judged_by)}."
    )
    yield Figure(
        title="What each change does",
        draw=drawing("intop.explain.figure:contributions", findings.title, explanation),
        label=f"What each change of the winner for {findings.title} does to {judged_by}",
        caption=(
            f"Ratios of {judged_by} with intervals. Left out: the winner without the change / the "
            "winner. Alone: the default / the default with it. Right of 1 the change helps. A "
            "change that helps alone and is not missed when it is left out does what another one "
            "does, too. Missed: the smallest set without it / the smallest set. Dropped changes "
            "that were not measured one by one are in the table only."
        ),
        tables=(_contribution_table(explanation), *_interactions(explanation)),
    )
    if explanation.curves:
        yield Figure(
            title=f"{capital(judged_by)} about the winner",
            draw=drawing("intop.explain.figure:dependence", findings.title, explanation),
            label=(
                f"How {judged_by} depends on the kept parameters about the winner for "
                f"{findings.title}"
            ),
            caption=(
                "Lines are what the models predict when one value moves and the winner's others "
                "stay. Marks are measured: the winner, with and without the change where both "
                "were, and, faint, configurations in which all else differs, too."
            ),
            tables=(_curves(explanation, "predicted"), _curves(explanation, "measured")),
        )
    elif explanation.without_curves:
        yield Paragraph(as_sentence(explanation.without_curves))


def _contribution_table(explanation: Explanation) -> Table:
    kept = ("kept" if c.is_kept else f"dropped: {c.dropped}" for c in explanation.contributions)
    return widened(contribution_table(explanation), Column("kept", "prose"), kept)


def _interactions(explanation: Explanation) -> tuple[Table, ...]:
    if not explanation.interactions:
        return ()
    return (
        Table(
            name="interactions",
            title="Two changes together / the product of what each does alone",
            origin="measured",
            columns=(Column("one", "key"), Column("other", "key"), Column("ratio", "span")),
            rows=tuple((i.first, i.second, i.ratio) for i in explanation.interactions),
        ),
    )


def _curves(explanation: Explanation, origin: str) -> Table:
    """The points of all curves that are of this origin."""

    def rows(curve: Dependence) -> Iterator[tuple[Value, ...]]:
        for point in curve.predicted if origin == "predicted" else ():
            yield curve.name, str(point.value), point.judged_ms, "line"
        for name, points in (("winner", curve.measured), ("elsewhere", curve.elsewhere)):
            for point in points if origin == "measured" else ():
                yield curve.name, str(point.value), point.judged_ms, name

    return Table(
        name=f"dependence-{origin}",
        title=f"{capital(explanation.verdict.judged_by)} by the value of one parameter, {origin}",
        origin="predicted" if origin == "predicted" else "measured",
        columns=(
            *columns("key", "parameter", "value"),
            Column(f"{explanation.verdict.judged_by} in ms"),
            Column("where", "text"),
        ),
        rows=tuple(row for curve in explanation.curves for row in rows(curve)),
    )
