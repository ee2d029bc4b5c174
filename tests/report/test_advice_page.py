"""The page of advice: what stands in it, as HTML in a real browser, and as other forms."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from builders.full_campaign import HOSTILE, ONE, OTHER, campaign
from intop.cli import cli
from intop.document.columns import Link
from intop.document.html import html
from intop.document.markdown import as_page
from intop.document.model import Notes, Paragraph, Section
from intop.domain.stats import Interval
from intop.errors import ResultMissingError, UsageError
from intop.report.advice import Advice, JudgedSet
from intop.report.advice_figure import MOST_ROWS, effects, shown_rows
from intop.report.advice_page import document
from intop.report.gathered_advice import advice, gather_advice
from kit.browser import Browser, chromium
from kit.golden import Golden


@pytest.fixture(scope="module", name="study")
def _study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return campaign(tmp_path_factory.mktemp("study"))


@pytest.fixture(scope="module", name="result")
def _found(study: Path) -> Advice:
    return gather_advice([str(study.with_name("made-up.db"))])


def section(result: Advice, name: str) -> Section:
    (one,) = [s for s in document(result).sections if s.name == name]
    return one


def told(result: Advice, name: str) -> str:
    """The sentences of a section."""
    lines: list[str] = []
    for block in section(result, name).blocks:
        if isinstance(block, Paragraph):
            lines.append(f"{block.lead} {block.text} {block.command}")
        elif isinstance(block, Notes):
            lines += block.lines
    return "\n".join(lines)


def test_it_says_first_what_helped_and_what_is_not_known(result: Advice, golden: Golden) -> None:
    x86, arm, chance = told(result, "found").splitlines()
    assert x86.startswith("Situation 1 (x86 slt, made-up): 1 gain in 1 verdict. By itself lowered")
    golden(x86)
    assert arm.startswith("Situation 2 (arm slt, made-up): 0 gains in 1 verdict.")
    assert "Of 2 changes in winners, the own part was not measured" in arm
    golden(chance)


def test_what_several_campaigns_found_is_counted_and_what_hurt_is_said(
    result: Advice, golden: Golden
) -> None:
    first, *others = result.changes
    (one,) = first.evidence
    bad = Interval(0.5, 0.4, 0.6)
    worse = replace(one, judged=bad, alone=None, left_out=None, missed=bad)
    mixed = replace(first, evidence=(one, worse, worse))
    text = told(replace(result, changes=(mixed, *others)), "found")
    golden(text)


def test_a_change_that_helps_only_beside_others_is_said_to_be_so(
    result: Advice, golden: Golden
) -> None:
    first, *others = result.changes
    one = replace(first.evidence[0], judged=None, alone=Interval(1, 0.9, 1.1))
    text = told(replace(result, changes=(replace(first, evidence=(one,)), *others)), "found")
    golden(text)


def test_every_campaigns_name_leads_to_its_trials(result: Advice) -> None:
    made = document(result)
    tables = {table.name: table for table in made.tables()}
    links = [c for t in tables.values() for row in t.rows for c in row if isinstance(c, Link)]
    assert {link.table for link in links} == {"trials-1", "trials-2"}
    page = html(made)
    for link in links:
        assert f'<a href="#table-{link.table}">{link.text}</a>' in page
        assert f'<table id="table-{link.table}">' in page
    assert len(tables) == len([*made.tables()])
    assert len(tables["trials-1"].rows) == 10


def test_what_differs_between_situations_is_told_and_what_does_not_is_left_out(
    result: Advice,
) -> None:
    names = [c.name for t in document(result).tables() if t.name == "situations" for c in t.columns]
    assert {"architecture", "kernel", "CPU", "link", "workload", "requests/s asked"} < set(names)
    assert "emulated by" not in names
    one, other = result.situations
    guest = replace(other, conditions=replace(other.conditions, emulation="TCG on x86_64"))
    changed = replace(result, situations=(one, guest))
    assert "TCG on x86_64" in html(document(changed))
    assert "Emulated: situation 2." in told(changed, "limits")


def test_nothing_general_is_claimed(result: Advice) -> None:
    assert "Nothing here is general wisdom" in told(result, "limits")
    assert {table.origin for table in document(result).tables()} == {"measured", ""}


def test_a_store_of_contests_only_has_sets_and_no_verdicts(result: Advice) -> None:
    one = JudgedSet(
        source=result.verdicts[0].source,
        situation=1,
        name="web",
        title="hand-tuned",
        keys=9,
        reference="default",
        ratio=None,
        outcome="failed",
    )
    contests = replace(result, verdicts=(), changes=(), intervals=0, sets=(one,))
    assert "No verdict, only contests." in told(contests, "found")
    assert "There is no verdict yet. Make one with intop tune" in told(contests, "verdicts")
    assert "No verdict has changed a key" in told(contests, "changes")
    page = html(document(contests))
    assert "hand-tuned" in page
    assert "evidence" not in {s.name for s in document(contests).sections}


def test_the_figure_shows_what_says_most_and_no_more_than_fits(result: Advice) -> None:
    svg = effects(result).svg()
    assert f"{ONE} lowered" in svg
    assert OTHER not in svg  # of which nothing was measured
    first = result.changes[0]
    one = first.evidence[0]
    bare = replace(one, judged=None, left_out=None, missed=None, alone=Interval(1, 0.001, 1e9))
    many = replace(result, changes=(replace(first, evidence=(bare,) * 40 + (one,)),))
    assert len(shown_rows(many)) == MOST_ROWS
    assert one in [e for _, e in shown_rows(many)]
    assert effects(many).svg()
    with pytest.raises(ValueError, match="no change was measured"):
        effects(advice(()))


def test_as_markdown_it_has_the_same_words_and_no_links(result: Advice) -> None:
    text = as_page(document(result))
    assert text.startswith("# What the verdicts say of each key\n\n2 verdicts of 1 campaign, begun")
    assert "| made-up 1, x86 slt |" in text
    assert not set("\u202e\x1b") & set(text)


# In Chromium --------------------------------------------------------------------------------------


@pytest.fixture(scope="module", name="browser")
def _browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with chromium(tmp_path_factory.mktemp("profile")) as browser:
        yield browser


@pytest.mark.parametrize("width", [1280, 390])
def test_it_opens_without_errors_and_a_link_opens_the_trials(
    browser: Browser, result: Advice, tmp_path: Path, width: int
) -> None:
    path = tmp_path / "advice.html"
    path.write_text(html(document(result)), encoding="utf-8")
    page = browser.open(path, width=width)
    seen = page.seen()
    assert seen.errors == []
    assert [path.as_uri()] == [url for url in seen.requests if not url.startswith("data:")]
    wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert page.evaluate(wide) == 0
    page.evaluate("document.querySelector('td a').click()")
    # The folded section opens once the page has gone there.
    is_open = "document.querySelector(location.hash).closest('details').open"
    assert page.evaluate(
        f"(async () => {{ for (let n = 0; n < 300 && !{is_open}; n++) "
        f"await new Promise(done => setTimeout(done, 100)); return {is_open} }})()"
    )
    assert page.evaluate(wide) == 0


# The command --------------------------------------------------------------------------------------


def intop(*words: object) -> None:
    cli.main([str(word) for word in words], standalone_mode=False)


def test_the_command_writes_a_page_tables_or_markdown(
    study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    intop("report", "--advice", "-c", study, "--csv", "tables")
    assert "written: intop-advice.html (" in capsys.readouterr().err
    page = Path("intop-advice.html").read_text(encoding="utf-8")
    assert page.startswith("<!DOCTYPE html>")
    assert HOSTILE not in page
    assert "made-up 1, x86 slt" in Path("tables/evidence.csv").read_text()
    intop("report", "--advice", "--store", study.with_name("made-up.db"), "-o", "advice.md")
    assert Path("advice.md").read_text().startswith("# What the verdicts say")
    intop("report", "-c", study, "-o", "REPORT.MD")
    assert Path("REPORT.MD").read_text().startswith("# Kernel parameters")


def test_json_has_counts_and_outcomes(study: Path, capsys: pytest.CaptureFixture[str]) -> None:
    intop("report", "--advice", "-c", study, "--arch", "x86", "--json")
    result = json.loads(capsys.readouterr().out)
    first = result["changes"][0]
    assert (first["keys"], first["winners"], first["gains"]) == ([ONE], 1, 1)
    assert first["by_itself"]["helped"] == 1
    assert first["evidence"][0]["outcome_by_itself"] == "helped"
    assert {row["stage"] for row in result["trials"][0][1]} == {"judge"}


def test_what_can_not_be_is_said(study: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--store is for --advice"):
        intop("report", "-c", study, "--store", "x.db")
    with pytest.raises(ResultMissingError, match="there is no store"):
        intop("report", "--advice", "--store", tmp_path / "none.db")
