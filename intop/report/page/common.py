"""What all sections do alike."""

from collections.abc import Iterable
from datetime import datetime

from intop.domain.report import Findings
from intop.report.document.model import Block, Paragraph, renamed


def lacking(findings: Findings, stage: str) -> tuple[Paragraph, ...]:
    """What a stage would have made, if it could still be run."""
    return tuple(
        Paragraph(
            as_sentence(f"{missing.what}: not there yet") + " Make it with", command=missing.command
        )
        for missing in findings.missing
        if missing.stage == stage
    )


def clock(time: str) -> str | None:
    """A time in ISO 8601 as people write it; None for none."""
    return datetime.fromisoformat(time).strftime("%Y-%m-%d %H:%M:%S") if time else None


def as_sentence(words: str) -> str:
    """With a capital letter and a full stop."""
    return f"{words[:1].upper()}{words[1:]}."


def of_subject(findings: Findings, blocks: Iterable[Block]) -> tuple[Block, ...]:
    """Return blocks whose tables have the subject in their names: `x86-slt-importance`."""
    prefix = f"{findings.arch}-{findings.workload}-"
    return tuple(renamed(block, prefix) for block in blocks)
