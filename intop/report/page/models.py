"""What the models learned and proposed: which parameters matter, how far to believe them."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from intop.domain.comparison import converged
from intop.domain.ranking import Ranking, Screening
from intop.domain.refined import Refined, expected_percent
from intop.domain.report import Findings, Report
from intop.domain.search import Search
from intop.domain.training import Training
from intop.report.document.columns import Column, numbers
from intop.report.document.model import (
    Block,
    Figure,
    Notes,
    Paragraph,
    Section,
    Table,
    without_empty,
)
from intop.report.figures.bars import errors, generations, search_time
from intop.report.figures.convergence import convergence, refinement
from intop.report.figures.importance import importance
from intop.report.figures.models import predictions
from intop.report.page.common import lacking
from intop.report.refine import ending, step_table
from intop.report.screen import (
    EFFECT,
    IMPORTANCE,
    cut_sentence,
    effect_cells,
    importance_cells,
    power_sentences,
)
from intop.report.search import algorithms, run_table
from intop.report.train import error_table, judgement

# Importance ---------------------------------------------------------------------------------------


def ranking(one: Findings) -> Iterator[Block]:
    """The parameters by importance."""
    if one.ranking is None or not one.ranking.importances:
        yield from lacking(one, "screen")
        return
    yield Figure(
        title=f"Importance of parameters ({one.ranking.trials} trials)",
        draw=partial(importance, one.title, one.ranking),
        label=(
            f"Importance of the parameters for {one.title}: "
            f"{one.ranking.importances[0].key} comes first"
        ),
        caption=(
            "By how much of the variance of log P99 a model's error grows when a parameter's "
            "values are shuffled, with its standard deviation over models. Blue ones were "
            "chosen. What is below the dashed line is no more than parameters without "
            "any effect reach."
        ),
        tables=(_importance_table(one.ranking),),
    )
    yield Paragraph(cut_sentence(one.ranking))
    if one.ranking.screening:
        yield Notes(tuple(power_sentences(one.ranking.screening)))
        yield _effect_table(one.ranking.screening)


def _effect_table(found: Screening) -> Table:
    return Table(
        name="effects",
        title="What each parameter does to P99, from its best value to its worst",
        columns=EFFECT,
        rows=tuple(map(effect_cells, found.effects)),
    )


def _importance_table(found: Ranking) -> Table:
    chosen = set(found.chosen)
    return Table(
        name="importance",
        title="Importance of all parameters that were varied (splits: share of all splits)",
        columns=(*IMPORTANCE, Column("chosen", "text")),
        rows=tuple(
            (*importance_cells(i), "chosen" if i.key in chosen else None) for i in found.importances
        ),
    )


# Models -------------------------------------------------------------------------------------------


def all_models(report: Report) -> Iterator[Block]:
    """How far the families of models err on what they have not seen."""
    trained = {one.title: one.training for one in report.findings if one.training is not None}
    if any(training.errors for training in trained.values()):
        yield Figure(
            title="Model error by family and architecture",
            draw=partial(errors, report.study, trained),
            label="Held-out error of each family of models, by architecture and workload",
            caption=(
                "MAPE: by how many percent a prediction is off, on average, for configurations "
                "that the model has not seen. The line of the noise ceiling is what a perfect "
                "model would have, since trials scatter by themselves. A model proposes; whether "
                "it was right, only the verdict's measurements say."
            ),
            tables=tuple(
                _errors(one, one.training) for one in report.findings if one.training is not None
            ),
        )


def models(one: Findings) -> Iterator[Block]:
    """How far one machine's models err, and on what."""
    if one.training is None:
        yield from lacking(one, "train")
        return
    yield Paragraph(" ".join(judgement(one.training)))
    if any(error.held_out for error in one.training.errors):
        yield Figure(
            title="Predicted against measured",
            draw=partial(predictions, one.title, one.training),
            label=(
                f"Predicted against measured {one.training.target} for {one.title}, a panel for "
                "each family"
            ),
            caption=(
                "Each dot is a configuration that the model had not seen. On the diagonal the "
                "prediction was right; a bar is its interval. The band is the mean error that a "
                "perfect model would have."
            ),
            tables=(_measured_rows(one.training), _predicted_rows(one.training)),
        )


def _errors(one: Findings, found: Training) -> Table:
    table = error_table(found)
    name = f"{one.arch}-{one.workload}-{table.name}"
    return replace(table, name=name, title=f"{table.title}, {one.title}")


def _measured_rows(found: Training) -> Table:
    return Table(
        name="held-out-measured",
        title=f"What was measured of the held-out configurations ({found.target} in {found.unit})",
        origin="measured",
        columns=(Column("family", "text"), Column("row", "count"), Column("measured")),
        rows=tuple(
            (error.family, number, row.measured)
            for error in found.errors
            for number, row in enumerate(error.held_out, start=1)
        ),
    )


def _predicted_rows(found: Training) -> Table:
    return Table(
        name="held-out-predicted",
        title=f"What was predicted of them ({found.target} in {found.unit}), row by row",
        origin="predicted",
        columns=(
            Column("family", "text"),
            Column("row", "count"),
            *numbers("predicted", "low", "high"),
        ),
        rows=tuple(
            (error.family, number, row.predicted, row.low, row.high)
            for error in found.errors
            for number, row in enumerate(error.held_out, start=1)
        ),
    )


# Search -------------------------------------------------------------------------------------------


def all_searches(report: Report) -> Iterator[Block]:
    """How the search of the models went. The data are below the convergence of each search."""
    runs = {one.title: found for one in report.findings if (found := converged(one.search))}
    if not runs:
        return
    yield Figure(
        title="Generations until the search converged",
        draw=partial(generations, report.study, runs),
        label="Generations until the search converged, by model and architecture",
        caption=(
            "After how many generations the best prediction improved no more. The models that are "
            "searched by themselves, as in the paper, are blue; the candidates come from all of "
            "them together."
        ),
    )
    yield Figure(
        title="Time of the search",
        draw=partial(search_time, report.study, runs),
        label="Time of the search, by model and architecture",
        caption=(
            "How long the whole search of each model took on the machine that ran intop, with the "
            "generations in which it waited for a further improvement."
        ),
    )


def search(one: Findings) -> Iterator[Block]:
    """How one machine's search went, and what it proposes."""
    if one.search is None:
        yield from lacking(one, "search")
        return
    if one.search.convergences:
        yield Figure(
            title=f"Convergence of the search ({algorithms(one.search)})",
            draw=partial(convergence, one.title, one.search),
            label=(
                f"Best predicted {one.search.quantity} by generation of the search for {one.title}"
            ),
            caption=(
                f"The best {one.search.quantity} that a model predicts, after each generation of "
                "the search. A dot is where it improved no more. Predicted, all of it: the "
                "candidates were measured afterwards, and that is what the verdict rests on."
            ),
            tables=(run_table(one.search), _generations(one.search)),
        )
    candidates = _candidates(one.search)
    title = f"Candidates ({len(candidates.rows)})"
    yield Section(title=title, blocks=(candidates,), folded=True)


def _generations(found: Search) -> Table:
    return Table(
        name="generations",
        title=f"Best predicted {found.quantity} in ms by generation",
        origin="predicted",
        columns=(Column("generation", "count"), *(Column(run.model) for run in found.convergences)),
        rows=tuple(
            (
                number,
                *(
                    run.best_ms[number] if number < len(run.best_ms) else None
                    for run in found.convergences
                ),
            )
            for number in range(max(len(run.best_ms) for run in found.convergences))
        ),
    )


def _candidates(found: Search) -> Table:
    return without_empty(
        Table(
            name="candidates",
            title="Candidates",
            origin="predicted",
            columns=(
                Column("candidate", "count"),
                *numbers(
                    f"predicted {found.quantity} in ms", "with the penalty for uncertainty in ms"
                ),
                Column("model", "text"),
                Column("keys", "count"),
                Column("configuration", "key"),
            ),
            rows=tuple(
                (
                    number,
                    c.predicted_p99_ms,
                    c.penalised_p99_ms,
                    c.model,
                    len(c.configuration.values),
                    c.configuration.digest,
                )
                for number, c in enumerate(found.candidates, start=1)
            ),
        )
    )


# Refinement ---------------------------------------------------------------------------------------


def refined(one: Findings) -> Iterator[Block]:
    """What the measurements that the models asked for came to."""
    if one.refined is None:
        told = lacking(one, "refine")
        yield from told or (Paragraph("The study has no refinement (refine_trials = 0)."),)
        return
    if one.refined.steps:
        yield Figure(
            title=f"Refinement ({one.refined.spent} of {one.refined.budget} trials)",
            draw=partial(refinement, one.title, one.refined),
            label=f"Best known P99 by the number of measurements for {one.title}",
            caption=(
                "The lowest P99 that was known after so many measurements, beside the default's. "
                "The first design fills the space; after it, each step goes where the models "
                "expect most or know least. The best known was chosen by its own trials, which "
                "flatters it."
            ),
            tables=(step_table(one.refined), _expected(one.refined)),
        )
    yield Paragraph(" ".join(ending(one.refined)))


def _expected(found: Refined) -> Table:
    """An expectation is a prediction, so it stands apart."""
    return Table(
        name="refinement-expected",
        title="By how much the best of a step was expected to shorten the tail of the best known",
        origin="predicted",
        columns=(Column("step", "text"), Column("expected in %")),
        rows=tuple((str(s.number), expected_percent(s.improvement)) for s in found.steps),
    )
