"""Verdicts as text in a file: everything is there, and nothing is cut."""

from dataclasses import replace
from typing import Any

import pytest

from builders.results import BROKEN_CPU, CAUSES, COSTLY, CPU, DOUBTED, MODELS, P50, SIDES, VERDICT
from intop.campaign.verify import view as verdict
from intop.domain.further import EarlierLook, Further
from intop.domain.stats import Interval
from intop.domain.verdict import Pairwise, PairwiseLatency, Verdict
from intop.sentences import verdict_sentence
from intop.words import number
from kit.golden import Golden
from kit.printed import cells, shown

pytestmark = pytest.mark.usefixtures("a_narrow_file")


def test_a_verdict_shows_the_configuration_it_is_about(
    capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    golden(shown(capsys, verdict.verdict("x86 slt", VERDICT)))


def test_a_verdict_against_a_baseline_names_it(capsys: pytest.CaptureFixture[str]) -> None:
    against = replace(VERDICT, against="ubuntu-18.04")
    assert "  ubuntu-18.04 310.0 ms, tuned 100.0 ms" in shown(capsys, verdict.verdict("x", against))


def test_square_brackets_are_no_markup(capsys: pytest.CaptureFixture[str]) -> None:
    odd = replace(VERDICT, origin="[bold]candidate[/bold]")
    assert "[bold]candidate[/bold]" in shown(capsys, verdict.verdict("x86 slt", odd))


def test_a_verdict_says_why_by_what_the_kernel_counted(
    capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    out = shown(capsys, verdict.verdict("x86 slt", replace(VERDICT, causes=CAUSES)))
    golden(out)
    assert "51.2 0 52.0 (48.0 to 56.0)" in " ".join(cells(out, "syn-backlog  "))
    none = replace(CAUSES, mechanisms=())
    out = shown(capsys, verdict.verdict("x86 slt", replace(VERDICT, causes=none)))
    assert "no known mechanism: none of 40 counters changed clearly in 8 pairs." in out


# Both sides ---------------------------------------------------------------------------------------


def test_both_sides_stand_beside_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    out = shown(capsys, verdict.verdict("x86 slt", VERDICT))
    p99 = cells(out, "P99 ")
    assert " ".join(p99[:9]) == "P99 in ms 310 100 3.10 (2.20 to 4.40)"
    assert " ".join(cells(out, "max")[:6]) == "max in ms 500 800 -"
    achieved = "requests/s achieved 150 150 1.00 (0.99 to 1.01)"
    assert achieved == " ".join(cells(out, "requests/s"))
    assert " ".join(cells(out, "failed")) == "failed requests in % 0 1.23 -"
    cpu = "balancer's CPU in % 25.0 20.0 1.25 (1.10 to 1.40)"
    assert cpu == " ".join(cells(out, "balancer's"))
    assert "3000 and 2990" in out


def test_reference_metrics_stand_below_as_far_as_they_are_known(
    capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    both = Pairwise(default=1200.0, tuned=600.0, ratio=Interval(2.0, 1.9, 2.1))
    sides = replace(SIDES, mean_ms=replace(both, default=3.25), context_switches_per_s=both)
    out = shown(capsys, verdict.verdict("x86 slt", replace(VERDICT, sides=sides)))
    assert "mean latency in ms 3.25 600" in " ".join(out.split())
    golden(out)


def test_latencies_are_drawn_on_one_logarithmic_scale(capsys: pytest.CaptureFixture[str]) -> None:
    out = shown(capsys, verdict.verdict("x86 slt", VERDICT))
    (head,) = [line for line in out.splitlines() if "logarithmic" in line]
    assert "drawn from 2.0 to 800.0 ms" in out
    start = head.index("logarithmic")
    drawn = {
        name: next(line for line in out.splitlines() if line.strip().startswith(name))[start:]
        for name in ("P50", "P90", "P99 ", "max")
    }
    # The lowest of all stands at the beginning, the highest at the end.
    assert drawn["P50"].strip() == verdict.BOTH_MARK
    assert drawn["P50"].startswith(verdict.BOTH_MARK)
    assert drawn["max"].index(verdict.TUNED_MARK) == verdict.WIDTH - 1
    assert drawn["max"].index(verdict.DEFAULT_MARK) < drawn["max"].index(verdict.TUNED_MARK)
    # Equal ratios are equally long: 20 to 40 ms are log(2) / log(400) of it, 3.6 of 32.
    apart = drawn["P90"].index(verdict.DEFAULT_MARK) - drawn["P90"].index(verdict.TUNED_MARK)
    assert apart in (3, 4)
    assert drawn["P99 "].index(verdict.TUNED_MARK) < drawn["P99 "].index(verdict.DEFAULT_MARK)


def test_latencies_that_are_all_the_same_or_none_are_drawn_too(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for value in (0.0, 5.0):
        same = {name: PairwiseLatency(default=value, tuned=value) for name in SIDES.latencies_ms}
        result = replace(VERDICT, sides=replace(SIDES, latencies_ms=same))
        out = shown(capsys, verdict.verdict("x86 slt", result))
        words = ["P50", "in", "ms", number(value), number(value), "-", verdict.BOTH_MARK]
        assert words == cells(out, "P50 in ms")


def test_the_baseline_names_its_side(capsys: pytest.CaptureFixture[str]) -> None:
    result = replace(VERDICT, against="ubuntu-18.04")
    assert "○ ubuntu-18.04" in shown(capsys, verdict.verdict("x86 slt", result))


def test_a_long_name_does_not_tear_the_drawing(
    capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    result = replace(VERDICT, against="web-server-benchmark-2016")
    line = " ".join(cells(shown(capsys, verdict.verdict("x86 slt", result)), "max"))
    golden(line)


def test_an_early_stop_is_told(capsys: pytest.CaptureFixture[str], golden: Golden) -> None:
    stopped = replace(VERDICT, pairs=5, rounds=5, planned_rounds=10, looks=2)
    out = shown(capsys, verdict.verdict("x86 slt", stopped))
    golden(out)
    whole = replace(stopped, rounds=10)
    assert "clear after" not in shown(capsys, verdict.verdict("x86 slt", whole))


IN_FOUR_MINUTES = Further(pairs=10, seconds=200.0)
P90 = "; P90 is 2.00 times (1.50 to 2.50) lower"


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, "gain: P99 is 3.10 times lower (95 % interval 2.20 to 4.40)"),
        (
            {"ratio": 1.1, "ratio_low": 0.9, "ratio_high": 1.3},
            f"undecided, more pairs would tell (ratio 1.10, 95 % interval 0.90 to 1.30){P90}",
        ),
        (
            {"ratio": 1.2, "ratio_low": 1.0, "ratio_high": 1.4, "further": IN_FOUR_MINUTES},
            (
                f"undecided, more pairs would tell (ratio 1.20, 95 % interval 1.00 to 1.40){P90}; "
                "some 10 more pairs, 4 minutes: intop verify --more 10"
            ),
        ),
        (
            {"ratio": 1.2, "ratio_low": 1.1, "ratio_high": 1.4, "further": IN_FOUR_MINUTES},
            "gain: P99 is 1.20 times lower (95 % interval 1.10 to 1.40)",
        ),
        (
            {"ratio": 1.1, "ratio_low": 1.0, "ratio_high": 1.19},
            f"no gain of P99 larger than 1.19 times (ratio 1.10, 95 % interval 1.00 to 1.19){P90}",
        ),
        (
            {"ratio": 0.5, "ratio_low": 0.25, "ratio_high": 0.75, "level": 0.9},
            "worse: P99 is 2.00 times higher (ratio's 90 % interval 0.25 to 0.75)",
        ),
        (
            {"against": "ubuntu-18.04"},
            "gain: P99 is 3.10 times lower than with ubuntu-18.04 (95 % interval 2.20 to 4.40)",
        ),
        (
            {"against": "ubuntu-18.04", "ratio": 1.1, "ratio_low": 0.9, "ratio_high": 1.3},
            (
                "undecided over ubuntu-18.04, more pairs would tell (ratio 1.10, 95 % interval "
                f"0.90 to 1.30){P90}"
            ),
        ),
        (
            {"against": "ubuntu-18.04", "ratio": 1.0, "ratio_low": 0.9, "ratio_high": 1.11},
            (
                "no gain over ubuntu-18.04 larger than 1.11 times (ratio 1.00, 95 % interval 0.90 "
                f"to 1.11){P90}"
            ),
        ),
        (
            {"against": "mine", "ratio": 0.5, "ratio_low": 0.25, "ratio_high": 0.75},
            "worse: P99 is 2.00 times higher than with mine (ratio's 95 % interval 0.25 to 0.75)",
        ),
        (
            {"guardrails": DOUBTED.guardrails},
            (
                "gain, but CPU may be higher by up to 8 points: P99 is 3.10 times lower (95 % "
                "interval 2.20 to 4.40)"
            ),
        ),
        (
            {"guardrails": COSTLY.guardrails},
            (
                "no gain: it costs CPU: CPU is higher by 12 points (9 to 15; accepted: 5), though "
                "P99 is 3.10 times lower (95 % interval 2.20 to 4.40)"
            ),
        ),
        (
            {"guardrails": (BROKEN_CPU,), "ratio": 1.1, "ratio_low": 0.9, "ratio_high": 1.3},
            (
                "no significant gain of P99 (ratio 1.10, 95 % interval 0.90 to 1.30); "
                f"besides, CPU is higher by 12 points (9 to 15; accepted: 5){P90}"
            ),
        ),
        # However fast the rest was.
        ({"failures": 2}, "worse: trials of the tuned side that failed: 2"),
    ],
)
def test_a_verdict_in_a_sentence(changes: dict[str, Any], expected: str) -> None:
    assert verdict_sentence(replace(VERDICT, **changes)) == expected


def with_ratios(**ratios: Interval) -> Verdict:
    """A verdict with these ratios of latencies, and no other."""
    latencies = {
        name: PairwiseLatency(default=1.0, tuned=1.0, ratio=ratio) for name, ratio in ratios.items()
    }
    return replace(VERDICT, sides=replace(SIDES, latencies_ms=latencies, mean_ms=None))


def test_a_gain_says_which_other_latency_is_certainly_higher() -> None:
    paid = with_ratios(P50=Interval(1.7, 1.66, 1.75), P75=Interval(0.5, 0.4, 0.625))
    assert verdict_sentence(paid) == (
        "gain: P99 is 3.10 times lower (95 % interval 2.20 to 4.40); P75 is 2.00 times (1.60 to "
        "2.50) higher"
    )


def test_without_anything_certain_the_defaults_stay() -> None:
    nothing = replace(with_ratios(P50=Interval(1.1, 0.9, 1.3)), ratio=1.1, ratio_low=0.9)
    assert verdict_sentence(replace(nothing, ratio_high=1.19)) == (
        "no gain larger than 1.19 times: keep the defaults (ratio 1.10, 95 % interval 0.90 to 1.19)"
    )
    costly = replace(nothing, ratio_high=1.3, guardrails=(BROKEN_CPU,))
    assert verdict_sentence(costly) == (
        "no significant gain: keep the defaults (ratio 1.10, 95 % interval 0.90 to 1.30); "
        "besides, CPU is higher by 12 points (9 to 15; accepted: 5)"
    )


def test_earlier_looks_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    look = EarlierLook(pairs=6, ratio=Interval(1.35, 0.95, 1.91), level=0.96)
    out = shown(capsys, verdict.verdict("x86 slt", replace(VERDICT, earlier=(look,))))
    assert "ratios at earlier looks: 1.35 (0.95 to 1.91) after 6 pairs" in " ".join(out.split())


# Guardrails, and what too few requests are behind -------------------------------------------------


def test_each_guardrail_has_its_effect_its_margin_and_its_state(
    capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    rate = replace(P50, quantity="rate", worse="lower", margin=0.99)
    result = replace(VERDICT, guardrails=(P50, rate, CPU))
    out = shown(capsys, verdict.verdict("x86 slt", result))
    table = out[out.index("guardrail") :]
    golden(table)
    golden(shown(capsys, verdict.verdict("x86 slt", VERDICT)))


def test_what_is_not_told_is_a_dash_and_says_why(capsys: pytest.CaptureFixture[str]) -> None:
    few = {
        **SIDES.latencies_ms,
        "P99": replace(SIDES.latencies_ms["P99"], default=None, tuned=100.0),
        "P99.9": PairwiseLatency(default=None, tuned=None),
    }
    result = replace(VERDICT, sides=replace(SIDES, latencies_ms=few))
    out = shown(capsys, verdict.verdict("x86 slt", result))
    # The judged ratio stays, and nothing is drawn of what is not told.
    assert " ".join(cells(out, "P99 in")) == "P99 in ms - 100 3.10 (2.20 to 4.40)"
    assert " ".join(cells(out, "P99.9 in")) == "P99.9 in ms - - -"
    output = " ".join(out.split())
    assert "not told (-): P99 takes 1,000 requests of a side; P99.9 takes 10,000" in output
    assert "not told" not in shown(capsys, verdict.verdict("x86 slt", VERDICT))


@pytest.mark.parametrize(
    ("fewest", "message"), [(None, False), (999, True), (300, True), (1000, False)]
)
def test_a_single_trial_with_few_requests_is_told(
    capsys: pytest.CaptureFixture[str], fewest: int | None, message: bool
) -> None:
    result = replace(VERDICT, sides=replace(SIDES, fewest_requests=fewest))
    output = " ".join(shown(capsys, verdict.verdict("x86 slt", result)).split())
    assert message == (
        f"A single trial has as few as {fewest} requests. Its P99 would need 1,000" in output
    )


# The models' own winners --------------------------------------------------------------------------


def test_each_models_own_winner_has_its_speed_up(
    capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    out = shown(capsys, verdict.verdict("x86 slt", replace(VERDICT, models=MODELS)))
    assert " ".join(cells(out, "RFR")) == "RFR 155 ms 2.00 (1.40 to 2.86) 3 -"
    xgboost = "XGBoost 70.0 ms 4.50 (2.50 to 8.10) 3 same as candidate 1"
    assert xgboost == " ".join(cells(out, "XGBoost  "))
    assert " ".join(cells(out, "LightGBM")) == "LightGBM 90.0 ms - 2 failed in 1 round"
    golden(out)
    assert "XGBoost" not in shown(capsys, verdict.verdict("x86 slt", VERDICT))


def test_without_enough_rounds_there_is_no_mean_and_no_best() -> None:
    none = replace(MODELS, models=(replace(MODELS.models[0], ratio=None),), mean=None)
    assert verdict.models_sentence(none).startswith("No model's winner was measured in two rounds")
    apart = replace(MODELS, models=MODELS.models[:2], mean=None)
    assert "no mean over 2 models, since they have less" in verdict.models_sentence(apart)
