"""Refinement: steps are functions of the trials before them; testbeds and models are made up."""

import math
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from builders.refining import (  # noqa: F401  pytest finds fixtures here
    COUNT,
    DESIGN,
    EVERY,
    KEYS,
    NOISE,
    PROBE,
    Fitted,
    Models,
    _models,
    _ready,
    another_campaign,
    in_a_copy,
    latency,
    plan,
    with_budget,
    with_context,
    with_design,
    with_study,
)
from builders.results import VERDICT
from builders.testbeds import FakeTestbed
from builders.trials import ranking, search, training
from intop.campaign import collected
from intop.campaign.collected import collected_samples
from intop.campaign.refine import stage as refine_stage
from intop.campaign.refine.stage import refine
from intop.campaign.search.stage import GlobalSearch
from intop.campaign.sentinels import with_sentinels
from intop.campaign.train.stage import Train
from intop.campaign.tune import tune
from intop.domain.configuration import Configuration
from intop.domain.histogram import Histogram, bucket_us
from intop.domain.refined import Refined
from intop.domain.training import Training
from intop.domain.trial import PlannedTrial, Trial
from intop.errors import IntopError, ResultMissingError, UsageError
from intop.learn import active
from intop.learn.active import Pool, Step
from intop.store import Store

REAL = {name: getattr(active, name) for name in ("learned", "pool", "propose", "best_known")}

# Steps --------------------------------------------------------------------------------------------


def test_steps_follow_until_the_budget_is_spent(ready: FakeTestbed, models: Models) -> None:
    models.improvements = [math.inf, 0.5, 0.4]
    result = refine(ready.task)
    assert (result.ended, result.spent, result.budget) == ("budget", 10, 10)
    assert [step.trials for step in result.steps] == [4, 4, 2]
    assert [step.reasons for step in result.steps[:2]] == [{"promise": 3, "replicate": 1}] * 2
    assert [math.inf, 0.5, 0.4] == [step.improvement for step in result.steps]
    assert result.collected == COUNT
    assert (DESIGN[0], 1) == (result.before.configuration, result.before.trials)
    # The first step measured it again.
    assert (
        result.steps[0].best.judged_ms <= result.before.judged_ms
        or result.steps[0].best.trials == 2
    )
    assert 50 < result.default_ms < 51
    assert "best so far P99 3." in ready.output.getvalue()
    assert "refine: ended after 10 trials (budget)" in ready.output.getvalue()


def test_each_step_learns_from_all_usable_trials_before_it(
    ready: FakeTestbed, models: Models
) -> None:
    refine(ready.task)
    assert [sum(map(len, samples.measured)) for samples in models.seen] == [11, 17, 22]
    assert [len(models.seen[0])] == [1 + COUNT]
    _, samples, _ = collected_samples(ready.task)
    assert sum(map(len, samples.measured)) == 11 + 10 + 3


def test_where_all_have_the_same_p99_their_tails_lead(ready: FakeTestbed, models: Models) -> None:
    make = ready.trial

    def trial(planned: PlannedTrial, *args: Any) -> Trial:
        some_wait = Histogram.from_pairs([(latency(planned), 95), (200_000, 5)])
        return replace(make(planned, *args), histogram=some_wait)

    ready.trial = trial  # type: ignore[method-assign]
    with_study(ready, warm_start=False)
    another_campaign(ready)
    with_design(ready)
    result = refine(ready.task)
    assert {bucket_us(200_000) / 1000} == {v for m in models.seen[-1].measured for v in m}
    known = {t.tail_ms for stage in ("collect", "refine") for t in ready.task.trials(stage)}
    assert {v for m in models.tails[0].measured for v in m} < known
    assert len(models.tails[0]) == len(models.seen[0])
    assert DESIGN[0] == result.before.configuration
    assert 200 < result.before.judged_ms < 201


def test_the_default_stands_first_and_at_its_distance(ready: FakeTestbed) -> None:
    refine(ready.task)
    roles = [p.role for p in plan(ready)]
    step = ["replicate", "proposal", "proposal", "proposal", "sentinel"]
    assert ["baseline", *step, *step, "replicate", "proposal"] == roles
    assert list(range(13)) == [p.index for p in plan(ready)] == ready.measured


def test_it_ends_where_steps_in_a_row_promise_next_to_nothing_also_when_it_was_killed(
    ready: FakeTestbed, models: Models, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(active, "best_known", lambda samples, seed: 0)
    with_budget(ready, refine_trials=100)
    models.improvements = [0.3, 0.2, 0.009, 0.001, 0.002, 0.003, 0.004, 0.0099]
    ready.dies_after = 33
    with pytest.raises(KeyboardInterrupt):
        refine(ready.task)
    ready.dies_after = None
    result = refine(ready.task)
    assert (result.ended, result.spent, result.improvement) == (
        "nothing better expected",
        28,
        0.0099,
    )
    assert pytest.approx(result.least) == 0.1 * NOISE
    assert result == refine(ready.task)
    assert len(models.seen) == 8


def test_steps_go_on_while_they_promise_a_part_of_the_noise(
    ready: FakeTestbed, models: Models
) -> None:
    with_budget(ready, refine_trials=24)
    models.improvements = [1.01 * 0.1 * NOISE] * 6
    assert refine(ready.task).ended == "budget"


def test_steps_go_on_while_they_change_what_is_best(
    ready: FakeTestbed, models: Models, monkeypatch: pytest.MonkeyPatch
) -> None:
    best = iter([0, 0, 0, 1, 1, 1, 1, 1, 1])
    monkeypatch.setattr(active, "best_known", lambda samples, seed: next(best))
    with_budget(ready, refine_trials=100)
    models.improvements = [0.0] * 9
    assert refine(ready.task).spent == 32


def test_models_are_told_how_many_steps_have_changed_nothing(
    ready: FakeTestbed, models: Models, monkeypatch: pytest.MonkeyPatch
) -> None:
    best = iter([0, 0, 0, 1, 1])
    monkeypatch.setattr(active, "best_known", lambda samples, seed: next(best))
    with_budget(ready, refine_trials=16)
    refine(ready.task)
    assert models.fruitless == [0, 1, 2, 0]


def test_models_are_told_how_many_steps_have_brought_little(
    ready: FakeTestbed, models: Models, monkeypatch: pytest.MonkeyPatch
) -> None:
    best = iter([200.0, 100.0, 99.0, 98.0, 60.0, 60.0])
    measured = refine_stage.best_measured

    def next_best(*words: Any) -> Any:
        configuration = measured(*words)
        assert configuration is not None
        return replace(configuration, judged_ms=(next(best),))

    monkeypatch.setattr(refine_stage, "best_measured", next_best)
    with_budget(ready, refine_trials=20)
    refine(ready.task)
    assert models.slow == [0, 0, 1, 2, 0]


def test_it_ends_where_nothing_is_left(ready: FakeTestbed, models: Models) -> None:
    models.most = 0
    result = refine(ready.task)
    assert ("nothing left", (), result.before) == (result.ended, result.steps, result.best)
    assert ready.output.getvalue().count("0 follow") == 1


def test_what_is_done_is_not_done_again(ready: FakeTestbed) -> None:
    result = refine(ready.task)
    count = len(ready.measured)
    assert result == refine(ready.task) == ready.task.store.get(ready.task.subject, Refined)
    assert count == len(ready.measured)


def test_it_needs_a_first_design_and_trials(testbed: FakeTestbed) -> None:
    with pytest.raises(ResultMissingError, match="intop collect --arch x86 --workload slt"):
        refine(testbed.task)
    with_budget(testbed, refine_trials=0)
    with pytest.raises(UsageError, match="refine_trials is 0"):
        refine(testbed.task)


def test_the_real_choice_is_carried_out(
    ready: FakeTestbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, function in REAL.items():
        monkeypatch.setattr(active, name, function)
    with_budget(ready, refine_trials=3, refine_batch=2)
    result = refine(ready.task)
    assert (len(result.steps), result.spent) == (2, 3)


# Failures -----------------------------------------------------------------------------------------


def test_what_failed_is_neither_proposed_again_nor_best(ready: FakeTestbed, models: Models) -> None:
    bad: list[Configuration] = []
    make = ready.trial

    def trial(planned: PlannedTrial, *args: Any) -> Trial:
        if planned.role == "proposal" and not bad:
            bad.append(planned.configuration)
        if planned.configuration in (*bad, DESIGN[0]):
            ready.statuses = ["failed"]
        return make(planned, *args)

    ready.trial = trial  # type: ignore[method-assign]
    pools: list[Pool] = []
    propose = models.propose

    def noted(fitted: Fitted, pool: Pool, **kwargs: Any) -> Step:
        pools.append(pool)
        return propose(fitted, pool, **kwargs)

    # The same rows in each step, so that only the failures keep them from coming back.
    nothing: Any = None
    fixed = models.pool(collected.collected_space(ready.task), Fitted(nothing, seed=1))
    models.pool = lambda *_: fixed  # type: ignore[method-assign]
    active.pool, active.propose = models.pool, noted  # put back by the fixture
    result = refine(ready.task)
    (failing,) = bad
    assert [p.configuration for p in plan(ready)].count(failing) == 1
    assert [p.configuration for p in plan(ready)].count(DESIGN[0]) == 1
    assert [len(pool.values) for pool in pools] == [50, 49, 49]
    assert result.steps[0].failures == 2
    assert DESIGN[0] != result.steps[0].best.configuration


def test_too_many_failures_stop_it(ready: FakeTestbed) -> None:
    with_budget(ready, max_failures=1)
    ready.statuses = ["ok", "failed", "failed"]
    with pytest.raises(IntopError, match="2 trials of refine have failed"):
        refine(ready.task)


def test_where_only_the_default_could_be_measured_there_is_nothing_to_refine(
    testbed: FakeTestbed, models: Models
) -> None:
    testbed.latency = latency
    with_budget(testbed, max_failures=99, sentinel_every=EVERY)
    testbed.statuses = ["ok" if p.role != "design" else "failed" for p in with_sentinels(DESIGN, 4)]
    with_design(testbed)
    with pytest.raises(ResultMissingError, match="no configuration could be measured but the"):
        refine(testbed.task)


# Killed -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("killed_after", [0, 1, 5, 6, 8, 11])
def test_killed_and_resumed_it_comes_to_the_same(
    ready: FakeTestbed, models: Models, tmp_path: Path, killed_after: int
) -> None:
    with in_a_copy(ready, tmp_path):
        undisturbed, places = refine(ready.task), plan(ready)
    ready.dies_after = killed_after
    with pytest.raises(KeyboardInterrupt):
        refine(ready.task)
    ready.dies_after = None
    assert undisturbed == refine(ready.task)
    assert places == plan(ready)
    assert list(range(13)) == ready.measured


@pytest.mark.parametrize("method", ["put", "write_plan"])
@pytest.mark.parametrize("step", [1, 2])
def test_killed_while_a_step_is_decided_on_it_comes_to_the_same(
    ready: FakeTestbed,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    method: str,
    step: int,
) -> None:
    with in_a_copy(ready, tmp_path):
        undisturbed, places = refine(ready.task), plan(ready)
    calls: list[object] = []
    original = getattr(Store, method)

    def killed(*args: Any) -> None:
        calls.append(args)
        if len(calls) == step:
            raise KeyboardInterrupt
        original(*args)

    with monkeypatch.context() as patch:
        patch.setattr(Store, method, killed)
        with pytest.raises(KeyboardInterrupt):
            refine(ready.task)
    assert undisturbed == refine(ready.task)
    assert places == plan(ready)


@pytest.mark.parametrize("killed_after", [1, 4, 6])
def test_with_replicas_too(
    ready: FakeTestbed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, killed_after: int
) -> None:
    """Which of two trials ends first, differs from run to run."""
    other = FakeTestbed(ready.task, name="other", latency=latency, output=ready.output)

    with_context(ready, testbeds=lambda _: nullcontext((ready, other)))
    monkeypatch.setattr(refine_stage, "replicas_in_use", lambda _: 2)
    with in_a_copy(ready, tmp_path):
        undisturbed, places = refine(ready.task), plan(ready)
    assert [p.role for p in places[:2]] == ["baseline"] * 2
    assert [p.role for p in places if p.role == "sentinel"] == ["sentinel"] * 2
    assert other.measured == [1, 3, 5, 7, 9, 11, 13]
    other.measured, other.dies_after = [], killed_after
    with pytest.raises(KeyboardInterrupt):
        refine(ready.task)
    other.dies_after = None
    assert undisturbed == refine(ready.task)
    assert places == plan(ready)


def test_others_wait_for_a_refinement_that_has_begun(ready: FakeTestbed) -> None:
    collected_samples(ready.task)
    ready.dies_after = 3
    with pytest.raises(KeyboardInterrupt):
        refine(ready.task)
    with pytest.raises(ResultMissingError, match=r"3 of 6 trials of refine .*intop refine --arch"):
        collected_samples(ready.task)


# In tune ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("trials", [0, 4])
def test_tune_refines_before_it_trains_unless_there_are_no_trials_for_it(
    ready: FakeTestbed, models: Models, monkeypatch: pytest.MonkeyPatch, trials: int
) -> None:
    with_budget(ready, refine_trials=trials, replicate_trials=0, explain_rounds=0)
    store, subject = ready.task.store, ready.task.subject
    store.put(subject, ranking(chosen=KEYS))
    store.put(subject, VERDICT)
    learned: list[int] = []

    def trained(stage: Train, _: object) -> Training:
        learned.append(sum(map(len, collected_samples(stage.task)[1].measured)))
        return training(keys=KEYS)

    monkeypatch.setattr(Train, "result", trained)
    monkeypatch.setattr(GlobalSearch, "result", lambda *_: search())
    (tuned,) = tune(ready.task.context, lambda _: None)
    assert [11 + trials + bool(trials) + trials // EVERY] == learned
    assert store.get(subject, Refined) == tuned.refined
    assert bool(trials) == (tuned.refined is not None)
    assert search() == tuned.search
    # Models that are trained learn nothing from a refinement that would come now.
    with_budget(ready, refine_trials=8)
    assert [tuned] == tune(ready.task.context, lambda _: None)
