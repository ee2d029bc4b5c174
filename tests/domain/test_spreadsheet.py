"""Cells of CSV files: no formula, and read back as they were."""

import csv
from io import StringIO

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from intop.domain.spreadsheet import cell, quoting, text_of

FORMULAS = ["=1+1", "+1+1", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "=cmd|' /C calc'!A0"]
FORMULAS += ["-", "=", "+", "-a", "-1-1", "--5", "-5 -3", "'=1"]
PLAIN = ["", "a", "5", "-5", "+5", "-1.5", "-1.5e-7", "-1 131072 6", "bbr", "'", "''", "'a", "a=b"]

texts = st.text() | st.lists(st.sampled_from("=+-@\t\r\n'\" ,a1.e")).map("".join)


@pytest.mark.parametrize("text", FORMULAS, ids=repr)
def test_what_a_spreadsheet_would_carry_out_has_an_apostrophe_before_it(text: str) -> None:
    assert cell(text) == f"'{text}"
    assert text == text_of(cell(text))


@pytest.mark.parametrize("text", PLAIN, ids=repr)
def test_numbers_and_words_stay_as_they_are(text: str) -> None:
    assert text == cell(text) == text_of(text)


@given(texts)
@example("'-5")
def test_every_text_is_read_back_as_it_was(text: str) -> None:
    assert text == text_of(cell(text))


@given(st.lists(st.lists(texts, min_size=2, max_size=2), max_size=3))
def test_no_line_begins_within_a_cell(rows: list[list[str]]) -> None:
    cells = [[cell(text) for text in row] for row in rows]
    written = StringIO(newline="")
    how = quoting(text for row in cells for text in row)
    csv.writer(written, lineterminator="\n", quoting=how).writerows(cells)  # type: ignore[arg-type]
    read = list(csv.reader(StringIO(written.getvalue(), newline=""), strict=True))
    assert rows == [[text_of(text) for text in row] for row in read]
