"""The latest canary: what a configuration did on real traffic."""

from collections.abc import Iterator

from intop.deploy.canary.view import canary_notes, canary_sentence, canary_tables
from intop.document.model import Block, Paragraph
from intop.domain.canary import Canary
from intop.report.page.common import as_sentence
from intop.words import few


def canary(_: str, result: Canary) -> Iterator[Block]:
    """Yield its outcome, both sides and what does not count."""
    keys = ", ".join(f"{key} = {value}" for key, value in result.configuration.values.items())
    yield Paragraph(
        as_sentence(f"{few(result.hosts, 5)} with {result.title}: {canary_sentence(result)}")
    )
    yield Paragraph(as_sentence(f"the canary's values: {keys}"))
    yield from canary_tables(result)
    yield from map(Paragraph, canary_notes(result))
