"""Components of the performance metrics as text in a file."""

from dataclasses import replace

import pytest

from builders import trials as samples
from intop.campaign.search.view import search
from intop.campaign.train.view import components, trained
from intop.domain.training import Components
from kit.golden import Golden
from kit.printed import cells, shown

pytestmark = pytest.mark.usefixtures("a_narrow_file")
FOUND = Components(
    trials=40,
    metrics=("log P99", "achieved rate", "balancer's CPU"),
    loadings=((0.9, -0.8, 0.1), (0.3, 0.2, 0.4), (0.2, 0.1, 0.3)),
    explained=(0.7, 0.22, 0.08),
    needed=2,
    groups=(("log P99", "achieved rate"),),
    together=0.8,
    constant=("error share",),
)


def test_components_are_told_by_what_they_are_made_of(
    capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    out = shown(capsys, components("x86 slt", FOUND))
    golden(out)
    assert cells(out, "log P99  ") == ["log", "P99", "+0.90", "+0.30"]
    assert cells(out, "share of") == ["share", "of", "variance", "70%", "22%"]


def test_an_objective_that_is_no_p99_is_told(
    capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    golden(shown(capsys, components("x86 slt", replace(FOUND, groups=()), "component")))


def test_a_search_for_it_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    p99 = samples.search()
    assert "best predicted P99 " in shown(capsys, search("x86 slt", p99))
    result = replace(p99, objective="component")
    assert "best predicted P99 equivalent" in shown(capsys, search("x86 slt", result))


def test_where_there_are_none_it_says_why(capsys: pytest.CaptureFixture[str]) -> None:
    none = Components(trials=9, metrics=("log P99", "log max"))
    out = shown(capsys, components("x86 slt", none))
    assert "can't be told from 9 trials with 2 metrics that vary" in out


def test_a_training_has_them_below_its_errors(capsys: pytest.CaptureFixture[str]) -> None:
    training = samples.training(components=FOUND)
    out = shown(capsys, trained("x86 slt", training))
    assert out.index("error of the models") < out.index("principal components")
    before = shown(capsys, trained("x86 slt", replace(training, components=None)))
    assert "principal components" not in before
