"""The sections of the page, in the order in which a reader wants them."""

from intop.domain.report import Report
from intop.report.document.model import Document
from intop.report.page.sections import models, trials, verdicts
from intop.report.page.sections.common import clock

SECTIONS = (
    verdicts.found,
    verdicts.change,
    verdicts.latency,
    verdicts.compared,
    verdicts.paper_and_here,
    verdicts.ablation,
    models.ranking,
    models.models,
    models.search,
    models.refined,
    trials.drift,
    trials.refused,
    trials.provenance,
    trials.checking,
)


def document(report: Report) -> Document:
    """All that the page shows; what a section has nothing to say of, is left out."""
    made = [section(report) for section in SECTIONS]
    until = clock(report.finished_at or "")
    return Document(
        title=f"Kernel parameters for nginx: {report.study}",
        subtitle=(
            f"Campaign {report.campaign}, {clock(report.started_at)} to {until or 'now'} (UTC)"
            f"{'' if until else ', not finished'}. By intop {report.tool_version}."
        ),
        sections=tuple(section for section in made if section.blocks),
    )
