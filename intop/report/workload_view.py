"""One workload of a comparison in detail. Formats, and computes nothing."""

from collections.abc import Iterable, Mapping
from dataclasses import fields

from intop.campaign.screen import view as screen
from intop.campaign.train.view import CEILING
from intop.campaign.verify.view import reference_metrics
from intop.document.columns import Column, Form, Value, columns, texts
from intop.document.model import Section, tabled
from intop.domain.comparison import (
    MUST_BE_EQUAL,
    WARNED_DIFFERENCES,
    ComparedParameter,
    Comparison,
    Side,
)
from intop.domain.ranking import Importance
from intop.domain.training import Ceiling, ModelError
from intop.domain.trial import Conditions
from intop.domain.verdict import Verdict


def details(comparison: Comparison) -> Section:
    """Return measurements, models, searches, parameters and values of both sides."""
    title = f"{comparison.workload}: {names(comparison)}"
    measured = (_sides(comparison), *_references(comparison))
    learned = (
        _errors(comparison),
        _convergences(comparison),
        _parameters(comparison),
        *_ranks(comparison),
    )
    return Section(title=title, blocks=(*measured, *learned, _values(comparison)))


def rows_by_side(
    by_side: Iterable[Mapping[str, tuple[Value, ...]]], nothing: tuple[None, ...]
) -> list[tuple[Value, ...]]:
    """A row for each name that a side has, with the cells of both; `nothing` where one has none."""
    sides = tuple(by_side)
    names = dict.fromkeys(name for side in sides for name in side)
    return [(n, *(cell for side in sides for cell in side.get(n, nothing))) for n in names]


def _sides(c: Comparison) -> Section:
    """Return the conditions of both sides."""
    here, there = (side.conditions for side in c.sides)
    odd = [
        f.name
        for f in fields(Conditions)
        if f.name in MUST_BE_EQUAL and getattr(here, f.name) != getattr(there, f.name)
    ]
    rows = [
        (name, *(str(getattr(side.conditions, name) or "-") for side in c.sides))
        for name in ("machine", "cpu", "cpus", *WARNED_DIFFERENCES, *odd)
    ]
    equal = [
        f"{name} {getattr(here, name)}"
        for name in MUST_BE_EQUAL
        if name not in odd and getattr(here, name) != ""
    ]
    return tabled(
        "Sides",
        _columns(c, Column("condition", "text"), "{}", form="text"),
        (
            *rows,
            ("usable trials", *(str(side.trials) for side in c.sides)),
            ("latency from", *(_source(side) for side in c.sides)),
        ),
        (
            f"The same on both sides: {', '.join(equal)}",
            "The sides were measured one after the other: what changed meanwhile is in no interval",
        ),
    )


def _source(side: Side) -> str:
    count = len(side.default.trials_ms)
    return f"{count} judging pairs" if side.tuned else f"all {count} trials of the default"


def _references(c: Comparison) -> list[Section]:
    """Return the reference metrics of each side's default and winner."""
    by_side = [
        {name: (both.default, both.tuned) for name, both in reference_metrics(side.verdict.sides)}
        if side.verdict
        else {}
        for side in c.sides
    ]
    rows = rows_by_side(by_side, (None, None))
    if not rows:
        return []
    heads = [f"{side.name} {name}" for side in c.sides for name in ("default", "tuned")]
    title = "Reference metrics, means over the pairs of the verdicts"
    return [tabled(title, (*texts("quantity"), *columns("number", *heads)), rows)]


def _errors(c: Comparison) -> Section:
    """Held-out errors by family."""
    by_side = (
        {
            name: (f"{e.mape:.0f} %", f"{e.r2:z.2f}", f"{e.spearman:z.2f}")
            for name, e in _accuracies(side).items()
        }
        for side in c.sides
    )
    return tabled(
        "Error of the models on configurations they have not seen (R² of log latency)",
        _columns(c, Column("family", "text"), "{}: MAPE", "{}: R²", "{}: rank correlation"),
        rows_by_side(by_side, (None, None, None)),
        (
            f"{side.name}: {len(side.training.keys)} parameters, {side.training.trials} trials"
            if side.training
            else f"{side.name}: not trained"
            for side in c.sides
        ),
    )


def _accuracies(side: Side) -> dict[str, ModelError | Ceiling]:
    """Return the accuracy of each family, and of a perfect model where the noise is known."""
    accuracies: dict[str, ModelError | Ceiling] = {e.family: e for e in side.errors}
    if side.training and side.training.ceiling:
        accuracies[CEILING] = side.training.ceiling
    return accuracies


def _convergences(c: Comparison) -> Section:
    by_side = (
        {run.model: (str(run.generations), f"{run.seconds:.1f} s") for run in side.convergences}
        for side in c.sides
    )
    return tabled(
        "Convergence of the search",
        _columns(c, Column("model", "text"), "{}: generations", "{}: time"),
        rows_by_side(by_side, (None, None)),
        (f"{s.name}: not searched" for s in c.sides if not s.convergences),
    )


def _parameters(c: Comparison) -> Section:
    notes = [f"{s.name}: not screened" for s in c.sides if s.ranking is None] + _refusals(c)
    if not all(all(p.chosen) for p in c.parameters):
        notes.append(
            "Chosen on one side only does not prove that it matters there only: two screenings of "
            "one machine differ as well"
        )
    return tabled(
        "Parameters by importance (share of log latency ± sd over fits) and where chosen",
        (*_columns(c, Column("parameter", "key"), "{}"), Column("chosen", "text")),
        ((p.key, *map(_importance, p.importances), _chosen(c, p)) for p in c.parameters),
        notes,
    )


def _ranks(c: Comparison) -> list[Section]:
    """Return the section of both rankings side by side, where there are two."""
    ranks = c.rank_agreement
    if ranks is None:
        return []
    return [
        screen.rank_section(f"Ranks of the {len(ranks.common)} parameters that both rank", ranks)
    ]


def _importance(importance: Importance | None) -> str:
    return "-" if importance is None else f"{importance.mean:.3f} ± {importance.sd:.3f}"


def _chosen(c: Comparison, p: ComparedParameter) -> str:
    """Return `both`, or the side that chose a parameter and why the other side has not."""
    if all(p.chosen):
        return "both"
    here = p.chosen.index(True)
    there = 1 - here
    chosen, lacking = c.sides[here].name, c.sides[there]
    if p.refused[there]:
        return f"{chosen}; not offered by {lacking.name}"
    if lacking.ranking is None:
        return f"{chosen}; {lacking.name} is not screened"
    return f"{chosen}; not chosen by {lacking.name}"


def _refusals(c: Comparison) -> list[str]:
    """Return the keys that a side doesn't offer and the other one chose, by reason."""
    keys: dict[str, list[str]] = {}
    for p in c.parameters:
        for side, reason in zip(c.sides, p.refused, strict=True):
            if reason:
                keys.setdefault(f"Not offered by {side.name} ({reason})", []).append(p.key)
    return [f"{reason}: {', '.join(those)}" for reason, those in keys.items()]


def _keeps_defaults(verdict: Verdict | None) -> bool:
    return not (verdict is None or verdict.is_gain or verdict.outcome == "undecided")


def _values(c: Comparison) -> Section:
    """The judged configurations beside the defaults."""
    notes = [
        f"{side.name}: {'not verified' if side.verdict is None else side.verdict.short}"
        + (": keep the defaults" if _keeps_defaults(side.verdict) else "")
        for side in c.sides
    ]
    return tabled(
        "Tuned values, as they were judged",
        _columns(c, Column("parameter", "key"), "{}: default", "{}: tuned", form="key"),
        (
            (v.key, *(cell or None for n in (0, 1) for cell in (v.defaults[n], v.tuned[n])))
            for v in c.values
        ),
        notes,
    )


def _columns(
    c: Comparison, first: Column, *names: str, form: Form = "number"
) -> tuple[Column, ...]:
    """The first column, then these for each side with its name in place of {}."""
    each = (name.format(side.name) for side in c.sides for name in names)
    return (first, *(Column(name, form) for name in each))


def names(c: Comparison) -> str:
    """Return the names of both sides, such as: x86 and arm."""
    return " and ".join(side.name for side in c.sides)
