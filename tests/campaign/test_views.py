"""Results as text in a file: everything is there, and nothing is cut."""

import math
from dataclasses import replace
from typing import Any

import pytest

from builders.results import VERDICT
from builders.trials import (
    CONDITIONS,
    importance,
    model_error,
    ranking,
    run,
    screening,
    search,
    training,
)
from intop.campaign.collect import view as collect
from intop.campaign.screen import view as screen
from intop.campaign.search import view as report_search
from intop.campaign.train import view as train
from intop.domain.agreement import agreement
from intop.domain.configuration import DEFAULT, Configuration
from intop.domain.drift import Drift
from intop.domain.histogram import Histogram
from intop.domain.ranking import Ranking
from intop.domain.replicates import Collected, Noise
from intop.domain.stats import Interval
from intop.domain.training import Ceiling
from intop.domain.trial import PlannedTrial, Status, Trial
from intop.learn.searching.search import ALGORITHMS
from kit.golden import Golden
from kit.printed import cells, shown

LONG_KEYS = [
    "net.ipv4.tcp_no_ssthresh_metrics_save",
    "kernel.numa_balancing_scan_period_max_ms",
    "net.ipv6.neigh.default.unres_qlen_bytes",
]
pytestmark = pytest.mark.usefixtures("a_narrow_file")
QUIET = Noise(configurations=0, freedom=0, level=0.95)
FEW = Drift(sentinels=1, hours=0.0, level=0.95)
TRAINING = training(
    model_error("svr", 120.4, r2=-0.25, seconds=1.25),
    model_error("gradient boosting", 48.6, r2=0.75, spearman=0.88, seconds=12.0),
    keys=tuple(LONG_KEYS),
    trials=24,
    configurations=20,
)


# Tables -------------------------------------------------------------------------------------------


def probed(*passes: bool, chosen: int, **changes: Any) -> Ranking:
    """Three parameters, of which the first are chosen, around a probe level of 5 %."""
    importances = (
        importance(
            key,
            0.25 if passing else -0.001,
            mean=0.4 if passing else 0.05,
            permutation_sd=0.125,
            above=0.95 if passing else 0.3,
            passes=passing,
        )
        for key, passing in zip(LONG_KEYS, passes, strict=True)
    )
    return ranking(*importances, chosen=LONG_KEYS[:chosen], trials=40, probe_level=0.05, **changes)


def test_a_ranking_has_a_line_at_the_level_of_the_probes(
    capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    result = probed(True, False, False, chosen=1, drift=FEW)
    out = shown(capsys, screen.ranking("x86 slt", result))
    golden(out)
    assert LONG_KEYS[1] not in out
    line = " ".join(cells(out, LONG_KEYS[0]))
    assert line == f"{LONG_KEYS[0]} 25.0 % 12.5 % 95.0 % 40.0 % {20 * '█'}"
    assert cells(out, "probe level") == ["probe", "level", "5.00", "%", 4 * "┄"]
    assert out.index("probe level") > out.index(LONG_KEYS[0])
    golden(out)


def test_a_ranking_in_which_nothing_passes_says_what_to_do(
    capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    out = shown(capsys, screen.ranking("x86 slt", probed(False, False, False, chosen=2)))
    assert out.index("probe level") < out.index(LONG_KEYS[0])
    golden(out)


def test_a_ranking_says_what_is_chosen_by_rank_alone(capsys: pytest.CaptureFixture[str]) -> None:
    out = shown(capsys, screen.ranking("x86 slt", probed(True, False, False, chosen=3)))
    assert "The next 2 are chosen by their rank alone" in " ".join(out.split())


def test_a_ranking_says_what_keep_left_out_and_what_was_saved(
    capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    result = probed(True, True, True, chosen=2, saved=12)
    golden(shown(capsys, screen.ranking("x86 slt", result)))


def screened(*chosen: str, **changes: Any) -> Ranking:
    """The three parameters, of which these act; the last is frozen unless it does."""
    still = [key for key in LONG_KEYS[:2] if key not in chosen]
    frozen = [key for key in LONG_KEYS[2:3] if key not in chosen]
    result = screening(chosen, still, frozen, **changes)
    return replace(probed(True, False, False, chosen=0), chosen=chosen, screening=result)


def test_a_screening_says_what_acts_and_what_it_would_have_found(
    capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    out = shown(capsys, screen.ranking("x86 slt", screened(LONG_KEYS[0])))
    assert "x86 slt: which parameters act (40 trials)" in out
    rows = [line.split() for line in out.splitlines()]
    assert [LONG_KEYS[0], "1.50", "times", "1.75", "times"] in [row[:5] for row in rows]
    assert [LONG_KEYS[1], "open"] in [[*row[:1], *row[-1:]] for row in rows]
    assert LONG_KEYS[2] not in out
    golden(out)


def test_a_screening_without_power_says_so(
    capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    out = shown(capsys, screen.ranking("x86 slt", screened(detectable=None)))
    golden(out)


def test_a_ranking_in_which_nothing_matters_is_shown_too(
    capsys: pytest.CaptureFixture[str],
) -> None:
    result = ranking(importance("vm.swappiness", 0.0, above=0.0), chosen=["vm.swappiness"])
    assert cells(shown(capsys, screen.ranking("x86 slt", result)), "vm.swappiness") == [
        "vm.swappiness",
        *("0", "%") * 4,
    ]


def test_errors_of_the_families(capsys: pytest.CaptureFixture[str], golden: Golden) -> None:
    out = shown(capsys, train.errors("x86 slt", TRAINING))
    golden(out)
    assert " ".join(cells(out, "svr")) == "svr 120 % -0.25 0.50 90.0 % 3.50 % 1.25 s"


def test_errors_stand_beside_those_of_a_perfect_model(
    capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    svr, boosting = TRAINING.errors
    judged = replace(boosting, coverage=0.934, regret=3.2)
    ceiling = Ceiling(mape=41, r2=0.8, spearman=0.9, sd=math.log(1.5), configurations=9)
    training = replace(TRAINING, errors=(svr, judged), ceiling=ceiling, target="time", unit="s")
    out = shown(capsys, train.errors("x86 slt", training))
    assert "R² of log time" in out
    assert (
        " ".join(cells(out, "gradient"))
        == "gradient boosting 48.6 % 0.75 0.88 93.4 % 3.20 % 12.0 s"
    )
    out = out
    golden(out)
    far = replace(training, ceiling=replace(ceiling, mape=40, scale=1.1))
    golden(shown(capsys, train.errors("x86 slt", far)))


def test_a_search_shows_each_models_convergence(
    capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    falling = (float(100 - n) for n in range(100))
    made = run("randomised trees", *falling, seconds=12.5, restarts=2)
    out = shown(capsys, report_search.search("x86 slt", search(made)))
    line = " ".join(cells(out, "randomised"))
    assert "x86 slt: search by genetic algorithm" in out
    golden(line)
    assert "Predicted, not measured" in out


def test_every_algorithm_has_a_name_for_readers(capsys: pytest.CaptureFixture[str]) -> None:
    assert list(ALGORITHMS) == list(report_search.ALGORITHMS)
    out = shown(
        capsys, report_search.search("x86 slt", search(run("m", 1.0, algorithm="annealing")))
    )
    assert "search by simulated annealing" in out


@pytest.mark.parametrize(
    ("best_ms", "expected"),
    [
        ((8.0, 7, 6, 5, 4, 3, 2, 1), "█▇▆▅▄▃▂▁"),
        ((5.0,), "▁"),
        ((5.0, 5.0, 5.0), "▁▁▁"),
        ((9.0, 1.0), "█▁"),
    ],
)
def test_a_sparkline_goes_from_high_to_low(best_ms: tuple[float, ...], expected: str) -> None:
    assert report_search.sparkline(run("m", *best_ms)) == expected


@pytest.mark.parametrize("count", [1, 29, 30, 31, 59, 60, 61, 1000])
def test_a_sparkline_is_never_wider_than_asked(count: int) -> None:
    assert 1 <= len(report_search.sparkline(run("m", *range(count, 0, -1)), width=30)) <= 30


def trial(status: Status, configuration: Configuration, p99_us: int | None) -> Trial:
    return Trial(
        planned=PlannedTrial(index=0, role="design", configuration=configuration),
        stage="collect",
        attempt=0,
        status=status,
        detail="",
        conditions=CONDITIONS,
        started_at="2026-01-01T00:00:00+00:00",
        seconds=12.0,
        seed=1,
        tool_version="0.1.0",
        replica="lb",
        histogram=None if p99_us is None else Histogram.from_pairs([(p99_us, 100)]),
        achieved_rps=100.0,
    )


def test_collected_trials_are_counted_by_status(
    capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    tuned = VERDICT.configuration
    trials = [
        trial("ok", DEFAULT, 2000),
        trial("ok", tuned, 1000),
        trial("ok", tuned, 1500),
        trial("overloaded", tuned, 1200),
        trial("failed", tuned, None),
        trial("failed", tuned, None),
        trial("disturbed", tuned, 1),
    ]
    result = Collected(
        trials=tuple(trials), replicates=2, drift=FEW, noise=QUIET, default_noise=QUIET
    )
    out = shown(capsys, collect.collected("arm dlt", result))
    assert "arm dlt: trials" in out
    assert cells(out, "default") == ["default", "1", "2.0", "ms", "2.0", "ms", "none"]
    line = " ".join(cells(out, "configurations"))
    assert line == "configurations 6 1.0 ms 1.5 ms 1 disturbed, 2 failed, 1 overloaded"
    golden(out)


def test_no_trials_have_no_latencies(capsys: pytest.CaptureFixture[str]) -> None:
    result = Collected(trials=(), replicates=0, drift=FEW, noise=QUIET, default_noise=QUIET)
    out = shown(capsys, collect.collected("arm dlt", result))
    assert cells(out, "default") == ["default", "0", "-", "-", "none"]


def test_noise_is_told_in_percent() -> None:
    result = Noise(configurations=5, freedom=8, level=0.9, sd=0.2, low=0.1, high=0.7)
    assert collect.noise_sentence("the default", result) == (
        "noise of the default: a trial scatters by 22 % (90 % interval 11 to 101 %, degrees "
        "of freedom: 8)"
    )
    wild = collect.noise_sentence("configurations", replace(result, high=900))
    assert "by 22 % (90 % interval 11 to 1e+306 %" in wild
    assert "can't be told" in collect.noise_sentence("configurations", QUIET)


def moved(low: float, ratio: float, high: float, hours: float = 0.2) -> Drift:
    return Drift(
        sentinels=9,
        hours=hours,
        level=0.95,
        change=Interval(ratio, low, high),
        per_hour=(0.1, 0.0, 0.2),
        share=0.613,
    )


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (
            moved(0.95, 1.03, 1.12),
            (
                "drift of the default: +3 % over 12 min (95 % interval -5 to +12 %), "
                "not separated from zero"
            ),
        ),
        (
            moved(1.04, 1.1, 1.16, hours=26),
            (
                "drift of the default: +10 % over 26 h (95 % interval +4 to +16 %), "
                "separated from zero: 61% of its scatter"
            ),
        ),
        (
            moved(0.5, 0.6, 5e9, hours=0.01),
            (
                "drift of the default: -40 % over 36 s (95 % interval -50 to +5e+11 %), "
                "not separated from zero"
            ),
        ),
        (
            Drift(sentinels=2, hours=0.1, level=0.95),
            (
                "drift of the default: can't be told from 2 of its trials, "
                "which are too few, or not far enough apart"
            ),
        ),
    ],
)
def test_drift_in_a_sentence(result: Drift, expected: str) -> None:
    assert collect.drift_sentence(result) == expected


# Verdicts -----------------------------------------------------------------------------------------


def test_replicas_are_told_of_with_the_interval(
    capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    same = (10.0, 11.0, 9.5)
    result = agreement({"a": same, "b": same, "c": [3 * x for x in same], "d": ()}, level=0.95)
    out = shown(
        capsys,
        collect.collected(
            "x86 slt",
            Collected(
                trials=(),
                replicates=0,
                drift=FEW,
                noise=QUIET,
                default_noise=QUIET,
                replicas=result,
            ),
        ),
    )
    golden(out)
