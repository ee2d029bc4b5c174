"""Refinement: steps are functions of the trials before them; testbeds and models are made up."""

import math
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from builders.results import VERDICT
from builders.testbeds import FakeTestbed, probe_of
from builders.trials import ranking, screening, search, training
from intop.campaign import collected
from intop.campaign.collect.stage import collect
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
from intop.domain.space import Space
from intop.domain.training import Training
from intop.domain.trial import PlannedTrial, Trial
from intop.errors import IntopError, ResultMissingError, UsageError
from intop.learn import active
from intop.learn.active import Pool, Proposal, Step
from intop.learn.samples import Samples
from intop.run.campaigns import new
from intop.store import Store, opened

COUNT = 8
EVERY = 4
NOISE = 0.1
"""The standard deviation of a trial's log tail, as models have it."""
KEYS = ("net.core.somaxconn", "net.ipv4.tcp_fin_timeout")
PROBE = probe_of({"net.core.somaxconn": "4096", "net.ipv4.tcp_fin_timeout": "60"})
DESIGN = [
    Configuration({KEYS[0]: str(1000 * n), KEYS[1]: str(20 + n)}) for n in range(1, COUNT + 1)
]


def latency(planned: PlannedTrial) -> int:
    """In us, the lower the lower somaxconn is; no two trials are alike."""
    if planned.configuration.is_default:
        return 50_000 + 500 * (planned.index % 3)
    return int(planned.configuration.values[KEYS[0]]) + 2_000 + 70 * (planned.index * 7 % 5)


@dataclass(frozen=True)
class Fitted:
    """A stand-in for models."""

    samples: Samples
    seed: int


@dataclass
class Models:
    """What stands in for learn.active: an answer that hangs on every sample it is given.

    The best one is always measured again. `improvements` by call, else they hang on the samples.
    """

    improvements: list[float] = field(default_factory=list)
    seen: list[Samples] = field(default_factory=list)
    tails: list[Samples] = field(default_factory=list)
    fruitless: list[int] = field(default_factory=list)
    most: int = 100

    def learned(self, samples: Samples, *, tails: Samples, seed: int) -> "Fitted":
        self.seen.append(samples)
        self.tails.append(tails)
        return Fitted(samples, seed)

    def pool(self, space: Space, models: "Fitted") -> Pool:
        genes = np.random.default_rng(models.seed).random((50, len(space.columns)))
        values = space.decode(genes)[: self.most]
        return Pool(values=values, scattered=np.full(len(values), fill_value=True))

    def propose(self, models: "Fitted", pool: Pool, *, count: int, fruitless: int) -> Step:
        self.fruitless.append(fruitless)
        samples, seed = models.samples, models.seed
        left = pool.values
        rng = np.random.default_rng([seed, int(samples.digest[:8], 16)])
        rows = [Proposal(values=left[n], reason="promise") for n in rng.permutation(len(left))]
        again = samples.values[int(np.argmin(samples.log_target))]
        proposals = (Proposal(values=again, reason="replicate"), *rows)[: count if rows else 0]
        improvement = self.improvements.pop(0) if self.improvements else 0.1 + rng.random()
        return Step(proposals=proposals, improvement=improvement, noise=NOISE)


@pytest.fixture(name="models")
def _models(monkeypatch: pytest.MonkeyPatch) -> Models:
    made = Models()
    monkeypatch.setattr(refine_stage, "learned", made.learned)
    monkeypatch.setattr(refine_stage, "pool", made.pool)
    monkeypatch.setattr(refine_stage, "propose", made.propose)
    monkeypatch.setattr(
        collected, "best_known", lambda samples, seed: int(np.argmin(samples.log_target))
    )
    return made


def with_budget(testbed: FakeTestbed, **changes: Any) -> None:
    study = testbed.task.context.study
    with_study(testbed, budget=replace(study.budget, **changes))


def with_study(testbed: FakeTestbed, **changes: Any) -> None:
    with_context(testbed, study=replace(testbed.task.context.study, **changes))


def with_context(testbed: FakeTestbed, **changes: Any) -> None:
    testbed.task = replace(testbed.task, context=replace(testbed.task.context, **changes))


def with_design(testbed: FakeTestbed) -> None:
    store, subject = testbed.task.store, testbed.task.subject
    store.put(subject, PROBE)
    store.write_plan(subject, "collect", with_sentinels(DESIGN, EVERY))
    collect(testbed.task)
    testbed.measured = []


def another_campaign(testbed: FakeTestbed) -> None:
    campaign = new(testbed.task.store, testbed.task.context.study)
    testbed.task = replace(testbed.task, subject=replace(testbed.task.subject, campaign=campaign))


@pytest.fixture(name="ready")
def _ready(testbed: FakeTestbed, models: Models) -> FakeTestbed:
    """A campaign that is collected, and 10 trials to refine it in steps of 4, 4 and 2."""
    testbed.latency = latency
    with_budget(testbed, sentinel_every=EVERY, refine_trials=10, refine_batch=4)
    with_design(testbed)
    return testbed


def plan(testbed: FakeTestbed) -> list[PlannedTrial]:
    return testbed.task.store.plan(testbed.task.subject, "refine")


@contextmanager
def in_a_copy(testbed: FakeTestbed, path: Path) -> Iterator[None]:
    """The testbed's task in a copy of its store as it is now."""
    task = testbed.task
    (origin,) = path.glob("store.db")
    source, target = sqlite3.connect(origin), sqlite3.connect(path / "copy.db")
    source.backup(target)
    source.close()
    target.close()
    with opened(str(path / "copy.db")) as store:
        testbed.task = replace(task, context=replace(task.context, store=store))
        testbed.measured = []
        yield
    testbed.task = task
    testbed.measured = []


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
    assert result.steps[0].best.p99_ms <= result.before.p99_ms or result.steps[0].best.trials == 2
    assert 50 < result.default_p99_ms < 51
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
    assert 200 < result.before.p99_ms < 201


def test_the_default_stands_first_and_at_its_distance(ready: FakeTestbed) -> None:
    refine(ready.task)
    roles = [p.role for p in plan(ready)]
    step = ["replicate", "proposal", "proposal", "proposal", "sentinel"]
    assert ["baseline", *step, *step, "replicate", "proposal"] == roles
    assert list(range(13)) == [p.index for p in plan(ready)] == ready.measured


def test_it_ends_where_steps_in_a_row_promise_next_to_nothing_also_when_it_was_killed(
    ready: FakeTestbed, models: Models, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collected, "best_known", lambda samples, seed: 0)
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
    monkeypatch.setattr(collected, "best_known", lambda samples, seed: next(best))
    with_budget(ready, refine_trials=100)
    models.improvements = [0.0] * 9
    assert refine(ready.task).spent == 32


def test_models_are_told_how_many_steps_have_changed_nothing(
    ready: FakeTestbed, models: Models, monkeypatch: pytest.MonkeyPatch
) -> None:
    best = iter([0, 0, 0, 1, 1])
    monkeypatch.setattr(collected, "best_known", lambda samples, seed: next(best))
    with_budget(ready, refine_trials=16)
    refine(ready.task)
    assert models.fruitless == [0, 1, 2, 0]


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
    monkeypatch.setattr(refine_stage, "learned", active.learned)
    monkeypatch.setattr(refine_stage, "pool", active.pool)
    monkeypatch.setattr(refine_stage, "propose", active.propose)
    monkeypatch.setattr(collected, "best_known", active.best_known)
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
    refine_stage.pool, refine_stage.propose = models.pool, noted  # put back by the fixture
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


# Warm start ---------------------------------------------------------------------------------------


def test_trials_of_earlier_campaigns_are_learned_from_and_counted_nowhere(
    ready: FakeTestbed, models: Models, tmp_path: Path
) -> None:
    refine(ready.task)
    another_campaign(ready)
    with_design(ready)
    models.seen = []
    with in_a_copy(ready, tmp_path):
        undisturbed = refine(ready.task)
    assert undisturbed.earlier == 24
    assert [sum(map(len, s.measured)) for s in models.seen] == [24 + 11, 24 + 17, 24 + 22]
    assert "refine: 24 trials of campaign 1 of 2" in ready.output.getvalue()
    assert undisturbed.before.trials == 1
    _, samples, _ = collected_samples(ready.task)
    assert sum(map(len, samples.measured)) == 11

    # A later campaign changes nothing for one that is resumed.
    ready.dies_after = 7
    with pytest.raises(KeyboardInterrupt):
        refine(ready.task)
    ready.dies_after = None
    resumed, own = ready.task, list(ready.measured)
    another_campaign(ready)
    with_design(ready)
    ready.task, ready.measured = resumed, own
    assert undisturbed == refine(ready.task)


def test_trials_that_leave_open_parameters_at_their_defaults_are_learned_from(
    ready: FakeTestbed,
) -> None:
    """As a design that varies them in turns makes them."""
    another_campaign(ready)
    store, subject = ready.task.store, ready.task.subject
    store.put(subject, PROBE)
    store.put(subject, ranking(screening=screening(still=KEYS)))
    in_turns = [Configuration({KEYS[0]: str(1000 * n)}) for n in range(1, COUNT + 1)]
    store.write_plan(subject, "collect", with_sentinels(in_turns, EVERY))
    collect(ready.task)
    another_campaign(ready)
    with_design(ready)
    assert refine(ready.task).earlier == 22


def test_a_warm_start_can_be_switched_off(ready: FakeTestbed, models: Models) -> None:
    another_campaign(ready)
    with_design(ready)
    with_study(ready, warm_start=False)
    assert refine(ready.task).earlier == 0
    assert sum(map(len, models.seen[0].measured)) == 11
    assert "campaign 1" not in ready.output.getvalue()


def other_kernel(testbed: FakeTestbed) -> None:
    make = testbed.trial

    def trial(*args: Any) -> Trial:
        made = make(*args)
        return replace(made, conditions=replace(made.conditions, kernel="9.9", rate_rps=7.0))

    testbed.trial = trial  # type: ignore[method-assign]


def other_default(testbed: FakeTestbed) -> None:
    values = {"net.core.somaxconn": "128", "net.ipv4.tcp_fin_timeout": "60"}
    testbed.task.store.put(testbed.task.subject, probe_of(values))


def other_parameters(testbed: FakeTestbed) -> None:
    configurations = [Configuration({KEYS[0]: str(1000 * n)}) for n in range(1, 9)]
    plan = with_sentinels(configurations, EVERY)
    testbed.task.store.write_plan(testbed.task.subject, "collect", plan)


@pytest.mark.parametrize(
    ("differ", "message"),
    [
        (other_kernel, "kernel: 6.18.0-28-cloud-amd64 against 9.9, rate_rps: 100.0 against 7.0"),
        (other_default, "net.core.somaxconn: 4096 against 128"),
        (other_parameters, "net.ipv4.tcp_fin_timeout: varied against not varied"),
    ],
)
def test_what_was_measured_otherwise_is_left_out_with_the_reason(
    ready: FakeTestbed, models: Models, differ: Callable[[FakeTestbed], None], message: str
) -> None:
    another_campaign(ready)
    if differ is other_parameters:
        ready.task.store.put(ready.task.subject, PROBE)
        differ(ready)
        collect(ready.task)
    else:
        if differ is other_kernel:
            differ(ready)
        with_design(ready)
        if differ is other_default:
            differ(ready)
    assert refine(ready.task).earlier == 0
    began = ready.task.store.earlier(ready.task.subject.campaign)[0].started_at
    output = f"11 trials of campaign 1 of {began} are left out (then against now): {message}"
    assert output in ready.output.getvalue()


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
