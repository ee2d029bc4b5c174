"""A search as a document: its convergence, or the predicted front of several objectives."""

from collections.abc import Sequence

from intop.campaign.search.tradeoff import (
    HIGHER_IS_BETTER,
    Front,
    LearnedObjective,
    ObjectiveName,
    Tradeoff,
)
from intop.document.columns import Column, columns, numbers, texts
from intop.document.model import Notes, Section, Table, Verbatim, widened
from intop.domain.search import Convergence, Search

BLOCKS = "▁▂▃▄▅▆▇█"
ALGORITHMS = {
    "genetic": "genetic algorithm",
    "annealing": "simulated annealing",
    "swarm": "particle swarm",
    "evolution": "differential evolution",
    "random": "random search",
}
"""Names of the algorithms of a search, for readers."""
MOST_ROWS = 12
"""Configurations of a front that are shown: both ends, the knee, and others evenly between."""
NAMES: dict[ObjectiveName, str] = {
    "p99": "P99",
    "cpu": "balancer's CPU",
    "throughput": "requests/s",
}


def search(title: str, search: Search) -> Section:
    """Convergence of the search, model by model."""
    column = Column("best by generation", "text")
    notes = (
        "Converged: after how many of the generations the best got no better.",
        "Predicted, not measured; what it is worth, the verdict says.",
    )
    return Section(
        title=f"{title}: search by {algorithms(search) or 'no algorithm'}",
        blocks=(
            widened(run_table(search), column, map(sparkline, search.convergences)),
            Notes(notes),
        ),
    )


def run_table(search: Search) -> Table:
    """A row for each model that was searched."""
    return Table(
        name="convergence",
        title="Convergence by model, after how many of all generations",
        origin="predicted",
        columns=(
            Column("model", "text"),
            *columns("count", "converged at", "generations", "restarts"),
            Column("time", unit="s"),
            Column(f"best predicted {search.quantity}", unit="ms"),
        ),
        rows=tuple(
            (
                r.model,
                r.converged_at,
                len(r.best_ms) - 1,
                r.restarts,
                r.seconds,
                r.best_ms[-1] if r.best_ms else None,
            )
            for r in search.convergences
        ),
    )


def algorithms(search: Search) -> str:
    """Return the names of the algorithms."""
    names = dict.fromkeys(ALGORITHMS.get(r.algorithm, r.algorithm) for r in search.convergences)
    return " and ".join(names)


def sparkline(run: Convergence, width: int = 20) -> str:
    """The best predicted latency by generation, high to low, in at most `width` blocks."""
    values = run.best_ms
    step = max(1, -(-len(values) // width))
    picked = values[::-1][::step][::-1]  # from the end, which must not be missing
    low, high = min(picked), max(picked)
    if high == low:
        return BLOCKS[0] * len(picked)
    return "".join(BLOCKS[round((v - low) / (high - low) * (len(BLOCKS) - 1))] for v in picked)


def tradeoff(title: str, tradeoff: Tradeoff) -> Section:
    """Return the errors of each objective, the front, and the configuration at its knee."""
    front = tradeoff.front
    names = " and ".join(NAMES[o.name] for o in front.objectives)
    return Section(
        title=(
            f"{title}: predicted front of {names} (NSGA-II, converged after {front.converged_at} "
            f"generations, {front.seconds:.1f} s)"
        ),
        blocks=(
            _objectives(front),
            _points(front),
            Notes(tuple(_front_notes(tradeoff))),
            Verbatim(tuple(_knee(front))),
        ),
    )


def _objectives(front: Front) -> Table:
    return Table(
        columns=(
            *texts("objective", "better"),
            *numbers("held-out MAPE", "R² of its log", "rank correlation", "measured"),
        ),
        rows=tuple(
            (
                NAMES[objective.name],
                "higher" if objective.name in HIGHER_IS_BETTER else "lower",
                f"{objective.mape:.1f} %",
                f"{objective.r2:z.2f}",
                f"{objective.spearman:z.2f}",
                _range(objective),
            )
            for objective in front.objectives
        ),
    )


def _points(front: Front) -> Table:
    objectives = front.objectives
    shown = ((place, front.points[place]) for place in _shown(len(front.points), front.knee))
    return Table(
        columns=(
            Column("configuration", "text"),
            *numbers(*(f"predicted {NAMES[o.name]}\n(error {o.mape:.1f} %)" for o in objectives)),
            Column("", "text"),
        ),
        rows=(
            *(
                (
                    str(place + 1),
                    *_cells(objectives, point.predicted),
                    "← knee" if place == front.knee else "",
                )
                for place, point in shown
            ),
            ("default", *_cells(objectives, front.default.predicted), ""),
        ),
    )


def _shown(count: int, knee: int) -> list[int]:
    """The places to show: evenly spaced ones from end to end, and the knee."""
    if count <= MOST_ROWS:
        return list(range(count))
    step = (count - 1) / (MOST_ROWS - 2)
    return sorted({*(round(n * step) for n in range(MOST_ROWS - 1)), knee})


def _cells(objectives: Sequence[LearnedObjective], predicted: Sequence[float]) -> list[str]:
    return [amount(o.name, value) for o, value in zip(objectives, predicted, strict=True)]


def amount(name: ObjectiveName, value: float) -> str:
    """A value with its unit."""
    if name == "p99":
        return f"{value:.1f} ms"
    return f"{100 * value:.2f} %" if name == "cpu" else f"{value:.1f}"


def _range(objective: LearnedObjective) -> str:
    return (
        f"{amount(objective.name, objective.measured_low)} to "
        f"{amount(objective.name, objective.measured_high)}"
    )


def _front_notes(tradeoff: Tradeoff) -> list[str]:
    """Return remarks about the worth of these predictions."""
    front = tradeoff.front
    lines = ["Predicted, not measured. How far models err on what they have not seen stands above."]
    if (count := len(front.points)) > MOST_ROWS:
        lines.append(f"The front has {count} configurations; --json has them all.")
    if count == 1:
        lines.append("One configuration is predicted best in every objective: there is no choice.")
    for objective in front.objectives:
        name = NAMES[objective.name]
        if not objective.varies:
            lines.append(
                f"{name} hardly varies ({_range(objective)}), so it is no objective to choose by."
            )
        elif objective.is_guesswork:
            lines.append(
                f"The models know next to nothing of {name} (R² {objective.r2:z.2f}): as far as "
                "the front goes by that, it is guesswork."
            )
        if objective.name == "throughput" and not objective.varies:
            sentence = (
                f"It is the constant rate that was asked for ({tradeoff.rate_rps:g} requests/s)"
            )
            names = {o.name for o in front.objectives}
            lines.append(
                f"{sentence}." if "cpu" in names else f"{sentence}; what may differ is cpu."
            )
    return lines


def _knee(front: Front) -> list[str]:
    """The configuration at the knee, in the form in which it can be measured."""
    point = front.points[front.knee]
    rule = "Knee: nearest to the best of all objectives at once, each scaled to its range here."
    way = "To measure it, put its values into a baseline of your own (README), for intop contest:"
    values = [f'  "{key}" = "{value}"' for key, value in point.configuration.values.items()]
    return [rule, "verify measures no point of a front.", way, *values]
