"""Figures: what can be read from their SVG."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import matplotlib as mpl
import pytest

from builders import trials as samples
from builders.trials import model_error, training
from intop.campaign.screen.figure import agreement, importance
from intop.campaign.search.figure import convergence, refinement
from intop.campaign.search.pareto_figure import front
from intop.campaign.search.tradeoff import (
    Front,
    FrontPoint,
    LearnedObjective,
    MeasuredPoint,
    Tradeoff,
)
from intop.campaign.train.figure import MOST_POINTS, components, predictions
from intop.document.drawing import INK, Drawing
from intop.document.figures import write_figures
from intop.domain.configuration import DEFAULT, Configuration
from intop.domain.ranking import Ranking, rank_agreement
from intop.domain.refined import BestKnown, Refined, RefineStep
from intop.domain.training import Ceiling, Components, HeldOut, ModelError
from intop.errors import IntopError

SVG = "{http://www.w3.org/2000/svg}"
HELD_OUT = tuple(
    HeldOut(measured=ms, predicted=1.1 * ms, low=0.8 * ms, high=1.5 * ms)
    for ms in (10.0, 20.0, 40.0, 80.0)
)


def error(family: str, held_out: tuple[HeldOut, ...] = HELD_OUT) -> ModelError:
    return model_error(family, 12.4, level=0.9, held_out=held_out)


BEST = BestKnown(configuration=DEFAULT, judged_ms=20.0, trials=1)
REFINED = Refined(
    before=BEST,
    collected=8,
    steps=tuple(
        RefineStep(
            number=n,
            reasons={"promise": 4},
            improvement=0.1,
            spent=4 * n,
            failures=0,
            best=replace(BEST, judged_ms=20.0 - 4 * n),
        )
        for n in (1, 2)
    ),
    ended="budget",
    budget=8,
    earlier=0,
    default_ms=90.0,
)
TRAINING = training(
    error("DNN"),
    error("SVR", HELD_OUT[:3]),
    error("RFR", ()),
    ceiling=Ceiling(mape=7.0, r2=0.9, spearman=0.9, sd=0.1, configurations=3),
)
FOUND = Components(
    trials=40,
    metrics=("log P99", "achieved rate", "balancer's CPU"),
    loadings=((0.9, -0.8, 0.1), (0.3, 0.2, 0.4), (0.2, 0.1, 0.3)),
    explained=(0.7, 0.22, 0.08),
    needed=2,
)


def ranking(*keys: str, chosen: int = 2) -> Ranking:
    ranked = (samples.importance(key, 0.5 / n) for n, key in enumerate(keys, start=1))
    return samples.ranking(*ranked, chosen=keys[:chosen], probe_level=0.2)


ONE, OTHER = ranking("a", "b", "c", "d"), ranking("b", "d", "a", "e")
BOTH = rank_agreement(("x86 slt", "x86 dlt"), ONE, OTHER)

SEARCH = samples.search(
    samples.run("RFR", 40.0, 25.0, 25.0, converged_at=1),
    samples.run("ensemble", 60.0, 30.0, 20.0, 20.0, converged_at=2, seconds=1.0),
)


def tradeoff(*names: str) -> Tradeoff:
    """Three points of a front beside two measured configurations and the default."""
    values = {"p99": (20.0, 30.0, 40.0), "cpu": (0.3, 0.2, 0.1), "throughput": (90.0, 95.0, 99.0)}
    rows = list(zip(*(values[name] for name in names), strict=True))
    message = [Configuration({"a.b": str(n)}) for n in range(3)]
    return Tradeoff(
        front=Front(
            objectives=tuple(
                LearnedObjective(
                    name=name,
                    mape=10.0,
                    r2=0.5,
                    spearman=0.5,
                    configurations=3,
                    measured_low=1.0,
                    measured_high=2.0,
                )
                for name in names
            ),
            points=tuple(
                FrontPoint(configuration=c, predicted=row)
                for c, row in zip(message, rows, strict=True)
            ),
            knee=1,
            default=FrontPoint(configuration=DEFAULT, predicted=rows[2]),
            generations=5,
            converged_at=2,
            seconds=0.5,
        ),
        measured=tuple(
            MeasuredPoint(configuration=c, measured=row)
            for c, row in zip((DEFAULT, *message[:2]), rows, strict=True)
        ),
        rate_rps=100.0,
    )


SHORT = tradeoff("p99", "cpu")


class Picture:
    """An SVG, taken apart."""

    def __init__(self, drawing: Drawing) -> None:
        self.name = f"figure-{drawing.name}"
        self.text = drawing.svg()
        self.root = ElementTree.fromstring(self.text)

    @property
    def words(self) -> list[str]:
        return ["".join(e.itertext()) for e in self.root.iter(f"{SVG}text")]

    def groups(self, name: str) -> list[ElementTree.Element]:
        """Those whose name begins so."""
        begin = f"{self.name}-{name}"
        return [e for e in self.root.iter(f"{SVG}g") if e.get("id", "").startswith(begin)]

    def count(self, group: str, kind: str = "use") -> int:
        (result,) = self.groups(group)
        return len(list(result.iter(f"{SVG}{kind}")))


@pytest.mark.parametrize(
    "draw",
    [
        lambda: predictions("x86 slt", TRAINING),
        lambda: importance("x86 slt", ONE),
        lambda: agreement("x86 slt and x86 dlt", BOTH),
        lambda: components("x86 slt", FOUND),
        lambda: convergence("x86 slt", SEARCH),
        lambda: front("x86 slt", tradeoff("p99", "cpu", "throughput")),
        lambda: refinement("x86 slt", REFINED),
    ],
    ids=[
        "predictions",
        "importance",
        "agreement",
        "components",
        "convergence",
        "front",
        "refinement",
    ],
)
def test_every_figure_can_stand_in_a_document(draw: Callable[[], Drawing]) -> None:
    drawing = draw()
    text = drawing.svg()
    with mpl.rc_context({"font.size": 30, "figure.facecolor": "red"}):  # as a matplotlibrc may
        assert text == draw().svg()
    picture = Picture(drawing)
    assert text.startswith("<svg")
    assert picture.name == picture.root.get("id")
    names = [e.get("id") for e in picture.root.iter() if e.get("id")]
    assert len(names) == len(set(names))
    title = picture.root.find(f"{SVG}title")
    assert title is not None
    assert drawing.title == title.text
    assert drawing.title in picture.words
    # No date, no picture of pixels, and ink that is dark on light and light on dark.
    assert not re.search(r"date>|20\d\d-\d\d-\d\d|<image", text)
    assert text.count(INK) == 1
    assert "prefers-color-scheme:dark" in text
    assert "fill: currentColor" in text
    in_page = drawing.page_svg("figure-1", drawing.title)
    assert not re.search(r"#[0-9a-f]{6}\b", in_page)
    assert ElementTree.fromstring(in_page).attrib["aria-label"] == drawing.title
    assert drawing.title not in "".join(ElementTree.fromstring(in_page).itertext())


# Predictions --------------------------------------------------------------------------------------


def test_every_family_has_a_panel_with_all_its_rows() -> None:
    picture = Picture(predictions("x86 slt", TRAINING))
    assert (picture.count("points-DNN"), picture.count("points-SVR")) == (4, 3)
    (intervals,) = picture.groups("intervals-DNN")
    (path,) = intervals.iter(f"{SVG}path")
    assert path.get("d", "").count("M") == 4
    assert {"DNN: MAPE 12 %", "SVR: MAPE 12 %", "measured P99 in ms"} <= set(picture.words)
    assert {"90 % interval", "mean error of a perfect model (7 %)"} <= set(picture.words)
    assert picture.groups("ceiling-DNN")
    assert not [word for word in picture.words if "RFR" in word]


def test_without_replicates_there_is_no_band() -> None:
    picture = Picture(predictions("x86 slt", replace(TRAINING, ceiling=None)))
    assert not picture.groups("ceiling-DNN")
    assert not [word for word in picture.words if "perfect" in word]


def test_a_wild_guess_is_drawn_at_the_edge() -> None:
    wild = (
        HeldOut(measured=15.0, predicted=float("inf"), low=0.0, high=float("inf")),
        HeldOut(measured=15.0, predicted=1e-30, low=0.0, high=1e9),
    )
    training = replace(TRAINING, errors=(error("DNN", (*HELD_OUT, *wild)),), unit="", target="$a$")
    picture = Picture(predictions("table", training))
    assert picture.count("points-DNN") == 6
    assert "measured $a$" in picture.words
    # Three times beyond what was measured is as far as it goes.
    assert not [word for word in picture.words if re.fullmatch(r"[0-9]{4,}|1e.*", word)]


def test_of_a_large_table_every_so_many_rows_are_drawn() -> None:
    many = replace(TRAINING, errors=(error("DNN", HELD_OUT * 300),))
    picture = Picture(predictions("table", many))
    assert MOST_POINTS >= picture.count("points-DNN") == 400
    assert [word for word in picture.words if "not seen in training (400 of 1200)" in word]


# Parameters ---------------------------------------------------------------------------------------


def test_a_ranking_has_a_bar_for_each_parameter_and_the_level_of_the_probes() -> None:
    picture = Picture(importance("x86 slt", ONE))
    assert (len(picture.groups("bar-")), len(picture.groups("bar-a"))) == (4, 1)
    assert len(picture.groups("probe-level")) == 1
    assert {"a", "b", "c", "d", "chosen", "not chosen"} <= set(picture.words)
    assert "not chosen" not in Picture(importance("x86 slt", ranking(*"abcd", chosen=4))).words


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("weight", [0.0, -0.02])
def test_parameters_of_no_or_less_use_are_drawn_too(weight: float) -> None:
    result = samples.ranking(*(samples.importance(key, weight) for key in "ab"), chosen="ab")
    assert len(Picture(importance("x86 slt", result)).groups("bar-")) == 2


def test_a_long_ranking_is_cut_and_says_so() -> None:
    picture = Picture(importance("x86 slt", ranking(*(f"key{n}" for n in range(100)))))
    assert len(picture.groups("bar-")) == 30
    assert [word for word in picture.words if "(not shown: 70 with less)" in word]


def test_two_rankings_are_joined_parameter_by_parameter() -> None:
    picture = Picture(agreement("x86 slt and x86 dlt", BOTH))
    assert len(BOTH.common) == len(picture.groups("joined-")) == 3
    assert {"a  1", "b  2", "d  3", "1  b", "2  d", "3  a"} <= set(picture.words)
    assert {"x86 slt", "x86 dlt", "chosen in one", "chosen in both"} <= set(picture.words)
    assert "chosen in neither" not in picture.words


# Components ---------------------------------------------------------------------------------------


def test_components_are_a_map_of_those_that_are_needed() -> None:
    picture = Picture(components("x86 slt", FOUND))
    assert {"log P99", "achieved rate", "balancer's CPU", "70 %", "22 %"} <= set(picture.words)
    assert {"+0.90", "-0.80", "+0.30"} <= set(picture.words)
    assert not {"8 %", "+0.20 "} & set(picture.words)
    assert picture.count("loadings", "path") == 6


# Refinement ---------------------------------------------------------------------------------------


def test_a_refinement_has_a_point_for_the_first_design_and_for_each_step() -> None:
    picture = Picture(refinement("x86 slt", REFINED))
    assert picture.count("best-known") == 3


# Files --------------------------------------------------------------------------------------------


# Searches -----------------------------------------------------------------------------------------


def test_each_model_has_a_line_that_is_marked_where_it_converged() -> None:
    picture = Picture(convergence("x86 slt", SEARCH))
    assert 1 == picture.count("run-RFR") == picture.count("run-ensemble")
    assert {"RFR: 1, 0.5 s", "ensemble: 2, 1.0 s", "best predicted P99 in ms"} <= set(picture.words)
    component = convergence("x86 slt", replace(SEARCH, objective="component"))
    assert "best predicted P99 equivalent in ms" in Picture(component).words


def test_a_front_stands_beside_what_was_measured() -> None:
    picture = Picture(front("x86 slt", SHORT))
    marks = {name: picture.count(f"{name}-p99-cpu") for name in ("front", "measured", "default")}
    assert marks == {"front": 3, "measured": 2, "default": 1}
    assert {"measured", "default, measured", "predicted front", "knee, predicted"} <= set(
        picture.words
    )
    assert {"P99 in ms", "balancer's CPU in %"} <= set(picture.words)


def test_three_objectives_have_a_panel_for_each_two() -> None:
    picture = Picture(front("x86 slt", tradeoff("p99", "cpu", "throughput")))
    pairs = ("p99-cpu", "p99-throughput", "cpu-throughput")
    assert [picture.count(f"front-{pair}") for pair in pairs] == [3, 3, 3]


def test_files_are_named_by_what_they_show(tmp_path: Path) -> None:
    results = {
        "x86 slt": replace(TRAINING, components=FOUND),
        "x86 dlt": replace(TRAINING, errors=(), components=Components(trials=3, metrics=())),
        "x86 slt and x86 dlt": BOTH,
        "arm slt": SEARCH,
        "arm dlt": tradeoff("p99", "cpu"),
        "x86 dlt refined": REFINED,
        "arm dlt refined": replace(REFINED, steps=()),
    }
    written = write_figures(tmp_path, "svg", results)
    assert [path.name for path in written] == [
        "x86-slt-predictions.svg",
        "x86-slt-components.svg",
        "x86-slt-and-x86-dlt-agreement.svg",
        "arm-slt-convergence.svg",
        "arm-dlt-front-p99-cpu.svg",
        "x86-dlt-refined-refinement.svg",
    ]
    assert predictions("x86 slt", TRAINING).svg() == next(iter(written)).read_text()
    (png,) = write_figures(tmp_path, "png", {"arm slt": ONE})
    assert png.read_bytes().startswith(b"\x89PNG")
    assert importance("arm slt", ONE).png() == png.read_bytes()


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(IntopError, match=r"figure can't be written: .*nowhere"):
        write_figures(tmp_path / "nowhere", "svg", {"arm slt": ONE})


@pytest.mark.parametrize(
    ("draw", "output"),
    [
        (lambda: predictions("x", replace(TRAINING, errors=())), "no family has predictions"),
        (lambda: importance("x", ranking()), "no parameters"),
        (lambda: convergence("x", replace(SEARCH, convergences=())), "no generations"),
        (
            lambda: front("x", replace(SHORT, front=replace(SHORT.front, points=()))),
            "no points",
        ),
        (lambda: refinement("x", replace(REFINED, steps=())), "no steps"),
        (lambda: components("x", Components(trials=3, metrics=())), "no components of 3 trials"),
        (
            lambda: agreement("x", rank_agreement(("a", "b"), ranking("a"), ranking("b"))),
            "no parameter in common",
        ),
    ],
)
def test_what_is_not_there_cannot_be_drawn(draw: Callable[[], Drawing], output: str) -> None:
    with pytest.raises(ValueError, match=output):
        draw()
