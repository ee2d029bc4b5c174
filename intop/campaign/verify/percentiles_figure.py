"""Latency by percentile, of the default and of the tuned configuration."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter, NullLocator

from intop.document.axes import faint_grid, plain_ticks
from intop.document.drawing import BLUE, INK, ORANGE, Drawing, NoDataError, drawn
from intop.domain.histogram import BEHIND, PERCENTS, Histogram, reliable_ms
from intop.domain.sides import Latencies, merged

HEIGHT = 3.4
MARKS = (50.0, 90.0, 99.0, 99.9, 99.99, 99.999, 99.9999)
"""The percentiles that are named. One in so many requests is slower as the axis has it there."""
HEADROOM = 1.4
"""Factor of room for the words above the slowest request."""
APART = 2.0
"""Maxima that are closer than by this factor share one label."""
STEPS = 160
"""Places at which a line may step. Each has the exact latency; more could not be told apart."""


def percentiles(about: str, latencies: Latencies) -> Drawing:
    """Draw two lines from P50 to the slowest request, on axes that are both logarithmic.

    To the right, one request in so many is slower: 10, 100, 1,000 ... A line ends where fewer than
    ten are; the slowest request is a mark. A band reaches from the lowest to the highest of the
    single trials, as far as those have ten. Raises NoDataError for a side without requests.
    """
    # The slowest requests may have taken equally long: one mark is seen behind the other.
    sides = {
        latencies.against or "default": (latencies.default, ORANGE, ("s", 6.5)),
        "tuned": (latencies.tuned, BLUE, ("o", 3.5)),
    }
    judged = PERCENTS.get(latencies.judged_by, PERCENTS["P99"])
    whole = {name: merged(trials) for name, (trials, *_) in sides.items()}
    if not all(histogram.total for histogram in whole.values()):
        raise NoDataError("there are no requests on one of the sides")

    def paint(figure: Figure) -> None:
        axes = figure.subplots()
        for name, (trials, colour, mark) in sides.items():
            _band(axes, name, trials, colour)
            _line(axes, name, whole[name], colour, mark)
        _label(axes, whole, judged)
        _scales(axes, whole, judged)
        trials_told = max(len(latencies.default), len(latencies.tuned))
        axes.set_xlabel(
            "percentile of all requests\n"
            f"(bands: the lowest to the highest of {trials_told} trials)"
        )
        axes.set_ylabel("latency in ms")

    return drawn(
        "percentiles",
        "latency by percentile",
        paint,
        about=about,
        height=HEIGHT,
        width=5.4,
    )


def _line(
    axes: Axes, name: str, histogram: Histogram, colour: str, mark: tuple[str, float]
) -> None:
    places = _places(histogram.total)
    axes.plot(
        places,
        [histogram.percentile_ms(_percent(place)) for place in places],
        color=colour,
        linewidth=1.8,
        drawstyle="steps-post",
        clip_on=False,
        gid=f"side-{name}",
    )
    axes.plot(
        [histogram.total],
        [histogram.max_ms],
        color=colour,
        linestyle="none",
        marker=mark[0],
        markersize=mark[1],
        clip_on=False,
        label=name,
        gid=f"slowest-{name}",
    )


def _band(axes: Axes, name: str, trials: Sequence[Histogram], colour: str) -> None:
    """Draw the band between the trials' lines, as far as the smallest of them reaches."""
    shown = [trial for trial in trials if trial.total]
    places = _places(min(trial.total for trial in shown))
    if len(shown) < 2 or len(places) < 2:
        return
    # Nearly all trials have the same number of requests, and so the same ranks.
    of_each_total = {trial.total: trial for trial in shown}
    ranks = {n: [t.rank(_percent(place)) for place in places] for n, t in of_each_total.items()}
    at_places = [*zip(*(map(t.at_rank_ms, ranks[t.total]) for t in shown), strict=True)]
    axes.fill_between(
        places,
        [min(latencies) for latencies in at_places],
        [max(latencies) for latencies in at_places],
        color=colour,
        alpha=0.2,
        linewidth=0,
        step="post",
        gid=f"trials-{name}",
    )


def _label(axes: Axes, whole: dict[str, Histogram], judged: float) -> None:
    """Names and values at the judged percentile, P99 beside a mean, and at the slowest requests."""
    judged_ms = {
        name: value for name, h in whole.items() if (value := reliable_ms(h, judged)) is not None
    }
    # At the left edge there is room on one side only.
    left = ((-5, 5), "right") if judged >= PERCENTS["P90"] else ((5, 5), "left")
    ways = ((*left, "bottom"), ((5, -5), "left", "top"))
    for (offset, across, up), name in zip(
        ways, sorted(judged_ms, key=lambda n: -judged_ms[n]), strict=False
    ):
        axes.annotate(
            f"{name} {judged_ms[name]:.3g} ms",
            (_slower(judged), judged_ms[name]),
            offset,
            textcoords="offset points",
            ha=across,
            va=up,
            fontweight="bold",
        )
    slowest = {name: (histogram.total, histogram.max_ms) for name, histogram in whole.items()}
    ends = {name: f"{name} max {value:.3g} ms" for name, (_, value) in slowest.items()}
    highest, lower = sorted(slowest, key=lambda name: -slowest[name][1])
    if slowest[highest][1] < APART * slowest[lower][1]:
        ends = {highest: f"{ends[highest]}, {ends[lower]}"}
    for name, words in ends.items():
        axes.annotate(
            words,
            slowest[name],
            (0, 5),
            textcoords="offset points",
            ha="right",
            va="bottom",
            fontsize=8,
        )


def _scales(axes: Axes, whole: dict[str, Histogram], judged: float) -> None:
    axes.set(xscale="log", yscale="log")
    most = max(histogram.total for histogram in whole.values())
    axes.set_xlim(_slower(MARKS[0]), max(most, 2 * _slower(MARKS[0])))
    shown = [mark for mark in MARKS if BEHIND * _slower(mark) <= most]
    axes.set_xticks([_slower(mark) for mark in shown], [f"P{mark:g}" for mark in shown])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_minor_formatter(NullFormatter())
    low, high = axes.get_ylim()
    axes.set_ylim(low, high * HEADROOM)
    plain_ticks(axes.yaxis, axes.get_ylim())
    axes.axvline(_slower(judged), ymax=0.87, color=INK, linewidth=0.8, linestyle=":")
    faint_grid(axes)


def _places(total: int) -> list[float]:
    """Return the places of steps, from P50 as far as ten of `total` requests are slower."""
    first, last = _slower(MARKS[0]), total / BEHIND
    if last < first:
        return []
    return [first * (last / first) ** (n / STEPS) for n in range(STEPS + 1)]


def _percent(place: float) -> float:
    return 100 * (1 - 1 / place)


def _slower(percent: float) -> float:
    """Return the place of a percentile: one request in so many is slower."""
    return round(1 / (1 - percent / 100), 6)
