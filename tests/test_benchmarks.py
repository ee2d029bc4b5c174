"""The simulations that intervals, allotments and pilots are judged by, and what measures a lab."""

import random
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from benchmarks import carryover, cost, intervals, knee, pilots, replicates, roundtrips
from benchmarks import soak as soaks
from intop.config.study import load_study
from intop.domain.cluster import LabSpec
from intop.domain.configuration import DEFAULT
from intop.domain.stats import paired_ratio
from intop.lab.texts import balancer_config
from intop.resources import shipped
from samples import trial

LEVEL = intervals.LEVEL
SAME, TUNED = ("default", "default"), ("default", "tuned")


def covered(
    method: intervals.Method, pairs: int, correlation: str, sides: tuple[str, str]
) -> float:
    ratios = intervals.log_ratios(intervals.RUNS, pairs, correlation, sides)
    truth = intervals.true_log_ratio(sides)
    return intervals.coverage(method, ratios, truth, LEVEL)[0]


def test_students_t_there_is_the_one_that_verdicts_use() -> None:
    ratios = np.random.default_rng(1).standard_normal((3, 10))
    low, high = intervals.student(ratios, LEVEL)
    for row, one, other in zip(ratios, low, high, strict=True):
        found = paired_ratio(list(np.exp(row)), [1.0] * 10, level=LEVEL)
        assert (found.low, found.high) == pytest.approx((np.exp(one), np.exp(other)))


@pytest.mark.parametrize("sides", [SAME, TUNED])
@pytest.mark.parametrize("correlation", intervals.CORRELATIONS)
def test_the_truth_is_the_mean_of_what_is_measured(
    correlation: str, sides: tuple[str, str]
) -> None:
    ratios = intervals.log_ratios(4000, 10, correlation, sides)
    error = ratios.mean(axis=1).std() / 4000**0.5
    assert abs(ratios.mean() - intervals.true_log_ratio(sides)) < 4 * error


@pytest.mark.parametrize("pairs", intervals.PAIRS)
def test_students_t_covers_where_rounds_are_independent_or_correlated_in_time(pairs: int) -> None:
    for correlation in ("none", "in time"):
        # The order within a round is random: what is correlated in time is not in the ratios.
        assert 0.94 <= covered(intervals.student, pairs, correlation, SAME)
        # Few and large lumps on one side only: somewhat less.
        assert 0.91 <= covered(intervals.student, pairs, correlation, TUNED)


@pytest.mark.parametrize("sides", [SAME, TUNED])
def test_percentiles_of_a_bootstrap_cover_too_little_at_ten_pairs(sides: tuple[str, str]) -> None:
    for method in (intervals.percentile, intervals.bca):
        assert 0.91 >= covered(method, 10, "none", sides)


def test_a_block_bootstrap_t_has_no_bounds_where_there_are_few_blocks() -> None:
    ratios = intervals.log_ratios(200, 6, "none", SAME)
    widths = {
        method: intervals.coverage(method, ratios, 0.0, LEVEL)[1]
        for method in (intervals.student, intervals.studentised)
    }
    assert widths[intervals.studentised] > 1e6 * widths[intervals.student]


def test_a_verdict_that_may_stop_early_holds_the_truth_as_often_as_one_that_may_not() -> None:
    for correlation in ("none", "in time"):
        ratios = intervals.log_ratios(intervals.RUNS, 10, correlation, TUNED)
        truth = intervals.true_log_ratio(TUNED)
        once, twice = (intervals.reported(ratios, count, LEVEL, truth) for count in (1, 2))
        assert twice >= once


def test_looks_there_are_those_of_verdicts() -> None:
    ratios = intervals.log_ratios(2000, 10, "none", SAME)
    shares = [(intervals.judged(ratios, count, LEVEL)[1] != 0).mean() for count in (1, 2, 3)]
    # The binomial standard deviation of 5 % of 2,000 is 0.5 %.
    assert all(share <= 0.065 for share in shares)
    taken, outcome = intervals.judged(np.full((1, 10), 1.0) + ratios[:1] * 1e-3, 2, LEVEL)
    assert (7.0, 1.0) == (taken[0], outcome[0])


def test_replicates_by_ocba_find_the_best_more_often_than_at_random() -> None:
    noise = (0.8, 0.3, 0.5)
    by_ocba, at_random, none = (
        replicates.found(name, noise, 500) for name in ("OCBA, batches of 4", "8 at random", "none")
    )
    assert by_ocba[0] > at_random[0] + 0.09
    assert by_ocba[1] < at_random[1] < 1.1 * none[1]


# What loads leave behind, and what a trial costs --------------------------------------------------


def test_nineteen_of_twenty_further_values_are_within_the_spread() -> None:
    logs = np.random.default_rng(1).normal(4.5, 0.1, (2000, 9))
    within = 0
    for row in np.exp(logs):
        low, high = carryover.spread(list(row[:-1]))
        within += low <= row[-1] <= high
    # The binomial standard deviation of 95 % of 2,000 is 0.5 %.
    assert abs(within / 2000 - 0.95) < 0.02


def test_what_a_load_leaves_behind_is_held_against_the_spread() -> None:
    same, low, high = (
        [measured_p99(us) for us in values]
        for values in ((90_000, 100_000, 110_000), (91_000, 95_000), (91_000, 400_000))
    )
    limits = carryover.spread([m.trial.p99_ms for m in same])
    text = "\n".join(carryover.summary(same, {"settled": low, "not settled": high}, limits))
    assert "| settled: within it | 2 of 2 |" in text
    assert "| not settled: within it | 1 of 2 |" in text


def measured_p99(us: int) -> carryover.Measured:
    return carryover.Measured(trial(DEFAULT, us), 0.0, (5, 5), 0.07)


def test_a_trials_cost_is_what_is_neither_counted_nor_settling() -> None:
    parts = {"apply": 0.1, "settle": 0.7, "measure": 5.3, "load": 5.1, "counters": 0.2}
    trials = [{**parts, "restore": 0.05, "store": 0.01, "total": 6.2}]
    study = load_study(shipped("configs") / "lab.toml")
    workload = replace(study.workloads["slt"], duration_s=5)
    text = "\n".join(cost.table(trials, LabSpec(), workload, 3))
    assert "| the load tool beyond the counted seconds | 100 | 100 to 100 |" in text
    assert "| validity, progress, all else | 40 | 40 to 40 |" in text
    assert "| **beyond load and settling** | 500 | 500 to 500 |" in text
    assert "Beyond load and settling: 10.0% of 5 s" in text


@pytest.mark.long
@pytest.mark.parametrize(
    ("benchmark", "options", "expected"),
    [
        (carryover, ["--same=2", "--rounds=1", "--rate=200", "--seconds=1"], "| not settled 1 |"),
        (cost, ["--trials=2", "--seconds=1"], "| **beyond load and settling** |"),
    ],
    ids=["carryover", "cost"],
)
def test_benchmarks_on_a_lab_print_a_table(
    benchmark: ModuleType,
    options: list[str],
    expected: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("sys.argv", [benchmark.__name__, *options])
    benchmark.main()
    assert expected in capsys.readouterr().out


def test_thirty_keys_take_at_most_four_round_trips_each_way() -> None:
    """For a trial alone, and for a host that is taken for one trial and given back."""
    near, far = roundtrips.measured(trials=2, seconds=1, delay_s=0.0)
    assert (2, 1) == (len(near.steps["apply"]), len(near.steps["take"]))
    for watch in (near, far):
        for way in (("take", "apply"), ("restore", "give back")):
            most = sum(max(step.commands for step in watch.steps[name]) for name in way)
            assert 1 <= most <= roundtrips.LIMIT == 4
    text = "\n".join(roundtrips.table(near, far, 1, 50))
    assert "| apply a configuration, read it back | 1 |" in text


def test_a_simulated_pilot_goes_on_until_it_resolves_what_is_wanted() -> None:
    quiet = pilots.piloted(random.Random(1), lambda _: 0.0, 5)
    assert (pilots.LADDER[0], True) == (quiet.duration_s, quiet.reached)
    later = pilots.piloted(random.Random(1), lambda duration_s: 9.0 * (duration_s < 8), 5)
    assert (8, True, 3) == (later.duration_s, later.reached, len(later.tried))
    wild = pilots.piloted(random.Random(1), lambda duration_s: float(duration_s), 5)
    assert (pilots.LADDER[0], False) == (wild.duration_s, wild.reached)


def test_a_planted_knee_is_what_a_link_carries_with_all_headers() -> None:
    # 64 KB and the answer's head are 46 frames of 1,448 bytes at most.
    bits = 8 * (65536 + knee.HEAD + 46 * 66)
    assert 20e6 / bits == pytest.approx(knee.planted_rps(20.0, 65536))


def test_a_knee_is_found_within_five_percent_and_not_where_there_is_none() -> None:
    rows = [knee.Row(20.0, "open", 36.0, found) for found in (34.3, 37.7, 34.1, None)]
    assert [True, True, False, False] == [row.is_within for row in rows]
    assert "| 20 | open | 36.00 | 34.10 | - | -5.3 % | **no** |" == knee.line(rows[2])
    assert knee.line(rows[3]).endswith("| - | - | - | **no** |")


def test_a_leak_is_planted_in_the_labs_own_nginx() -> None:
    own = balancer_config(Path("/x"), "www-data", ["192.0.2.1"], open_files=64)
    text = soaks.planted(own, Path("/m.so"), Path("/perl"), 18.0)
    # 18 MiB in an hour of 50 requests a second.
    assert "$due += 104.858;" in text
    assert text.startswith("load_module /m.so;\n")
    assert "perl_modules /perl;" in text
    assert "proxy_set_header X-Kept $kept;" in text
    with pytest.raises(ValueError, match="is another one"):
        soaks.planted("http {\n}\n", Path("/m.so"), Path("/perl"), 18.0)
