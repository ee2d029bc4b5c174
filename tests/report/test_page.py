"""The page: what stands in it and what must not, as text and in a real browser."""

import csv
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from builders.full_campaign import HOSTILE, campaign
from builders.results import (
    ACROSS,
    CANARY,
    CAUSES,
    COSTLY,
    DOUBTED,
    SOAK,
    SWEEP,
    TOO_MUCH,
    UNMEASURED,
)
from intop.cli import cli
from intop.command.running import stored_context
from intop.document.csv_tables import write_tables
from intop.document.html import html
from intop.errors import IntopError, UsageError
from intop.report.findings import Report
from intop.report.gather import gather
from intop.report.page import SECTIONS, document
from kit.browser import Browser, chromium

NEEDS_NOTHING = {"img", "script", "iframe", "object", "embed", "base", "form"}
"""Elements that would fetch, run or send something."""

OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
COLOURS = """JSON.stringify(['color', 'background-color'].map(
    name => getComputedStyle(document.documentElement)[name]))"""
SMALLEST = """Math.min(...[...document.querySelectorAll('svg text')].map(t => {
    const box = t.closest('svg');
    return parseFloat(getComputedStyle(t).fontSize) * box.getBoundingClientRect().width
        / box.viewBox.baseVal.width;
}))"""
FIRST = """(cell => JSON.stringify({
    title: cell.querySelector('h3').textContent,
    figures: cell.querySelectorAll('svg').length,
    command: [...cell.querySelectorAll('code')].pop().textContent,
    bottom: cell.getBoundingClientRect().bottom,
    screen: innerHeight,
}))(document.querySelector('article'))"""
"""The content of the page's first cell, and where it ends on the screen, in CSS pixels."""
BAD = """<!DOCTYPE html><html lang="en"><meta name="viewport" content="width=device-width">
<body><p style="width:60rem">wide<script>console.error("wrong"); nowhere()</script>
<img src="http://127.0.0.1:9/x.png"></body></html>"""


class Read(HTMLParser):
    """What a reader of the page would find."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.headings: list[int] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if re.fullmatch("h[1-6]", tag):
            self.headings.append(int(tag[1]))


@pytest.fixture(scope="module", name="result")
def _found(tmp_path_factory: pytest.TempPathFactory) -> Report:
    with stored_context(campaign(tmp_path_factory.mktemp("study")), None, None) as context:
        return gather(context)


@pytest.fixture(scope="module", name="page")
def _page(result: Report) -> str:
    return html(document(result))


def test_it_has_every_section_and_each_figure_has_its_data(result: Report, page: str) -> None:
    made = document(result)
    # Nobody has soaked anything here, or tried it on real traffic.
    own = [name for name, *_ in SECTIONS if name not in ("soak", "canary")]
    assert own == [s.name for s in made.sections]
    for section in made.sections:
        assert f'<section id="{section.name}"' in page
        assert f'<a href="#{section.name}">' in page
    for table in made.tables():
        assert f'<table id="table-{table.name}">' in page
    names = [table.name for table in made.tables()]
    assert len(set(names)) == len(names)


def test_it_says_what_was_found(page: str) -> None:
    assert "Gain: P99 is 3.0" in page
    assert "Keys to set on the load balancer: 97 % of the gain" in page
    assert "No gain larger than 1.03 times: keep the defaults" in page
    assert "Nothing: keep the defaults." in page
    assert "intop plan --arch x86 --workload slt" in page
    assert "lb: # % went" not in page


def test_what_is_hostile_is_only_told(page: str) -> None:
    read = Read(page)
    assert not NEEDS_NOTHING & {tag for tag, _ in read.tags}
    assert "&lt;script&gt;console.error(&#39;run&#39;)" in page
    assert not set("\u202e\x1b") & set(page)
    assert HOSTILE not in page


def test_it_needs_nothing_else(page: str) -> None:
    asked = [
        value
        for _, attributes in Read(page).tags
        for name, value in attributes.items()
        if name.split(":")[-1] in ("src", "href", "srcset", "action", "data", "poster")
    ]
    assert asked
    assert [value for value in asked if not (value or "").startswith(("#", "data:,"))] == []
    assert not re.search(r"@import|url\((?!#)", page)
    (policy,) = [a["content"] for _, a in Read(page).tags if "http-equiv" in a]
    for kind in ("default-src", "base-uri", "form-action"):
        assert f"{kind} 'none'" in str(policy)


def test_it_is_in_order_for_those_who_hear_it(page: str) -> None:
    read = Read(page)
    assert read.headings[0] == 1
    assert read.headings.count(1) == 1
    steps = zip(read.headings, read.headings[1:], strict=False)
    assert all(after <= before + 1 for before, after in steps)
    assert ("html", {"lang": "en"}) in read.tags
    pictures = [attributes for tag, attributes in read.tags if tag == "svg"]
    labels = [attributes.get("aria-label") for attributes in pictures]
    assert all(labels)
    assert len(set(labels)) == len(labels)
    ids = [attributes["id"] for _, attributes in read.tags if "id" in attributes]
    assert len(set(ids)) == len(ids)


def test_measured_and_predicted_stand_in_tables_of_their_own(result: Report) -> None:
    by_name = {table.name: table for table in document(result).tables()}
    assert by_name["x86-slt-candidates"].origin == "predicted"
    assert by_name["verdicts"].origin == "measured"
    for table in by_name.values():
        names = " ".join(column.heading for column in table.columns)
        if table.origin == "measured":
            assert "predicted" not in names, table.name
        if table.origin == "predicted":
            assert "measured" not in names, table.name


def columns(report: Report) -> dict[str, list[str]]:
    return {t.name: [column.heading for column in t.columns] for t in document(report).tables()}


def test_a_baseline_in_place_of_the_default_is_named(result: Report) -> None:
    x86 = result.findings[0]
    assert x86.verdict is not None
    assert x86.judged is not None
    verdict = replace(x86.verdict, against="ubuntu-18.04")
    judged = replace(x86.judged, latencies=replace(x86.judged.latencies, against="ubuntu-18.04"))
    made = replace(result, findings=(replace(x86, verdict=verdict, judged=judged),), compared=None)
    page = html(document(made))
    assert "ubuntu-18.04 has 1.5 ms, the winner 0.5 ms" in page
    assert "1 of the winner&#39;s 2 keys, beside values of ubuntu-18.04" in page
    assert "ubuntu-18.04 max 1." in page  # in the figure
    by_name = columns(made)
    assert "in place of the default" in by_name["verdicts"]
    assert "in place of the default" not in columns(result)["verdicts"]
    for table in ("percentiles", "pairs", "sides"):
        assert "ubuntu-18.04" in " ".join(by_name[f"x86-slt-{table}"])
        assert "default" not in " ".join(by_name[f"x86-slt-{table}"])


def with_verdict(result: Report, **changes: object) -> Report:
    """The report with these changes of the first verdict."""
    x86 = result.findings[0]
    assert x86.verdict is not None
    verdict = replace(x86.verdict, **changes)  # type: ignore[arg-type]
    deployment = x86.deployment if verdict.is_gain else None
    changed = replace(x86, verdict=verdict, deployment=deployment)
    return replace(result, findings=(changed, *result.findings[1:]))


def test_the_reason_stands_beside_the_sides(result: Report) -> None:
    page = html(document(with_verdict(result, causes=CAUSES)))
    assert "less of syn-backlog (TcpExt.ListenDrops 51.2 to 0 a trial)" in page
    assert "What the kernel counted" in page


def test_guardrails_stand_beside_the_sides(result: Report) -> None:
    made = with_verdict(result, guardrails=DOUBTED.guardrails)
    (table,) = (t for t in document(made).tables() if t.name == "x86-slt-guardrails")
    assert [(row[0], row[-1]) for row in table.rows] == [
        ("P50 in ms", "kept"),
        ("balancer's CPU in %", "unclear"),
    ]
    page = html(document(made))
    assert "Gain, but CPU may be higher by up to 8 points: P99 is 3.0" in page
    assert "gain, but CPU is unclear" in page  # in the table of verdicts
    assert "within the guardrails" in page
    assert "intop apply --arch x86 --workload slt" in page
    none = with_verdict(result, guardrails=())
    assert "x86-slt-guardrails" not in columns(none)


def test_what_costs_too_much_is_not_to_be_deployed(result: Report) -> None:
    page = html(document(with_verdict(result, guardrails=COSTLY.guardrails)))
    assert "No gain: it costs CPU: CPU is higher by 12 points" in page
    assert "Nothing: keep the defaults. P99 was shown to be lower, at more than was" in page
    assert "<code>intop plan --accept-costs --arch x86 --workload slt</code>" in page
    assert "intop apply --arch x86 --workload slt" not in page


def test_percentiles_with_too_few_requests_are_not_told(result: Report) -> None:
    """Five trials of a hundred requests a side."""
    by_name = {table.name: table for table in document(result).tables()}
    rows = {row[0]: row[1:] for row in by_name["x86-slt-percentiles"].rows}
    assert {name for name, values in rows.items() if None not in values} == {
        "P50",
        "P75",
        "P90",
        "P95",
        "slowest",
    }
    assert {rows[name] for name in ("P99", "P99.5", "P99.9", "P99.99")} == {(None, None)}
    sides = {str(row[0]): row[1:] for row in by_name["x86-slt-sides"].rows}
    assert sides["P99 in ms"][:2] == (None, None)
    assert sides["P99 in ms"][2] is not None
    page = html(document(result))
    assert "not told (-): P99 takes 1,000 requests of a side" in page
    assert "A single trial has as few as 100 requests" in page


def test_a_sweep_has_a_figure_with_a_table_of_its_own(result: Report) -> None:
    assert "x86-slt-sweep-rate-open" not in columns(result)
    x86 = replace(result.findings[0], sweeps=(SWEEP,))
    made = replace(result, findings=(x86, *result.findings[1:]))
    (table,) = (t for t in document(made).tables() if t.name == "x86-slt-sweep-rate-open")
    both = [(rate, arm) for rate in ("50", "100", "150") for arm in ("default", "tuned")]
    assert both == [row[:2] for row in table.rows]
    page = html(document(made))
    assert "At other rates: tuned gain at 50, 100, worse at 150 requests/s." in page
    assert "tuned: 2 of 5 overloaded, 1 of 5 failed" in page
    assert "Knee: tuned answers at most 121 (118 to 124) requests/s, whatever is asked." in page
    assert "Along the rate" in page


def test_a_sweep_of_which_nothing_is_usable_has_its_table_only(result: Report) -> None:
    arms = tuple(replace(one, judged_ms=None) for one in TOO_MUCH.arms)
    sweep = replace(SWEEP, points=(replace(TOO_MUCH, arms=arms),))
    made = replace(result, findings=(replace(result.findings[0], sweeps=(sweep,)),))
    page = html(document(made))
    assert "Along the rate" not in page
    assert "tuned: 2 of 5 overloaded, 1 of 5 failed" in page


def test_a_soak_has_a_section_with_its_figure_and_tables(result: Report) -> None:
    assert "Hours of load" not in html(document(result))
    made = replace(result, findings=(replace(result.findings[0], soak=SOAK), *result.findings[1:]))
    assert {"x86-slt-soak-trends", "x86-slt-soak-blocks"} <= set(columns(made))
    page = html(document(made))
    assert "Hours of load on what is applied" in page
    assert "Soak of 1 h 2 min: no leak" in page
    assert "minutes since the first block" in page
    blocks = tuple(replace(block, p99_ms=None) for block in SOAK.blocks)
    silent = replace(result.findings[0], soak=replace(SOAK, blocks=blocks))
    assert "since the first block" not in html(document(replace(result, findings=(silent,))))


def test_a_canary_has_a_section_with_its_table(result: Report) -> None:
    assert "On real traffic" not in html(document(result))
    made = replace(
        result, findings=(replace(result.findings[0], canary=CANARY), *result.findings[1:])
    )
    (table,) = (t for t in document(made).tables() if t.name == "x86-slt-canary")
    assert [row[0] for row in table.rows] == ["delivery time in ms/MB"]
    page = html(document(made))
    assert "Web1 with the winner: gain: delivery time is 1.50 times lower" in page
    assert "net.ipv4.tcp_congestion_control = bbr" in page


def test_the_winner_under_all_workloads_has_a_section(result: Report) -> None:
    assert "x86-slt-across" not in columns(result)
    made = replace(
        result, findings=(replace(result.findings[0], across=ACROSS), *result.findings[1:])
    )
    tables = {t.name: t for t in document(made).tables()}
    assert [row[0] for row in tables["x86-slt-across"].rows] == ["small", "api", "large", "tls"]
    assert len(tables["x86-slt-across-sides"].rows) == 6
    page = html(document(made))
    assert "Under all workloads" in page
    assert "Worse here: api (CPU is higher by 12 points (9 to 15; accepted: 5)), large (P99" in page
    unmeasured = replace(ACROSS, workloads=(UNMEASURED,))
    made = replace(result, findings=(replace(result.findings[0], across=unmeasured),))
    assert "Worse here: tls (2 of 2 trials fail)." in html(document(made))


def test_each_models_own_winner_has_its_speed_up(result: Report, page: str) -> None:
    assert "best XGBoost 4.50 (2.50 to 8.10)." in page
    assert page.count("The best of several is flattered by luck; the verdict is") == 1
    (table,) = (t for t in document(result).tables() if t.name == "model-speed-ups")
    assert [row[2] for row in table.rows[:4]] == ["RFR", "XGBoost", "LightGBM", "mean over 2"]
    assert [r[6] for r in table.rows[:3]] == [None, "same as candidate 1", "failed in 1 round"]
    x86 = result.findings[0]
    assert x86.verdict is not None
    earlier = replace(x86, verdict=replace(x86.verdict, models=None))
    assert "model-speed-ups" not in columns(replace(result, findings=(earlier,), compared=None))


def test_the_papers_figures_stand_beside_ours_also_for_one_architecture(result: Report) -> None:
    for report in (result, replace(result, findings=result.findings[:1], compared=None)):
        (table,) = (t for t in document(report).tables() if t.name == "paper")
        rows = {str(row[0]): row[1:] for row in table.rows}
        here = "slt: 31 %" if len(report.findings) > 1 else "not measured"
        assert ("19 %", "slt: 31 %", "16 %", here) == rows["model error, RFR"][:4]
        html(document(report))


def test_what_a_search_for_a_component_predicts_is_not_called_p99(result: Report) -> None:
    x86 = result.findings[0]
    assert x86.search is not None
    search = replace(x86.search, objective="component")
    by_name = columns(replace(result, findings=(replace(x86, search=search),)))
    assert "predicted P99 equivalent in ms" in by_name["x86-slt-candidates"]
    assert "best predicted P99 equivalent in ms" in by_name["x86-slt-convergence"]


def test_ratios_of_a_change_say_what_they_are_of(result: Report) -> None:
    names = columns(result)["x86-slt-changes"]
    assert "left out of the winner: times higher" in names
    assert "left out of the smallest set: times higher" in names


def test_its_tables_are_files_for_other_programs(result: Report, tmp_path: Path) -> None:
    made = document(result)
    written = write_tables(tmp_path, made)
    assert [f"{table.name}.csv" for table in made.tables()] == [path.name for path in written]
    with (tmp_path / "verdicts.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [r["configuration"] for r in rows] == ["whole winner", "smallest set", "whole winner"]
    low, ratio, high = (float(rows[0][f"times lower{end}"]) for end in (", low", "", ", high"))
    assert low < ratio < high
    verdict = result.findings[0].verdict
    assert verdict is not None
    assert verdict.ratio == ratio
    with pytest.raises(IntopError, match="the table can't be written"):
        write_tables(tmp_path / "none", made)


def test_a_partial_campaign_says_what_makes_the_rest(tmp_path: Path) -> None:
    path = campaign(tmp_path, archs=("x86",), rest=False)
    with stored_context(path, None, None) as context:
        page = html(document(gather(context)))
    for stage in ("refine", "train", "search"):
        assert f"<code>intop {stage} --arch x86 --workload slt</code>" in page
    assert "No verdict yet." in page
    assert page.count("Nothing measured yet.") == 1


# In Chromium --------------------------------------------------------------------------------------


@pytest.fixture(scope="module", name="browser")
def _browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with chromium(tmp_path_factory.mktemp("profile")) as browser:
        yield browser


@pytest.fixture(scope="module", name="report")
def _report(page: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "intop-report.html"
    path.write_text(page, encoding="utf-8")
    assert path.stat().st_size < 5_000_000
    return path


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_it_opens_without_errors_and_requests(
    browser: Browser, report: Path, width: int, scheme: str
) -> None:
    page = browser.open(report, width=width, scheme=scheme)
    seen = page.seen()
    assert seen.errors == []
    assert [report.as_uri()] == [url for url in seen.requests if not url.startswith("data:")]
    assert page.evaluate(OVERFLOW) == 0
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert page.evaluate(OVERFLOW) == 0
    assert page.evaluate(SMALLEST) >= 8  # CSS pixels


def test_the_first_screen_has_a_whole_decision(browser: Browser, report: Path) -> None:
    page = browser.open(report, width=1280)
    first = json.loads(page.evaluate(FIRST))
    assert first["title"] == "x86, static files (slt)"
    assert first["figures"] == 1
    assert first["command"] == "intop plan --arch x86 --workload slt"
    assert first["bottom"] <= first["screen"]


def test_dark_and_light_are_not_the_same(browser: Browser, report: Path) -> None:
    shown = [browser.open(report, scheme=s).evaluate(COLOURS) for s in ("light", "dark")]
    assert shown[0] != shown[1]


def test_what_is_wrong_with_a_page_is_seen(browser: Browser, tmp_path: Path) -> None:
    """Else all of the above might pass for any page."""
    path = tmp_path / "bad.html"
    path.write_text(BAD)
    page = browser.open(path, width=390)
    seen = page.seen()
    assert "http://127.0.0.1:9/x.png" in seen.requests
    assert any("wrong" in error for error in seen.errors)
    assert any("nowhere" in error or "Uncaught" in error for error in seen.errors)
    assert page.evaluate(OVERFLOW) > 0


# The command --------------------------------------------------------------------------------------


def intop(*words: object) -> None:
    cli.main([str(word) for word in words], standalone_mode=False)


def test_the_command_writes_what_it_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = campaign(tmp_path, archs=("x86",), rest=False)
    page, tables = tmp_path / "page.html", tmp_path / "new" / "tables"
    intop("report", "-c", path, "-o", page, "--csv", tables)
    message = capsys.readouterr()
    assert message.out == ""
    assert f"written: {page} (" in message.err
    assert page.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert (tables / "x86-slt-importance.csv").exists()
    effects = (tables / "x86-slt-effects.csv").read_text()
    assert [row.rpartition(",")[2] for row in effects.split()[-3:]] == ["chosen", "chosen", "open"]
    assert "would have been found with 90%" in page.read_text(encoding="utf-8")
    with pytest.raises(UsageError, match="can't be written"):
        intop("report", "-c", path, "-o", tmp_path / "none" / "page.html")
    with pytest.raises(UsageError, match="the folder of --csv can't be made"):
        intop("report", "-c", path, "--csv", page / "tables")


def test_json_has_all_of_it_and_writes_no_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    intop("report", "-c", campaign(tmp_path), "--json")
    result = json.loads(capsys.readouterr().out)
    x86 = result["findings"][0]
    assert x86["verdict"]["outcome"] == "gain"
    assert len(x86["judged"]["pairs"]) == 5
    assert HOSTILE in x86["conditions"][0]["link"]
    assert not list(tmp_path.glob("*.html"))
