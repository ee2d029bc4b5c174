"""Opening replicas, with testbeds that say what each trial comes to."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import pytest

from benchmarks.campaign import measured
from builders.testbeds import FakeTestbed, probe_of
from builders.trials import places, trial
from intop.campaign.sentinels import with_sentinels
from intop.domain.agreement import Agreement
from intop.domain.configuration import DEFAULT
from intop.domain.trial import Conditions
from intop.errors import IncomparableError
from intop.run import all_replicas, replicas
from intop.run.context import Task


@dataclass
class Cluster:
    """Replicas that measure the default at the P99 (us) they are given, one after the other."""

    testbeds: list[FakeTestbed]
    opened: list[int]

    @property
    def task(self) -> Task:
        return self.testbeds[0].task

    def stage(self) -> None:
        plan = with_sentinels([p.configuration for p in places(4)], 2, 2)
        measured(self.task, "collect", plan)


@pytest.fixture
def cluster(testbed: FakeTestbed, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Cluster]:
    def make(*p99_us: int) -> Cluster:
        study = testbed.task.context.study
        labs = study.clusters["x86"] * len(p99_us)
        context = replace(
            testbed.task.context, study=replace(study, clusters={"x86": labs}), testbeds=None
        )
        task = replace(testbed.task, context=context)

        def latency(start: int) -> Callable[[Any], int]:
            scatter = iter(range(10_000))
            return lambda _: start + 7 * (next(scatter) % 5)

        testbeds = [
            FakeTestbed(task, name=f"lb-{n}", latency=latency(us)) for n, us in enumerate(p99_us)
        ]
        made = Cluster(testbeds, [])

        @contextmanager
        def opened(_task: Task, replica: int) -> Iterator[FakeTestbed]:
            made.opened.append(replica)
            yield testbeds[replica]

        monkeypatch.setattr(all_replicas, "cluster_testbed", opened)
        monkeypatch.setattr(all_replicas, "check_alike", lambda *_: None)
        monkeypatch.setattr(all_replicas, "in_common", list)
        return made

    return make


def test_replicas_that_agree_are_all_measured_on(cluster: Callable[..., Cluster]) -> None:
    made = cluster(5_000, 5_003)
    assert replicas.replicas_in_use(made.task) == 1
    made.stage()
    assert replicas.replicas_in_use(made.task) == 2
    rounds = made.task.context.study.budget.agree_rounds
    first, second = (one.measured for one in made.testbeds)
    assert [*range(0, 2 * rounds, 2), 0, 2, 4, 6] == first
    assert [*range(1, 2 * rounds, 2), 1, 3, 5, 7] == second
    # They have agreed once and for all: a further stage opens both at once.
    made.opened.clear()
    measured(made.task, "screen", places(2))
    assert made.opened == [0, 1]
    assert len(first) == rounds + 5


def test_one_that_measures_something_else_is_left_out(
    cluster: Callable[..., Cluster], testbed: FakeTestbed
) -> None:
    made = cluster(5_000, 9_000)
    made.stage()
    result = made.task.store.get(made.task.subject, Agreement)
    assert result is not None
    assert result.in_use == (0,)
    assert "replica lb-1 is left out, it measures something else: the first one's latency /" in (
        testbed.output.getvalue()
    )
    rounds = made.task.context.study.budget.agree_rounds
    assert [rounds + 8, rounds] == [len(one.measured) for one in made.testbeds]
    made.opened.clear()
    measured(made.task, "screen", places(2))
    assert made.opened == [0]


def test_one_that_is_disturbed_throughout_is_left_out(
    cluster: Callable[..., Cluster], testbed: FakeTestbed
) -> None:
    made = cluster(5_000, 5_000)
    made.testbeds[1].statuses = ["disturbed"] * 100
    made.stage()
    assert "replica lb-1 is left out: too few trials of the default" in testbed.output.getvalue()
    assert replicas.replicas_in_use(made.task) == 1


def test_the_comparison_goes_on_where_it_was_interrupted(cluster: Callable[..., Cluster]) -> None:
    made = cluster(5_000, 5_000)
    made.testbeds[0].dies_after = 3
    with pytest.raises(KeyboardInterrupt):
        made.stage()
    assert replicas.replicas_in_use(made.task) == 1
    made.testbeds[0].dies_after = None
    made.stage()
    assert made.testbeds[0].measured[:4] == [0, 2, 4, 6]
    assert len(made.testbeds[0].measured) == made.task.context.study.budget.agree_rounds + 4


def test_a_replica_more_is_for_a_new_campaign(
    cluster: Callable[..., Cluster], testbed: FakeTestbed
) -> None:
    cluster(5_000, 5_000).stage()
    made = cluster(5_000, 5_000, 5_000)
    measured(made.task, "screen", places(2))
    assert made.opened == [0, 1]
    assert "began with 2 replicas, and goes on with 2 of them; --new begins one with 3" in (
        testbed.output.getvalue()
    )


def test_another_replica_in_the_place_of_one_is_for_a_new_campaign(
    cluster: Callable[..., Cluster],
) -> None:
    cluster(5_000, 5_000).stage()
    made = cluster(5_000, 5_000)
    made.testbeds[1].name = "lb-9"
    with pytest.raises(IncomparableError, match="replica 2 was lb-1, not lb-9"):
        measured(made.task, "screen", places(2))


def test_without_any_of_its_replicas_a_campaign_does_not_go_on(
    cluster: Callable[..., Cluster],
) -> None:
    made = cluster(5_000, 5_000)
    made.stage()
    result = made.task.store.get(made.task.subject, Agreement)
    assert result is not None
    made.task.store.put(made.task.subject, result.without("lb-0"))
    made = cluster(5_000)
    with pytest.raises(IncomparableError, match="it measured on lb-1 of 2 replicas"):
        measured(made.task, "screen", places(2))


def test_replicas_of_different_kinds_are_refused_by_key_and_both_values(
    testbed: FakeTestbed,
) -> None:
    def opened_on(name: str, **changes: Any) -> Any:
        @dataclass
        class Opened:
            task: Task
            name: str
            conditions: Conditions
            probe: Any

        values = {"net.core.somaxconn": changes.pop("somaxconn", "128")}
        conditions = replace(trial(DEFAULT, 5_000).conditions, **changes)
        return Opened(testbed.task, name, conditions, probe_of(values))

    replicas.check_alike(testbed.task, opened_on("one"), opened_on("two"))
    # Each has its own backends in it.
    replicas.check_alike(testbed.task, opened_on("one"), opened_on("two", nginx_conf="99999999"))
    with pytest.raises(IncomparableError, match=r"generator: EPYC, 8 CPUs, .* against EPYC, 2"):
        replicas.check_alike(
            testbed.task, opened_on("one"), opened_on("two", generator="EPYC, 2 CPUs")
        )
    with pytest.raises(IncomparableError) as caught:
        replicas.check_alike(
            testbed.task, opened_on("one"), opened_on("two", kernel="9.9", somaxconn="4096")
        )
    assert "one and two are no replicas of each other (one against two):" in str(caught.value)
    assert "against 9.9" in str(caught.value)
    assert "net.core.somaxconn: 128 against 4096" in str(caught.value)
