"""Refinement that learns from earlier campaigns; testbeds and models are made up."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from builders.refining import (  # noqa: F401  pytest finds fixtures here
    COUNT,
    EVERY,
    KEYS,
    PROBE,
    Models,
    _models,
    _ready,
    another_campaign,
    in_a_copy,
    with_design,
    with_study,
)
from builders.testbeds import FakeTestbed, probe_of
from builders.trials import ranking, screening
from intop.campaign.collect.stage import collect
from intop.campaign.collected import collected_samples
from intop.campaign.refine.stage import refine
from intop.campaign.sentinels import with_sentinels
from intop.domain.configuration import Configuration
from intop.domain.trial import Trial


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
