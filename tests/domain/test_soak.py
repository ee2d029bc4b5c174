"""Soaks: what grows, what is a leak, and which limit ends them."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from builders.results import SOAK, SOAK_BLOCK
from builders.trials import HOSTS, trial
from intop.domain.counters import HostCounters
from intop.domain.soak import Leak, Limits, SoakBlock, Trend
from intop.soak.trends import block_of, broken_by, pauses_of, restarts_of, trends_of


def blocks(change: Callable[[int], dict[str, Any]], count: int = 60) -> list[SoakBlock]:
    """An hour of blocks, each changed."""
    return [replace(SOAK_BLOCK, hours=n / count, **change(n)) for n in range(count)]


def trends(made: list[SoakBlock]) -> dict[str, Trend]:
    return {one.quantity: one for one in trends_of(made, planned_s=3600, level=0.95)}


def leak(made: list[SoakBlock]) -> Leak:
    return replace(SOAK, trends=tuple(trends(made).values())).leak


def wobble(n: int) -> float:
    return 0.3 * (n * 7 % 5)


def test_memory_that_grows_is_a_leak() -> None:
    made = blocks(lambda n: {"nginx_memory_mib": 30 + 20 * n / 60 + wobble(n)})
    result = trends(made)["nginx memory"]
    assert result.per_hour is not None
    assert pytest.approx(result.per_hour.value, abs=0.5) == 20
    assert result.per_hour.low < 20.1 < result.per_hour.high + 0.2
    assert (result.growth, result.unit, result.floor, result.blocks) == ("grows", "MiB", 5.0, 50)
    assert leak(made) == "leak"


def test_memory_that_wobbles_or_fills_up_in_the_warm_up_is_none() -> None:
    made = blocks(lambda n: {"nginx_memory_mib": 30 + 5 * min(n, 9) + wobble(n)})
    assert trends(made)["nginx memory"].growth == "steady"
    assert leak(made) == "no leak"


def test_growth_below_the_floor_is_none_and_about_the_floor_it_is_not_known() -> None:
    slow = blocks(lambda n: {"nginx_memory_mib": 30 + 3 * n / 60 + wobble(n)})
    assert leak(slow) == "no leak"
    # Jumps of 40 MiB to and fro say nothing about 5 MiB an hour.
    wild = blocks(lambda n: {"nginx_memory_mib": 90 + 40 * (n // 7 % 2)})
    assert leak(wild) == "not known"


def test_files_that_grow_are_a_leak_too() -> None:
    assert leak(blocks(lambda n: {"nginx_files": 40 + 2 * n})) == "leak"


def test_what_nobody_could_read_is_not_known() -> None:
    made = blocks(lambda _: {"nginx_memory_mib": None, "nginx_files": None})
    assert "nginx memory" not in trends(made)
    assert leak(made) == "not known"
    assert leak(made[:12]) == "not known"


def test_a_restart_is_no_loss_of_memory() -> None:
    """Half of an hour leaks; then nginx is restarted, and leaks from where it began."""

    def change(n: int) -> dict[str, Any]:
        return {"nginx_memory_mib": 30 + 20 * (n % 30) / 60, "nginx_started_s": n // 30}

    made = blocks(change)
    result = trends(made)["nginx memory"]
    assert result.per_hour is not None
    assert pytest.approx(result.per_hour.value, abs=0.1) == 20
    # Each part has its warm-up.
    assert result.blocks == 40
    assert restarts_of(made) == 1


def test_a_restart_every_hour_hides_no_leak() -> None:
    made = [
        replace(
            SOAK_BLOCK,
            hours=n / 60,
            nginx_memory_mib=30 + 20 * (n % 60) / 60,
            nginx_started_s=n // 60,
        )
        for n in range(24 * 60)
    ]
    result = {t.quantity: t for t in trends_of(made, planned_s=24 * 3600, level=0.95)}
    growth = result["nginx memory"].per_hour
    assert growth is not None
    assert pytest.approx(growth.value, abs=0.1) == 20


def test_p99_is_told_in_percent_an_hour_without_disturbed_blocks() -> None:
    made = blocks(
        lambda n: (
            {"p99_ms": 20 * 1.5 ** (n / 60)} if n % 10 else {"p99_ms": 900, "status": "disturbed"}
        )
    )
    result = trends(made)["P99"]
    assert result.per_hour is not None
    assert pytest.approx(result.per_hour.value, abs=0.1) == 50
    assert (result.growth, result.unit, result.blocks) == ("grows", "%", 45)
    assert result.first is not None
    assert 20 < result.first < 25


def test_a_short_soak_leaves_out_a_sixth() -> None:
    made = [replace(SOAK_BLOCK, hours=n / 3600) for n in range(12)]
    result = trends_of(made, planned_s=12, level=0.95)
    assert {one.blocks for one in result} == {10}


def test_a_limit_is_broken_by_blocks_in_a_row() -> None:
    made = blocks(lambda n: {"p99_ms": 90.0 if n in (2, 3, 5, 6, 7, 9) else 20.0}, 12)
    assert broken_by(made, Limits(p99_ms=50.0)) == ("P99", 8)
    assert broken_by(made, Limits(p99_ms=50.0, in_a_row=1)) == ("P99", 3)
    assert broken_by(made, Limits(p99_ms=50.0, in_a_row=4)) == ("", 0)
    assert broken_by(made, Limits()) == ("", 0)
    disturbed = [replace(one, status="disturbed") if n == 6 else one for n, one in enumerate(made)]
    assert broken_by(disturbed[:8] + made[9:11], Limits(p99_ms=50.0)) == ("P99", 9)


@pytest.mark.parametrize(
    ("block", "limits", "message"),
    [
        ({"errors": 31}, Limits(errors=0.01), "errors"),
        ({"errors": 30}, Limits(errors=0.01), ""),
        ({"nginx_memory_mib": 101.0}, Limits(memory_mib=100.0), "memory"),
        ({"nginx_memory_mib": None}, Limits(memory_mib=100.0), ""),
        ({"errors": 3000}, Limits(), "no answers"),
        ({"requests": None, "errors": None, "p99_ms": None}, Limits(p99_ms=50.0), "no answers"),
    ],
)
def test_each_limit(block: dict[str, Any], limits: Limits, message: str) -> None:
    made = [replace(SOAK_BLOCK, **block)] * 3
    assert message == broken_by(made, limits)[0]
    assert broken_by(made[:2], limits)[0] == ""


def test_pauses_are_counted_and_interruptions_apart() -> None:
    starts = [0.0, 61.4, 122.6, 400.0, 461.4]
    made = [replace(SOAK_BLOCK, hours=start / 3600) for start in starts]
    pause_s, interruptions = pauses_of(made, 61.0)
    assert pause_s is not None
    assert (pause_s, interruptions) == (pytest.approx((0.4 + 0.2 + 0.4) / 3), 1)
    assert pauses_of(made[:1], 61.0) == (None, 0)
    result = replace(SOAK, pause_s=0.61, block_s=60.0, warmup_s=1.0)
    assert result.load_share is not None
    assert pytest.approx(result.load_share) == 1 / 1.01


def test_a_block_has_what_its_trial_measured() -> None:
    counters = HostCounters(at_s=(61.0,), levels={"Tcp.CurrEstab": (17.0,)})
    metrics = {
        **HOSTS,
        "lb": replace(HOSTS["lb"], server_memory_mib=12.5, server_files=41, files=9),
    }
    made = replace(trial(), metrics=metrics, counters={"lb": counters}, errors={"timeout": 2})
    result = block_of(made, datetime.fromisoformat("2025-12-31T22:00:00+00:00"))
    assert (
        result.hours,
        result.nginx_memory_mib,
        result.nginx_files,
        result.host_files,
        result.connections,
        result.errors,
        result.requests,
    ) == (2.0, 12.5, 41, 9, 17, 2, 100)
    failed = block_of(trial(status="failed"), datetime.fromisoformat(made.started_at))
    assert (failed.has_answers, failed.error_share, failed.p99_ms) == (False, 1.0, None)
