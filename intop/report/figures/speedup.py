"""What tuning brought, by architecture and workload, with intervals."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from intop.domain.across import Across
from intop.domain.comparison import Compared, Side
from intop.domain.stats import Interval
from intop.domain.verdict import Verdict
from intop.report.figures.axes import (
    ROW_HALF,
    faint_grid,
    is_narrow,
    legend_below,
    name_rows,
    plain_ticks,
    row_line,
)
from intop.report.figures.drawing import BLUE, GREY, INK, ORANGE, Drawing, NoDataError, drawn

ROW, NARROW_ROW = 0.34, 0.44
"""The height of a row, in inches."""
MEAN, BEST = "mean of the models (when picked)", "best of them (flattered by luck)"
MARKS = {
    "gain": (BLUE, "o"),
    "gain, but": (BLUE, "P"),
    "no gain: it costs": (ORANGE, "v"),
    "no significant gain": (GREY, "s"),
    "worse": (ORANGE, "X"),
    MEAN: (INK, "D"),
    BEST: (INK, "^"),
}
"""Of a verdict by its outcome, and of the models' own winners."""


@dataclass(frozen=True)
class _Row:
    """A ratio with what it is called, and the entry of the legend that it belongs to."""

    name: str
    ratio: Interval
    kind: str


def speedup(about: str, verdicts: Mapping[str, Verdict]) -> Drawing:
    """A row for each verdict by its name, such as `x86 slt`: the ratio of P99, and a line at 1.

    Mean and best of the models' own winners stand below it, where they were measured. Raises
    NoDataError where there are no verdicts.
    """
    if not verdicts:
        raise NoDataError("there are no verdicts")
    level = min(verdict.level for verdict in verdicts.values())
    rows = [row for name, verdict in verdicts.items() for row in _rows(name, verdict)]

    def paint(figure: Figure) -> None:
        axes = figure.subplots()
        for kind, (colour, mark) in MARKS.items():
            placed = [(n, row.ratio) for n, row in enumerate(rows) if row.kind == kind]
            dots(axes, kind, colour, mark, [(n, r.value, r.low, r.high) for n, r in placed])
        axes.set_xscale("log")
        row_line(axes, 1, len(rows))
        name_rows(axes, [row.name for row in rows])
        _tell(axes, [str(row.ratio) for row in rows])
        plain_ticks(axes.xaxis, axes.get_xlim())
        faint_grid(axes, "x")
        against = {verdict.reference for verdict in verdicts.values()}
        against |= {"default"} if any(row.kind in (MEAN, BEST) for row in rows) else set()
        reference = against.pop() if len(against) == 1 else "what it is held against"
        axes.set_xlabel(f"P99 of {reference} / tuned, with {level:.0%} intervals")
        legend_below(figure, axes)

    return drawn(
        "speed-up",
        "by how much tuning lowered P99",
        paint,
        about=about,
        height=1.2 + ROW * len(rows),
        narrow_height=1.0 + NARROW_ROW * len(rows),
    )


def verdicts_of(found: Across) -> dict[str, Verdict]:
    """The verdicts of a configuration by workload, of those that could be measured."""
    return {one.workload: one.verdict for one in found.workloads if one.verdict is not None}


def _rows(name: str, verdict: Verdict) -> Iterator[_Row]:
    whole = Interval(verdict.ratio, verdict.ratio_low, verdict.ratio_high)
    yield _Row(name, whole, verdict.outcome)
    found = verdict.models
    if found is None:
        return
    if found.mean is not None:
        yield _Row(f"{name}, mean of {found.counted} models", found.mean, MEAN)
    if found.best is not None and found.best.ratio is not None:
        yield _Row(f"{name}, best: {found.best.model}", found.best.ratio, BEST)


def architectures(about: str, found: Compared) -> Drawing:
    """P99 of the default and of the tuned configuration, a row for each side of each workload.

    Raises NoDataError where nothing is compared.
    """
    if not found.comparisons:
        raise NoDataError("nothing is compared")
    rows = [(c.workload, side) for c in found.comparisons for side in c.sides]
    level = found.comparisons[0].level

    def paint(figure: Figure) -> None:
        axes = figure.subplots()
        for name, colour, mark, shift, means in (
            ("default", ORANGE, "s", -0.15, [side.default.mean_ms for _, side in rows]),
            ("tuned", BLUE, "o", 0.15, [s.tuned.mean_ms if s.tuned else None for _, s in rows]),
        ):
            dots(axes, name, colour, mark, _shifted(means, shift))
        axes.set_xscale("log")
        name_rows(axes, [_title(workload, side) for workload, side in rows])
        _tell(axes, [_told(side) for _, side in rows])
        plain_ticks(axes.xaxis, axes.get_xlim())
        faint_grid(axes, "x")
        axes.set_xlabel(f"P99 in ms, with {level:.0%} intervals")
        legend_below(figure, axes)

    return drawn(
        "p99",
        "P99 by side and workload",
        paint,
        about=about,
        height=1.2 + ROW * len(rows),
        narrow_height=1.0 + NARROW_ROW * len(rows),
    )


def dots(
    axes: Axes,
    name: str,
    colour: str,
    mark: str,
    rows: Sequence[tuple[float, float, float, float]],
) -> None:
    """Values with intervals: place, value, low end, high end."""
    if not rows:
        return
    made = axes.errorbar(
        [value for _, value, _, _ in rows],
        [place for place, _, _, _ in rows],
        xerr=[
            [value - low for _, value, low, _ in rows],
            [high - value for _, value, _, high in rows],
        ],
        fmt=mark,
        color=colour,
        markersize=5,
        elinewidth=1.4,
        capsize=2.5,
        label=name,
    )
    words = re.findall(r"\w+", name.partition(" (")[0])
    made.lines[0].set_gid(f"dots-{'-'.join(words)}")


def _tell(axes: Axes, words: Sequence[str]) -> None:
    """Values in words at the right: beside their row, or above it where that is narrow."""
    narrow = is_narrow(axes)
    for place, told in enumerate(words):
        axes.text(
            0.99 if narrow else 1.01,
            place - ROW_HALF - 0.02 if narrow else place,
            told,
            transform=axes.get_yaxis_transform(),
            ha="right" if narrow else "left",
            va="bottom" if narrow else "center",
            fontsize=8,
        )


def _shifted(
    means: Sequence[Interval | None], shift: float
) -> list[tuple[float, float, float, float]]:
    return [
        (place + shift, m.value, m.low, m.high) for place, m in enumerate(means) if m is not None
    ]


def _title(workload: str, side: Side) -> str:
    return f"{side.name} {workload}" + (" (emulated)" if side.emulated else "")


def _told(side: Side) -> str:
    means = [latency.mean_ms.value for latency in (side.default, side.tuned) if latency]
    return " → ".join(f"{mean:.3g}" for mean in means) + " ms"
