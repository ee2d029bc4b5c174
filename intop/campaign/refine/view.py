"""A refinement as a document: step by step, why trials were chosen and what they came to."""

from intop.document.columns import Column, Value, columns
from intop.document.model import Notes, Section, Table, widened
from intop.domain.refined import BestKnown, Refined, expected_percent

REASONS = ("promise", "uncertainty", "replicate")


def refined(title: str, refined: Refined) -> Section:
    """The best known after each step, all of it measured, and why there are no more."""
    hopes = ("", *(expected(step.improvement) for step in refined.steps))
    return Section(
        title=f"{title}: refinement ({refined.spent} of {refined.budget} trials)",
        blocks=(
            widened(step_table(refined), Column("expected"), hopes),
            Notes(tuple(ending(refined))),
        ),
    )


def step_table(refined: Refined) -> Table:
    """A row for each step, and one for what was known before."""
    nothing = (None,) * (len(REASONS) + 1)
    first = (f"first design ({refined.collected})", *nothing, *_best(refined.before))
    steps = (
        (
            str(step.number),
            *(step.reasons.get(reason, 0) for reason in REASONS),
            step.failures,
            *_best(step.best),
        )
        for step in refined.steps
    )
    return Table(
        name="refinement",
        title="Trials by step and reason, and the best known after them",
        origin="measured",
        columns=(
            Column("step", "text"),
            *columns("count", *REASONS, "failed"),
            Column(f"best known {refined.judged_by}", unit="ms"),
            Column("its trials", "count"),
        ),
        rows=(first, *steps),
    )


def expected(improvement: float) -> str:
    """Return the expected fall in percent; a dash where nothing could be said."""
    percent = expected_percent(improvement)
    return "-" if percent is None else f"{percent:.1f} %"


def _best(best: BestKnown) -> tuple[Value, ...]:
    return best.judged_ms, best.trials


def ending(refined: Refined) -> list[str]:
    """Return sentences about the end of the steps and the worth of the best known."""
    worth = "" if refined.least is None else f"; worth its trials from {expected(refined.least)} on"
    ended = {
        "budget": "all trials of the budget are spent",
        "nothing better expected": (
            "nothing better is expected "
            f"(the last step: {expected(refined.improvement or 0.0)}{worth})"
        ),
        "nothing left": "there is no configuration left to measure",
    }[refined.ended]
    sentences = [
        f"Ended: {ended}.",
        (
            f"The default has {refined.default_ms:.1f} ms in these stages. What is best known "
            "was chosen by its trials, which flatters it: what it is worth, the verdict says."
        ),
    ]
    if refined.earlier:
        sentences.append(
            f"{refined.earlier} trials of earlier campaigns helped to choose; they are in no row."
        )
    return sentences
