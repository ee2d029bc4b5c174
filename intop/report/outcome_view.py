"""The end of tune as a document: what was found, on one screen."""

from collections.abc import Iterator, Sequence

from intop.campaign.tune import Tuned
from intop.document.model import Section, Verbatim
from intop.domain.verdict import Verdict
from intop.explain.view import smallest
from intop.sentences import verdict_sentence
from intop.words import few

MOST_KEYS = 3
"""Parameters of a winner that are named; the plan has all."""
GAP = Verbatim(("",))


def outcome(results: Sequence[Tuned]) -> list[Section]:
    """Return the verdict of each cell with its parameters, and the commands that follow."""
    cells = [Verbatim(tuple(_cell(tuned))) for tuned in results]
    archs = list(dict.fromkeys(tuned.arch for tuned in results))
    commands = ["Details:  intop report, or a stage: intop screen, refine, train, search, verify"]
    commands += [f"Compare:  intop compare {' '.join(archs)}"] if len(archs) > 1 else []
    if any(tuned.verdict.is_gain for tuned in results):
        commands.append("Next:     intop plan    shows what would change on each host")
    blocks = [block for cell in (*cells, Verbatim(tuple(commands))) for block in (GAP, cell)]
    return [Section(title="Verdicts", blocks=tuple(blocks))]


def _cell(tuned: Tuned) -> Iterator[str]:
    verdict = tuned.verdict
    yield f"{tuned.arch} {tuned.workload}: {verdict_sentence(verdict)}"
    if not verdict.is_gain:
        return
    if tuned.explanation is not None:
        yield f"  {smallest(tuned.explanation)}"
    else:
        values = verdict.configuration.values
        yield f"  {few([f'{key} = {value}' for key, value in values.items()], MOST_KEYS)}"
    latency = f"{verdict.judged_by} {verdict.default_ms:.0f} → {verdict.tuned_ms:.0f} ms"
    yield "  " + "; ".join(filter(None, (latency, *_besides(verdict))))


def _besides(verdict: Verdict) -> Iterator[str]:
    """Yield the other latencies that certainly differ, and whether anything got worse."""
    lower = [f"{name} {r.value:.2f}" for name, r in verdict.certain.items() if r.value > 1]
    higher = [f"{name} {1 / r.value:.2f}" for name, r in verdict.certain.items() if r.value < 1]
    yield f"also lower: {', '.join(lower)} times" if lower else ""
    yield f"higher: {', '.join(higher)} times" if higher else ""
    kept = all(guard.state == "kept" for guard in verdict.guardrails)
    yield "all guardrails kept" if verdict.guardrails and kept else ""
