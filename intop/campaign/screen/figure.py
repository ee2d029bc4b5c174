"""Importance of parameters: one ranking, and the order of two side by side."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from intop.document.axes import (
    ROW_HALF,
    faint_grid,
    is_narrow,
    legend_below,
    name_rows,
    row_line,
)
from intop.document.drawing import BLUE, GREY, INK, ORANGE, Drawing, NoDataError, drawn
from intop.domain.ranking import Importance, RankAgreement, Ranking, RankPair

MOST_ROWS, NARROW_ROWS = 30, 16
"""Parameters in one figure, unless more are chosen."""
ROW, NARROW_ROW = 0.19, 0.36
"""The height of a parameter's row, in inches."""


def importance(about: str, ranking: Ranking) -> Drawing:
    """The most important parameters, with standard deviations; those that were chosen stand out.

    The probe level is a line. Raises NoDataError for an empty ranking.
    """
    if not ranking.importances:
        raise NoDataError("the ranking has no parameters")
    chosen = set(ranking.chosen)
    rows, narrow_rows = (
        min(max(most, len(chosen)), len(ranking.importances)) for most in (MOST_ROWS, NARROW_ROWS)
    )

    def paint(figure: Figure) -> None:
        axes = figure.subplots()
        shown = ranking.importances[: narrow_rows if is_narrow(figure) else rows]
        left_out = len(ranking.importances) - len(shown)
        for name, colour, is_chosen in (("chosen", BLUE, True), ("not chosen", GREY, False)):
            _bars(
                axes, name, colour, [i if (i.key in chosen) == is_chosen else None for i in shown]
            )
        axes.axvline(
            ranking.probe_level,
            color=ORANGE,
            linewidth=1.3,
            linestyle="--",
            label="level of the probes, which have no effect",
            gid="probe-level",
        )
        name_rows(axes, [i.key for i in shown])
        row_line(axes, 0, len(shown))
        faint_grid(axes, "x")
        more = f"\n(not shown: {left_out} with less)" if left_out else ""
        axes.set_xlabel(f"importance, with its standard deviation{more}")
        legend_below(figure, axes)

    return drawn(
        "importance",
        f"importance of parameters ({ranking.trials} trials)",
        paint,
        about=about,
        height=1.5 + ROW * rows,
        narrow_height=1.3 + NARROW_ROW * narrow_rows,
    )


def agreement(about: str, agreement: RankAgreement) -> Drawing:
    """The leading parameters in the order of either ranking, each of them joined by a line.

    Raises NoDataError where the two have nothing in common.
    """
    if not agreement.ranks:
        raise NoDataError("the two rankings have no parameter in common")
    chosen = {*agreement.chosen_first, *agreement.chosen_second}
    shown = agreement.ranks[: max(MOST_ROWS, sum(pair.key in chosen for pair in agreement.ranks))]
    before = sorted(shown, key=lambda pair: pair.rank_first)
    after = sorted(shown, key=lambda pair: pair.rank_second)
    ends = {pair.key: (before.index(pair), after.index(pair)) for pair in shown}

    def paint(figure: Figure) -> None:
        axes = figure.subplots()
        for colour, label, keys in _by_choice(agreement, shown):
            for key in keys:
                axes.plot(
                    (0, 1),
                    ends[key],
                    "o-",
                    color=colour,
                    markersize=3.5,
                    linewidth=1.2,
                    label=label if key == keys[0] else None,
                    gid=f"joined-{key}",
                )
        right = axes.twinx()
        axes.set_yticks(range(len(shown)), [f"{pair.key}  {pair.rank_first}" for pair in before])
        # Where there is no room for the names twice, the line leads to them.
        beside = "{0.rank_second}" if is_narrow(figure) else "{0.rank_second}  {0.key}"
        right.set_yticks(range(len(shown)), [beside.format(pair) for pair in after])
        for side in (axes, right):
            side.set_ylim(len(shown) - 0.5, -0.5)
            side.tick_params(length=0, labelsize=7)
            side.spines[:].set_visible(False)
        axes.set_xticks(
            (0, 1), (agreement.first, agreement.second), fontsize=9, fontweight="bold", color=INK
        )
        axes.xaxis.tick_top()
        legend_below(figure, axes)

    spearman = agreement.spearman
    correlation = "" if spearman is None else f" (rank correlation {spearman:z.2f})"
    return drawn(
        "agreement",
        f"order of importance{correlation}",
        paint,
        about=about,
        height=1.4 + ROW * len(shown),
    )


def _bars(axes: Axes, name: str, colour: str, items: Sequence[Importance | None]) -> None:
    """The bars of those that are there, each at its place."""
    bars = [(place, item) for place, item in enumerate(items) if item is not None]
    if not bars:
        return
    patches = axes.barh(
        [place for place, _ in bars],
        [item.permutation for _, item in bars],
        xerr=[item.permutation_sd for _, item in bars],
        color=colour,
        height=2 * ROW_HALF,
        label=name,
        error_kw={"elinewidth": 0.9, "capsize": 1.5, "ecolor": INK},
    )
    for patch, (_, item) in zip(patches, bars, strict=True):
        patch.set_gid(f"bar-{item.key}")


def _by_choice(
    agreement: RankAgreement, shown: Sequence[RankPair]
) -> list[tuple[str, str, tuple[str, ...]]]:
    """Colour, label and keys of what both have chosen, one of them, and neither."""
    both = set(agreement.chosen_by_both)
    either = {*agreement.chosen_first, *agreement.chosen_second}
    keys = [pair.key for pair in shown]
    return [
        (GREY, "chosen in neither", tuple(k for k in keys if k not in either)),
        (ORANGE, "chosen in one", tuple(k for k in keys if k in either - both)),
        (BLUE, "chosen in both", tuple(k for k in keys if k in both)),
    ]
