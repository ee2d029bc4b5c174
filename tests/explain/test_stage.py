"""What a winner's gain is made of: found again after a kill, and the same in the end."""

from dataclasses import replace
from pathlib import Path

import pytest

from builders.explaining import latency, with_few_rounds
from builders.results import BROKEN_CPU, COSTLY, DOUBTED, UNCLEAR_CPU, VERDICT
from builders.testbeds import FakeTestbed, probe_of
from intop.document.figures import write_figures
from intop.document.machine import to_json
from intop.document.text import show
from intop.domain.configuration import DEFAULT, Configuration
from intop.domain.explanation import Explanation
from intop.domain.trial import PlannedTrial
from intop.domain.verdict import Verdict
from intop.errors import IntopError, ResultMissingError, UsageError
from intop.explain.stage import Explain, explain
from intop.explain.view import explanation as text
from intop.run.campaigns import new

DEFAULTS = {
    "net.core.somaxconn": "4096",
    "net.ipv4.tcp_fin_timeout": "60",
    "net.ipv4.tcp_keepalive_time": "7200",
    "net.ipv4.tcp_reordering": "3",
    "net.ipv4.tcp_comp_sack_nr": "44",
}
WINNER = {
    "net.core.somaxconn": "1024",
    "net.ipv4.tcp_fin_timeout": "60",  # as it was
    "net.ipv4.tcp_keepalive_time": "600",
    "net.ipv4.tcp_reordering": "100",
    "net.ipv4.tcp_comp_sack_nr": "0",
}
FACTORS = {"net.ipv4.tcp_reordering": 0.4, "net.ipv4.tcp_comp_sack_nr": 0.5}
NEEDED = sorted(FACTORS)


@pytest.fixture
def won(testbed: FakeTestbed) -> FakeTestbed:
    """A campaign with a gain."""
    with_few_rounds(testbed)
    begin(testbed)
    testbed.latency = latency(WINNER, FACTORS, 0.1)
    return testbed


def begin(testbed: FakeTestbed, verdict: Verdict | None = None) -> None:
    task = testbed.task
    task.store.put(task.subject, probe_of(DEFAULTS))
    gain = replace(VERDICT, configuration=Configuration(WINNER))
    task.store.put(task.subject, verdict or gain)


def explained(testbed: FakeTestbed) -> Explanation:
    result = explain(testbed.task)
    assert isinstance(result, Explanation)
    return result


def test_what_does_not_matter_is_dropped_and_the_rest_is_judged(
    won: FakeTestbed, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    result = explained(won)
    assert NEEDED == sorted(result.minimal.values) == sorted(result.keys)
    assert result.same == ("net.ipv4.tcp_fin_timeout",)
    assert result.verdict.outcome == "gain"
    assert result.minimal == result.verdict.configuration
    assert pytest.approx(result.verdict.ratio, rel=0.2) == 5
    assert pytest.approx(result.kept.share, abs=0.2) == 1
    assert result.offer is None
    assert len(result.contributions) == 4
    for one in result.contributions:
        assert one.left_out is not None
        assert one.alone is not None
        assert one.left_out.low < one.left_out.value < one.left_out.high
        assert one.left_out.value == pytest.approx(1 / FACTORS.get(one.name, 1), rel=0.4)
        assert one.is_kept == (one.name in FACTORS)
    (pair,) = result.interactions
    assert pair.ratio.low < 1 < pair.ratio.high
    assert len(won.task.trials("explain")) == result.trials == len(won.measured)
    assert result == won.task.store.get(won.task.subject, Explanation)

    show(text("x86 slt", result))
    message = capsys.readouterr().out
    assert "2 of 5 keys: gain: P99 is" in message
    assert "no curves of dependence, since there are no models. run: intop train" in message.lower()
    assert '"dropped"' in to_json(result)
    (drawn,) = write_figures(tmp_path, "svg", {"x86 slt": result})
    assert drawn.name == "x86-slt-contributions.svg"


def test_killed_and_resumed_it_comes_to_the_same(won: FakeTestbed) -> None:
    undisturbed = explained(won)
    measured = list(won.measured)
    assert undisturbed == explained(won)
    assert measured == won.measured, "what is stored is not measured again"

    won.measured = []
    campaign = new(won.task.store, won.task.context.study)
    won.task = replace(won.task, subject=replace(won.task.subject, campaign=campaign))
    begin(won)
    # Among the search's rounds, and among the judgement's.
    for killed_after in (17, len(measured) - 5):
        won.dies_after = killed_after
        with pytest.raises(KeyboardInterrupt):
            explain(won.task)
    won.dies_after = None
    assert undisturbed == explained(won)
    assert measured == won.measured


def test_an_explanation_that_was_begun_otherwise_is_refused(won: FakeTestbed) -> None:
    won.dies_after = 25
    with pytest.raises(KeyboardInterrupt):
        explain(won.task)
    won.dies_after = None
    context = won.task.context
    study = replace(context.study, budget=replace(context.study.budget, explain_rounds=6))
    with pytest.raises(UsageError, match="another explain_rounds or level"):
        explain(replace(won.task, context=replace(context, study=study)))


def test_no_gain_is_told_and_nothing_is_measured(
    testbed: FakeTestbed, capsys: pytest.CaptureFixture[str]
) -> None:
    begin(testbed, replace(VERDICT, ratio_low=0.9))
    result = explain(testbed.task)
    assert isinstance(result, Verdict)
    assert testbed.measured == []
    show(text("x86 slt", result))
    assert "no gain to explain, nothing was measured" in capsys.readouterr().out


def test_a_gain_that_costs_too_much_is_not_explained_and_one_in_doubt_is(
    won: FakeTestbed, capsys: pytest.CaptureFixture[str]
) -> None:
    winner = Configuration(WINNER)
    begin(won, replace(COSTLY, configuration=winner))
    result = explain(won.task)
    assert isinstance(result, Verdict)
    assert won.measured == []
    show(text("x86 slt", result))
    assert "no gain: it costs CPU: CPU is higher by 12 points" in capsys.readouterr().out
    begin(won, replace(DOUBTED, configuration=winner))
    assert sorted(explained(won).keys) == NEEDED
    Explain.begin(won.task)
    assert "x86 slt: gain, but CPU is unclear: P99 is 3.10 times lower" in won.output.getvalue()


def test_a_winner_of_one_change_is_its_own_smallest_set(won: FakeTestbed) -> None:
    """What equals the default is no change."""
    one = {key: WINNER[key] for key in ("net.ipv4.tcp_fin_timeout", "net.ipv4.tcp_reordering")}
    begin(won, replace(VERDICT, configuration=Configuration(one)))
    result = explained(won)
    assert won.measured == []
    assert result.keys == ("net.ipv4.tcp_reordering",)
    assert result.minimal.values == {"net.ipv4.tcp_reordering": "100"}
    assert result.same == ("net.ipv4.tcp_fin_timeout",)
    assert (VERDICT.ratio, "") == (result.verdict.ratio, result.obstacle)
    assert result == explained(won)


def test_a_smallest_set_that_costs_too_much_is_not_what_leaves(won: FakeTestbed) -> None:
    result = explained(won)
    assert result.obstacle == ""
    costly = replace(result.verdict, guardrails=(BROKEN_CPU,))
    assert replace(result, verdict=costly).obstacle == (
        "the smallest set costs more than is accepted: CPU is higher by 12 points (9 to 15; "
        "accepted: 5)"
    )
    doubted = replace(result.verdict, guardrails=(UNCLEAR_CPU,))
    assert replace(result, verdict=doubted).obstacle == ""


def test_without_a_verdict_it_says_what_to_type(testbed: FakeTestbed) -> None:
    testbed.task.store.put(testbed.task.subject, probe_of(DEFAULTS))
    with pytest.raises(ResultMissingError, match="intop verify --arch x86 --workload slt"):
        explain(testbed.task)


def test_a_winner_that_changes_nothing_is_told(testbed: FakeTestbed) -> None:
    begin(testbed, replace(VERDICT, configuration=DEFAULT))
    with pytest.raises(IntopError, match="changes nothing"):
        explain(testbed.task)


def test_leaving_out_what_fails_hurts(won: FakeTestbed) -> None:
    """Without one key, the winner can't be measured at all: that key is needed."""
    needed = "net.core.somaxconn"
    trial = won.trial

    def failing(planned: PlannedTrial, *arguments: object) -> object:
        values = planned.configuration.values
        if needed not in values and set(FACTORS) <= set(values):
            won.statuses = ["failed"]
        return trial(planned, *arguments)  # type: ignore[arg-type]

    won.trial = failing  # type: ignore[method-assign,assignment]
    assert sorted([*NEEDED, needed]) == sorted(explained(won).keys)


def test_a_failure_in_the_judgement_does_not_end_it(won: FakeTestbed) -> None:
    task = won.task
    budget = replace(task.context.study.budget, max_failures=0)
    study = replace(task.context.study, budget=budget)
    won.task = task = replace(task, context=replace(task.context, study=study))
    trial = won.trial

    def failing(planned: PlannedTrial, *arguments: object) -> object:
        plan = task.store.plan(task.subject, "explain")
        judging = {p.series for p in plan if p.arm == "smallest set"}
        if (planned.arm, planned.round) == ("winner", 2) and planned.series in judging:
            won.statuses = ["failed"]
        return trial(planned, *arguments)  # type: ignore[arg-type]

    won.trial = failing  # type: ignore[method-assign,assignment]
    result = explained(won)
    assert (result.verdict.pairs, result.kept.rounds) == (4, 3)
