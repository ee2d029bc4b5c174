"""Both sides of a verdict beyond P99."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest

from builders.trials import METRICS, trial
from intop.domain.guardrails import NO_GUARDRAILS, Guardrail, Guardrails
from intop.domain.histogram import Histogram, Statistic
from intop.domain.sides import check_guardrails, judged, side_by_side
from intop.domain.stats import Interval, bonferroni, paired_difference, paired_ratio
from intop.domain.trial import Trial
from intop.domain.verdict import Pairwise, PairwiseLatency, Verdict


def made(*pairs: tuple[int, int], **changes: object) -> Trial:
    """A usable trial with these latencies (us, count)."""
    return replace(trial(), histogram=Histogram.from_pairs(pairs), **changes)  # type: ignore[arg-type]


def quick(us: int) -> Trial:
    return made((us, 100))


def test_latencies_are_of_all_requests_and_ratios_of_single_trials() -> None:
    default = [made((100, 980), (1000, 20)), made((200, 980), (2000, 20))]
    tuned = [made((100, 980), (500, 20)), made((100, 980), (500, 20))]
    result = side_by_side(default, tuned, level=0.95)
    assert list(result.latencies_ms) == ["P50", "P75", "P90", "P95", "P99", "P99.9", "max"]
    p50, p99, highest = (result.latencies_ms[name] for name in ("P50", "P99", "max"))
    # 2000 requests: the 1000th is one of the two lowest, the 1961st and on are the slow.
    assert (p50.default, p50.tuned) == (0.2, 0.1)
    assert (p99.default, p99.tuned) == (1.0, 0.5)
    assert (highest.default, highest.tuned, highest.ratio) == (2.0, 0.5, None)
    assert p50.ratio is not None
    assert p50.ratio.value == pytest.approx(math.sqrt(2))
    assert paired_ratio([1, 2], [0.5, 0.5], level=0.95) == p99.ratio
    assert Pairwise(default=2000, tuned=2000) == result.requests
    assert result.fewest_requests == 1000
    # Of 2,000 requests two are slower than P99.9.
    assert PairwiseLatency(default=None, tuned=None) == result.latencies_ms["P99.9"]


@pytest.mark.parametrize(
    ("requests", "message"),
    [
        (9, {"max"}),
        (10, {"P50", "max"}),
        (49, {"P50", "P75", "max"}),
        (50, {"P50", "P75", "P90", "max"}),
        (500, {"P50", "P75", "P90", "P95", "P99", "max"}),
        (5000, {"P50", "P75", "P90", "P95", "P99", "P99.9", "max"}),
    ],
)
def test_a_percentile_takes_ten_slower_requests_of_the_side(
    requests: int, message: set[str]
) -> None:
    side = [made((1000, requests))] * 2
    result = side_by_side(side, side, level=0.95)
    assert message == {n for n, both in result.latencies_ms.items() if both.default is not None}
    assert message == {n for n, both in result.latencies_ms.items() if both.tuned is not None}
    assert message == result.latencies_ms.keys() - result.untold.keys()


def test_each_side_has_requests_of_its_own_and_a_ratio_takes_both() -> None:
    many, few = [made((1000, 500))] * 2, [made((1000, 499))] * 2
    result = side_by_side(many, few, level=0.95)
    p90, p99 = result.latencies_ms["P90"], result.latencies_ms["P99"]
    assert (p99.default, p99.tuned) == (1.0, None)
    # It is judged all the same: its interval is over the rounds.
    assert p99.ratio is not None
    assert p90.ratio is not None
    assert result.latencies_ms["P99.9"].ratio is None
    assert result.fewest_requests == 499


def test_the_ratio_of_p99_is_the_one_that_is_judged() -> None:
    # Of 1,100 requests 100 failed, so P99 is the whole timeout of 2 s.
    failing = made((1000, 1000), (2_000_000, 100), errors={"timeout": 100})
    default = [failing, failing]
    tuned = [made((1000, 1000)), made((1000, 1000))]
    result = side_by_side(default, tuned, level=0.95)
    ratio = result.latencies_ms["P99"].ratio
    assert ratio is not None
    assert pytest.approx(ratio.value, rel=0.001) == 2000
    p99 = result.latencies_ms["P99"]
    assert (p99.default, p99.tuned) == (pytest.approx(2000, rel=0.001), 1.0)
    assert (result.latencies_ms["P50"].default, result.latencies_ms["P50"].tuned) == (1.0, 1.0)
    assert (result.error_share.default, result.error_share.tuned) == (
        pytest.approx(200 / 2200),
        0.0,
    )


@pytest.mark.parametrize("name", ["P50", "P90", "mean latency"])
def test_another_latency_can_be_judged_and_p99_is_then_beside_it(name: Statistic) -> None:
    def sides(judged_by: Statistic) -> Iterator[list[Trial]]:
        conditions = replace(trial().conditions, judged_by=judged_by)
        for us in ((1000, 1100, 1300), (800, 700, 900)):
            yield [made((n, 900), (9 * n, 100), conditions=conditions) for n in us]

    before, after = sides(name)
    verdict = judged_verdict(before, after)
    assert verdict.judged_by == name
    ratio = paired_ratio(
        *([t.statistic_ms(name) for t in side] for side in (before, after)), level=0.95
    )
    assert verdict.interval == ratio
    assert verdict.gain.startswith(f"{name} is ")
    assert name not in verdict.certain
    # Those beside it hold together, so each of them is wider.
    of_p99 = verdict.sides.latencies_ms["P99"].ratio
    assert of_p99 is not None
    p99s = ([t.statistic_ms("P99") for t in side] for side in (before, after))
    assert of_p99 == paired_ratio(*p99s, level=bonferroni(0.95, 6))
    as_usual = judged_verdict(*sides("P99")).sides
    both = as_usual.mean_ms if name == "mean latency" else as_usual.latencies_ms[name]
    assert both is not None
    assert both.ratio is not None
    assert both.ratio.high > ratio.high


@pytest.mark.parametrize(
    ("judged_by", "guarded"), [("P99", ["P50"]), ("P50", ["P99"]), ("P90", ["P50", "P99"])]
)
def test_what_is_judged_is_no_guardrail(judged_by: Statistic, guarded: list[str]) -> None:
    conditions = replace(trial().conditions, judged_by=judged_by)
    side = [made((1000, 900), (9000, 100), conditions=conditions)] * 2
    names = [guard.quantity for guard in check_guardrails(side, side, Guardrails(), level=0.95)]
    assert [name for name in names if name in ("P50", "P99")] == guarded
    # P99 takes a thousand requests of a trial.
    few = [made((1000, 899), (9000, 100), conditions=conditions)] * 2
    names = [guard.quantity for guard in check_guardrails(few, few, Guardrails(), level=0.95)]
    assert "P99" not in names


def judged_verdict(before: Sequence[Trial], after: Sequence[Trial]) -> Verdict:
    return judged(
        before,
        after,
        trial().configuration,
        origin="winner",
        against="",
        failures=0,
        rounds=len(before),
        margins=NO_GUARDRAILS,
        level=0.95,
        each_level=0.95,
    )


def test_rate_and_cpu_are_means_over_trials() -> None:
    def trials(rate: float, cpu: float) -> list[Trial]:
        hosts = {
            "lg": METRICS,
            "lb": replace(METRICS, cpu=cpu),
            "b1": METRICS,
        }
        rates = (rate - 5, rate + 5)
        return [replace(quick(1000), achieved_rps=r, metrics=hosts) for r in rates]

    result = side_by_side(trials(100, 0.5), trials(50, 0.25), level=0.9)
    assert (result.achieved_rps.default, result.achieved_rps.tuned) == (100, 50)
    assert (result.balancer_cpu.default, result.balancer_cpu.tuned) == (0.5, 0.25)
    assert Interval(2.0, 2.0, 2.0) == result.balancer_cpu.ratio


def test_reference_metrics_are_means_over_trials_that_all_have_them() -> None:
    def trials(**changes: float) -> list[Trial]:
        hosts = {"lg": METRICS, "lb": replace(METRICS, memory_mib=100.0, **changes)}
        return [replace(quick(us), received_mb_s=3.0, metrics=hosts) for us in (1000, 2000)]

    counted = trials(context_switches_per_s=500.0, power_w=80.0)
    result = side_by_side(counted, trials(context_switches_per_s=250.0, power_w=40.0), level=0.9)
    assert result.mean_ms is not None
    assert (result.mean_ms.default, pytest.approx(result.mean_ms.tuned)) == (1.5, 1.5)
    assert result.received_mb_s == Pairwise(default=3.0, tuned=3.0, ratio=Interval(1, 1, 1))
    assert result.memory_mib is not None
    assert result.memory_mib.tuned == 100.0
    assert result.context_switches_per_s is not None
    assert (
        result.context_switches_per_s.default,
        result.context_switches_per_s.tuned,
    ) == (500.0, 250.0)
    assert result.power_w is not None
    assert (result.power_w.default, result.power_w.tuned) == (80.0, 40.0)
    # One side doesn't say it.
    other = side_by_side(counted, trials(), level=0.9)
    assert (other.context_switches_per_s, other.power_w) == (None, None)


@pytest.mark.parametrize("side", ["default", "tuned"])
def test_what_is_zero_has_no_ratio(side: str) -> None:
    sides: dict[str, Sequence[Trial]] = {
        "default": [quick(1000), quick(1000)],
        "tuned": [quick(1000), quick(1000)],
    }
    sides[side] = [quick(1000), replace(made((0, 100)), achieved_rps=0.0)]
    result = side_by_side(sides["default"], sides["tuned"], level=0.95)
    assert result.latencies_ms["P50"].ratio is None
    assert result.achieved_rps.ratio is None


def test_one_pair_is_too_few() -> None:
    with pytest.raises(ValueError, match="two values or more"):
        side_by_side([quick(1000)], [quick(1000)], level=0.95)


# Guardrails ---------------------------------------------------------------------------------------


def busy(cpu: float, grown_mib: float = 0.0, **changes: object) -> Trial:
    """A trial whose balancer was so busy, and whose memory has grown by so much."""
    lb = replace(METRICS, cpu=cpu, memory_before_mib=100.0, memory_mib=100.0 + grown_mib)
    hosts = {"lg": METRICS, "lb": lb, "b1": METRICS}
    return replace(made((1000, 1000)), metrics=hosts, **changes)  # type: ignore[arg-type]


def by_quantity(
    default: Sequence[Trial], tuned: Sequence[Trial], margins: Guardrails | None = None
) -> dict[str, Guardrail]:
    result = check_guardrails(default, tuned, margins or Guardrails(), level=0.95)
    return {one.quantity: one for one in result}


def test_sides_that_are_the_same_keep_all_guardrails() -> None:
    side = [busy(0.2), busy(0.3)]
    result = by_quantity(side, side)
    assert list(result) == ["P50", "rate", "error share", "slow requests", "CPU", "memory"]
    assert {g.state for name, g in result.items() if name != "slow requests"} == {"kept"}


def test_an_effect_is_that_of_single_trials_paired_by_round() -> None:
    default = [
        replace(made((1000, 100)), achieved_rps=100.0),
        replace(made((2000, 100)), achieved_rps=100.0),
    ]
    tuned = [
        replace(made((1500, 100)), achieved_rps=98.0),
        replace(made((1600, 100)), achieved_rps=99.0),
    ]
    result = by_quantity(default, tuned)
    # Tuned / default: above 1 it is longer.
    p50 = paired_ratio([1.5, 1.6], [1.0, 2.0], level=0.95)
    one = result["P50"]
    assert (p50.value, p50.low, p50.high) == pytest.approx((one.effect, one.low, one.high))
    assert (one.margin, one.unit, one.worse) == (1.1, "times", "higher")
    rate = paired_ratio([98.0, 99.0], [100.0, 100.0], level=0.95)
    assert rate.value == pytest.approx(result["rate"].effect)
    assert (
        result["rate"].margin,
        result["rate"].worse,
        pytest.approx(result["rate"].default),
    ) == (0.99, "lower", 100.0)


def test_what_may_be_zero_is_a_difference() -> None:
    default = [busy(0.2, 10.0), busy(0.3, -5.0)]
    tuned = [busy(0.3, 50.0, errors={"timeout": 10}), busy(0.5, 5.0)]
    result = by_quantity(default, tuned)
    cpu = paired_difference([30.0, 50.0], [20.0, 30.0], level=0.95)
    one = result["CPU"]
    assert (cpu.value, cpu.low, cpu.high) == pytest.approx((one.effect, one.low, one.high))
    assert pytest.approx((one.default, one.tuned)) == (25.0, 40.0)
    assert (pytest.approx(result["memory"].effect), result["memory"].unit) == (25.0, "MiB")
    errors = result["error share"]
    # Those that failed are in the histogram, too.
    assert (errors.default, errors.tuned) == (0.0, pytest.approx(50 * 10 / 1000))


@pytest.mark.parametrize(
    ("margins", "cpu", "memory"),
    [
        # Default: 20 % CPU, and 200 MiB in use at the end.
        ({}, 5.0, 64.0),
        ({"cpu_times": 1.5, "memory_times": 2.0}, 10.0, 200.0),
        ({"cpu_points": None, "memory_mib": None}, 2.0, 20.0),
        ({"cpu_times": None, "memory_times": None}, 5.0, 64.0),
        ({"cpu_points": 0.0, "cpu_times": 1.0}, 0.0, 64.0),
    ],
)
def test_of_two_margins_the_larger_one_counts(
    margins: dict[str, float | None], cpu: float, memory: float
) -> None:
    side = [busy(0.2, 100.0), busy(0.2, 100.0)]
    result = by_quantity(side, side, replace(Guardrails(), **margins))  # type: ignore[arg-type]
    assert (cpu, memory) == pytest.approx((result["CPU"].margin, result["memory"].margin))


@pytest.mark.parametrize(
    ("off", "quantity"),
    [
        (("p50_times",), "P50"),
        (("rate_times",), "rate"),
        (("error_points",), "error share"),
        (("slow_points",), "slow requests"),
        (("slow_times",), "slow requests"),
        (("cpu_points", "cpu_times"), "CPU"),
        (("memory_mib", "memory_times"), "memory"),
    ],
)
def test_each_can_be_switched_off(off: tuple[str, ...], quantity: str) -> None:
    side = [busy(0.2), busy(0.3)]
    margins = replace(Guardrails(), **dict.fromkeys(off))
    assert quantity not in by_quantity(side, side, margins)
    assert len(by_quantity(side, side, margins)) == 5
    assert check_guardrails(side, side, NO_GUARDRAILS, level=0.95) == ()


def test_a_latency_and_a_rate_of_nothing_have_a_ratio() -> None:
    none = [replace(made((0, 100)), achieved_rps=0.0)] * 2
    result = by_quantity([quick(1000), quick(1000)], none)
    assert (result["P50"].state, result["rate"].state) == ("kept", "broken")


# The far tail -------------------------------------------------------------------------------------


def tailed(slow: int, *, of: int = 5000) -> Trial:
    """A trial of requests of 1 ms, of which some take 1 s."""
    pairs = ((1000, of - slow), (1_000_000, slow)) if slow else ((1000, of),)
    return replace(busy(0.2), histogram=Histogram.from_pairs(pairs))


def test_slow_requests_are_those_beyond_four_times_the_defaults_p99() -> None:
    result = by_quantity([tailed(0)] * 4, [tailed(25)] * 4)["slow requests"]
    assert (result.limit_ms, result.default) == (4.0, 0.0)
    assert result.tuned == pytest.approx(0.5)
    assert result.state == "broken"
    assert result.summary.startswith("share of requests above 4 ms is higher by 0.5 points (")


def test_a_limit_in_ms_takes_the_place_of_the_multiple() -> None:
    margins = Guardrails(slow_ms=1500.0)
    result = by_quantity([tailed(0)] * 4, [tailed(25)] * 4, margins)["slow requests"]
    assert (result.limit_ms, result.tuned) == (1500.0, 0.0)


def test_no_slow_request_says_only_as_much_as_there_are_requests() -> None:
    few, many = ([tailed(0, of=count)] * 2 for count in (100, 5000))
    summaries = [by_quantity(side, side)["slow requests"].summary for side in (few, many)]
    assert summaries == [
        "share of requests above 4 ms is higher by 1.4 points at most",
        "share of requests above 4 ms is higher by 0.028 points at most",
    ]


def test_a_burst_in_a_single_trial_is_no_certain_harm() -> None:
    result = by_quantity([tailed(0)] * 4, [tailed(40), *[tailed(0)] * 3])["slow requests"]
    assert (result.effect, result.state) == (pytest.approx(0.2), "unclear")


def test_intervals_beside_p99_hold_together() -> None:
    sides = [[quick(us) for us in side] for side in ((1000, 1100, 1000, 900), (500, 540, 520, 460))]
    result = side_by_side(*sides, level=0.95)
    alone = paired_ratio(*([t.percentile_ms(50) for t in side] for side in sides), level=0.95)
    together = result.latencies_ms["P50"].ratio
    assert together is not None
    assert together.value == pytest.approx(alone.value)
    assert together.low < alone.low
    assert together.high > alone.high
