"""The page as text: what stands in it, and what must not."""

import csv
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from intop.cli.running import stored_context
from intop.domain.report import Report
from intop.errors import IntopError
from intop.pipeline.reporting import gather
from intop.report.page.csv_tables import write_tables
from intop.report.page.html import html
from intop.report.page.sections import SECTIONS, document
from reported import HOSTILE, ONE, campaign

NEEDS_NOTHING = {"img", "script", "iframe", "object", "embed", "base", "form"}
"""Elements that would fetch, run or send something."""


class Read(HTMLParser):
    """What a reader of the page would find."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.headings: list[int] = []
        self.open: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if re.fullmatch("h[1-6]", tag):
            self.headings.append(int(tag[1]))


@pytest.fixture(scope="module", name="found")
def _found(tmp_path_factory: pytest.TempPathFactory) -> Report:
    with stored_context(campaign(tmp_path_factory.mktemp("study")), None, None) as context:
        return gather(context)


@pytest.fixture(scope="module", name="page")
def _page(found: Report) -> str:
    return html(document(found))


def test_it_has_every_section_and_each_figure_has_its_data(found: Report, page: str) -> None:
    made = document(found)
    assert len(SECTIONS) == len(made.sections)
    for section in made.sections:
        assert f'<section id="{section.name}"' in page
        assert f'<a href="#{section.name}">' in page
    for table in made.tables():
        assert f'<table id="table-{table.name}">' in page
    names = [table.name for table in made.tables()]
    assert len(set(names)) == len(names)


def test_it_says_what_was_found(page: str) -> None:
    assert "Gain: P99 is 3.0" in page
    assert f"Smallest set: {ONE} (1 of 2 keys" in page
    assert "No significant gain, keep the defaults" in page
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
    assert [] == [value for value in asked if not (value or "").startswith(("#", "data:,"))]
    assert not re.search(r"@import|url\((?!#)", page)


def test_it_is_in_order_for_those_who_hear_it(page: str) -> None:
    read = Read(page)
    assert 1 == read.headings[0]
    assert 1 == read.headings.count(1)
    steps = zip(read.headings, read.headings[1:], strict=False)
    assert all(after <= before + 1 for before, after in steps)
    assert ("html", {"lang": "en"}) in read.tags
    pictures = [attributes for tag, attributes in read.tags if tag == "svg"]
    labels = [attributes.get("aria-label") for attributes in pictures]
    assert all(labels)
    assert len(set(labels)) == len(labels)
    ids = [attributes["id"] for _, attributes in read.tags if "id" in attributes]
    assert len(set(ids)) == len(ids)


def test_measured_and_predicted_stand_in_tables_of_their_own(found: Report) -> None:
    by_name = {table.name: table for table in document(found).tables()}
    assert "predicted" == by_name["x86-slt-candidates"].origin
    assert "measured" == by_name["verdicts"].origin
    for table in by_name.values():
        names = " ".join(column.name for column in table.columns)
        if table.origin == "measured":
            assert "predicted" not in names, table.name
        if table.origin == "predicted":
            assert "measured" not in names, table.name


def test_its_tables_are_files_for_other_programs(found: Report, tmp_path: Path) -> None:
    made = document(found)
    written = write_tables(tmp_path, made)
    assert [f"{table.name}.csv" for table in made.tables()] == [path.name for path in written]
    with (tmp_path / "verdicts.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert ["whole winner", "smallest set", "whole winner"] == [r["configuration"] for r in rows]
    low, ratio, high = (float(rows[0][f"times lower{end}"]) for end in (", low", "", ", high"))
    assert low < ratio < high
    verdict = found.findings[0].verdict
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
    assert "no verdict yet" in page
    assert "arm, static files (slt): nothing measured yet." in page
