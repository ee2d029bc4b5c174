"""Soaks with a testbed that says what each block comes to."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from builders.testbeds import FakeTestbed
from builders.trials import HOSTS
from intop.domain.configuration import DEFAULT
from intop.domain.soak import Limits, Soak
from intop.domain.trial import PlannedTrial, Status, Trial
from intop.errors import UnreachableError, UsageError
from intop.run.prospect import Prospect
from intop.soak.stage import SoakApplied, SoakRequest, soak

REQUEST = SoakRequest(hours=0.2, block_s=60)
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


def soaking(
    testbed: FakeTestbed,
    *,
    memory_mib: Callable[[int], float] = lambda _: 30.0,
    status: Callable[[int], Status] = lambda _: "ok",
) -> None:
    """Blocks a minute apart, with nginx's memory and their status by their place."""
    measure = testbed.trial

    def measured(planned: PlannedTrial, *rest: Any) -> Trial:
        n = planned.index
        testbed.statuses = [status(n)]
        made = measure(planned, *rest)
        lb = replace(HOSTS["lb"], server_memory_mib=memory_mib(n), server_files=40)
        lb = replace(lb, server_started_s=5.0, files=100)
        start = (BEGIN + timedelta(seconds=60 * n)).isoformat(timespec="seconds")
        metrics = {**made.metrics, "lb": lb} if made.metrics else {}
        return replace(made, started_at=start, seconds=60.2, metrics=metrics)

    testbed.trial = measured  # type: ignore[method-assign]


def planned(testbed: FakeTestbed) -> list[PlannedTrial]:
    return testbed.task.store.plan(testbed.task.subject, "soak")


def test_blocks_are_measured_one_after_the_other_as_the_host_is(testbed: FakeTestbed) -> None:
    testbed.applied = "x86 slt of study lab, campaign 1, since then"
    soaking(testbed, memory_mib=lambda n: 30 + n)
    result = soak(testbed.task, REQUEST)
    assert list(range(12)) == testbed.measured
    assert {("soak", DEFAULT.digest, testbed.applied, 60, 150.0, 1)} == {
        (p.role, p.configuration.digest, p.arm, p.duration_s, p.rate_rps, p.series)
        for p in planned(testbed)
    }
    assert (testbed.applied, "lb", 12, 12, "leak", "") == (
        result.applied,
        result.host,
        result.planned,
        len(result.blocks),
        result.leak,
        result.broken,
    )
    assert result == testbed.task.store.get(testbed.task.subject, Soak)


def test_killed_it_goes_on_and_asked_again_it_is_read(testbed: FakeTestbed) -> None:
    soaking(testbed)
    testbed.dies_after = 5
    with pytest.raises(KeyboardInterrupt):
        soak(testbed.task, REQUEST)
    testbed.dies_after = None
    result = soak(testbed.task, REQUEST)
    assert list(range(12)) == testbed.measured
    assert result.leak == "no leak"
    assert result == soak(testbed.task, REQUEST)
    assert len(testbed.measured) == 12
    # Anew only when that is said, or when it is another soak.
    soak(testbed.task, REQUEST, again=True)
    assert [sum(p.series == s for p in planned(testbed)) for s in (1, 2)] == [12, 12]
    assert "another soak than the one before" in testbed.output.getvalue()
    testbed.applied = "something else"
    assert soak(testbed.task, REQUEST).applied == "something else"
    soak(testbed.task, replace(REQUEST, hours=0.1))
    assert [sum(p.series == s for p in planned(testbed)) for s in range(1, 5)] == [12, 12, 12, 6]


def test_a_limit_ends_it_and_the_rest_stays_unmeasured(testbed: FakeTestbed) -> None:
    soaking(testbed)
    testbed.latency = lambda p: 90_000 if p.index >= 4 else 5_000
    request = replace(REQUEST, limits=Limits(p99_ms=50.0))
    result = soak(testbed.task, request)
    assert (result.broken, len(result.blocks)) == ("P99", 7)
    assert list(range(7)) == testbed.measured
    assert len(planned(testbed)) == 12
    # It has ended, and says so: nothing is measured when it is asked for again.
    assert result == soak(testbed.task, request)
    assert len(testbed.measured) == 7
    task = testbed.task
    prospect = Prospect.of(task.context.study, task.workload, task.subject, task.store)
    assert SoakApplied.is_through(prospect, prospect.places("soak"))
    assert not SoakApplied.is_through(replace(prospect, kinds={}), prospect.places("soak"))
    # Without the limit the same soak goes on to its end.
    assert ((more := soak(task, REQUEST)).broken, len(more.blocks)) == ("", 12)


def test_a_disturbed_block_is_not_repeated_and_its_p99_does_not_count(
    testbed: FakeTestbed,
) -> None:
    soaking(testbed, status=lambda n: "disturbed" if n == 4 else "ok")
    result = soak(testbed.task, REQUEST)
    assert (list(range(12)), 0) == (testbed.measured, testbed.waited)
    assert [one.status for one in result.blocks if one.status != "ok"] == ["disturbed"]
    assert {one.blocks for one in result.trends if one.quantity == "P99"} == {9}


def test_a_lost_host_ends_it_before_it_uses_up_the_blocks(testbed: FakeTestbed) -> None:
    soaking(testbed, status=lambda n: "disturbed" if n == 4 else "ok")
    testbed.connected = False
    with pytest.raises(UnreachableError):
        soak(testbed.task, REQUEST)
    assert list(range(5)) == testbed.measured
    testbed.connected = True
    assert len(soak(testbed.task, REQUEST).blocks) == 12
    assert list(range(12)) == testbed.measured


def test_blocks_without_answers_end_it(testbed: FakeTestbed) -> None:
    soaking(testbed, status=lambda n: "failed" if n >= 5 else "ok")
    result = soak(testbed.task, REQUEST)
    assert (result.broken, len(result.blocks)) == ("no answers", 8)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"replica": 3}, r"--replica 3: .* has \d of x86"),
        ({"rate_rps": 1e12}, r"--rate: rate_rps: .* equal to 10000000 .got 1000000000000"),
        ({"rate_rps": 0.5}, r"--rate: at 0\.5 requests/s \d+ connections are idle for longer"),
    ],
)
def test_what_cannot_be_soaked_is_refused(
    testbed: FakeTestbed, change: dict[str, Any], message: str
) -> None:
    context = testbed.task.context
    study = replace(context.study, clusters={"x86": context.study.clusters["x86"][:1]})
    task = replace(testbed.task, context=replace(context, study=study))
    with pytest.raises(UsageError, match=message):
        soak(task, replace(REQUEST, **change))
    assert testbed.measured == []


def test_the_number_of_blocks_covers_the_time() -> None:
    assert [
        SoakRequest(hours=h, block_s=b).blocks
        for h, b in ((1.0, 60), (24.0, 60), (0.1, 150), (0.0001, 60))
    ] == [60, 1440, 3, 1]
