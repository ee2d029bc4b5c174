"""An explanation as text and as figures."""

from dataclasses import replace
from pathlib import Path

import pytest

from builders.results import VERDICT
from intop.document.figures import write_figures
from intop.document.text import show
from intop.domain.configuration import Configuration
from intop.domain.explanation import (
    Contribution,
    Dependence,
    Explanation,
    Interaction,
    Kept,
    Offer,
    Point,
)
from intop.domain.stats import Interval
from intop.explain.figure import dependence
from intop.explain.view import explanation, sentence, smallest
from intop.sentences import kept_sentence
from kit.golden import Golden

ONE, OTHER = "net.core.somaxconn", "net.ipv4.tcp_rmem"
RATIO = Interval(3.1, 2.2, 4.4)
KEPT = Kept(share=0.97, low=0.8, high=1.14, full=RATIO, smaller=RATIO, rounds=16)
FOUND = Explanation(
    winner=Configuration({ONE: "64", OTHER: "1 2 3", "net.core.a": "0"}),
    minimal=Configuration({ONE: "64"}),
    contributions=(
        Contribution(
            keys=(ONE,), before=("4096",), after=("64",), left_out=RATIO, alone=RATIO, missed=RATIO
        ),
        Contribution(keys=(OTHER,), before=("3 4 5",), after=("1 2 3",), dropped="no use"),
    ),
    interactions=(Interaction(first=ONE, second=OTHER, ratio=Interval(0.5, 0.2, 1.3)),),
    same=("net.core.a",),
    verdict=VERDICT,
    kept=KEPT,
    offer=None,
    level=0.95,
    trials=200,
    curves=(
        Dependence(
            name=ONE,
            scale="log",
            predicted=(Point(value=64.0, judged_ms=10.0), Point(value=4096.0, judged_ms=31.0)),
            measured=(Point(value=64.0, judged_ms=11.0),),
            elsewhere=(Point(value=512.0, judged_ms=20.0),),
        ),
        Dependence(
            name="net.ipv4.tcp_congestion_control",
            scale="choice",
            predicted=(Point(value="cubic", judged_ms=10.0), Point(value="reno", judged_ms=31.0)),
            measured=(Point(value="reno", judged_ms=11.0),),
            elsewhere=(Point(value="bbr", judged_ms=20.0),),
        ),
    ),
)


def test_the_text_has_each_change_and_what_is_left(
    capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    show(explanation("x86 slt", FOUND))
    message = capsys.readouterr().out
    golden(message)
    assert smallest(FOUND) == f"smallest set: {ONE} ({sentence(FOUND)}, 97 % of the gain)"


def test_more_keys_than_are_wanted_are_told_with_the_best_few(
    capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    poor = replace(KEPT, share=0.6, high=0.8)
    offer = Offer(configuration=Configuration({ONE: "63"}), kept=poor)
    show(explanation("x86 slt", replace(FOUND, offer=offer, without_curves="no curves: type this")))
    message = capsys.readouterr().out
    golden(message)


def test_a_set_that_keeps_too_little_is_not_what_leaves(
    capsys: pytest.CaptureFixture[str],
) -> None:
    show(explanation("x86 slt", FOUND))
    assert "leaves the campaign" not in capsys.readouterr().out
    assert "winner" not in smallest(FOUND)
    poor = replace(FOUND, kept=replace(KEPT, share=0.7, high=0.83))
    show(explanation("x86 slt", poor))
    message = " ".join(capsys.readouterr().out.split())
    assert (
        "leaves the campaign is the whole winner: the smallest set keeps clearly less than 90%"
        in message
    )
    assert (
        "so the whole winner is deployed: the smallest set keeps clearly less than 90%"
        in smallest(poor)
    )


def test_a_share_of_no_gain_is_not_told() -> None:
    none = replace(KEPT, share=float("nan"), full=Interval(0.9, 0.8, 1.0))
    assert "can't be told" in kept_sentence(none, "P99")


def test_the_figures_say_what_is_predicted_and_what_is_measured(tmp_path: Path) -> None:
    written = write_figures(tmp_path, "svg", {"x86 slt": FOUND})
    assert [p.name for p in written] == ["x86-slt-contributions.svg", "x86-slt-dependence.svg"]
    bars, curves = (path.read_text() for path in written)
    assert f"{ONE} (kept)" in bars
    for words in ("(predicted)", "winner, with and without (measured)", "cubic", ONE):
        assert words in curves


def test_without_curves_there_is_no_figure_of_them() -> None:
    with pytest.raises(ValueError, match="no curves"):
        dependence("x86 slt", replace(FOUND, curves=()))
