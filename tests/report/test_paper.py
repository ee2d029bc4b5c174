"""The paper's figures beside ours."""

from dataclasses import replace

import pytest

from builders import results as findings
from builders.comparisons import ARM, X86, compared, comparison, training
from intop.domain.comparison import Compared, Contrast, Converged
from intop.domain.stats import Interval
from intop.domain.training import TREE_MODELS, Ceiling
from intop.report import paper
from intop.report import published as figures

JUDGED = replace(findings.VERDICT, models=findings.MODELS)
MEASURED = replace(
    X86,
    verdict=JUDGED,
    training=replace(
        training(RFR=40, XGBoost=33, SVR=float("inf")),
        ceiling=Ceiling(mape=31, r2=0.9, spearman=0.9, sd=0.1, configurations=3),
    ),
    convergences=(
        Converged(model="RFR", generations=29, seconds=0.5),
        Converged(model="XGBoost", generations=7, seconds=12.0),
        Converged(model="LightGBM", generations=11, seconds=90.0),
        Converged(model="ensemble", generations=99, seconds=1.0),
    ),
)
BARE = replace(ARM, verdict=None, training=None, convergences=(), tuned=None)


def rows(result: Compared) -> dict[str, paper.PaperRow]:
    return {row.figure: row for row in paper.paper_rows(paper.outcomes(result), result)}


def both() -> Compared:
    dlt = replace(MEASURED, convergences=(Converged(model="XGBoost", generations=60, seconds=1),))
    return compared(
        comparison(sides=(MEASURED, BARE), tuned=None),
        comparison(workload="dlt", sides=(dlt, BARE), tuned=None),
    )


def test_every_headline_figure_of_the_paper_is_there() -> None:
    made = rows(both())
    assert made["model error, XGBoost"].paper == ("16 %", "15 %")
    assert made["model error, SVR"].paper == ("26 %", "22 %")
    tree = "generations, four tree models"
    assert made[tree].paper == ("34 to 77", "22 to 54")
    xgboost = made["generations, XGBoost"]
    assert xgboost.paper == ("slt: 35; dlt: 60", "slt: 23; dlt: 44")
    lightgbm = made["search time, LightGBM"]
    assert lightgbm.paper == ("slt: 4 min; dlt: 4 min", "slt: 2 min; dlt: 12 min")
    assert made["speed-up, mean over the models"].paper == ("3.8", "3.3")
    assert made["speed-up, best of the models"].paper == ("22", "12")
    lower = made["tuned P99, lower by"]
    assert lower.paper == ("dlt: 515 ms (287 %)", "slt: 220 ms (60 %)")
    assert set(TREE_MODELS) < set(figures.ERRORS)
    assert all(row.why for row in made.values())


def test_ours_are_by_workload_and_what_is_not_measured_says_so() -> None:
    made = rows(both())
    assert made["model error, XGBoost"].here == ("slt: 33 %; dlt: 33 %", "not measured")
    assert made["model error, SVR"].here[0] == "slt: without bounds; dlt: without bounds"
    assert made["model error, DNN"].here[0] == "not measured"
    assert "noise alone makes x86 slt 31 %, x86 dlt 31 %" in made["model error, XGBoost"].why
    tree = "generations, four tree models"
    assert made[tree].here == ("7 to 60", "not measured")  # without the ensemble
    assert made["generations, XGBoost"].here[0] == "slt: 7; dlt: 60"
    assert made["search time, LightGBM"].here[0] == "slt: 90.0 s"
    mean = made["speed-up, mean over the models"].here[0]
    assert mean == "slt: 3.00 (1.80 to 5.00); dlt: 3.00 (1.80 to 5.00)"
    best = made["speed-up, best of the models"]
    assert best.here[0].startswith("slt: 4.50 (2.50 to 8.10), XGBoost; dlt:")
    assert "flattered by luck; ours is of 3 rounds." in best.why
    verdict = made["speed-up, verdict in fresh pairs"].here
    assert verdict[0].startswith("slt: 3.10 (2.20 to 4.40), gain; dlt:")
    assert verdict[1] == "not measured"


CONTRAST = Contrast(difference_ms=Interval(20, 10, 30), ratio=Interval(2.0, 1.5, 2.5))


@pytest.mark.parametrize(
    ("tuned", "here"),
    [
        (CONTRAST, ("slt: 20.0 (10.0 to 30.0) ms, 2.00 times", "in no workload")),
        (
            Contrast(difference_ms=Interval(-20, -30, -10), ratio=Interval(0.5, 0.4, 0.6)),
            ("in no workload", "slt: 20.0 (10.0 to 30.0) ms, 2.00 times"),
        ),
        (replace(CONTRAST, ratio=Interval(1.1, 0.9, 1.3)), ("slt: not separated",) * 2),
        (None, ("not measured",) * 2),
    ],
)
def test_the_lower_architecture_has_the_difference(
    tuned: Contrast | None, here: tuple[str, str]
) -> None:
    made = rows(compared(comparison(tuned=tuned)))
    assert here == made["tuned P99, lower by"].here


def test_an_emulated_side_is_why_architectures_can_not_be_told_apart() -> None:
    guest = replace(ARM, conditions=replace(ARM.conditions, emulation="TCG"))
    lower = "tuned P99, lower by"
    assert "arm is emulated here" in rows(compared(comparison(sides=(X86, guest))))[lower].why
    assert "emulated" not in rows(compared())[lower].why


def test_one_architecture_alone_has_its_table() -> None:
    (x86, _) = paper.outcomes(compared(comparison(sides=(MEASURED, BARE), tuned=None)))
    made = paper.paper_rows([x86], None)
    assert {row.here[1] for row in made} == {"not measured"}
    assert len(paper.COLUMNS) == len(made[0].cells)
