"""A document's parts in each of its forms."""

import csv
from pathlib import Path

import pytest

from intop.document.columns import AS_ABOVE, Column, numbers, texts
from intop.document.csv_tables import write_tables
from intop.document.drawing import Drawing
from intop.document.html import html
from intop.document.markdown import as_markdown
from intop.document.model import (
    Block,
    Document,
    Figure,
    Notes,
    Paragraph,
    Section,
    Table,
    Verbatim,
    tabled,
    widened,
)
from intop.domain.spreadsheet import cell, text_of
from intop.domain.stats import Interval
from kit.golden import Golden
from kit.printed import cells, shown

pytestmark = pytest.mark.usefixtures("a_narrow_file")
TABLE = Table(
    name="values",
    title="Values",
    columns=(
        Column("key", "key"),
        Column("now", "before"),
        Column("then", "after"),
        Column("P99", unit="ms"),
        Column("apart", "difference"),
        Column("why", "prose"),
    ),
    rows=(
        ("net.a", "1", "2", 12.345, Interval(3, 1, 5), "It is long, and it was long before."),
        ("net.b", "4096 131072 6291456", "4096 8192", None, "not measured", AS_ABOVE),
        ("net.c", "0", "0", float("nan"), None, None),
    ),
)


def undrawn() -> Drawing:
    raise AssertionError("only HTML has figures in it")


FIGURE = Figure(title="Steps", draw=undrawn, label="l", caption="What they show.", tables=(TABLE,))


def document(*blocks: Block) -> Document:
    section = Section(name="one", title="<One>", blocks=blocks)
    return Document(title="A page", subtitle="below", sections=(section,))


def test_text_joins_values_that_take_each_others_place_and_tells_units_in_cells(
    capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    out = shown(capsys, TABLE)
    assert cells(out, "key") == ["key", "now", "->", "then", "P99", "apart"]
    assert " ".join(cells(out, "net.a  ")) == "net.a 1 -> 2 12.3 ms +3.00 (+1.00 to +5.00)"
    assert " ".join(cells(out, "net.b")) == "net.b 4096 131072 6291456 - not measured"
    assert cells(out, "->") == ["->", "4096", "8192"]
    assert cells(out, "net.c  ") == ["net.c", "0", "-", "-"]
    golden(out)
    sentences = Table(columns=(Column("why", "prose"), *texts("what")), rows=(("So.", "x"),))
    assert cells(shown(capsys, sentences), "So.") == ["So.", "x"]
    assert "net.c:" not in out


def test_elsewhere_the_unit_belongs_to_the_name(tmp_path: Path) -> None:
    lines = as_markdown([TABLE]).splitlines()
    assert lines[0] == "| key | now | then | P99 in ms | apart | why |"
    assert lines[1] == "| --- | --- | --- | ---: | ---: | --- |"
    assert (
        lines[3]
        == "| `net.b` | `4096 131072 6291456` | `4096 8192` | - | not measured | as above |"
    )
    page = html(document(TABLE))
    assert '<th scope="col" class="number">P99 in ms</th>' in page
    assert '<td class="difference">+3.00 (+1.00 to +5.00)</td>' in page
    (path,) = write_tables(tmp_path, document(TABLE))
    with path.open(newline="") as file:
        head, first, second, third = csv.reader(file)
    assert head[3:7] == ["P99 in ms", "apart", "apart, low", "apart, high"]
    assert first[3:7] == ["12.345", "3", "1", "5"]
    # Words in a column of intervals leave the others in their places.
    assert second[3:] == ["", "not measured", "", "", AS_ABOVE]
    assert len(head) == len(third)


def test_no_cell_and_no_heading_of_a_csv_file_is_a_formula(tmp_path: Path) -> None:
    evil = ("=1+1", "+1+1", "-2+3", "@A1", "\t=1", "\r=1", "\n=1", "'=1", "a\r=1")
    table = Table(name="values", title="Values", columns=texts(*evil), rows=(evil,))
    (path,) = write_tables(tmp_path, document(table))
    with path.open(newline="") as file:
        lines = list(csv.reader(file))
    assert [[cell(text) for text in evil]] * 2 == lines
    assert [list(evil)] * 2 == [[text_of(part) for part in line] for line in lines]


def test_sections_within_others_have_smaller_headings(capsys: pytest.CaptureFixture[str]) -> None:
    inner = Section(title="inner", blocks=(Notes(("a note", "another")),))
    outer = Section(title="outer", blocks=(Paragraph("Words.", "A lead:"), inner))
    made = as_markdown([outer])
    assert made == "## outer\n\n**A lead:** Words.\n\n### inner\n\n- a note\n- another"
    assert shown(capsys, outer) == "outer\nA lead: Words.\n\ninner\na note\nanother\n\n"
    page = html(document(outer))
    assert page.index("<h3>outer</h3>") < page.index("<h4>inner</h4>")
    assert "<li>a note</li>" in page
    assert "<strong>A lead:</strong> Words." in page


def test_a_title_is_no_markup_where_it_is_folded() -> None:
    folded = Section(title="a <b> & `c`", blocks=(Notes(("a",)),), folded=True)
    assert "<summary>a &lt;b&gt; &amp; `c`</summary>\n\n- a\n\n</details>" in as_markdown([folded])
    assert "<summary>a &lt;b&gt; &amp; `c`</summary>" in html(document(folded))


def test_sentences_are_wrapped_and_what_is_copied_is_not(
    capsys: pytest.CaptureFixture[str],
) -> None:
    command = "intop apply " + "--host root@10.0.0.5:22 " * 8
    long = "word " * 30 + "/a/path/" + "long" * 30
    out = shown(capsys, Verbatim((command,)), Notes((long,)), Paragraph("Type", command="intop up"))
    first, second, third, path, last = out.splitlines()
    assert command == first
    assert len(second) <= 100
    assert third.startswith("  word")
    assert path == f"  {long.split()[-1]}"
    assert last == "Type intop up"
    assert as_markdown([Verbatim(("a\n# b",))]) == "    a\n    # b"
    assert as_markdown([Paragraph("Type", command="intop up")]) == "Type `intop up`"


def test_a_figure_is_told_by_its_caption_and_its_data(
    capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    out = shown(capsys, FIGURE)
    golden(out)
    assert "**Steps.** What they show.\n\n| key |" in as_markdown([FIGURE])
    assert list(document(FIGURE).tables()) == [TABLE]


def test_a_table_without_rows_is_left_out_and_one_can_get_a_column() -> None:
    assert tabled("none", texts("a"), ()).blocks == ()
    table = Table(columns=texts("a"), rows=(("x",), ("y",)))
    wide = widened(table, Column("n", "count"), (1, 2))
    assert wide.rows == (("x", 1), ("y", 2))
    assert (*texts("a"), Column("n", "count")) == wide.columns
    with pytest.raises(ValueError, match="shorter"):
        widened(table, *numbers("n"), (1,))
