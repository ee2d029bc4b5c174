"""Helpers that all sections share."""

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import TYPE_CHECKING, Any

from intop.document.model import Block, Paragraph, renamed
from intop.features import load
from intop.report.findings import Findings
from intop.words import capital

if TYPE_CHECKING:
    from intop.document.drawing import Drawing


def drawing(place: str, *arguments: object) -> "Callable[[], Drawing]":
    """Return what draws a figure, by the `module:name` of a function and its arguments.

    The function is imported when it draws, so a page without figures needs no matplotlib.
    """
    return lambda: load(place)(*arguments)


def lacking(findings: Findings, stage: str) -> tuple[Paragraph, ...]:
    """Return the command that makes a stage's result, if the stage can still be run."""
    return tuple(
        Paragraph(
            as_sentence(f"{missing.what}: not there yet") + " Make it with", command=missing.command
        )
        for missing in findings.missing
        if missing.stage == stage
    )


def of_result(
    name: str,
    stage: str,
    blocks: Callable[[str, Any], Iterable[Block]],
    *,
    otherwise: str = "",
) -> Callable[[Findings], Iterable[Block]]:
    """Return the section of a stage's result: its blocks by the subject's title.

    `name` is that of the field of the findings. Without a result the section says how to make it,
    or else a sentence.
    """

    def section(findings: Findings) -> Iterable[Block]:
        result = getattr(findings, name)
        if result is not None:
            return blocks(findings.title, result)
        return lacking(findings, stage) or ((Paragraph(otherwise),) if otherwise else ())

    return section


def clock(time: str) -> str | None:
    """A time in ISO 8601 as people write it; None for none."""
    return datetime.fromisoformat(time).strftime("%Y-%m-%d %H:%M:%S") if time else None


def as_sentence(words: str) -> str:
    """Return words with a capital letter and a full stop."""
    return f"{capital(words)}."


def of_subject(findings: Findings, blocks: Iterable[Block]) -> tuple[Block, ...]:
    """Return blocks whose tables have the subject in their names: `x86-slt-importance`."""
    prefix = f"{findings.arch}-{findings.workload}-"
    return tuple(renamed(block, prefix) for block in blocks)
