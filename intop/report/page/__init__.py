"""The sections of the page, in the order in which a reader wants them."""

from collections.abc import Callable, Iterable

from intop.document.model import Block, Document, Section
from intop.report.findings import Findings, Report
from intop.report.page import ablation, latency, models, trials, verdicts
from intop.report.page.across import across
from intop.report.page.canary import canary
from intop.report.page.cells import cells
from intop.report.page.common import clock, of_result, of_subject


def _nothing(_: object) -> tuple[Block, ...]:
    return ()


CANARY = of_result("canary", "canary", canary)
SOAK = of_result("soak", "soak", latency.soaked)
RANKING = of_result("ranking", "screen", models.ranking)
TRAINING = of_result("training", "train", models.models)
SEARCH = of_result("search", "search", models.search)
NO_REFINEMENT = "The study has no refinement (refine_trials = 0)."
REFINED = of_result("refined", "refine", models.refined, otherwise=NO_REFINEMENT)

SECTIONS: tuple[
    tuple[str, str, Callable[[Report], Iterable[Block]], Callable[[Findings], Iterable[Block]]], ...
] = (
    ("found", "What was found", cells, _nothing),
    ("verdicts", "The verdicts", verdicts.summary, _nothing),
    ("change", "What to change", _nothing, verdicts.changes),
    ("latency", "Latency before and after", _nothing, latency.latency),
    ("across", "Under all workloads", _nothing, across),
    ("soak", "Hours of load on what is applied", _nothing, SOAK),
    ("canary", "On real traffic, in turn with the default", _nothing, CANARY),
    ("architectures", "X86 against ARM", verdicts.compared, _nothing),
    ("paper", "The paper and here", verdicts.paper_and_here, _nothing),
    ("ablation", "Where the gain comes from", _nothing, ablation.ablation),
    ("importance", "Which parameters matter", _nothing, RANKING),
    ("models", "How well the models predict", models.all_models, TRAINING),
    ("search", "How the search converged", _nothing, SEARCH),
    ("refinement", "How the measurements were chosen", _nothing, REFINED),
    ("drift", "Did the machine change meanwhile", _nothing, trials.drift),
    ("refused", "What was refused, and why", _nothing, trials.refused),
    ("provenance", "Trials and provenance", trials.provenance, trials.measured),
    ("checking", "How to check this", trials.checking, _nothing),
)
"""Each with its anchor, its title, and what there is to say of all and then of each subject."""


def document(report: Report) -> Document:
    """Return the page without its empty sections."""
    stored = [subject for subject in report.findings if subject.stages]
    sections: list[Section] = []
    for name, title, of_all, of_each in SECTIONS:
        parts = (
            Section(title=subject.title, blocks=of_subject(subject, of_each(subject)))
            for subject in stored
        )
        blocks = (*of_all(report), *(part for part in parts if part.blocks))
        sections += [Section(name=name, title=title, blocks=blocks)] if blocks else []
    until = clock(report.finished_at or "")
    return Document(
        title=f"Kernel parameters: {report.study}",
        subtitle=(
            f"Campaign {report.campaign}, {clock(report.started_at)} to {until or 'now'} (UTC)"
            f"{'' if until else ', not finished'}. By intop {report.tool_version}."
        ),
        sections=tuple(sections),
    )
