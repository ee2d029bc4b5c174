"""The end of tune as a document: what was found, on one screen."""

from collections.abc import Iterator, Sequence

from intop.campaign.tune import Tuned
from intop.document.model import Notes, Section, Verbatim
from intop.domain.verdict import Verdict
from intop.explain.view import smallest
from intop.sentences import latency_differences, verdict_sentence
from intop.words import few

MOST_KEYS = 3
"""Parameters of a winner that are named; the plan has all."""


def outcome(results: Sequence[Tuned]) -> list[Section]:
    """Return the verdict of each cell with its parameters, and the commands that follow."""
    lines = [line for tuned in results for line in _cell(tuned)]
    commands = [
        "Details:  intop report    a stage again: intop screen, refine, train, search, verify"
    ]
    if len({tuned.arch for tuned in results}) > 1:
        commands.append(
            f"Compare:  intop compare {' '.join(dict.fromkeys(t.arch for t in results))}"
        )
    if any(tuned.verdict.is_gain for tuned in results):
        commands.append("Next:     intop plan    what would change on each host; it writes nothing")
    blocks = (Notes(tuple(lines)), Verbatim(tuple(commands)))
    return [Section(title="Verdicts", blocks=blocks)]


def _cell(tuned: Tuned) -> Iterator[str]:
    verdict = tuned.verdict
    yield f"{tuned.arch} {tuned.workload}: {verdict_sentence(verdict)}"
    if not verdict.is_gain:
        return
    yield f"  P99 {verdict.default_p99_ms:.0f} → {verdict.tuned_p99_ms:.0f} ms. {_besides(verdict)}"
    if tuned.explanation is not None:
        yield f"  {smallest(tuned.explanation)}"
    else:
        values = verdict.configuration.values
        yield f"  {few([f'{key} = {value}' for key, value in values.items()], MOST_KEYS)}"


def _besides(verdict: Verdict) -> str:
    """Return what else certainly differs, or that nothing got worse."""
    differences = latency_differences(verdict) or "No other percentile certainly differs"
    kept = all(guard.state == "kept" for guard in verdict.guardrails)
    return f"{differences}." + (" All guardrails are kept." if verdict.guardrails and kept else "")
