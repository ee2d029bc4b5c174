"""Canaries with a testbed that says what each block comes to."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from builders.testbeds import FakeTestbed
from intop.deploy.canary.limits import BlockLimits
from intop.deploy.canary.quantities import FLOOR_MS, OWN, slow_limit_ms
from intop.deploy.canary.stage import CanaryRequest, Switchback
from intop.deploy.canary.view import canary_section, canary_sentence
from intop.document.machine import to_json
from intop.domain.canary import DELIVERY, LOGGED, RETRANSMITTED, Canary, OwnMetric
from intop.domain.configuration import Configuration
from intop.domain.counters import HostCounters
from intop.domain.histogram import Histogram
from intop.domain.trial import PlannedTrial, Status, Trial
from intop.errors import BaselineError
from intop.hosts.access_log import LoggedRequests
from intop.run.executor import execute
from kit.golden import Golden
from kit.printed import shown

VALUES = Configuration({"net.ipv4.tcp_fin_timeout": "30"})
REQUEST = CanaryRequest(configuration=VALUES, title="the winner", pairs=40, block_s=60)

Block = tuple[float, float, Status]
"""The P99 in ms, the share of failed requests, and the status."""
BBR = Configuration({"net.ipv4.tcp_congestion_control": "bbr"})


def requests_of(p99_ms: float, failed: float = 0.0) -> tuple[Histogram, int]:
    """A thousand requests, of which 2 % take that long, and those that failed."""
    pairs = [(round(100 * p99_ms), 980), (round(1000 * p99_ms), 20)]
    return Histogram.from_pairs(pairs), round(1000 * failed)


@pytest.fixture
def blocks(testbed: FakeTestbed) -> Callable[[Callable[[PlannedTrial], Block]], FakeTestbed]:
    """A testbed whose blocks come to what a function says."""
    measure = testbed.trial

    def coming_to(of: Callable[[PlannedTrial], Block]) -> FakeTestbed:
        def trial(planned: PlannedTrial, *rest: Any) -> Trial:
            made = measure(planned, *rest)
            p99_ms, failed, status = of(planned)
            histogram, failures = requests_of(p99_ms, failed)
            return replace(
                made,
                status=status,
                detail="" if status == "ok" else "because",
                histogram=None if status in ("failed", "disturbed") else histogram,
                errors={"status": failures},
            )

        testbed.trial = trial  # type: ignore[method-assign]

        def opened(_: object) -> AbstractContextManager[Any]:
            return nullcontext((testbed,))

        context = replace(testbed.task.context, testbeds=opened)
        testbed.task = replace(testbed.task, context=context)
        return testbed

    return coming_to


Blocks = Callable[[Callable[[PlannedTrial], Block]], FakeTestbed]


def noisy(ratio: float, sd: float = 0.1, seed: int = 1) -> Callable[[PlannedTrial], Block]:
    """Blocks of about 100 ms, in the canary's `ratio` of it, on a drift."""
    rng = Random(seed)

    def of(planned: PlannedTrial) -> Block:
        own = ratio if planned.arm == "canary" else 1.0
        drift = 1 + planned.index / 40
        return 100 * own * drift * 2.718 ** rng.gauss(0, sd), 0.0, "ok"

    return of


def test_a_gain_ends_it_early(blocks: Blocks) -> None:
    testbed = blocks(noisy(1 / 1.5))
    result = execute(Switchback(testbed.task, REQUEST))
    assert (result.outcome, result.is_gain, result.stopped) == ("gain", True, "")
    assert 6 <= result.pairs < 20
    assert [side.quantity for side in result.sides] == list(LOGGED)
    p99 = result.sides[2]
    assert p99.high is not None
    assert p99.ratio < p99.high < 1
    assert testbed.task.store.get(testbed.task.subject, Canary) == result


def test_each_pair_has_both_sides_in_an_order_of_its_own(blocks: Blocks) -> None:
    testbed = blocks(noisy(1.0))
    execute(Switchback(testbed.task, replace(REQUEST, pairs=20)))
    first, *plan = testbed.task.store.plan(testbed.task.subject, "canary")
    assert (first.arm, first.round, first.configuration.is_default) == ("default", None, True)
    orders = {tuple(p.arm for p in plan[n : n + 2]) for n in range(0, 40, 2)}
    assert orders == {("default", "canary"), ("canary", "default")}
    assert all(p.configuration == VALUES for p in plan if p.arm == "canary")


@pytest.mark.parametrize(
    ("ratio", "margin", "expected"),
    [(1.4, 1.05, "harm"), (1.0, 1.3, "no difference"), (0.97, 1.01, "undecided")],
)
def test_the_outcome_is_what_the_bounds_show(
    blocks: Blocks, ratio: float, margin: float, expected: str
) -> None:
    testbed = blocks(noisy(ratio))
    result = execute(Switchback(testbed.task, replace(REQUEST, margin=margin)))
    assert result.outcome == expected
    assert not result.is_gain
    assert (result.pairs == result.planned) == (expected == "undecided")


def test_a_block_that_was_stopped_is_a_harm_and_the_last_one(blocks: Blocks) -> None:
    def of(planned: PlannedTrial) -> Block:
        return 100, 0, "pruned" if planned.arm == "canary" else "ok"

    testbed = blocks(of)
    result = execute(Switchback(testbed.task, REQUEST))
    assert (result.outcome, result.stopped, result.pairs) == ("harm", "lb: because", 0)
    assert len(testbed.measured) <= 3
    assert result.canary_requests == 1000
    assert canary_sentence(result) == "harm: lb: because"


def test_a_pair_counts_only_with_both_blocks_and_none_is_measured_again(blocks: Blocks) -> None:
    def of(planned: PlannedTrial) -> Block:
        return 100, 0, "disturbed" if planned.index in (2, 5) else "ok"

    testbed = blocks(of)
    result = execute(Switchback(testbed.task, replace(REQUEST, pairs=4, margin=1.001)))
    assert testbed.measured == list(range(9))
    assert result.pairs == 2
    assert [line.rpartition(": ")[2] for line in result.left_out] == ["because", "because"]


def test_hosts_have_opposite_orders_at_the_same_time(blocks: Blocks) -> None:
    """A change that slows all hosts at once cancels; else it would be most of the noise."""

    def of(planned: PlannedTrial) -> Block:
        own = 0.8 if planned.arm == "canary" else 1.0
        wave = 1 + 0.9 * ((planned.index // 2) % 3)  # the same for both hosts of a slot
        return 100 * own * wave, 0, "ok"

    testbed = blocks(of)
    other = replace(testbed, name="lb2")
    other.trial = lambda *rest: replace(testbed.trial(*rest), replica="lb2")  # type: ignore[method-assign]
    context = replace(testbed.task.context, testbeds=lambda _: nullcontext((testbed, other)))
    task = replace(testbed.task, context=context)
    result = execute(Switchback(task, replace(REQUEST, hosts=2)))
    assert (result.outcome, result.hosts) == ("gain", ("lb", "lb2"))
    assert result.sides[2].ratio == pytest.approx(0.8, rel=0.01)
    plan = [p for p in task.store.plan(task.subject, "canary") if p.round is not None]
    for first, second in zip(plan[::2], plan[1::2], strict=True):
        assert {first.arm, second.arm} == {"default", "canary"}
        assert second.round == (first.round or 0) + 1


def test_only_the_same_hosts_in_the_same_places_go_on(blocks: Blocks) -> None:
    lb = blocks(noisy(0.97))
    request = replace(REQUEST, hosts=2, pairs=6, margin=1.01)

    def execute_on(*names: str) -> None:
        def named(name: str) -> FakeTestbed:
            made = replace(lb, name=name)
            made.trial = lambda *rest: replace(lb.trial(*rest), replica=name)  # type: ignore[method-assign]
            return made

        testbeds = tuple(map(named, names))
        context = replace(lb.task.context, testbeds=lambda _: nullcontext(testbeds))
        execute(Switchback(replace(lb.task, context=context), request))

    def blocks_of(*names: str) -> int:
        before = len(lb.measured)
        execute_on(*names)
        return len(lb.measured) - before

    assert blocks_of("a", "b") == 26
    assert blocks_of("a", "b") == 0
    assert blocks_of("b", "a") == 26
    assert blocks_of("b", "c") == 26


def test_a_first_block_that_says_too_little_ends_it(blocks: Blocks) -> None:
    testbed = blocks(lambda _: (100, 0, "disturbed"))
    with pytest.raises(BaselineError, match=r"the first block with the default says too little"):
        execute(Switchback(testbed.task, REQUEST))
    assert testbed.measured == [0]


def test_it_goes_on_where_it_was_stopped_and_a_finished_one_is_read(blocks: Blocks) -> None:
    testbed = blocks(noisy(0.97))
    request = replace(REQUEST, pairs=6, margin=1.01)
    testbed.dies_after = 5
    with pytest.raises(KeyboardInterrupt):
        execute(Switchback(testbed.task, request))
    testbed.dies_after = None
    first = execute(Switchback(testbed.task, request))
    assert testbed.measured == list(range(13))
    assert execute(Switchback(testbed.task, request)) == first
    assert len(testbed.measured) == 13
    execute(Switchback(testbed.task, request, again=True))
    execute(Switchback(testbed.task, replace(request, block_s=30)))
    assert len(testbed.measured) == 39


def test_failures_are_a_harm_of_their_own(blocks: Blocks) -> None:
    def of(planned: PlannedTrial) -> Block:
        return 100, 0.02 if planned.arm == "canary" else 0.001, "ok"

    testbed = blocks(of)
    result = execute(Switchback(testbed.task, REQUEST))
    assert result.outcome == "harm"
    assert canary_sentence(result).startswith("harm: failed requests are ")


@pytest.mark.usefixtures("a_narrow_file")
def test_a_key_that_nginxs_times_cannot_judge_is_named(
    blocks: Blocks, capsys: pytest.CaptureFixture[str]
) -> None:
    testbed = blocks(noisy(1 / 1.5))
    values = Configuration({"net.ipv4.tcp_congestion_control": "bbr"})
    result = execute(Switchback(testbed.task, replace(REQUEST, configuration=values)))
    assert result.blurred == ("net.ipv4.tcp_congestion_control",)
    assert canary_sentence(result).endswith("which the clients may not notice")
    text = " ".join(shown(capsys, canary_section("x86 slt", result)).split())
    assert "Look at theirs before you decide" in text


def test_fewer_requests_are_no_larger_share_of_failures(blocks: Blocks) -> None:
    """Nothing fails, and the canary has a third less requests in each block."""
    testbed = blocks(noisy(1.0))
    measure = testbed.trial

    def trial(planned: PlannedTrial, *rest: Any) -> Trial:
        made = measure(planned, *rest)
        if planned.arm == "default" or made.histogram is None:
            return made
        fewer = Histogram.from_pairs((us, 2 * n // 3) for us, n in made.histogram.pairs())
        return replace(made, histogram=fewer)

    testbed.trial = trial  # type: ignore[method-assign]
    result = execute(Switchback(testbed.task, replace(REQUEST, margin=1.01)))
    failed = result.side("failed requests")
    assert failed is not None
    assert (result.outcome, failed.ratio) == ("undecided", 1)


def test_shares_are_those_of_all_requests(blocks: Blocks) -> None:
    testbed = blocks(lambda p: (100, 0.004 if p.arm == "canary" else 0, "ok"))
    result = execute(Switchback(testbed.task, replace(REQUEST, pairs=3)))
    failed = result.sides[4]
    assert (failed.default, round(failed.canary, 6)) == (0, round(4 / 1004, 6))


def test_times_below_a_millisecond_have_a_floor(testbed: FakeTestbed) -> None:
    made = testbed.trial(PlannedTrial(index=0, role="sentinel", configuration=VALUES), "canary", 0)
    instant = replace(made, histogram=Histogram.from_pairs([(0, 10)]))
    assert slow_limit_ms(instant) == 2 * FLOOR_MS


@pytest.mark.usefixtures("a_narrow_file")
def test_it_is_shown(blocks: Blocks, capsys: pytest.CaptureFixture[str], golden: Golden) -> None:
    testbed = blocks(noisy(1 / 1.5))
    result = execute(Switchback(testbed.task, REQUEST))
    golden(shown(capsys, canary_section("x86 slt", result)))
    early = replace(result, sides=result.sides[:0], pairs=0, outcome="undecided", only_new=False)
    golden(shown(capsys, canary_section("x86 slt", early)))
    assert '"is_gain": true' in to_json(result)


# Limits -------------------------------------------------------------------------------------------


def logged(p99_ms: float, failed: float = 0.0) -> LoggedRequests:
    histogram, failures = requests_of(p99_ms, failed)
    return LoggedRequests(histogram, failures)


@pytest.mark.parametrize(
    ("canary", "expected"),
    [
        (logged(100), ""),
        (logged(290), ""),
        (logged(310), "P99 was 31"),
        (logged(100, 0.009), ""),
        (logged(100, 0.03), "2.9 % of the requests failed, 2.9 points more"),
        (LoggedRequests(Histogram.from_pairs([(900_000, 400)]), 9), ""),  # too few to tell
        (LoggedRequests(Histogram.from_pairs([(1000, 1000)])), ""),
    ],
)
def test_a_limit_is_broken_by_p99_or_failures(canary: LoggedRequests, expected: str) -> None:
    broken = BlockLimits().broken_by(logged(100), canary, 0.4)
    assert broken.startswith(expected)
    assert bool(broken) == bool(expected)


def test_a_third_of_the_requests_is_a_limit_too() -> None:
    default = LoggedRequests(Histogram.from_pairs([(1000, 5000)]), old=1000)
    few = LoggedRequests(Histogram.from_pairs([(1000, 100)]), old=899)
    limits = BlockLimits()
    assert limits.broken_by(default, few, 0.5) == (
        "only 999 requests were logged, with the default 3000"
    )
    assert limits.broken_by(default, few, 0.49) == ""
    assert limits.broken_by(logged(100), few, 0.4) == ""


# Delivery time, and metrics of the user's own -----------------------------------------------------


def counting(blocks: Blocks, of: Callable[[PlannedTrial], HostCounters]) -> FakeTestbed:
    """A testbed whose blocks have the same times but for noise, and counters of their own."""
    testbed = blocks(noisy(1.0))
    measure = testbed.trial

    def trial(planned: PlannedTrial, *rest: Any) -> Trial:
        return replace(measure(planned, *rest), counters={"lb": of(planned)})

    testbed.trial = trial  # type: ignore[method-assign]
    return testbed


def delivering(ratio: float, seed: int = 1, acked: int = 10**7) -> Callable[..., HostCounters]:
    """Counters of blocks of about 50 ms/MB, in the canary's `ratio` of it."""
    rng = Random(seed)

    def of(planned: PlannedTrial) -> HostCounters:
        own = ratio if planned.arm == "canary" else 1.0
        busy = round(50 * own * 2.718 ** rng.gauss(0, 0.1) * acked / 1e6)
        growth = {"clients.busy_ms": busy, "clients.bytes_acked": acked}
        again = 30 if planned.arm == "canary" else 10
        # The kernel leaves out of OutSegs what is sent again.
        growth |= {"Tcp.OutSegs": 10_000 - again, "Tcp.RetransSegs": again}
        return HostCounters(at_s=(60.0,), growth={name: (n,) for name, n in growth.items()})

    return of


@pytest.mark.parametrize(
    ("ratio", "expected"), [(1 / 1.5, "gain"), (1.5, "harm"), (1.0, "undecided")]
)
def test_delivery_time_judges_what_acts_on_the_way(
    blocks: Blocks, ratio: float, expected: str
) -> None:
    testbed = counting(blocks, delivering(ratio))
    request = replace(REQUEST, configuration=BBR, sees_delivery=True, margin=1.01)
    result = execute(Switchback(testbed.task, request))
    assert (result.outcome, result.judged_by) == (expected, DELIVERY)
    assert result.may_stay == (expected == "gain")
    assert not result.is_blurred
    side = result.side(DELIVERY)
    assert side is not None
    assert side.ratio == pytest.approx(ratio, rel=0.15)
    assert canary_sentence(result).startswith(f"{expected}")
    p99, retransmitted = result.side("P99"), result.side(RETRANSMITTED)
    assert p99 is not None
    assert retransmitted is not None
    # The configuration moves nginx's times, and more retransmissions may be the price of speed.
    assert (p99.limit, retransmitted.limit) == (None, None)
    assert (retransmitted.default, retransmitted.canary) == (0.001, 0.003)


def test_keys_that_act_elsewhere_are_judged_by_p99_and_delivery_is_a_guardrail(
    blocks: Blocks,
) -> None:
    testbed = counting(blocks, delivering(1.5))
    mixed = Configuration({**BBR.values, **VALUES.values})
    request = replace(REQUEST, configuration=mixed, sees_delivery=True)
    result = execute(Switchback(testbed.task, request))
    assert (result.outcome, result.judged_by, result.is_blurred) == ("harm", "P99", True)
    assert canary_sentence(result).startswith("harm: delivery time is 1.")


def test_without_tcp_info_such_keys_are_judged_by_p99_and_nothing_stays(blocks: Blocks) -> None:
    testbed = blocks(noisy(1 / 1.5))
    result = execute(Switchback(testbed.task, replace(REQUEST, configuration=BBR)))
    assert (result.outcome, result.judged_by) == ("gain", "P99")
    assert (result.is_blurred, result.may_stay) == (True, False)
    assert result.side(DELIVERY) is None


def test_blocks_with_little_data_have_no_delivery_time(blocks: Blocks) -> None:
    testbed = counting(blocks, delivering(1.5, acked=50_000))
    request = replace(REQUEST, configuration=BBR, sees_delivery=True, pairs=8)
    result = execute(Switchback(testbed.task, request))
    assert (result.outcome, result.side(DELIVERY), result.pairs) == ("undecided", None, 8)


@pytest.mark.parametrize(
    ("better", "ratio", "limit", "expected"),
    [
        ("lower", 1.5, None, "harm: orders is 1."),
        ("higher", 1 / 1.5, 1.2, "harm: orders is 1."),
        ("higher", 1.5, None, "undecided"),
        ("lower", 1 / 1.5, None, "undecided"),
        ("higher", 1 / 1.5, 2.0, "undecided"),
    ],
)
def test_a_metric_of_the_users_own_is_a_guardrail(
    blocks: Blocks, better: Any, ratio: float, limit: float | None, expected: str
) -> None:
    rng = Random(3)

    def of(planned: PlannedTrial) -> HostCounters:
        own = ratio if planned.arm == "canary" else 1.0
        value = 7 * own * 2.718 ** rng.gauss(0, 0.05)
        return HostCounters(at_s=(60.0,), levels={f"{OWN}orders": (value,)})

    testbed = counting(blocks, of)
    metric = OwnMetric(better=better, command="true", limit_times=limit)
    request = replace(REQUEST, metrics={"orders": metric}, margin=1.01)
    result = execute(Switchback(testbed.task, request))
    assert canary_sentence(result).startswith(expected)
    side = result.side("orders")
    assert side is not None
    assert side.limit == (limit or 1.01)
    assert side.ratio == pytest.approx(ratio, rel=0.1)


@pytest.mark.usefixtures("a_narrow_file")
def test_delivery_and_a_metric_are_shown(
    blocks: Blocks, capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    delivery = delivering(1 / 1.5)

    def of(planned: PlannedTrial) -> HostCounters:
        return replace(delivery(planned), levels={f"{OWN}orders": (7.0,)})

    testbed = counting(blocks, of)
    metric = OwnMetric(better="higher", command="true", limit_times=1.5)
    request = replace(REQUEST, configuration=BBR, sees_delivery=True, metrics={"orders": metric})
    result = execute(Switchback(testbed.task, request))
    golden(shown(capsys, canary_section("x86 slt", result)))


def test_progress_counts_the_present_canary_only(blocks: Blocks) -> None:
    testbed = blocks(noisy(0.97))
    request = replace(REQUEST, pairs=2, margin=1.01)
    execute(Switchback(testbed.task, request))
    execute(Switchback(testbed.task, replace(request, pairs=3)))
    begun = [line for line in testbed.output.getvalue().splitlines() if " steps" in line]
    assert [line.partition("canary: ")[2] for line in begun] == ["5 steps", "7 steps"]
