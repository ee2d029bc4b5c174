"""The gain of tuning by architecture and workload, with intervals."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from intop.document.axes import (
    ROW_HALF,
    faint_grid,
    is_narrow,
    legend_below,
    name_rows,
    plain_ticks,
    row_line,
)
from intop.document.drawing import BLUE, GREY, INK, ORANGE, Drawing, NoDataError, drawn
from intop.domain.across import Across
from intop.domain.comparison import Compared, Side
from intop.domain.stats import Interval
from intop.domain.verdict import Verdict
from intop.words import percent, shared

ROW, NARROW_ROW = 0.34, 0.44
"""The height of a row, in inches."""
MEAN, BEST = "mean of the models (when picked)", "best of them (flattered by luck)"
MARKS = {
    "gain": (BLUE, "o"),
    "gain, but": (BLUE, "P"),
    "no gain: it costs": (ORANGE, "v"),
    "undecided": (GREY, "o"),
    "no significant gain": (GREY, "s"),
    "worse": (ORANGE, "X"),
    MEAN: (INK, "D"),
    BEST: (INK, "^"),
}
"""The marks of a verdict by its outcome, and of the models' own winners."""


@dataclass(frozen=True)
class _Row:
    """A ratio with its name, and its entry in the legend."""

    name: str
    ratio: Interval
    kind: str


def speedup(about: str, verdicts: Mapping[str, Verdict]) -> Drawing:
    """Return a row for each verdict by its name, such as `x86 slt`: the ratio of latency.

    Mean and best of the models' own winners stand below it, where they were measured. Raises
    NoDataError where there are no verdicts.
    """
    if not verdicts:
        raise NoDataError("there are no verdicts")
    level = min(verdict.level for verdict in verdicts.values())
    rows = [row for name, verdict in verdicts.items() for row in _rows(name, verdict)]
    references = {verdict.reference for verdict in verdicts.values()}
    references |= {"default"} if any(row.kind in (MEAN, BEST) for row in rows) else set()
    latency = shared((verdict.judged_by for verdict in verdicts.values()), "latency")
    reference = references.pop() if len(references) == 1 else "what it is held against"

    def paint(axes: Axes) -> None:
        for kind, (colour, mark) in MARKS.items():
            placed = [(n, row.ratio) for n, row in enumerate(rows) if row.kind == kind]
            dots(axes, kind, colour, mark, placed)
        row_line(axes, 1, len(rows))

    return _drawn_in_rows(
        "speed-up",
        f"by how much tuning lowered {latency}",
        f"{latency} of {reference} / tuned, with {percent(level)} intervals",
        [(row.name, str(row.ratio)) for row in rows],
        paint,
        about=about,
    )


def by_workload(about: str, across: Across) -> Drawing:
    """Return the speed-up under each workload. Raises NoDataError where none was measured."""
    verdicts = {u.workload: u.verdict for u in across.workloads if u.verdict is not None}
    return speedup(about, verdicts)


def _rows(name: str, verdict: Verdict) -> Iterator[_Row]:
    whole = Interval(verdict.ratio, verdict.ratio_low, verdict.ratio_high)
    yield _Row(name, whole, verdict.outcome)
    models = verdict.models
    if models is None:
        return
    if models.mean is not None:
        yield _Row(f"{name}, mean of {models.counted} models", models.mean, MEAN)
    if models.best is not None and models.best.ratio is not None:
        yield _Row(f"{name}, best: {models.best.model}", models.best.ratio, BEST)


def architectures(about: str, compared: Compared) -> Drawing:
    """Return the latency of the default and of the winner, a row for each side of each workload.

    Raises NoDataError where nothing is compared.
    """
    if not compared.comparisons:
        raise NoDataError("nothing is compared")
    rows = [(c.workload, side) for c in compared.comparisons for side in c.sides]
    level = compared.comparisons[0].level
    judged_by = shared((side.conditions.judged_by for _, side in rows), "latency")

    def paint(axes: Axes) -> None:
        for name, colour, mark, shift, means in (
            ("default", ORANGE, "s", -0.15, [side.default.mean_ms for _, side in rows]),
            ("tuned", BLUE, "o", 0.15, [s.tuned.mean_ms if s.tuned else None for _, s in rows]),
        ):
            placed = [(n + shift, mean) for n, mean in enumerate(means) if mean is not None]
            dots(axes, name, colour, mark, placed)

    return _drawn_in_rows(
        "p99",
        f"{judged_by} by side and workload",
        f"{judged_by} in ms, with {percent(level)} intervals",
        [(_title(workload, side), _means(side)) for workload, side in rows],
        paint,
        about=about,
    )


def _drawn_in_rows(
    name: str,
    title: str,
    label: str,
    rows: Sequence[tuple[str, str]],
    paint: Callable[[Axes], None],
    *,
    about: str,
) -> Drawing:
    """Return a drawing with a row for each name, and its values in words at the right."""

    def painted(figure: Figure) -> None:
        axes = figure.subplots()
        paint(axes)
        axes.set_xscale("log")
        name_rows(axes, [row_name for row_name, _ in rows])
        _write(axes, [words for _, words in rows])
        plain_ticks(axes.xaxis, axes.get_xlim())
        faint_grid(axes, "x")
        axes.set_xlabel(label)
        legend_below(figure, axes)

    return drawn(
        name,
        title,
        painted,
        about=about,
        height=1.2 + ROW * len(rows),
        narrow_height=1.0 + NARROW_ROW * len(rows),
    )


def dots(
    axes: Axes, name: str, colour: str, mark: str, rows: Sequence[tuple[float, Interval]]
) -> None:
    """Draw values with intervals, each at its place."""
    if not rows:
        return
    bars = axes.errorbar(
        [value.value for _, value in rows],
        [place for place, _ in rows],
        xerr=[
            [value.value - value.low for _, value in rows],
            [value.high - value.value for _, value in rows],
        ],
        fmt=mark,
        color=colour,
        markersize=5,
        elinewidth=1.4,
        capsize=2.5,
        label=name,
    )
    words = re.findall(r"\w+", name.partition(" (")[0])
    bars.lines[0].set_gid(f"dots-{'-'.join(words)}")


def _write(axes: Axes, words: Sequence[str]) -> None:
    """Write values at the right: beside their row, or above it where that is narrow."""
    narrow = is_narrow(axes)
    for place, text in enumerate(words):
        axes.text(
            0.99 if narrow else 1.01,
            place - ROW_HALF - 0.02 if narrow else place,
            text,
            transform=axes.get_yaxis_transform(),
            ha="right" if narrow else "left",
            va="bottom" if narrow else "center",
            fontsize=8,
        )


def _title(workload: str, side: Side) -> str:
    return f"{side.name} {workload}" + (" (emulated)" if side.emulated else "")


def _means(side: Side) -> str:
    means = [latency.mean_ms.value for latency in (side.default, side.tuned) if latency]
    return " → ".join(f"{mean:.3g}" for mean in means) + " ms"
