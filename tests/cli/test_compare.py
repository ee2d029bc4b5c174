"""compare as it is typed: sides, campaigns over time, and what is no comparison."""

import json
from pathlib import Path

import pytest

from builders.full_campaign import campaign
from intop.cli import cli
from intop.errors import UsageError


@pytest.fixture(scope="module", name="study")
def _study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two campaigns of both architectures, the latter one without verdicts."""
    folder = tmp_path_factory.mktemp("study")
    campaign(folder)
    return campaign(folder, rest=False)


def intop(*words: object) -> None:
    cli.main([str(word) for word in words], standalone_mode=False)


def test_two_campaigns_stand_side_by_side(study: Path, capsys: pytest.CaptureFixture[str]) -> None:
    intop("compare", "campaign:1,x86", "campaign:2,x86", "-c", study)
    out = capsys.readouterr().out
    assert "campaign:1,x86 and campaign:2,x86: measured P99 in ms" in out
    assert "campaign:1,x86 is x86 in campaign 1 of made-up" in out
    assert "The paper's figures" not in out
    assert "Warning" not in out
    intop("compare", "x86", "arm", "-c", study)
    assert "The paper's figures" in capsys.readouterr().out


def test_the_page_says_which_campaigns_and_how_to_make_it_again(
    study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    sides = "campaign:1,x86", "campaign:2,x86"
    intop("compare", *sides, "-c", study, "--markdown", "-o", "a.md", "--figures", "images")
    page = Path("a.md").read_text()
    assert page.startswith("# campaign:1,x86 and campaign:2,x86, side by side\n\nTwo sides of a")
    assert "campaign:2,x86 is x86 in campaign 2 of the study made-up" in page
    assert "`intop compare campaign:1,x86 campaign:2,x86 --markdown`" in page
    assert "| architecture | x86 | x86 |\n| campaign | 1 of made-up | 2 of made-up |" in page
    assert "(images/campaign-1-x86-and-campaign-2-x86-p99.svg)" in page


def test_json_says_what_sides_were_chosen_by(
    study: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    intop("compare", "campaign:1,x86", "campaign:2,x86", "-c", study, "--json")
    result = json.loads(capsys.readouterr().out)
    assert result["chosen_by"] == ["campaign"]
    assert [about["campaign"] for about in result["provenance"]] == [1, 2]
    (one,) = result["comparisons"]
    assert [side["name"] for side in one["sides"]] == ["campaign:1,x86", "campaign:2,x86"]


def test_over_time_each_campaign_has_its_row_and_a_figure_is_drawn(
    study: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    intop("compare", "--over-time", "-c", study, "--figures", tmp_path)
    out = capsys.readouterr().out
    assert "x86 slt over time: P99 in ms by campaign of made-up" in out
    assert "arm slt over time" in out
    assert {p.name for p in tmp_path.iterdir()} == {
        "x86-slt-over-time.svg",
        "arm-slt-over-time.svg",
    }
    intop("compare", "--over-time", "x86", "-c", study, "--json")
    (one,) = json.loads(capsys.readouterr().out)
    assert [moment["campaign"] for moment in one["moments"]] == [1, 2]
    assert "outcome" in one["steps"][0]["default"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "two sides are compared, not 0. Run such as: intop compare x86 arm"),
        (("x86",), "two sides are compared, not 1"),
        (("x86", "arm", "x86"), "two sides are compared, not 3"),
        (("--over-time", "x86", "arm"), "--over-time is about one side, or all"),
        (("--over-time", "--force"), "--over-time has neither --markdown nor --force"),
        (("--over-time", "--markdown"), "--over-time has neither --markdown nor --force"),
        (("x86", "arm", "--json", "--markdown"), "--json and --markdown exclude each other"),
        (("x86", "arm", "-o", "a.md"), "--output is for the page of --markdown"),
    ],
)
def test_what_can_not_be_asked_for_is_said(
    study: Path, words: tuple[str, ...], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        intop("compare", *words, "-c", study)
