"""What models learn from: a campaign's collection, and its screening as lent rows."""

from dataclasses import replace

import pytest

from benchmarks.campaign import measured
from builders.collected import KEY, ONE, check, collect
from builders.testbeds import FakeTestbed
from builders.trials import training
from intop.campaign.collected import collected_samples, learned_samples
from intop.domain.configuration import DEFAULT, Configuration
from intop.domain.trial import PlannedTrial

OTHER_KEY = "net.ipv4.tcp_sack"


def screen(testbed: FakeTestbed) -> None:
    """The default, a configuration of the space, one of another parameter, a disturbed one."""
    order = [
        DEFAULT,
        ONE,
        Configuration({KEY: "20", OTHER_KEY: "0"}),
        Configuration({KEY: "25"}),
    ]
    testbed.latency = lambda planned: 100 * (1 + planned.index)
    retries = testbed.task.context.study.budget.retries
    testbed.statuses = ["ok", "ok", "ok", *("disturbed",) * (retries + 1)]
    plan = [
        PlannedTrial(index=n, role="baseline" if one.is_default else "design", configuration=one)
        for n, one in enumerate(order)
    ]
    measured(testbed.task, "screen", plan)


def test_a_screening_is_lent_to_the_models(testbed: FakeTestbed) -> None:
    screen(testbed)
    collect(testbed)
    _, samples, trials = learned_samples(testbed.task)
    check(samples.own)
    assert {t.stage for t in trials} == {"collect"}
    # A row of its own beside the same configuration of the collection, and no default.
    assert (samples.lent, samples.values[3:].tolist()) == (2, [[30], [20]])
    assert pytest.approx([p99 for (p99,) in samples.measured[3:]], rel=1e-3) == [0.2, 0.3]
    check(collected_samples(testbed.task)[1])


def test_models_that_had_no_screening_are_fitted_without_it(testbed: FakeTestbed) -> None:
    screen(testbed)
    collect(testbed)
    check(learned_samples(testbed.task, training())[1])
    assert learned_samples(testbed.task, training(lent=2))[1].lent == 2


def test_without_a_screening_nothing_is_lent(testbed: FakeTestbed) -> None:
    collect(testbed)
    check(learned_samples(testbed.task)[1])


def test_a_screening_under_other_conditions_is_not_lent(
    testbed: FakeTestbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    trial = FakeTestbed.trial

    def slower(self: FakeTestbed, *words: object, **named: object) -> object:
        made = trial(self, *words, **named)  # type: ignore[arg-type]
        return replace(made, conditions=replace(made.conditions, rate_rps=77))

    monkeypatch.setattr(FakeTestbed, "trial", slower)
    screen(testbed)
    monkeypatch.undo()
    collect(testbed)
    check(learned_samples(testbed.task)[1])
