"""`intop sweep`: what is printed, and what is drawn."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from builders.results import VERDICT
from builders.testbeds import FakeTestbed, probe_of
from intop.errors import UsageError

Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def sweep(testbed: FakeTestbed, on_testbed: Call) -> Call:
    """The command, on a task with a winner whose trials are made up."""
    task = testbed.task
    task.store.put(task.subject, VERDICT)
    task.store.put(task.subject, probe_of({"net.core.somaxconn": "4096"}))
    testbed.p99_us[VERDICT.configuration.digest] = 1_000
    return partial(on_testbed, "sweep")


def test_every_point_is_printed_and_drawn(
    sweep: Call, testbed: FakeTestbed, tmp_path: Path
) -> None:
    words = ("--points", "0.5x,1x", "--limit-ms", "2", "--figures", tmp_path)
    code, out, _ = sweep(*words)
    assert code == 0
    assert "x86 slt: at other rates: tuned gain at 75, 150 requests/s" in out
    output = " ".join(out.split())
    assert "tuned carries more than 150 requests/s at P99 <= 2.00 ms" in output
    assert "default carries less than 75 requests/s at P99 <= 2.00 ms" in output
    assert (tmp_path / "x86-slt-sweep-rate-open.svg").is_file()
    # Asked again, nothing is measured again.
    count = len(testbed.measured)
    assert (0, out) == sweep(*words)[:2]
    assert count == len(testbed.measured)


def test_json_has_all_points(sweep: Call) -> None:
    result = json.loads(sweep("--over", "connections", "--points", "16,32", "--json")[1])
    assert tuple(result["x86 slt"][name] for name in ("axis", "loop", "reference")) == (
        "connections",
        "open",
        "default",
    )
    assert [
        (point["value"], point["arms"][1]["outcome"]) for point in result["x86 slt"]["points"]
    ] == [(16.0, "gain"), (32.0, "gain")]


def test_what_one_workload_cannot_have_is_refused_before_the_other_is_measured(
    sweep: Call, testbed: FakeTestbed
) -> None:
    with pytest.raises(UsageError, match="--over file asks for static files: --workload slt"):
        sweep("--over", "file", "--points", "/index.html")
    assert testbed.measured == []
