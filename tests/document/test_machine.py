import json
from dataclasses import dataclass, replace
from typing import Any

import pytest

from builders import results as findings
from builders.trials import CONDITIONS, METRICS, model_error, ranking, training
from intop.document.machine import to_json
from intop.domain.configuration import Configuration
from intop.domain.fetched import Fetched
from intop.domain.histogram import Histogram
from intop.domain.ranking import rank_agreement
from intop.domain.stats import Interval
from intop.domain.training import Ceiling, HeldOut
from intop.domain.trial import PlannedTrial, Trial
from intop.domain.verdict import Pairwise, PairwiseLatency, SideBySide, Verdict

CONFIGURATION = Configuration({"net.ipv4.tcp_rmem": "4096 8192 65536"})
VERDICT = replace(findings.VERDICT, configuration=CONFIGURATION)


def trial(histogram: Histogram | None) -> Trial:
    return Trial(
        planned=PlannedTrial(index=3, role="design", configuration=CONFIGURATION),
        stage="collect",
        attempt=1,
        status="ok" if histogram else "failed",
        detail="",
        conditions=CONDITIONS,
        started_at="2026-01-01T00:00:00+00:00",
        seconds=12.0,
        seed=1,
        tool_version="0.1.0",
        replica="lb",
        histogram=histogram,
        achieved_rps=100.0,
        errors={"timeout": 900},
        metrics={"lb": METRICS},
    )


def strict(text: str) -> Any:
    """JSON as its specification has it, without Python's NaN and Infinity."""

    def refuse(word: str) -> None:
        pytest.fail(f"{word} is not JSON")

    return json.loads(text, parse_constant=refuse)


def test_a_verdict_has_its_outcome_and_configuration() -> None:
    result = strict(to_json(VERDICT))
    assert result["outcome"] == "gain"
    assert result["configuration"] == {"values": {"net.ipv4.tcp_rmem": "4096 8192 65536"}}
    assert tuple(result[key] for key in ("ratio", "ratio_low", "ratio_high", "pairs")) == (
        3.1,
        2.2,
        4.4,
        8,
    )


def test_a_verdict_has_its_sides_by_name() -> None:
    both = Pairwise(default=2.0, tuned=1.0, ratio=Interval(2.0, 1.5, 2.5))
    one = Pairwise(default=0.0, tuned=0.5)
    sides = SideBySide(
        latencies_ms={
            "P50": PairwiseLatency(default=2.0, tuned=1.0, ratio=both.ratio),
            "P99.9": PairwiseLatency(default=None, tuned=0.5),
        },
        requests=both,
        achieved_rps=both,
        error_share=one,
        balancer_cpu=both,
    )
    result = strict(to_json(replace(VERDICT, sides=sides)))["sides"]
    ratio = {"value": 2.0, "low": 1.5, "high": 2.5}
    assert {"default": 2.0, "tuned": 1.0, "ratio": ratio} == result["latencies_ms"]["P50"]
    assert result["error_share"] == {"default": 0.0, "tuned": 0.5, "ratio": None}
    # What too few requests are behind is null, and has its reason.
    assert result["latencies_ms"]["P99.9"] == {"default": None, "tuned": 0.5, "ratio": None}
    assert result["untold"] == {"P99.9": "takes 10,000 requests of a side"}


def test_a_verdict_has_its_guardrails_with_their_states() -> None:
    result = strict(to_json(findings.DOUBTED))
    assert result["outcome"] == "gain, but"
    p50, cpu = result["guardrails"]
    assert (
        p50["quantity"],
        p50["state"],
        cpu["quantity"],
        cpu["state"],
    ) == ("P50", "kept", "CPU", "unclear")
    assert tuple(cpu[name] for name in ("effect", "low", "high", "margin", "unit")) == (
        4.0,
        0.5,
        8.0,
        5.0,
        "points",
    )
    assert strict(to_json(findings.COSTLY))["outcome"] == "no gain: it costs"


def test_a_sweep_has_the_outcome_of_each_arm_at_each_point() -> None:
    result = strict(to_json({"x86 slt": findings.SWEEP}))["x86 slt"]
    assert result["reference"] == "default"
    message = [
        (p["times"], one["arm"], one["outcome"]) for p in result["points"] for one in p["arms"]
    ]
    assert message[1::2] == [
        (0.5, "tuned", "gain"),
        (1.0, "tuned", "gain"),
        (1.5, "tuned", "worse"),
    ]
    assert {outcome for _, _, outcome in message[::2]} == {""}


def test_a_trial_has_percentiles_in_place_of_its_histogram() -> None:
    result = strict(to_json(trial(Histogram.from_pairs([(1000, 980), (2000, 20)]))))
    assert tuple(result[f"{p}_ms"] for p in ("p50", "p90", "p99", "p99.9")) == (1.0, 1.0, 2.0, 2.0)
    # What a pruned trial is judged by may be more than what was observed.
    assert result["judged_ms"] == 2.0
    pruned = replace(trial(Histogram.from_pairs([(1000, 980)])), pruned_above_ms=450.0)
    result = strict(to_json(pruned))
    assert (result["p99_ms"], result["judged_ms"]) == (1.0, 450.0)
    assert result["errors"] == {"timeout": 900}
    assert "histogram" not in result
    assert CONFIGURATION.digest == result["digest"]
    assert result["metrics"]["lb"]["retransmits"] == 4
    assert result["conditions"]["machine"] == "x86_64"


def test_a_failed_trial_has_no_percentiles() -> None:
    result = strict(to_json(trial(None)))
    assert (result["status"], result["judged_ms"]) == ("failed", None)
    assert "p99_ms" not in result


def test_what_is_no_number_becomes_null() -> None:
    wild = model_error("svr", float("inf"), r2=float("-inf"), spearman=float("nan"))
    (result,) = strict(to_json(training(wild)))["errors"]
    assert (result["mape"], result["r2"], result["spearman"]) == (None, None, None)


def test_a_training_says_which_family_is_best() -> None:
    held_out = (HeldOut(measured=2.0, predicted=3.0, low=1.0, high=4.0),)
    trained = training(
        model_error("wild", float("nan")),
        model_error("RFR", 30.0),
        model_error("SVR", 20.0, held_out=held_out),
    )
    result = strict(to_json(trained))
    assert (result["best"], result["is_at_ceiling"]) == ("SVR", False)
    assert result["errors"][2]["held_out"] == [
        {"measured": 2.0, "predicted": 3.0, "low": 1.0, "high": 4.0}
    ]
    ceiling = Ceiling(mape=17.0, r2=0.9, spearman=0.9, sd=0.2, configurations=3)
    assert strict(to_json(replace(trained, ceiling=ceiling)))["is_at_ceiling"]
    assert training().best == ""


@dataclass
class Nested:
    inside: dict[str, tuple[Verdict, ...]]


def test_verdicts_deep_inside_have_their_outcome_too() -> None:
    result = strict(to_json([Nested({"x86 slt": (VERDICT,)})]))
    assert result[0]["inside"]["x86 slt"][0]["outcome"] == "gain"


def test_agreeing_rankings_have_what_both_chose() -> None:
    one = ranking(chosen=("a", "b"))
    result = strict(to_json(rank_agreement(("slt", "dlt"), one, replace(one, chosen=("b",)))))
    assert tuple(result[key] for key in ("chosen_first", "chosen_second", "chosen_by_both")) == (
        ["a", "b"],
        ["b"],
        ["b"],
    )


def test_other_scripts_stay_readable() -> None:
    assert '"µs → ms"' in to_json(["µs → ms"])


def test_no_secret_of_a_load_is_in_what_programs_get() -> None:
    conditions = replace(CONDITIONS, paths="/x?token=geheim", traffic="headers=Token: geheim")
    measured = replace(trial(None), conditions=conditions, detail="http://me:geheim@web")
    fetched = Fetched(
        path="/x?sig=geheim", status=200, bytes=7, check=1, seconds=1, headers=("Token: geheim",)
    )
    text = to_json({"trials": [measured], "fetched": fetched})
    assert "geheim" not in text
    assert strict(text)["fetched"]["headers"] == ["Token: ***"]
    assert strict(text)["trials"][0]["conditions"]["paths"] == "/x?token=***"
