"""A comparison as text and as Markdown, from a hand-made one, with and without its parts."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from builders.comparisons import (
    ARM,
    BARE,
    LONGEST,
    VERDICT,
    X86,
    compared,
    comparison,
    latency,
    share,
)
from builders.trials import CONDITIONS
from intop.document.columns import worded
from intop.document.markdown import as_markdown
from intop.document.model import Block, Notes, Section, Table
from intop.document.text import show
from intop.domain.comparison import Compared, ComparedParameter, Comparison, Contrast
from intop.domain.stats import Interval
from intop.domain.verdict import Pairwise
from intop.report.compare_view import sections
from kit.golden import Golden

NOT_MEASURED = "arm dlt: nothing to compare. Measure it first: intop collect --arch arm"


def bare(**changes: Any) -> Comparison:
    """With one side about which only the default is known."""
    only_chosen_there = ComparedParameter(
        key="b", importances=(share(0.25), None), chosen=(True, False), refused=("", "")
    )
    nothing: dict[str, Any] = {
        "sides": (X86, BARE),
        "tuned": None,
        "rank_agreement": None,
        "parameters": (only_chosen_there,),
    }
    return comparison(**(nothing | changes))


def every(result: Iterable[Block]) -> Iterator[Section]:
    """All sections, also those within others."""
    for block in result:
        if isinstance(block, Section):
            yield block
            yield from every(block.blocks)


def rows(section: Section) -> list[tuple[str, ...]]:
    """The words of its table."""
    return [
        tuple(map(worded, row, block.columns))
        for block in section.blocks
        if isinstance(block, Table)
        for row in block.rows
    ]


def lines(section: Section) -> tuple[str, ...]:
    return tuple(n for block in section.blocks if isinstance(block, Notes) for n in block.lines)


def titled(result: Compared, title: str) -> Section:
    (section,) = [s for s in every(sections(result)) if s.title.startswith(title)]
    return section


def table(result: Compared, title: str) -> dict[str, tuple[str, ...]]:
    """The rows of the one table below a title that starts so, by their first cell."""
    return {row[0]: row[1:] for row in rows(titled(result, title))}


def notes(result: Compared, title: str) -> tuple[str, ...]:
    return lines(titled(result, title))


def matrix(result: Compared) -> list[tuple[str, ...]]:
    return rows(titled(result, "x86 and arm: measured P99 in ms"))


# The matrix ---------------------------------------------------------------------------------------


def test_the_matrix_has_every_figure_with_its_interval() -> None:
    default, tuned, speed_up, verdict = matrix(compared())
    assert default[:4] == ("slt", "default", "310 (250 to 384)", "620 (500 to 769)")
    assert default[4:] == ("+310 (+142 to +470)", "2.00 (1.50 to 2.67)")
    assert tuned[:4] == ("slt", "tuned", "100 (80.0 to 125)", "5.50 (5.00 to 6.05)")
    assert tuned[4:] == ("-94.5 (-119 to -74.0)", "0.055 (0.04 to 0.075)")
    assert speed_up == ("slt", "speed-up", "3.10 (2.20 to 4.40)", "3.10 (2.20 to 4.40)", "", "")
    assert verdict == ("slt", "verdict", "gain", "gain", "", "")


def test_what_is_not_verified_is_no_figure() -> None:
    _, tuned, speed_up, verdict = matrix(compared(bare()))
    assert tuned == ("slt", "tuned", "100 (80.0 to 125)", "-", "-", "-")
    assert speed_up == ("slt", "speed-up", "3.10 (2.20 to 4.40)", "-", "", "")
    assert verdict == ("slt", "verdict", "gain", "not verified", "", "")


def test_a_verdict_of_another_level_and_failed_tuned_trials_are_said() -> None:
    odd = replace(X86, verdict=replace(VERDICT, level=0.9, failures=2))
    _, _, speed_up, verdict = matrix(compared(comparison(sides=(odd, ARM))))
    assert speed_up[2] == "3.10 (2.20 to 4.40), at 90 %"
    assert verdict[2] == "worse, 2 tuned trials failed"


def test_differences_are_told_in_sentences() -> None:
    flat = Contrast(difference_ms=Interval(1, -5, 7), ratio=Interval(0.999, 0.95, 1.07))
    result = compared(comparison(), bare(workload="dlt", default=flat))
    assert notes(result, "x86 and arm") == (
        "slt, default: P99 on arm is 100 % higher than on x86 (50 to 167 %)",
        "slt, tuned: P99 on arm is 94 % lower than on x86 (92 to 96 %)",
        "dlt, default: P99 on arm and on x86 is not separated: +0 % (-5 to +7 %)",
    )


def test_a_warning_of_one_workload_names_it_and_one_of_all_is_told_once() -> None:
    kernel, nginx = "kernel: 6.18 against 6.12", "nginx: 1.22 against 1.26"
    result = compared(
        comparison(tuned=None, warnings=(kernel, nginx)),
        comparison(tuned=None, workload="dlt", warnings=(kernel,)),
    )
    assert notes(result, "x86 and arm")[2:] == (f"Warning: {kernel}", f"slt: Warning: {nginx}")


def test_what_emulation_means_is_said_with_the_side_it_is_on() -> None:
    guest = replace(ARM, conditions=replace(ARM.conditions, emulation="TCG on x86_64"))
    message = notes(compared(comparison(sides=(X86, guest))), "x86 and arm")[-1]
    assert message.startswith(
        "Emulated: arm (TCG on x86_64). An emulated machine's speed says nothing"
    )
    assert "are not differences of the architectures" in message
    by_kvm = replace(ARM, conditions=replace(ARM.conditions, emulation="KVM"))
    for sides in ((X86, ARM), (X86, by_kvm)):
        everything = as_markdown(sections(compared(comparison(sides=sides))))
        assert "Emulated" not in everything


def test_what_was_not_compared_is_said_with_the_next_step() -> None:
    assert (
        notes(compared(missing=(NOT_MEASURED,)), "x86 and arm")[-1]
        == f"Not compared: {NOT_MEASURED}"
    )


def test_by_force_the_first_thing_is_that_it_is_not_comparable() -> None:
    line = "rate_rps: 100.0 against 200.0"
    other = replace(ARM, conditions=replace(ARM.conditions, rate_rps=200.0))
    result = compared(comparison(sides=(X86, other), differences=(line,)))
    first = sections(result)[0]
    assert (first.title, lines(first)) == ("NOT COMPARABLE, shown by --force", (f"slt: {line}",))
    assert table(result, "Sides")["rate_rps"] == ("100.0", "200.0")
    assert "rate_rps" not in notes(result, "Sides")[0]
    assert "NOT COMPARABLE" not in as_markdown(sections(compared()))


# The picture --------------------------------------------------------------------------------------


def test_bars_share_a_scale_within_a_workload() -> None:
    small = comparison(
        workload="dlt",
        sides=(
            replace(X86, default=latency(2, 1, 3), tuned=latency(1, 0.5, 1.5)),
            replace(BARE, default=latency(0.01, 0.005, 0.02)),
        ),
        tuned=None,
    )
    picture = rows(titled(compared(comparison(), small), "P99 in ms"))
    assert [(*row[:4], len(row[4]) if set(row[4]) == {"█"} else row[4]) for row in picture] == [
        ("slt", "x86", "default", "310", 20),
        ("", "", "tuned", "100", 6),
        ("", "arm", "default", "620", 40),
        ("", "", "tuned", "5.50", 1),
        ("dlt", "x86", "default", "2.00", 40),
        ("", "", "tuned", "1.00", 20),
        ("", "arm", "default", "0.01", 1),
        ("", "", "tuned", "-", "not verified"),
    ]


# The details --------------------------------------------------------------------------------------


def test_the_sides_say_what_was_measured_on_what(golden: Golden) -> None:
    result = compared(bare())
    rows = table(result, "Sides")
    assert rows["machine"] == ("x86_64", "aarch64")
    assert rows["cpu"] == ("EPYC", "-")
    assert (CONDITIONS.kernel, CONDITIONS.kernel) == rows["kernel"]
    assert rows["usable trials"] == ("30", "5")
    assert rows["latency from"] == ("8 judging pairs", "all 4 trials of the default")
    same = notes(result, "Sides")[0]
    golden(same)


def test_reference_metrics_of_both_sides_as_far_as_their_verdicts_have_them() -> None:
    title = "Reference metrics"
    assert title not in as_markdown(sections(compared()))
    assert X86.verdict is not None
    both = Pairwise(default=12.5, tuned=6.25)
    sides = replace(X86.verdict.sides, received_mb_s=both)
    with_metrics = replace(X86, verdict=replace(X86.verdict, sides=sides))
    result = compared(comparison(sides=(with_metrics, ARM)))
    text = as_markdown(sections(result))
    assert title in text
    assert "| received MB/s | 12.5 | 6.25 | - | - |" in text


def test_errors_of_both_sides_by_family() -> None:
    result = compared()
    assert table(result, "Error of the models") == {
        "RFR": ("40 %", "0.50", "0.75", "50 %", "0.50", "0.75"),
        "DNN": ("80 %", "0.50", "0.75", "-", "-", "-"),
        "SVR": ("-", "-", "-", "70 %", "0.50", "0.75"),
    }
    assert "arm: not trained" in notes(compared(bare()), "Error of the models")


def test_convergence_of_both_sides_by_model() -> None:
    result = compared()
    assert table(result, "Convergence") == {
        "RFR": ("29", "0.5 s", "31", "0.2 s"),
        "XGBoost": ("7", "12.0 s", "-", "-"),
    }
    assert notes(result, "Convergence") == ()
    assert notes(compared(bare()), "Convergence") == ("arm: not searched",)


def test_parameters_say_where_they_matter_and_why_not_elsewhere() -> None:
    result = compared()
    assert table(result, "Parameters") == {
        "a": ("0.500 ± 0.062", "0.250 ± 0.062", "both"),
        "b": ("0.250 ± 0.062", "0.001 ± 0.062", "x86; not chosen by arm"),
        "vm.c": ("-", "0.500 ± 0.062", "arm; not offered by x86"),
    }
    refused, caution = notes(result, "Parameters")
    assert refused == "Not offered by x86 (this kernel doesn't have it): vm.c"
    assert caution.startswith("Chosen on one side only does not prove")


def test_ranks_stand_side_by_side_where_both_are_screened() -> None:
    result = compared()
    assert table(result, "Ranks of the 1") == {"b": ("2", "7", "x86")}
    correlation, chosen = notes(result, "Ranks")
    assert correlation.startswith("Rank correlation of the importances: 0.46 (Spearman), 0.30")
    assert chosen == "Chosen by both: 1 of 2 in x86 and 1 in arm: a"
    assert "Ranks of" not in as_markdown(sections(compared(bare())))


def test_a_side_that_was_not_screened_has_not_left_anything_out() -> None:
    result = compared(bare())
    assert table(result, "Parameters") == {"b": ("0.250 ± 0.062", "-", "x86; arm is not screened")}
    assert notes(result, "Parameters")[0] == "arm: not screened"


def test_tuned_values_side_by_side() -> None:
    result = compared()
    assert table(result, "Tuned values") == {
        LONGEST: ("4096 131072 6291456", "4677 29946 66011", "-", "-"),
        "b": ("1", "-", "2", "3"),
    }
    assert notes(result, "Tuned values") == ("x86: gain", "arm: gain")


def test_values_without_a_gain_are_not_recommended() -> None:
    no_gain = replace(X86, verdict=replace(VERDICT, ratio_low=0.9, ratio_high=1.1))
    undecided = replace(X86, verdict=replace(VERDICT, ratio_low=0.9))
    assert notes(compared(bare(sides=(no_gain, undecided))), "Tuned values") == (
        "x86: no significant gain: keep the defaults",
        "x86: undecided",
    )
    assert notes(compared(bare(sides=(no_gain, BARE))), "Tuned values")[1] == "arm: not verified"


# Both forms ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("terminal", [False, True])
def test_as_text_it_is_no_wider_than_120_columns_and_nothing_is_cut(
    terminal: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("TTY_COMPATIBLE", "1" if terminal else "0")
    result = compared(comparison(), bare(workload="dlt"), missing=(NOT_MEASURED,))
    show(*sections(result))
    out = capsys.readouterr().out
    assert terminal == ("\x1b" in out)
    out = re.sub(r"\x1b\[[0-9;]*m", "", out)
    assert "…" not in out
    assert max(len(line.rstrip()) for line in out.splitlines()) <= 120
    plain = " ".join(out.split())
    for section in every(sections(result)):
        assert " ".join(section.title.split()) in plain
        for note in lines(section):
            assert " ".join(note.split()) in plain
        for row in rows(section):
            assert row[0] in plain


def test_square_brackets_are_no_markup(capsys: pytest.CaptureFixture[str]) -> None:
    odd = replace(X86, conditions=replace(CONDITIONS, cpu="[bold]EPYC[/bold]"))
    show(*sections(compared(comparison(sides=(odd, ARM)))))
    assert "[bold]EPYC[/bold]" in capsys.readouterr().out


def test_as_markdown_it_has_the_same_tables() -> None:
    result = compared(comparison(), bare(workload="dlt"), missing=(NOT_MEASURED,))
    made = as_markdown(sections(result)).splitlines()
    tables = [line.replace("`", "") for line in made if line.startswith("|")]  # keys are code
    by_table = [rows(section) for section in every(sections(result)) if rows(section)]
    assert sum(map(len, by_table)) + 2 * len(by_table) == len(tables)
    for row in (row for each in by_table for row in each):
        assert f"| {' | '.join(row)} |" in tables
    assert f"| `{LONGEST}` | `4096 131072 6291456` | `4677 29946 66011` | - | - |" in made
    assert f"- Not compared: {NOT_MEASURED}" in made
    heading = made.index("### Convergence of the search")
    assert made[heading + 1 : heading + 5] == [
        "",
        "| model | x86: generations | x86: time | arm: generations | arm: time |",
        "| --- | ---: | ---: | ---: | ---: |",
        "| RFR | 29 | 0.5 s | 31 | 0.2 s |",
    ]


def test_as_markdown_every_line_of_a_table_has_the_same_cells() -> None:
    odd = replace(X86, conditions=replace(CONDITIONS, cpu="a|b*c<d\\e[f](g)`h\ni"))
    made = as_markdown(sections(compared(comparison(sides=(odd, ARM))))).splitlines()
    assert r"| cpu | a\|b\*c\<d\\e\[f](g)\`h i | - |" in made


def test_prose_between_blocks_is_separated_by_blank_lines() -> None:
    made = as_markdown(sections(compared())).splitlines()
    for before, line in pairwise(made):
        assert before == "" or line == "" or before[0] == line[0]
