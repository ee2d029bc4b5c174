"""The paper's headline figures beside ours. One table for every form of a result."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import isfinite

from intop.document.columns import AS_ABOVE, Column, texts
from intop.document.model import Table
from intop.domain.comparison import Compared, Comparison, Converged
from intop.domain.stats import Interval
from intop.domain.training import TREE_MODELS, Training
from intop.domain.verdict import Verdict
from intop.report import published as paper
from intop.words import counted, interval, number

NOT_MEASURED = "not measured"
TITLE = "The paper's figures, and ours"
NOTE = (
    "The paper: Chen, Li and Yu, Journal of Integration Technology, 2024. X86 there is a Xeon "
    "Silver 4214, ARM a Kunpeng 920-4826, at 10,000 requests/s. It gives no intervals."
)


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The results of a campaign for one architecture and workload."""

    arch: str
    workload: str
    training: Training | None
    convergences: tuple[Converged, ...]
    verdict: Verdict | None
    emulated: bool


@dataclass(frozen=True, kw_only=True)
class PaperRow:
    """One figure: the paper's and ours, both for x86 and then arm, and why they differ."""

    figure: str
    paper: tuple[str, str]
    here: tuple[str, str]
    why: str

    @property
    def cells(self) -> tuple[str, ...]:
        """The cells in the order of `COLUMNS`."""
        pairs = zip(self.paper, self.here, strict=True)
        return (self.figure, *(cell for pair in pairs for cell in pair), self.why)


COLUMNS = (
    *texts("figure", "X86: paper", "X86: here", "ARM: paper", "ARM: here"),
    Column("why they differ", "prose"),
)


def table(outcomes: Sequence[Outcome], compared: Compared | None) -> Table:
    """Return the table of all figures; `compared` is None with one measured architecture."""
    rows = tuple(row.cells for row in paper_rows(outcomes, compared))
    return Table(name="paper", title=TITLE, columns=COLUMNS, rows=rows)


def outcomes(compared: Compared) -> list[Outcome]:
    """Return the outcomes of both sides of a comparison."""
    return [
        Outcome(
            arch=side.arch,
            workload=comparison.workload,
            training=side.training,
            convergences=side.convergences,
            verdict=side.verdict,
            emulated=side.emulated,
        )
        for comparison in compared.comparisons
        for side in comparison.sides
    ]


def paper_rows(outcomes: Sequence[Outcome], compared: Compared | None) -> list[PaperRow]:
    """Return all headline figures. Ours are of P99 only, as the paper's are."""
    outcomes = [o for o in outcomes if o.verdict is None or o.verdict.judged_by == "P99"]
    return [
        *_errors(outcomes),
        *_searches(outcomes),
        *_speed_ups(outcomes),
        _architectures(outcomes, compared),
        PaperRow(
            figure="energy",
            paper=(paper.ENERGY["x86"], paper.ENERGY["arm"]),
            here=(NOT_MEASURED, NOT_MEASURED),
            why="intop reads no power meter.",
        ),
    ]


def _errors(outcomes: Sequence[Outcome]) -> Iterable[PaperRow]:
    for place, (family, errors) in enumerate(paper.ERRORS.items()):

        def mape(outcome: Outcome, family: str = family) -> str:
            known = outcome.training.errors if outcome.training else ()
            mapes = (e.mape for e in known if e.family == family)
            return next((f"{m:.0f} %" if isfinite(m) else "without bounds" for m in mapes), "")

        yield PaperRow(
            figure=f"model error, {family}",
            paper=(f"{errors['x86']:g} %", f"{errors['arm']:g} %"),
            here=_here(outcomes, mape),
            why=AS_ABOVE if place else _why_errors(outcomes),
        )


def _why_errors(outcomes: Sequence[Outcome]) -> str:
    """Return the reason with the error by noise alone, where that is known."""
    trials = [outcome.training.trials for outcome in outcomes if outcome.training]
    ceilings = [
        f"{outcome.arch} {outcome.workload} {outcome.training.ceiling.mape:.0f} %"
        for outcome in outcomes
        if outcome.training and outcome.training.ceiling
    ]
    if not trials:
        return "Nothing was trained here."
    few, many = min(trials), max(trials)
    amount = f"{few}" if few == many else f"{few} to {many}"
    noise = f"; noise alone makes {', '.join(ceilings)}" if ceilings else ""
    return f"Ours are on held-out configurations, of {amount} trials{noise}."


def _searches(outcomes: Sequence[Outcome]) -> Iterable[PaperRow]:
    def span(arch: str) -> str:
        counts = [
            run.generations
            for outcome in outcomes
            if outcome.arch == arch
            for run in outcome.convergences
            if run.model in TREE_MODELS
        ]
        ends = dict.fromkeys((min(counts), max(counts)) if counts else ())
        return " to ".join(map(str, ends)) or NOT_MEASURED

    yield PaperRow(
        figure="generations, four tree models",
        paper=_pair(lambda arch: "{} to {}".format(*paper.GENERATIONS[arch])),
        here=_pair(span),
        why=(
            "Until the best prediction improved no more. It depends on the population, on what "
            "counts as converged, and on how many parameters are searched."
        ),
    )
    yield PaperRow(
        figure="generations, XGBoost",
        paper=_pair(lambda arch: _listed(paper.XGBOOST_GENERATIONS[arch].items())),
        here=_here(
            outcomes, lambda outcome: _run(outcome, "XGBoost", lambda run: str(run.generations))
        ),
        why=AS_ABOVE,
    )
    minutes = paper.LIGHTGBM_MINUTES
    yield PaperRow(
        figure="search time, LightGBM",
        paper=_pair(lambda arch: _listed((w, f"{m} min") for w, m in minutes[arch].items())),
        here=_here(
            outcomes, lambda outcome: _run(outcome, "LightGBM", lambda r: f"{number(r.seconds)} s")
        ),
        why=(
            "A model is asked for a whole generation at once here, and the time is that of the "
            "machine that runs intop, so it tells nothing about the cluster."
        ),
    )


def _run(outcome: Outcome, model: str, describe: Callable[[Converged], str]) -> str:
    return next((describe(run) for run in outcome.convergences if run.model == model), "")


def _speed_ups(outcomes: Sequence[Outcome]) -> Iterable[PaperRow]:
    def mean(outcome: Outcome) -> str:
        speed_ups = outcome.verdict.models if outcome.verdict else None
        return _interval(speed_ups.mean) if speed_ups and speed_ups.mean else ""

    def best(outcome: Outcome) -> str:
        speed_ups = outcome.verdict.models if outcome.verdict else None
        top = speed_ups.best if speed_ups else None
        return f"{_interval(top.ratio)}, {top.model}" if top and top.ratio else ""

    def verdict(outcome: Outcome) -> str:
        v = outcome.verdict
        return f"{interval(v.ratio, v.ratio_low, v.ratio_high)}, {v.short}" if v else ""

    yield PaperRow(
        figure="speed-up, mean over the models",
        paper=_pair(lambda arch: f"{paper.MEAN_SPEED_UP[arch]:g}"),
        here=_here(outcomes, mean),
        why=(
            "A gain depends on what limits the cluster: hardware, load, link and the default's "
            "own values are others here."
        ),
    )
    rounds = [o.verdict.models.rounds for o in outcomes if o.verdict and o.verdict.models]
    yield PaperRow(
        figure="speed-up, best of the models",
        paper=_pair(lambda arch: f"{paper.BEST_SPEED_UP[arch]:g}"),
        here=_here(outcomes, best),
        why="The best of several is flattered by luck"
        + (f"; ours is of {counted(max(rounds), 'round')}." if rounds else "."),
    )
    yield PaperRow(
        figure="speed-up, verdict in fresh pairs",
        paper=(NOT_MEASURED, NOT_MEASURED),
        here=_here(outcomes, verdict),
        why="The paper reports no fresh measurement of a configuration that was chosen.",
    )


def _architectures(outcomes: Sequence[Outcome], compared: Compared | None) -> PaperRow:
    emulated = sorted({outcome.arch for outcome in outcomes if outcome.emulated})
    return PaperRow(
        figure="tuned P99, lower by",
        paper=_pair(lambda arch: "{}: {} ms ({} %)".format(*paper.TUNED_P99_LOWER[arch])),
        here=_pair(lambda arch: _lower(arch, _of_p99(compared))),
        why=(
            f"Than on the other architecture. {' and '.join(emulated)} is emulated here, so no "
            "difference is one of the architectures."
            if emulated
            else "Than on the other architecture. Machines and load are others than the paper's."
        ),
    )


def _of_p99(compared: Compared | None) -> tuple[Comparison, ...]:
    """Return the comparisons of P99, which the paper has."""
    comparisons = compared.comparisons if compared else ()
    return tuple(c for c in comparisons if c.sides[0].conditions.judged_by == "P99")


def _lower(arch: str, comparisons: Sequence[Comparison]) -> str:
    """Return the difference and the ratio in the workloads in which this side is lower."""
    parts: list[tuple[str, str]] = []
    tuned = [(c, c.tuned) for c in comparisons if c.tuned is not None]
    for comparison, contrast in tuned:
        here = [side.arch for side in comparison.sides].index(arch)
        apart, ratio = contrast.difference_ms, contrast.ratio
        if contrast.outcome == "not separated":
            parts.append((comparison.workload, "not separated"))
        elif (contrast.outcome == "higher") == (here == 0):
            by = (apart.value, apart.low, apart.high)
            ms = interval(*by) if here == 0 else interval(-by[0], -by[2], -by[1])
            times = ratio.value if here == 0 else 1 / ratio.value
            parts.append((comparison.workload, f"{ms} ms, {number(times)} times"))
    return _listed(parts) or ("in no workload" if tuned else NOT_MEASURED)


def _interval(ratio: Interval | None) -> str:
    return interval(ratio.value, ratio.low, ratio.high) if ratio else ""


def _pair(of: Callable[[str], str]) -> tuple[str, str]:
    return of("x86"), of("arm")


def _here(outcomes: Sequence[Outcome], describe: Callable[[Outcome], str]) -> tuple[str, str]:
    """Return our values by workload, for both architectures."""
    return _pair(
        lambda arch: (
            _listed(
                (o.workload, words) for o in outcomes if o.arch == arch and (words := describe(o))
            )
            or NOT_MEASURED
        )
    )


def _listed(items: Iterable[tuple[str, object]]) -> str:
    """Return such as: slt: 35; dlt: 60."""
    return "; ".join(f"{workload}: {words}" for workload, words in items)
