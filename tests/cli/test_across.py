"""`intop across`: what is printed, and with which exit code."""

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest

from builders.results import VERDICT
from builders.testbeds import FakeTestbed
from intop.domain.configuration import Configuration
from intop.errors import UsageError

Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def across(testbed: FakeTestbed, on_testbed: Call, quick: Configuration) -> Call:
    """The command, on a task whose trials are made up and whose winner is quick."""
    task = testbed.task
    task.store.put(task.subject, replace(VERDICT, configuration=quick))
    return partial(on_testbed, "across")


def test_the_winner_under_all_workloads_has_a_line_and_an_exit_code(
    testbed: FakeTestbed, across: Call, quick: Configuration
) -> None:
    code, out, _ = across("--rounds", "2")
    assert code == 0
    assert "x86 slt: winner under 2 workloads: gain in 2" in out
    assert "worse here: in none of these workloads" in " ".join(out.split())
    result = json.loads(across("--rounds", "2", "--json")[1])["x86 slt"]
    assert [row["workload"] for row in result["workloads"]] == ["slt", "dlt"]
    # Without any difference there is no gain; where it is slower, it is worse.
    testbed.p99_us[quick.digest] = 5_000
    assert across("--rounds", "2", "--again")[0] == 3
    testbed.latency = lambda p: 9_000 if p.other_workload and p.arm == "tuned" else 1_000
    code, out, _ = across("--rounds", "2", "--again")
    assert code == 3
    assert "worse here: dlt (P99 is 9.0" in " ".join(out.split())
    assert "under 1 workload" in across("--workload", "slt", "--rounds", "2")[1]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("ubuntu-18.04", "--from", "slt"), "ubuntu-18.04 is nobody's"),
        (("--workload", "cdn"), r"has no \[workload.cdn\]"),
        (("--dry-run", "--from", "cdn"), r"has no \[workload.cdn\]"),
    ],
)
def test_what_does_not_go_together_is_refused(
    across: Call, words: tuple[str, ...], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        across(*words)
