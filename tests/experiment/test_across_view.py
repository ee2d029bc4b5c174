"""A configuration under several workloads: as text, as Markdown, as JSON, drawn."""

import json
from dataclasses import replace

import pytest

from builders.results import ACROSS, BETTER, UNMEASURED
from intop.document.figures import figures_of
from intop.document.machine import to_json
from intop.document.markdown import as_markdown
from intop.experiment.across.view import across_section
from intop.sentences import across_sentence, worse_here
from kit.golden import Golden
from kit.printed import shown

pytestmark = pytest.mark.usefixtures("a_narrow_file")


def test_each_workload_has_a_verdict_and_both_sides(
    capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    golden(shown(capsys, across_section("x86 slt", ACROSS)))


def test_one_plain_line_says_where_it_is_worse(capsys: pytest.CaptureFixture[str]) -> None:
    expected = (
        "worse here: api (CPU is higher by 12 points (9 to 15; accepted: 5)), "
        "large (P99 is 2.00 times higher (1.25 to 2.50)), tls (2 of 2 trials fail)"
    )
    assert worse_here(ACROSS) == expected
    assert expected in " ".join(shown(capsys, across_section("x86 slt", ACROSS)).split())
    good = replace(ACROSS, workloads=(BETTER,))
    assert worse_here(good) == "worse here: in none of these workloads"
    assert across_sentence(good) == "winner under 1 workload: gain in 1"
    none = replace(ACROSS, workloads=(replace(UNMEASURED, tuned_failed=0),))
    assert across_sentence(none) == "winner under 1 workload: no significant gain"


def test_markdown_and_json_have_all_of_it(golden: Golden) -> None:
    text = as_markdown([across_section("x86 slt", ACROSS)])
    golden(text)
    result = json.loads(to_json(ACROSS))
    assert (result["reference"], result["is_gain"]) == ("default", False)
    assert [(one["workload"], one["outcome"]) for one in result["workloads"]] == [
        ("small", "gain"),
        ("api", "no gain: it costs"),
        ("large", "worse"),
        ("tls", "worse"),
    ]
    assert result["workloads"][3]["harms"] == ["2 of 2 trials fail"]


def test_the_ratios_are_drawn() -> None:
    (drawing,) = figures_of(ACROSS, "x86 slt")
    assert drawing.name == "x86-slt-speed-up"
    assert list(figures_of(replace(ACROSS, workloads=(UNMEASURED,)), "x86 slt")) == []
