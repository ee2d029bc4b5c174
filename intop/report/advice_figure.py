"""Effects of single changes, over all campaigns of a store."""

from matplotlib.figure import Figure

from intop.campaign.verify.speedup_figure import dots
from intop.document.axes import faint_grid, legend_below, name_rows, plain_ticks, row_line
from intop.document.drawing import BLUE, ORANGE, Drawing, NoDataError, drawn
from intop.domain.stats import Interval
from intop.report.advice import Advice, Change
from intop.report.evidence import Evidence, effect

ROW, NARROW_ROW = 0.36, 0.72
"""The height of a row, in inches."""
MOST_ROWS = 16
WIDEST = 100.0
"""Intervals end at so many times, and at its inverse: beyond that they only say that they are wide.
"""


def effects(advice: Advice) -> Drawing:
    """A row for each campaign that measured a change: by itself, and beside others.

    Raises NoDataError where nothing was measured.
    """
    rows = shown_rows(advice)
    if not rows:
        raise NoDataError("no change was measured")

    def paint(figure: Figure) -> None:
        axes = figure.subplots()
        for name, colour, mark, shift, ratios in (
            ("by itself", BLUE, "o", -0.12, [evidence.by_itself for _, evidence in rows]),
            ("beside others", ORANGE, "s", 0.12, [evidence.beside_others for _, evidence in rows]),
        ):
            placed = [(n + shift, r) for n, r in enumerate(ratios) if r is not None]
            dots(axes, name, colour, mark, [(place, _within(r)) for place, r in placed])
        axes.set_xscale("log")
        row_line(axes, 1, len(rows))
        name_rows(axes, [_name(change, evidence) for change, evidence in rows])
        plain_ticks(axes.xaxis, axes.get_xlim())
        faint_grid(axes, "x")
        axes.set_xlabel("latency without the change / with it, above 1 it helps")
        legend_below(figure, axes)

    return drawn(
        "effects",
        "what single changes did (measured)",
        paint,
        about="advice",
        height=1.2 + ROW * len(rows),
        narrow_height=1.0 + NARROW_ROW * len(rows),
    )


def shown_rows(advice: Advice) -> list[tuple[Change, Evidence]]:
    """Return the rows of the figure in the order of the changes; clear effects go before others."""
    measured = [
        (change, evidence)
        for change in advice.changes
        for evidence in change.evidence
        if evidence.by_itself or evidence.beside_others
    ]
    clear = [row for row in measured if _is_clear(row[1])]
    rest = [row for row in measured if not _is_clear(row[1])]
    chosen = (clear + rest)[:MOST_ROWS]
    return [row for row in measured if any(row is picked for picked in chosen)]


def _is_clear(evidence: Evidence) -> bool:
    return any(
        effect(r) in ("helped", "hurt") for r in (evidence.by_itself, evidence.beside_others)
    )


def _within(ratio: Interval) -> Interval:
    """Return a ratio of which no end is beyond what is drawn."""
    ends = (ratio.value, ratio.low, ratio.high)
    return Interval(*(min(max(end, 1 / WIDEST), WIDEST) for end in ends))


def _name(change: Change, evidence: Evidence) -> str:
    """Return the change and, in a line of its own, the campaign."""
    return f"{change.name}\n[{change.situation}] {evidence.source.title}"
