"""Two architectures side by side, as text or as Markdown. Formats, and computes nothing.

The tables are made once, as plain data; both forms are made from these.
"""

from dataclasses import dataclass, fields

from rich.console import Group, RenderableType
from rich.text import Text

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
from intop.domain.results import Importance, ModelError
from intop.domain.speedups import ModelSpeedUp
from intop.domain.stats import RatioInterval
from intop.domain.trial import Conditions
from intop.report import paper, ranks
from intop.report.markdown import escaped, table
from intop.report.numbers import interval, number, percent
from intop.report.text import bold, new_table
from intop.report.verdict import LUCK, measured_as, models_sentence

WIDEST_BAR = 40


@dataclass(frozen=True, kw_only=True)
class Section:
    """A heading, a table and sentences below it; each may be empty.

    `columns` are pairs of a name and "left" or "right". Where the last column `has_sentences`,
    a text has them below the table, in which they would be too narrow to be read.
    """

    title: str
    depth: int = 3
    columns: tuple[tuple[str, str], ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    notes: tuple[str, ...] = ()
    has_sentences: bool = False


def as_text(found: Compared) -> RenderableType:
    """For a terminal or a text file."""
    parts: list[RenderableType] = []
    for section in sections(found):
        columns, rows, notes = section.columns, section.rows, section.notes
        if section.has_sentences:
            notes = (*(f"{row[0]}: {row[-1]}" for row in rows if row[-1] != paper.AS_ABOVE), *notes)
            columns, rows = columns[:-1], tuple(row[:-1] for row in rows)
        parts.append(bold(section.title))
        if rows:
            table = new_table(*columns)
            table.columns[0].no_wrap = True  # keys are copied from here
            for row in rows:
                table.add_row(*(Text(cell) for cell in row))
            parts.append(table)
        parts += [Text("\n".join(notes)), ""] if notes else []
        parts += [] if rows or notes else [""]
    return Group(*parts)


def as_markdown(found: Compared) -> str:
    """In GitHub's Markdown."""
    blocks: list[str] = []
    for section in sections(found):
        blocks.append(f"{'#' * section.depth} {section.title}")
        if section.rows:
            rows = [[escaped(cell) for cell in row] for row in section.rows]
            blocks.append(table(section.columns, rows))
        if section.notes:
            blocks.append("\n".join(f"- {escaped(note)}" for note in section.notes))
    return "\n\n".join(blocks)


def sections(found: Compared) -> list[Section]:
    """What there is to say, in order: all workloads in short, then each in detail."""
    made = [*_forced(found), _matrix(found), *_models(found), _paper(found), _picture(found)]
    for one in found.comparisons:
        details = (_sides(one), _errors(one), _convergences(one), _parameters(one), *_ranks(one))
        made += [Section(title=f"{one.workload}: {_names(one)}", depth=2), *details, _values(one)]
    return made


# All workloads ------------------------------------------------------------------------------------


def _matrix(found: Compared) -> Section:
    """Workloads by architectures."""
    first = found.comparisons[0]
    one, other = (side.arch for side in first.sides)
    rows: list[tuple[str, ...]] = []
    for c in found.comparisons:
        defaults = [_latency(side.default) for side in c.sides]
        tuned = [_latency(side.tuned) for side in c.sides]
        rows += [
            (c.workload, "default", *defaults, *_contrast(c.default)),
            ("", "tuned", *tuned, *_contrast(c.tuned)),
            ("", "speed-up", *(_speed_up(side, c.level) for side in c.sides), "", ""),
            ("", "verdict", *(_verdict(side) for side in c.sides), "", ""),
        ]
    return Section(
        title=f"{_names(first)}: measured P99 in ms, with {percent(first.level)} intervals",
        depth=2,
        columns=(
            *(("workload", "left"), ("P99", "left"), (one, "right"), (other, "right")),
            *((f"{other} - {one}", "right"), (f"{other} / {one}", "right")),
        ),
        rows=tuple(rows),
        notes=(
            *(line for c in found.comparisons for line in _sentences(c)),
            *_remarks(found),
            *(f"Not compared: {reason}" for reason in found.missing),
        ),
    )


def _models(found: Compared) -> list[Section]:
    """What each tree model's own winner was worth, where that was measured."""
    rows: list[tuple[str, ...]] = []
    notes: list[str] = []
    for c in found.comparisons:
        by_side = [side.verdict.models if side.verdict else None for side in c.sides]
        known = [[] if made is None else made.models for made in by_side]
        names = dict.fromkeys(one.model for models in known for one in models)
        cells = [{m.model: _model(m) for m in models} for models in known]
        rows += [(c.workload, name, *(side.get(name, "-") for side in cells)) for name in names]
        if names:
            means = (_ratio(made.mean if made else None) for made in by_side)
            rows.append((c.workload, "mean", *means))
        notes += [
            f"{side.arch} {c.workload}: {models_sentence(made)}"
            for side, made in zip(c.sides, by_side, strict=True)
            if made is not None
        ]
    if not rows:
        return []
    return [
        Section(
            title="Speed-up of the models' own winners, in the rounds of picking",
            depth=2,
            columns=(
                *((name, "left") for name in ("workload", "model")),
                *((side.arch, "right") for side in found.comparisons[0].sides),
            ),
            rows=tuple(rows),
            notes=(*notes, LUCK),
        )
    ]


def _model(one: ModelSpeedUp) -> str:
    remark = measured_as(one)
    return _ratio(one.ratio) + (f", {remark}" if remark else "")


def _ratio(found: RatioInterval | None) -> str:
    return "-" if found is None else interval(found.ratio, found.low, found.high)


def _paper(found: Compared) -> Section:
    """The paper's figures beside ours."""
    return Section(
        title=paper.TITLE,
        depth=2,
        columns=tuple((name, "left") for name in paper.COLUMNS),
        rows=tuple(row.cells for row in paper.paper_rows(paper.outcomes(found), found)),
        notes=(paper.NOTE,),
        has_sentences=True,
    )


def _latency(latency: Latency | None) -> str:
    if latency is None:
        return "-"
    return interval(latency.mean_ms.mean, latency.mean_ms.low, latency.mean_ms.high)


def _contrast(contrast: Contrast | None) -> tuple[str, str]:
    if contrast is None:
        return "-", "-"
    apart, ratio = contrast.difference_ms, contrast.ratio
    return (
        interval(apart.difference, apart.low, apart.high, sign="+"),
        interval(ratio.ratio, ratio.low, ratio.high),
    )


def _speed_up(side: Side, level: float) -> str:
    verdict = side.verdict
    if verdict is None:
        return "-"
    # The file may have asked for another level when the verdict was given.
    odd = "" if verdict.level == level else f", at {percent(verdict.level)}"
    return interval(verdict.ratio, verdict.ratio_low, verdict.ratio_high) + odd


def _verdict(side: Side) -> str:
    if side.verdict is None:
        return "not verified"
    failures = side.verdict.failures
    return side.verdict.outcome + (f", {failures} tuned trials failed" if failures else "")


def _forced(found: Compared) -> list[Section]:
    """What makes the sides incomparable, above all that is compared all the same."""
    lines = [f"{c.workload}: {line}" for c in found.comparisons for line in c.differences]
    if not lines:
        return []
    return [Section(title="NOT COMPARABLE, shown by --force", depth=2, notes=tuple(lines))]


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
    rows: list[tuple[str, ...]] = []
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
    return Section(
        title="P99 in ms, each workload on a scale of its own",
        columns=(
            *((name, "left") for name in ("workload", "architecture", "configuration")),
            *(("P99", "right"), ("", "left")),
        ),
        rows=tuple(rows),
    )


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
        (name, *(str(getattr(side.conditions, name)) or "-" for side in c.sides))
        for name in ("machine", "cpu", *WARNED_DIFFERENCES, *odd)
    ]
    equal = [
        f"{name} {getattr(here, name)}"
        for name in MUST_BE_EQUAL
        if name not in odd and getattr(here, name) != ""
    ]
    return Section(
        title="Sides",
        columns=_columns(c, "condition", "{}", justify="left"),
        rows=(
            *rows,
            ("usable trials", *(str(side.trials) for side in c.sides)),
            ("P99 from", *(_source(side) for side in c.sides)),
        ),
        notes=(
            f"The same on both sides: {', '.join(equal)}",
            "The sides were measured one after the other: what changed meanwhile is in no interval",
        ),
    )


def _source(side: Side) -> str:
    count = len(side.default.trials_ms)
    return f"{count} judging pairs" if side.tuned else f"all {count} trials of the default"


def _errors(c: Comparison) -> Section:
    """Held-out errors by family."""
    by_side = [{e.family: e for e in side.errors} for side in c.sides]
    families = dict.fromkeys(family for errors in by_side for family in errors)
    return Section(
        title="Error of the models on configurations they have not seen (R² of log P99)",
        columns=_columns(c, "family", "{}: MAPE", "{}: R²", "{}: rank correlation"),
        rows=tuple(
            (family, *(cell for errors in by_side for cell in _error_cells(errors.get(family))))
            for family in families
        ),
        notes=tuple(
            f"{side.arch}: {len(side.training.keys)} parameters, {side.training.trials} trials"
            if side.training
            else f"{side.arch}: not trained"
            for side in c.sides
        ),
    )


def _error_cells(error: ModelError | None) -> tuple[str, str, str]:
    if error is None:
        return "-", "-", "-"
    return f"{error.mape:.0f} %", f"{error.r2:z.2f}", f"{error.spearman:z.2f}"


def _convergences(c: Comparison) -> Section:
    """How long the search took."""
    by_side = [{run.model: run for run in side.convergences} for side in c.sides]
    models = dict.fromkeys(model for runs in by_side for model in runs)
    rows: list[tuple[str, ...]] = []
    for model in models:
        runs = [found.get(model) for found in by_side]
        cells = [
            cell
            for run in runs
            for cell in ((str(run.generations), f"{run.seconds:.1f} s") if run else ("-", "-"))
        ]
        rows.append((model, *cells))
    return Section(
        title="Convergence of the search",
        columns=_columns(c, "model", "{}: generations", "{}: time"),
        rows=tuple(rows),
        notes=tuple(f"{s.arch}: not searched" for s in c.sides if not s.convergences),
    )


def _parameters(c: Comparison) -> Section:
    """Which parameters matter where."""
    notes = [f"{s.arch}: not screened" for s in c.sides if s.ranking is None] + _refusals(c)
    if not all(all(p.chosen) for p in c.parameters):
        notes.append(
            "Chosen on one side only does not prove that it matters there only: two screenings of "
            "one machine differ as well"
        )
    return Section(
        title="Parameters by importance (share of log P99 ± sd over fits) and where chosen",
        columns=(*_columns(c, "parameter", "{}"), ("chosen", "left")),
        rows=tuple(
            (p.key, *(_importance(i) for i in p.importances), _chosen(c, p)) for p in c.parameters
        ),
        notes=tuple(notes),
    )


def _ranks(c: Comparison) -> list[Section]:
    """Both rankings side by side, where there are two."""
    found = c.rank_agreement
    if found is None:
        return []
    return [
        Section(
            title=f"Ranks of the {len(found.common)} parameters that both rank",
            columns=ranks.columns(found),
            rows=tuple(ranks.rows(found)),
            notes=ranks.notes(found),
        )
    ]


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
        f"{side.arch}: {'not verified' if side.verdict is None else side.verdict.outcome}"
        + ("" if side.verdict is None or side.verdict.outcome == "gain" else ": keep the defaults")
        for side in c.sides
    ]
    return Section(
        title="Tuned values, as they were judged",
        columns=_columns(c, "parameter", "{}: default", "{}: tuned", justify="left"),
        rows=tuple(
            (v.key, *(cell or "-" for n in (0, 1) for cell in (v.defaults[n], v.tuned[n])))
            for v in c.values
        ),
        notes=tuple(notes),
    )


def _columns(
    c: Comparison, first: str, *names: str, justify: str = "right"
) -> tuple[tuple[str, str], ...]:
    """The first column, then these for each side with its architecture in place of {}."""
    each = (name.format(side.arch) for side in c.sides for name in names)
    return ((first, "left"), *((name, justify) for name in each))


def _names(c: Comparison) -> str:
    return " and ".join(side.arch for side in c.sides)
