"""The section about hours of load."""

from collections.abc import Iterator
from functools import partial

from intop.domain.soak import Soak
from intop.report.document.model import Block, Figure, Paragraph
from intop.report.figures.over_time import soak as soak_figure
from intop.report.page.common import as_sentence
from intop.report.soak import sentence, soak_notes, soak_tables


def soaked(title: str, soak: Soak) -> Iterator[Block]:
    """The last soak: its verdict, and each block over time."""
    yield Paragraph(as_sentence(sentence(soak)))
    tables = soak_tables(soak)
    if any(block.p99_ms for block in soak.blocks):
        yield Figure(
            title="Load over time",
            draw=partial(soak_figure, title, soak),
            label=f"{title}: {sentence(soak)}",
            caption=(
                "P50 and P99 of each block, the rate that was reached, nginx's memory, its open "
                "files and the load balancer's sockets. The dotted lines are limits, and the rate "
                "that was asked."
            ),
            tables=tables,
        )
    else:
        yield from tables
    yield from map(Paragraph, soak_notes(soak))
