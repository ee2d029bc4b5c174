"""Two architectures side by side. Formats, and computes nothing."""

from collections.abc import Iterable, Mapping
from dataclasses import fields

from intop.domain.comparison import (
    MUST_BE_EQUAL,
    WARNED_DIFFERENCES,
    Compared,
    ComparedParameter,
    Comparison,
    Contrast,
    Latency,
    Side,
)
from intop.domain.ranking import Importance
from intop.domain.speedups import ModelSpeedUp
from intop.domain.trial import Conditions
from intop.report import paper, ranks
from intop.report.document.columns import Column, Form, Span, Value, columns, span, texts, worded
from intop.report.document.model import Notes, Section, Table, tabled
from intop.report.numbers import interval, number, percent
from intop.report.verdict import LUCK, measured_as, models_sentence, reference_metrics

WIDEST_BAR = 40


def sections(found: Compared) -> list[Section]:
    """What there is to say, in order: all workloads in short, then each in detail."""
    made = [*_forced(found), matrix(found), *_models(found), _paper(found), _picture(found)]
    for one in found.comparisons:
        details = (
            _sides(one),
            *_references(one),
            _errors(one),
            _convergences(one),
            _parameters(one),
            *_ranks(one),
        )
        title = f"{one.workload}: {_names(one)}"
        made.append(Section(title=title, blocks=(*details, _values(one))))
    return made


def _rows(
    by_side: Iterable[Mapping[str, tuple[Value, ...]]], nothing: tuple[None, ...]
) -> list[tuple[Value, ...]]:
    """A row for each name that a side has, with the cells of both; `nothing` where one has none."""
    sides = tuple(by_side)
    names = dict.fromkeys(name for side in sides for name in side)
    return [(n, *(cell for side in sides for cell in side.get(n, nothing))) for n in names]


# All workloads ------------------------------------------------------------------------------------


def matrix(found: Compared) -> Section:
    """Workloads by architectures."""
    first = found.comparisons[0]
    one, other = (side.arch for side in first.sides)
    rows: list[tuple[Value, ...]] = []
    for c in found.comparisons:
        judged = next((side.verdict for side in c.sides if side.verdict), None)
        default = judged.reference if judged else "default"
        cells: dict[str, tuple[Value, ...]] = {
            default: (*(_latency(side.default) for side in c.sides), *_contrast(c.default)),
            "tuned": (*(_latency(side.tuned) for side in c.sides), *_contrast(c.tuned)),
            "speed-up": (*(_speed_up(side, c.level) for side in c.sides), "", ""),
            "verdict": (*(_verdict(side) for side in c.sides), "", ""),
        }
        rows += [(c.workload, name, *values) for name, values in cells.items()]
    title = f"{_names(first)}: measured P99 in ms, with {percent(first.level)} intervals"
    table = Table(
        name="architectures",
        title="P99 in ms by architecture",
        origin="measured",
        columns=(
            *texts("workload", "P99"),
            *(Column(arch, "span") for arch in (one, other)),
            Column(f"{other} - {one}", "difference"),
            Column(f"{other} / {one}", "span"),
        ),
        rows=tuple(rows),
    )
    notes = (
        *(line for c in found.comparisons for line in _sentences(c)),
        *_remarks(found),
        *(f"Not compared: {reason}" for reason in found.missing),
    )
    return Section(title=title, blocks=(table, Notes(notes)))


def _models(found: Compared) -> list[Section]:
    """What each tree model's own winner was worth, where that was measured."""
    rows: list[tuple[Value, ...]] = []
    notes: list[str] = []
    for c in found.comparisons:
        by_side = [side.verdict.models if side.verdict else None for side in c.sides]
        winners = _rows(
            ({m.model: (_model(m),) for m in made.models} if made else {} for made in by_side),
            (None,),
        )
        if winners:
            winners.append(("mean", *(span(made.mean) if made else None for made in by_side)))
        rows += [(c.workload, *row) for row in winners]
        notes += [
            f"{side.arch} {c.workload}: {models_sentence(made)}"
            for side, made in zip(c.sides, by_side, strict=True)
            if made is not None
        ]
    if not rows:
        return []
    archs = (side.arch for side in found.comparisons[0].sides)
    return [
        tabled(
            "Speed-up of the models' own winners, in the rounds of picking",
            (*texts("workload", "model"), *columns("span", *archs)),
            rows,
            (*notes, LUCK),
        )
    ]


def _model(one: ModelSpeedUp) -> Value:
    remark = measured_as(one)
    words = worded(span(one.ratio), Column("", "span"))
    return f"{words}, {remark}" if remark else span(one.ratio)


def _references(c: Comparison) -> list[Section]:
    """What each side's verdict has beside latencies, of its default and of its winner."""
    by_side = [
        {name: (both.default, both.tuned) for name, both in reference_metrics(side.verdict.sides)}
        if side.verdict
        else {}
        for side in c.sides
    ]
    rows = _rows(by_side, (None, None))
    if not rows:
        return []
    heads = [f"{side.arch} {name}" for side in c.sides for name in ("default", "tuned")]
    title = "Reference metrics, means over the pairs of the verdicts"
    return [tabled(title, (*texts("quantity"), *columns("number", *heads)), rows)]


def _paper(found: Compared) -> Section:
    """The paper's figures beside ours."""
    table = paper.table(paper.outcomes(found), found)
    return Section(title=table.title, blocks=(table, Notes((paper.NOTE,))))


def _latency(latency: Latency | None) -> Span | None:
    return None if latency is None else span(latency.mean_ms)


def _contrast(contrast: Contrast | None) -> tuple[Value, Value]:
    if contrast is None:
        return None, None
    return span(contrast.difference_ms), span(contrast.ratio)


def _speed_up(side: Side, level: float) -> Value:
    verdict = side.verdict
    if verdict is None:
        return None
    found = verdict.ratio, verdict.ratio_low, verdict.ratio_high
    if verdict.level == level:
        return Span(*found)
    # The file may have asked for another level when the verdict was given.
    return f"{interval(*found)}, at {percent(verdict.level)}"


def _verdict(side: Side) -> str:
    if side.verdict is None:
        return "not verified"
    failures = side.verdict.failures
    return side.verdict.short + (f", {failures} tuned trials failed" if failures else "")


def _forced(found: Compared) -> list[Section]:
    """What makes the sides incomparable, above all that is compared all the same."""
    lines = differences(found)
    return [tabled("NOT COMPARABLE, shown by --force", (), (), lines)] if lines else []


def differences(found: Compared) -> list[str]:
    """In which the sides must not differ, by workload."""
    return [f"{c.workload}: {line}" for c in found.comparisons for line in c.differences]


def _remarks(found: Compared) -> list[str]:
    """What sets the sides apart. What holds for some workloads only, names them."""
    workloads: dict[str, list[str]] = {}
    for c in found.comparisons:
        for line in _remarks_on(c):
            workloads.setdefault(line, []).append(c.workload)
    everywhere = len(found.comparisons)
    return [
        line if len(where) == everywhere else f"{', '.join(where)}: {line}"
        for line, where in workloads.items()
    ]


def _remarks_on(c: Comparison) -> list[str]:
    lines = [f"Warning: {line}" for line in c.warnings]
    emulated = [side for side in c.sides if side.emulated]
    if emulated:
        who = " and ".join(f"{s.arch} ({s.conditions.emulation})" for s in emulated)
        lines.append(
            f"Emulated: {who}. An emulated machine's speed says nothing about the hardware. What "
            "queues, loss and timers do, and which keys and defaults the kernel has, is real; but "
            "differences of P99 between the sides are not differences of the architectures."
        )
    return lines


def _sentences(c: Comparison) -> list[str]:
    """Such as: slt, tuned: P99 on arm is 60 % lower than on x86 (47 to 70 %)."""
    one, other = (side.arch for side in c.sides)
    lines: list[str] = []
    for name, contrast in (("default", c.default), ("tuned", c.tuned)):
        if contrast is None:
            continue
        ratio = contrast.ratio
        change, low, high = (100 * (r - 1) for r in (ratio.ratio, ratio.low, ratio.high))
        if contrast.outcome == "not separated":
            told = (
                f"P99 on {other} and on {one} is not separated: {change:+z.0f} % "
                f"({low:+z.0f} to {high:+z.0f} %)"
            )
        else:
            nearest, farthest = sorted((abs(low), abs(high)))
            told = (
                f"P99 on {other} is {abs(change):.0f} % {contrast.outcome} than on {one} "
                f"({nearest:.0f} to {farthest:.0f} %)"
            )
        lines.append(f"{c.workload}, {name}: {told}")
    return lines


def _picture(found: Compared) -> Section:
    """Bars on a scale that begins at 0 and is common to a workload's sides."""
    rows: list[tuple[Value, ...]] = []
    for c in found.comparisons:
        bars: list[tuple[str, str, Latency | None]] = []
        for side in c.sides:
            bars += [(side.arch, "default", side.default), ("", "tuned", side.tuned)]
        longest = max(latency.mean_ms.mean for _, _, latency in bars if latency)
        for place, (arch, name, latency) in enumerate(bars):
            value = latency.mean_ms.mean if latency else 0.0
            bar = "█" * max(1, round(WIDEST_BAR * value / longest)) if latency else "not verified"
            workload = "" if place else c.workload
            rows.append((workload, arch, name, number(value) if latency else "-", bar))
    heads = (*texts("workload", "architecture", "configuration"), Column("P99"), *texts(""))
    return tabled("P99 in ms, each workload on a scale of its own", heads, rows)


# One workload -------------------------------------------------------------------------------------


def _sides(c: Comparison) -> Section:
    """What was measured, and on what."""
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
            ("P99 from", *(_source(side) for side in c.sides)),
        ),
        (
            f"The same on both sides: {', '.join(equal)}",
            "The sides were measured one after the other: what changed meanwhile is in no interval",
        ),
    )


def _source(side: Side) -> str:
    count = len(side.default.trials_ms)
    return f"{count} judging pairs" if side.tuned else f"all {count} trials of the default"


def _errors(c: Comparison) -> Section:
    """Held-out errors by family."""
    by_side = (
        {e.family: (f"{e.mape:.0f} %", f"{e.r2:z.2f}", f"{e.spearman:z.2f}") for e in side.errors}
        for side in c.sides
    )
    return tabled(
        "Error of the models on configurations they have not seen (R² of log P99)",
        _columns(c, Column("family", "text"), "{}: MAPE", "{}: R²", "{}: rank correlation"),
        _rows(by_side, (None, None, None)),
        (
            f"{side.arch}: {len(side.training.keys)} parameters, {side.training.trials} trials"
            if side.training
            else f"{side.arch}: not trained"
            for side in c.sides
        ),
    )


def _convergences(c: Comparison) -> Section:
    """How long the search took."""
    by_side = (
        {run.model: (str(run.generations), f"{run.seconds:.1f} s") for run in side.convergences}
        for side in c.sides
    )
    return tabled(
        "Convergence of the search",
        _columns(c, Column("model", "text"), "{}: generations", "{}: time"),
        _rows(by_side, (None, None)),
        (f"{s.arch}: not searched" for s in c.sides if not s.convergences),
    )


def _parameters(c: Comparison) -> Section:
    """Which parameters matter where."""
    notes = [f"{s.arch}: not screened" for s in c.sides if s.ranking is None] + _refusals(c)
    if not all(all(p.chosen) for p in c.parameters):
        notes.append(
            "Chosen on one side only does not prove that it matters there only: two screenings of "
            "one machine differ as well"
        )
    return tabled(
        "Parameters by importance (share of log P99 ± sd over fits) and where chosen",
        (*_columns(c, Column("parameter", "key"), "{}"), Column("chosen", "text")),
        ((p.key, *map(_importance, p.importances), _chosen(c, p)) for p in c.parameters),
        notes,
    )


def _ranks(c: Comparison) -> list[Section]:
    """Both rankings side by side, where there are two."""
    found = c.rank_agreement
    if found is None:
        return []
    return [ranks.section(f"Ranks of the {len(found.common)} parameters that both rank", found)]


def _importance(found: Importance | None) -> str:
    return "-" if found is None else f"{found.mean:.3f} ± {found.sd:.3f}"


def _chosen(c: Comparison, p: ComparedParameter) -> str:
    """On both sides; or on one, and whether the other could have."""
    if all(p.chosen):
        return "both"
    here = p.chosen.index(True)
    there = 1 - here
    chosen, other = c.sides[here].arch, c.sides[there]
    if p.refused[there]:
        return f"{chosen}; not offered by {other.arch}"
    if other.ranking is None:
        return f"{chosen}; {other.arch} is not screened"
    return f"{chosen}; not chosen by {other.arch}"


def _refusals(c: Comparison) -> list[str]:
    """Why a side doesn't offer what the other one chose, by reason."""
    keys: dict[str, list[str]] = {}
    for p in c.parameters:
        for side, reason in zip(c.sides, p.refused, strict=True):
            if reason:
                keys.setdefault(f"Not offered by {side.arch} ({reason})", []).append(p.key)
    return [f"{reason}: {', '.join(those)}" for reason, those in keys.items()]


def _values(c: Comparison) -> Section:
    """The judged configurations beside the defaults."""
    notes = [
        f"{side.arch}: {'not verified' if side.verdict is None else side.verdict.short}"
        + ("" if side.verdict is None or side.verdict.is_gain else ": keep the defaults")
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
    """The first column, then these for each side with its architecture in place of {}."""
    each = (name.format(side.arch) for side in c.sides for name in names)
    return (first, *(Column(name, form) for name in each))


def _names(c: Comparison) -> str:
    return " and ".join(side.arch for side in c.sides)
