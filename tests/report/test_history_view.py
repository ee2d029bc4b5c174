"""Histories as text and as a figure."""

from dataclasses import replace

from builders.results import VERDICT
from builders.trials import CONDITIONS
from intop.document.columns import worded
from intop.document.figures import figures_of
from intop.document.model import Notes, Table
from intop.domain.comparison import latency
from intop.report.compare_view import histories
from intop.report.history import history
from intop.report.history_result import History, Moment


def made() -> History:
    before = Moment(
        campaign=1,
        started_at="2026-01-01T10:00:00+00:00",
        conditions=CONDITIONS,
        default=latency((10.0, 11.0, 10.5), 0.95),
        tuned=latency((5.0, 5.5, 5.2), 0.95),
        verdict=VERDICT,
    )
    after = replace(
        before,
        campaign=4,
        started_at="2026-02-01T10:00:00+00:00",
        conditions=replace(CONDITIONS, kernel="6.1"),
        default=latency((20.0, 21.0, 20.5), 0.95),
        tuned=None,
        verdict=None,
    )
    other = replace(after, campaign=5, conditions=replace(CONDITIONS, kernel="6.1", rate_rps=7.0))
    return history("lab", "x86", "slt", [before, after, other], level=0.95)


def test_a_row_for_each_campaign_and_what_changed_below() -> None:
    (section,) = histories([made()])
    table, notes = section.blocks
    assert isinstance(table, Table)
    assert isinstance(notes, Notes)
    first, second, third = ([*map(worded, row, table.columns)] for row in table.rows)
    assert first[:2] == ["1", "2026-01-01 10:00"]
    assert [first[3], *first[6:]] == ["-", "3.10 (2.20 to 4.40)", "gain"]
    assert second[3].startswith("1.95 (")
    assert second[4:] == ["-", "-", "-", "not verified"]
    assert third[3] == "-"
    assert f"Campaign 1 to 4: kernel: {CONDITIONS.kernel} against 6.1" in notes.lines
    assert "Campaign 1 to 4: P99 of the default is 95 % higher" in notes.lines
    assert "Campaign 4 to 5: not comparable, rate_rps: 100.0 against 7.0" in notes.lines


def test_one_campaign_has_nothing_to_be_compared_with() -> None:
    (section,) = histories([replace(made(), moments=made().moments[:1], steps=())])
    assert isinstance(section.blocks[-1], Notes)
    assert section.blocks[-1].lines[0].startswith("Only this campaign has measured it")


def test_the_figure_has_both_series_and_marks_where_conditions_changed() -> None:
    (drawing,) = figures_of(made(), "x86 slt")
    assert (drawing.name, drawing.title) == ("x86-slt-over-time", "x86 slt: P99 by campaign")
    svg = drawing.svg()
    for message in ("default", "tuned", "not comparable", "other conditions"):
        assert svg.count(f">{message}<") == 1, message
    assert "2026-02-01" in svg
