"""Two sides of a store next to each other. Formats, and computes nothing."""

from collections.abc import Iterator, Sequence

from intop.campaign.verify.view import LUCK, measured_as, models_sentence
from intop.document.columns import Column, Value, columns, texts, worded
from intop.document.model import Notes, Section, Table, tabled
from intop.domain.comparison import Compared, Comparison, Contrast, Latency, Side
from intop.domain.speedups import ModelSpeedUp
from intop.domain.stats import Interval
from intop.domain.verdict import Verdict
from intop.report import paper
from intop.report.history_result import History, Moment, Step
from intop.report.workload_view import details, names, rows_by_side
from intop.words import interval, number, percent

WIDEST_BAR = 40


def sections(compared: Compared) -> list[Section]:
    """Return all workloads in short, then each in detail."""
    in_short = (matrix(compared), *_models(compared), *_paper(compared), _picture(compared))
    return [*_forced(compared), *in_short, *map(details, compared.comparisons)]


# All workloads ------------------------------------------------------------------------------------


def matrix(compared: Compared) -> Section:
    """Workloads by sides."""
    first = compared.comparisons[0]
    first_name, second_name = (side.name for side in first.sides)
    rows: list[tuple[Value, ...]] = []
    for c in compared.comparisons:
        judged = next((side.verdict for side in c.sides if side.verdict), None)
        default = judged.reference if judged else "default"
        cells: dict[str, tuple[Value, ...]] = {
            default: (*(_latency(side.default) for side in c.sides), *_contrast(c.default)),
            "tuned": (*(_latency(side.tuned) for side in c.sides), *_contrast(c.tuned)),
            "speed-up": (*(speed_up(side.verdict, c.level) for side in c.sides), "", ""),
            "verdict": (*(_verdict(side) for side in c.sides), "", ""),
        }
        rows += [(c.workload, name, *values) for name, values in cells.items()]
    judged_by = first.sides[0].conditions.judged_by
    title = f"{names(first)}: measured {judged_by} in ms, with {percent(first.level)} intervals"
    table = Table(
        name="architectures",
        title=f"{judged_by} in ms, side by side",
        origin="measured",
        columns=(
            *texts("workload", judged_by),
            *columns("span", first_name, second_name),
            Column(f"{second_name} - {first_name}", "difference"),
            Column(f"{second_name} / {first_name}", "span"),
        ),
        rows=tuple(rows),
    )
    notes = (
        *(line for c in compared.comparisons for line in _sentences(c)),
        *_whence(compared),
        *_remarks(compared),
        *(f"Not compared: {reason}" for reason in compared.missing),
    )
    return Section(title=title, blocks=(table, Notes(notes)))


def _models(compared: Compared) -> list[Section]:
    """Return the speed-ups of the tree models' own winners, where they were measured."""
    rows: list[tuple[Value, ...]] = []
    notes: list[str] = []
    for c in compared.comparisons:
        by_side = [side.verdict.models if side.verdict else None for side in c.sides]
        winners = rows_by_side(
            (
                {m.model: (_model(m),) for m in speed_ups.models} if speed_ups else {}
                for speed_ups in by_side
            ),
            (None,),
        )
        if winners:
            winners.append(
                ("mean", *(speed_ups.mean if speed_ups else None for speed_ups in by_side))
            )
        rows += [(c.workload, *row) for row in winners]
        notes += [
            f"{side.name} {c.workload}: {models_sentence(speed_ups)}"
            for side, speed_ups in zip(c.sides, by_side, strict=True)
            if speed_ups is not None
        ]
    if not rows:
        return []
    names = (side.name for side in compared.comparisons[0].sides)
    return [
        tabled(
            "Speed-up of the models' own winners, in the rounds of picking",
            (*texts("workload", "model"), *columns("span", *names)),
            rows,
            (*notes, LUCK),
        )
    ]


def _model(model: ModelSpeedUp) -> Value:
    remark = measured_as(model)
    words = worded(model.ratio, Column("", "span"))
    return f"{words}, {remark}" if remark else model.ratio


def _paper(compared: Compared) -> list[Section]:
    """The paper's figures beside ours, where the sides are those of the paper."""
    if not compared.is_of_architectures:
        return []
    table = paper.table(paper.outcomes(compared), compared)
    return [Section(title=table.title, blocks=(table, Notes((paper.NOTE,))))]


def _latency(latency: Latency | None) -> Interval | None:
    return None if latency is None else latency.mean_ms


def _contrast(contrast: Contrast | None) -> tuple[Value, Value]:
    if contrast is None:
        return None, None
    return contrast.difference_ms, contrast.ratio


def speed_up(verdict: Verdict | None, level: float) -> Value:
    """A verdict's ratio, with its level where it is another one."""
    if verdict is None:
        return None
    ends = verdict.ratio, verdict.ratio_low, verdict.ratio_high
    if verdict.level == level:
        return Interval(*ends)
    # The file may have asked for another level when the verdict was given.
    return f"{interval(*ends)}, at {percent(verdict.level)}"


def _verdict(side: Side) -> str:
    if side.verdict is None:
        return "not verified"
    failures = side.verdict.failures
    return side.verdict.short + (f", {failures} tuned trials failed" if failures else "")


def _forced(compared: Compared) -> list[Section]:
    lines = differences(compared)
    return [tabled("NOT COMPARABLE, shown by --force", (), (), lines)] if lines else []


def differences(compared: Compared) -> list[str]:
    """Return the differences that make the sides incomparable, by workload."""
    return [f"{c.workload}: {line}" for c in compared.comparisons for line in c.differences]


def _whence(compared: Compared) -> list[str]:
    """Return the campaigns of the sides, where they are of two campaigns."""
    if compared.is_of_architectures:
        return []
    return [
        f"{side.name} is {side.arch} in campaign {about.campaign} of {about.study}, begun "
        f"{about.started_at[:10]}"
        for side, about in zip(compared.comparisons[0].sides, compared.provenance, strict=True)
    ]


def _remarks(compared: Compared) -> list[str]:
    """Return warnings about the sides, with the workloads that they hold for."""
    workloads: dict[str, list[str]] = {}
    for c in compared.comparisons:
        for line in _remarks_on(c):
            workloads.setdefault(line, []).append(c.workload)
    everywhere = len(compared.comparisons)
    return [
        line if len(where) == everywhere else f"{', '.join(where)}: {line}"
        for line, where in workloads.items()
    ]


def _remarks_on(c: Comparison) -> list[str]:
    lines = [f"Warning: {line}" for line in c.warnings]
    emulated = [side for side in c.sides if side.emulated]
    if emulated:
        who = " and ".join(f"{s.name} ({s.conditions.emulation})" for s in emulated)
        lines.append(
            f"Emulated: {who}. An emulated machine's speed says nothing about the hardware. What "
            "queues, loss and timers do, and which keys and defaults the kernel has, is real; but "
            "differences of latency between the sides are not differences of the architectures."
        )
    return lines


def _sentences(c: Comparison) -> list[str]:
    """Return such as: slt, tuned: P99 on arm is 60 % lower than on x86 (47 to 70 %)."""
    first_name, second_name = (side.name for side in c.sides)
    judged_by = c.sides[0].conditions.judged_by
    lines: list[str] = []
    for name, contrast in (("default", c.default), ("tuned", c.tuned)):
        if contrast is None:
            continue
        ratio = contrast.ratio
        change, low, high = (100 * (r - 1) for r in (ratio.value, ratio.low, ratio.high))
        if contrast.outcome == "not separated":
            sentence = (
                f"{judged_by} on {second_name} and on {first_name} is not separated: "
                f"{change:+z.0f} % ({low:+z.0f} to {high:+z.0f} %)"
            )
        else:
            nearest, farthest = sorted((abs(low), abs(high)))
            sentence = (
                f"{judged_by} on {second_name} is {abs(change):.0f} % {contrast.outcome} than on "
                f"{first_name} ({nearest:.0f} to {farthest:.0f} %)"
            )
        lines.append(f"{c.workload}, {name}: {sentence}")
    return lines


def _picture(compared: Compared) -> Section:
    """Bars on a scale that begins at 0 and is common to a workload's sides."""
    rows: list[tuple[Value, ...]] = []
    judged_by = compared.comparisons[0].sides[0].conditions.judged_by
    for c in compared.comparisons:
        bars: list[tuple[str, str, Latency | None]] = []
        for side in c.sides:
            bars += [(side.name, "default", side.default), ("", "tuned", side.tuned)]
        longest = max(latency.mean_ms.value for _, _, latency in bars if latency)
        for place, (owner, name, latency) in enumerate(bars):
            value = latency.mean_ms.value if latency else 0.0
            bar = "█" * max(1, round(WIDEST_BAR * value / longest)) if latency else "not verified"
            workload = "" if place else c.workload
            rows.append((workload, owner, name, number(value) if latency else "-", bar))
    heads = (*texts("workload", "side", "configuration"), Column(judged_by), *texts(""))
    return tabled(f"{judged_by} in ms, each workload on a scale of its own", heads, rows)


# Over time ----------------------------------------------------------------------------------------


def histories(histories: Sequence[History]) -> list[Section]:
    """A table of the campaigns of each history, and what changed between them."""
    return [_history(history) for history in histories]


def _history(history: History) -> Section:
    steps = (None, *history.steps)
    rows = [
        _moment_cells(moment, step, history.level)
        for moment, step in zip(history.moments, steps, strict=True)
    ]
    return tabled(
        f"{history.title} over time: {history.judged_by} in ms by campaign of {history.study}, "
        f"with {percent(history.level)} intervals",
        (
            Column("campaign", "count"),
            *texts("begun (UTC)"),
            *columns("span", "default", "default / before", "tuned", "tuned / before", "speed-up"),
            *texts("verdict"),
        ),
        rows,
        _history_notes(history),
    )


def _moment_cells(moment: Moment, step: Step | None, level: float) -> tuple[Value, ...]:
    verdict = moment.verdict
    return (
        moment.campaign,
        moment.started_at[:16].replace("T", " "),
        _latency(moment.default),
        _contrast_ratio(step.default if step else None),
        _latency(moment.tuned),
        _contrast_ratio(step.tuned if step else None),
        speed_up(verdict, level),
        verdict.short if verdict else "not verified",
    )


def _contrast_ratio(contrast: Contrast | None) -> Interval | None:
    return contrast.ratio if contrast else None


def _history_notes(history: History) -> Iterator[str]:
    if not history.steps:
        yield "Only this campaign has measured it, so there is nothing to compare it with."
    for before, moment, step in zip(
        history.moments, history.moments[1:], history.steps, strict=False
    ):
        about = f"Campaign {before.campaign} to {moment.campaign}"
        for line in step.incomparable:
            yield f"{about}: not comparable, {line}"
        for line in step.changed:
            yield f"{about}: {line}"
        if step.default is not None:
            of = f"{history.judged_by} of the {moment.reference}"
            yield f"{about}: {of} {_contrast_words(step.default)}"
    if history.steps:
        yield (
            "The campaigns were measured one after the other: what changed meanwhile, and is no "
            "condition, is in no interval"
        )


def _contrast_words(contrast: Contrast) -> str:
    ratio = contrast.ratio
    if contrast.outcome == "not separated":
        return f"is not separated: {100 * (ratio.value - 1):+z.0f} %"
    return f"is {100 * abs(ratio.value - 1):.0f} % {contrast.outcome}"
