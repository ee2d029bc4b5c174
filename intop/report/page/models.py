"""Models and their proposals: parameters that matter, errors, searches and refinements."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import zip_longest

from intop.campaign.refine.view import ending, step_table
from intop.campaign.screen.view import (
    EFFECT,
    IMPORTANCE,
    cut_sentence,
    effect_cells,
    importance_cells,
    power_sentences,
)
from intop.campaign.search.view import algorithms, run_table
from intop.campaign.train.view import error_table, judgement
from intop.campaign.verify.view import LUCK, model_table, models_sentence
from intop.document.columns import Column, Value, numbers, texts
from intop.document.model import (
    Block,
    Figure,
    Notes,
    Paragraph,
    Section,
    Table,
    without_empty,
)
from intop.domain.ranking import Ranking, Screening
from intop.domain.refined import Refined, expected_percent
from intop.domain.search import Search
from intop.domain.training import HeldOut, Training
from intop.report.findings import Findings, Report
from intop.report.page.common import drawing
from intop.words import shared

# Importance ---------------------------------------------------------------------------------------


def ranking(title: str, ranking: Ranking) -> Iterator[Block]:
    """The parameters by importance."""
    if not ranking.importances:
        return
    yield Figure(
        title=f"Importance of parameters ({ranking.trials} trials)",
        draw=drawing("intop.campaign.screen.figure:importance", title, ranking),
        label=(
            f"Importance of the parameters for {title}: {ranking.importances[0].key} comes first"
        ),
        caption=(
            "By how much of the variance of log latency a model's error grows when a parameter's "
            "values are shuffled, with its standard deviation over models. Blue ones were "
            "chosen. What is below the dashed line is no more than parameters without "
            "any effect reach."
        ),
        tables=(_importance_table(ranking),),
    )
    yield Paragraph(cut_sentence(ranking))
    if ranking.screening:
        yield Notes(tuple(power_sentences(ranking.screening)))
        yield _effect_table(ranking.screening)


def _effect_table(screening: Screening) -> Table:
    return Table(
        name="effects",
        title=(
            f"What each parameter does to {screening.responses[0]}, from its best value to its "
            "worst"
        ),
        columns=EFFECT,
        rows=tuple(map(effect_cells, screening.effects)),
    )


def _importance_table(ranking: Ranking) -> Table:
    chosen = set(ranking.chosen)
    return Table(
        name="importance",
        title="Importance of all parameters that were varied (splits: share of all splits)",
        columns=(*IMPORTANCE, Column("chosen", "text")),
        rows=tuple(
            (*importance_cells(i), "chosen" if i.key in chosen else None)
            for i in ranking.importances
        ),
    )


# Models -------------------------------------------------------------------------------------------


def all_models(report: Report) -> Iterator[Block]:
    """Return the held-out errors of all families of models, and the worth of their winners."""
    trained = [f.training for f in report.findings if f.training is not None]
    if any(training.errors for training in trained):
        yield Paragraph(
            "MAPE: by how many percent a prediction is off, on average, for configurations that "
            "the model has not seen. The noise ceiling is what a perfect model would have, since "
            "trials scatter by themselves. A model proposes; whether it was right, only the "
            "verdict's measurements say."
        )
        for subject in report.findings:
            if subject.training is not None:
                yield _errors(subject, subject.training)
    yield from _own_winners(report)


def _own_winners(report: Report) -> Iterator[Block]:
    """Return the speed-ups of the tree models' own winners, where they were measured."""
    measured = [
        (subject, subject.verdict.models, subject.verdict.judged_by)
        for subject in report.findings
        if subject.verdict is not None and subject.verdict.models is not None
    ]
    if not measured:
        return
    rows: list[tuple[Value, ...]] = []
    judged_by = shared((name for *_, name in measured), "latency")
    for subject, speed_ups, _ in measured:
        mean = (f"mean over {speed_ups.counted}", None, speed_ups.mean, speed_ups.rounds, None)
        rows += [
            (subject.arch, subject.workload, *row)
            for row in (*model_table(speed_ups, judged_by).rows, mean)
        ]
    yield Table(
        name="model-speed-ups",
        title="Speed-up of each model's own winner over the default",
        origin="measured",
        columns=(
            *texts("architecture", "workload"),
            *model_table(measured[0][1], judged_by).columns,
        ),
        rows=tuple(rows),
    )
    for subject, speed_ups, _ in measured:
        yield Paragraph(models_sentence(speed_ups), lead=f"{subject.title}:")
    yield Paragraph(LUCK)


def models(title: str, training: Training) -> Iterator[Block]:
    """Return how good one subject's models are, and their predictions row by row."""
    yield Paragraph(" ".join(judgement(training)))
    if any(error.held_out for error in training.errors):
        tables = (_measured_rows(training), _predicted_rows(training))
        heading = f"Predicted against measured, row by row, for {title}"
        yield Section(title=heading, blocks=tables, folded=True)


def _errors(findings: Findings, training: Training) -> Table:
    table = error_table(training)
    name = f"{findings.arch}-{findings.workload}-{table.name}"
    return replace(table, name=name, title=f"{table.title}, {findings.title}")


def _measured_rows(training: Training) -> Table:
    held_out = f"held-out configurations ({training.target} in {training.unit})"
    return Table(
        name="held-out-measured",
        title=f"What was measured of the {held_out}",
        origin="measured",
        columns=(Column("family", "text"), Column("row", "count"), Column("measured")),
        rows=tuple((family, n, row.measured) for family, n, row in _held_out(training)),
    )


def _predicted_rows(training: Training) -> Table:
    return Table(
        name="held-out-predicted",
        title=f"What was predicted of them ({training.target} in {training.unit}), row by row",
        origin="predicted",
        columns=(
            Column("family", "text"),
            Column("row", "count"),
            *numbers("predicted", "low", "high"),
        ),
        rows=tuple(
            (family, n, row.predicted, row.low, row.high) for family, n, row in _held_out(training)
        ),
    )


def _held_out(training: Training) -> Iterator[tuple[str, int, HeldOut]]:
    """Return the held-out rows of each family with their numbers."""
    for error in training.errors:
        for number, row in enumerate(error.held_out, start=1):
            yield error.family, number, row


# Search -------------------------------------------------------------------------------------------


def search(_title: str, search: Search) -> Iterator[Block]:
    """Return one subject's search, and its candidates."""
    if search.convergences:
        yield Paragraph(
            f"The search ({algorithms(search)}) goes by what models predict. The candidates were "
            "measured afterwards, and that is what the verdict rests on."
        )
        yield run_table(search)
        heading = f"Best predicted {search.quantity} by generation"
        yield Section(title=heading, blocks=(_generations(search),), folded=True)
    candidates = _candidates(search)
    heading = f"Candidates ({len(candidates.rows)})"
    yield Section(title=heading, blocks=(candidates,), folded=True)


def _generations(search: Search) -> Table:
    runs = search.convergences
    return Table(
        name="generations",
        title=f"Best predicted {search.quantity} in ms by generation",
        origin="predicted",
        columns=(Column("generation", "count"), *(Column(run.model) for run in runs)),
        # A search that converged earlier has no value in later generations.
        rows=tuple(
            (number, *values)
            for number, values in enumerate(zip_longest(*(run.best_ms for run in runs)))
        ),
    )


def _candidates(search: Search) -> Table:
    return without_empty(
        Table(
            name="candidates",
            title="Candidates",
            origin="predicted",
            columns=(
                Column("candidate", "count"),
                *numbers(
                    f"predicted {search.quantity} in ms", "with the penalty for uncertainty in ms"
                ),
                Column("model", "text"),
                Column("keys", "count"),
                Column("configuration", "key"),
            ),
            rows=tuple(
                (
                    number,
                    c.predicted_ms,
                    c.penalised_ms,
                    c.model,
                    len(c.configuration.values),
                    c.configuration.digest,
                )
                for number, c in enumerate(search.candidates, start=1)
            ),
        )
    )


# Refinement ---------------------------------------------------------------------------------------


def refined(_title: str, refined: Refined) -> Iterator[Block]:
    """Return the measurements that the models asked for, and the best known after them."""
    if refined.steps:
        yield Paragraph(
            f"Refinement ({refined.spent} of {refined.budget} trials): the first design fills the "
            "space; after it, each step goes where the models expect most or know least. The best "
            "known was chosen by its own trials, which flatters it."
        )
        yield step_table(refined)
        heading = "What each step was expected to bring"
        yield Section(title=heading, blocks=(_expected(refined),), folded=True)
    yield Paragraph(" ".join(ending(refined)))


def _expected(refined: Refined) -> Table:
    """An expectation is a prediction, so it stands apart."""
    return Table(
        name="refinement-expected",
        title="By how much the best of a step was expected to be faster than the best known",
        origin="predicted",
        columns=(Column("step", "text"), Column("expected in %")),
        rows=tuple((str(s.number), expected_percent(s.improvement)) for s in refined.steps),
    )
