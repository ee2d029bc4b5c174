"""The worth of the winner under the study's other workloads."""

from collections.abc import Iterator

from intop.document.model import Block, Figure, Paragraph, without_empty
from intop.experiment.across.view import across_notes, across_tables
from intop.report.findings import Findings
from intop.report.page.common import as_sentence, drawing
from intop.sentences import across_sentence, worse_here


def across(findings: Findings) -> Iterator[Block]:
    """Yield a verdict for each workload, both sides, and a line that says where it is worse."""
    if (result := findings.across) is None:
        if findings.verdict is not None:
            yield Paragraph(
                "What the winner is worth under the study's other workloads was not measured. Do "
                "so with",
                command="intop across",
            )
        return
    yield Paragraph(as_sentence(across_sentence(result)))
    yield Paragraph(as_sentence(worse_here(result)))
    tables = tuple(without_empty(table) for table in across_tables(result))
    if any(under.verdict is not None for under in result.workloads):
        yield Figure(
            title="By workload",
            draw=drawing(
                "intop.campaign.verify.speedup_figure:by_workload",
                f"{findings.title} across",
                result,
            ),
            label=f"{findings.title}: {across_sentence(result)}",
            caption=(
                "How many times lower the latency is under each workload, with its interval. At "
                "the left of the line at 1 the winner is worse than the default."
            ),
            tables=tables,
        )
    else:
        yield from tables
    yield from map(Paragraph, across_notes(result))
