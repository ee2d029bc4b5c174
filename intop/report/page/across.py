"""What the winner is worth under the study's other workloads."""

from collections.abc import Iterator
from functools import partial

from intop.domain.report import Findings
from intop.report.across import across_notes, across_tables, sentence, worse_here
from intop.report.document.model import Block, Figure, Paragraph, without_empty
from intop.report.figures.speedup import speedup, verdicts_of
from intop.report.page.common import as_sentence


def across(one: Findings) -> Iterator[Block]:
    """A verdict for each workload, both sides, and one line that says where it is worse."""
    if (found := one.across) is None:
        if one.verdict is not None:
            yield Paragraph(
                "What the winner is worth under the study's other workloads was not measured. Do "
                "so with",
                command="intop verify --workload all --configuration winner",
            )
        return
    yield Paragraph(as_sentence(sentence(found)))
    yield Paragraph(as_sentence(worse_here(found)))
    tables = tuple(without_empty(table) for table in across_tables(found))
    if verdicts := verdicts_of(found):
        yield Figure(
            title="By workload",
            draw=partial(speedup, f"{one.title} across", verdicts),
            label=f"{one.title}: {sentence(found)}",
            caption=(
                "How many times lower P99 is under each workload, with its interval. At the left "
                "of the line at 1 the winner is worse than the default."
            ),
            tables=tables,
        )
    else:
        yield from tables
    yield from map(Paragraph, across_notes(found))
