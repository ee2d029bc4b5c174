"""Figures in an HTML page: any of them, by its text and marks."""

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from xml.etree import ElementTree

import pytest

from builders.results import COSTLY, DOUBTED, MEASURED, MODELS, PROVENANCE, VERDICT
from builders.trials import CONDITIONS, model_error, training, trial
from intop.campaign.collect.figure import default_drift
from intop.campaign.train.bars import errors, generations, search_time
from intop.campaign.verify.percentiles_figure import percentiles
from intop.campaign.verify.speedup_figure import architectures, speedup
from intop.document.drawing import Drawing
from intop.document.figures import write_figures
from intop.domain.comparison import Compared, Comparison, Contrast, Converged, Latency, Side
from intop.domain.drift import sentinels
from intop.domain.histogram import Histogram
from intop.domain.sides import Latencies
from intop.domain.stats import Interval
from intop.domain.training import Ceiling

SVG = "{http://www.w3.org/2000/svg}"
BEGINNING = datetime(2026, 11, 21, 9, 0, tzinfo=UTC)


def requests(*slow_us: int) -> Histogram:
    """970 quick ones, and ten of each slow one."""
    return Histogram.from_pairs([(1000, 970), *((us, 10) for us in slow_us)])


LATENCIES = Latencies(
    default=(requests(20_000, 90_000, 100_000), requests(30_000, 110_000, 200_000)),
    tuned=(requests(2000, 9000, 10_000), requests(3000, 11_000, 20_000)),
)
DEFAULTS = [
    replace(
        trial(p99_us=1000 + 7 * n),
        started_at=(BEGINNING + timedelta(minutes=3 * n)).isoformat(),
        replica=f"lb-{n % 2 + 1}",
    )
    for n in range(8)
]
SENTINELS = sentinels(DEFAULTS, level=0.95)
WORSE = replace(VERDICT, ratio=0.5, ratio_low=0.4, ratio_high=0.6)
TRAINING = training(
    model_error("RFR", 40.0),
    model_error("SVR", 55.0),
    model_error("DNN", float("inf")),
    ceiling=Ceiling(mape=31.0, r2=0.9, spearman=0.9, sd=0.1, configurations=3),
)


def side(arch: str, default: float, tuned: float | None) -> Side:
    def latency(value: float) -> Latency:
        return Latency(mean_ms=Interval(value, 0.8 * value, 1.2 * value), trials_ms=(value,))

    return Side(
        name=arch,
        arch=arch,
        conditions=replace(CONDITIONS, arch=arch, emulation="" if arch == "x86" else "TCG"),
        trials=9,
        measured=MEASURED,
        default=latency(default),
        tuned=None if tuned is None else latency(tuned),
        verdict=None if tuned is None else VERDICT,
        ranking=None,
        training=TRAINING,
        convergences=(Converged(model="XGBoost", generations=35, seconds=0.5),),
    )


def comparison(*sides: Side) -> Compared:
    one, other = sides
    result = Comparison(
        workload="slt",
        level=0.95,
        sides=(one, other),
        default=Contrast(difference_ms=Interval(1, 0, 2), ratio=Interval(2.0, 1.5, 2.5)),
        tuned=None,
        rank_agreement=None,
        parameters=(),
        values=(),
        differences=(),
        warnings=(),
    )
    return Compared(comparisons=(result,), missing=(), provenance=(PROVENANCE, PROVENANCE))


COMPARED = comparison(side("x86", 100.0, 20.0), side("arm", 300.0, None))


SEARCHES = {
    "x86 slt": (
        Converged(model="XGBoost", generations=35, seconds=0.5),
        Converged(model="ensemble", generations=7, seconds=120.0),
    ),
    "arm slt": (Converged(model="XGBoost", generations=23, seconds=1.0),),
}


def speedups() -> Drawing:
    return speedup("x86 and arm", {"x86 slt": VERDICT, "arm slt": WORSE})


def words(drawn_svg: str) -> list[str]:
    return ["".join(e.itertext()) for e in ElementTree.fromstring(drawn_svg).iter(f"{SVG}text")]


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (
            lambda: percentiles("x86 slt", LATENCIES),
            {"P50", "P90", "P99", "default 100 ms", "tuned 10 ms", "default max 200 ms"},
        ),
        (
            lambda: default_drift("x86 slt", SENTINELS),
            {"measured on lb-1", "measured on lb-2", "P99 of the default in ms"},
        ),
        (speedups, {"x86 slt", "3.10 (2.20 to 4.40)", "gain", "worse", "arm slt"}),
        (
            lambda: speedup("x86", {"x86 slt": DOUBTED, "x86 dlt": COSTLY}),
            {"gain, but", "no gain: it costs"},
        ),
        (
            lambda: architectures("x86 and arm", COMPARED),
            {"x86 slt", "arm slt (emulated)", "100 → 20 ms", "300 ms", "default", "tuned"},
        ),
        (
            lambda: errors("x86", {"x86 slt": TRAINING}),
            {"RFR", "40 %", "without bounds", "x86 slt: noise ceiling 31 % (dashed)"},
        ),
        (
            lambda: speedup("x86", {"x86 slt": replace(VERDICT, models=MODELS)}),
            {"x86 slt, mean of 2 models", "3.00 (1.80 to 5.00)", "x86 slt, best: XGBoost"},
        ),
        (
            lambda: generations("x86 and arm", SEARCHES),
            {"x86 slt", "arm slt", "XGBoost", "35", "ensemble", "7"},
        ),
        (lambda: search_time("x86 and arm", SEARCHES), {"arm slt", "0.50 s", "120 s"}),
    ],
    ids=[
        *("percentiles", "drift", "speedup", "guardrails", "architectures", "errors", "models"),
        "generations",
        "search-time",
    ],
)
def test_a_figure_has_its_words_in_a_page_and_in_a_file(
    draw: Callable[[], Drawing], message: set[str]
) -> None:
    drawing = draw()
    assert message <= set(words(drawing.page_svg("figure-1", "a figure")))
    in_file = words(drawing.svg())
    assert message | {drawing.title} <= set(in_file)


def test_a_figure_of_a_page_has_the_pages_colours_and_a_label() -> None:
    text = percentiles("x86 slt", LATENCIES).page_svg("figure-1", 'a "b" <c> & d')
    assert percentiles("x86 slt", LATENCIES).page_svg("figure-1", 'a "b" <c> & d') == text
    root = ElementTree.fromstring(text)
    assert (root.attrib["role"], root.attrib["aria-label"]) == ("img", 'a "b" <c> & d')
    assert set(re.findall(r"var\(([\w-]+)\)", text)) == {"--series-1", "--series-2"}
    assert not re.search(r"#[0-9a-f]{6}\b|<metadata|<title|<\?|<!", text)
    # Style rules hold for all of a page, so they name the figure.
    assert re.findall(r"([^{}<>]+)\{", text) == ["#figure-1 *"]


def test_figures_of_a_page_have_no_id_in_common() -> None:
    texts = [speedups().page_svg(f"figure-{n}", "a label") for n in (1, 2)]
    one, other = (re.findall(r' id="([^"]+)', text) for text in texts)
    assert len(one) == len(set(one))
    assert not set(one) & set(other)
    for text, ids in zip(texts, (one, other), strict=True):
        assert set(re.findall(r'(?:url\(|href=")#([\w.-]+)', text)) <= set(ids)


def test_every_band_and_line_is_there() -> None:
    def parts(drawing: Drawing) -> set[str]:
        result = re.findall(rf'id="figure-{drawing.name}-([a-z]+-[\w-]*[a-z0-9])"', drawing.svg())
        return set(result)

    wanted = {"side-default", "side-tuned", "trials-default", "trials-tuned"}
    assert wanted <= parts(percentiles("x86 slt", LATENCIES))
    one_trial = Latencies(default=LATENCIES.default[:1], tuned=LATENCIES.tuned[:1])
    assert not {"trials-default", "trials-tuned"} & parts(percentiles("x86 slt", one_trial))


@pytest.mark.parametrize(
    ("requests_of_a_side", "message"),
    [(4, set()), (100, {"P50", "P90"}), (10_000, {"P50", "P90", "P99", "P99.9"})],
)
def test_a_percentile_with_fewer_than_ten_slower_requests_is_not_drawn(
    requests_of_a_side: int, message: set[str]
) -> None:
    trials = (Histogram.from_pairs([(1500, requests_of_a_side // 2)]),) * 2
    seen = set(words(percentiles("x", Latencies(default=trials, tuned=trials)).svg()))
    assert message == {word for word in seen if re.fullmatch(r"P[\d.]+", word)}
    assert ("default 1.5 ms" in seen) == ("P99" in message)
    assert {w for w in seen if w.startswith(("default max", "tuned max"))}


def test_files_are_named_by_what_they_show(tmp_path: Any) -> None:
    result = {"x86 slt": (VERDICT, LATENCIES), "x86 and arm": COMPARED, "arm slt": (VERDICT, None)}
    assert [path.name for path in write_figures(tmp_path, "svg", result)] == [
        "x86-slt-percentiles.svg",
        "x86-and-arm-speed-up.svg",
        "x86-and-arm-p99.svg",
        "x86-and-arm-errors.svg",
        "x86-and-arm-generations.svg",
        "x86-and-arm-search-time.svg",
    ]


@pytest.mark.parametrize(
    ("draw", "output"),
    [
        (lambda: percentiles("x", Latencies(default=(), tuned=())), "no requests"),
        (lambda: default_drift("x", sentinels([], level=0.95)), "no trials of the default"),
        (lambda: speedup("x", {}), "no verdicts"),
        (lambda: architectures("x", replace(COMPARED, comparisons=())), "nothing is compared"),
        (lambda: errors("x", {"x86 slt": replace(TRAINING, errors=())}), "no training has errors"),
        (lambda: generations("x", {"x86 slt": ()}), "there are no bars"),
        (lambda: search_time("x", {}), "there are no bars"),
    ],
)
def test_what_is_not_there_cannot_be_drawn(draw: Callable[[], Drawing], output: str) -> None:
    with pytest.raises(ValueError, match=output):
        draw()
