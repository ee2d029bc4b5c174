"""The page of a comparison: what stands in it beside the tables."""

import re
from dataclasses import replace
from itertools import pairwise
from typing import Any

from builders.comparisons import ARM, X86, compared, comparison
from builders.results import PROVENANCE
from builders.trials import CONDITIONS
from intop.domain.comparison import Compared
from intop.report.compare_page import page

GUEST = replace(ARM, conditions=replace(ARM.conditions, emulation="TCG on x86_64", kernel="6.1"))


def row(text: str, name: str) -> list[str]:
    """Of the table of what was measured."""
    measured = text.partition("## What it can tell")[0]
    (result,) = re.findall(rf"^\| {re.escape(name)} \| (.*) \|$", measured, re.MULTILINE)
    return result.split(" | ")


def emulated(**changes: Any) -> Compared:
    return compared(comparison(sides=(X86, GUEST), **changes))


def test_it_says_what_it_is_of_and_by_what_it_was_made() -> None:
    text = page(compared(), {})
    assert text.startswith("# x86 and arm, side by side\n\nOne study on two architectures")
    assert (
        "under static files (slt): campaign 3 of the study lab, seed 7, begun 2026-11-22 07:59"
        in text
    )
    assert "finished 2026-11-22 09:01" in text
    assert "by intop 0.1.0, with `intop compare x86 arm --markdown`" in text
    begun = replace(PROVENANCE, finished_at=None)
    assert "not finished yet" in page(replace(compared(), provenance=(begun, begun)), {})


def test_it_has_versions_dates_counts_link_and_rate_of_both_sides() -> None:
    text = page(compared(), {})
    assert [CONDITIONS.kernel] * 2 == row(text, "kernel")[:2]
    assert [CONDITIONS.nginx] * 2 == row(text, "nginx")[:2]
    assert row(text, "load tool") == ["engine LuaJIT 2.1.0"] * 2
    assert row(text, "intop") == ["0.1.0"] * 2
    assert row(text, "link") == ["tbf"] * 2
    assert row(text, "slt: requests/s asked") == ["100"] * 2
    assert row(text, "slt: trials, used here of all") == ["30 of 34"] * 2
    assert row(text, "slt: first trial (UTC)") == ["2026-11-22 08:00"] * 2
    assert row(text, "slt: last trial (UTC)") == ["2026-11-22 08:13"] * 2


def test_what_an_emulated_side_cannot_tell_is_said_where_there_is_one() -> None:
    text = page(emulated(), {})
    assert "**arm (TCG on x86_64) is emulated.**" in text
    assert "says nothing about any arm server" in text
    assert "**The kernels differ** (6.18.0-28-cloud-amd64 and 6.1)" in text
    bare = page(compared(), {})
    assert "is emulated" not in bare
    assert "kernels differ" not in bare
    assert "The sides were measured one after the other." in bare


def test_figures_stand_where_there_are_any() -> None:
    text = page(compared(), {"images/a.svg": "a [b]"})
    assert "## Figures\n\n![a \\[b]](images/a.svg)\n" in text
    assert "## Figures" not in page(compared(), {})


def test_what_is_not_comparable_comes_first() -> None:
    text = page(emulated(differences=("rate_rps: 1 against 2",)), {})
    assert "**Not comparable, shown by --force.** slt: rate_rps: 1 against 2" in text.split("\n")[2]


def test_what_hosts_say_is_no_markup_and_blocks_are_apart() -> None:
    odd = replace(X86, conditions=replace(CONDITIONS, link="a|b <c>\n# d"))
    text = page(compared(comparison(sides=(odd, ARM))), {})
    assert r"| link | a\|b \<c> # d | tbf |" in text
    for before, line in pairwise(text.splitlines()):
        assert before == "" or line == "" or before[0] == line[0]
