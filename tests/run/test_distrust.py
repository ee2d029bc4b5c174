"""A replica that grows slower in a stage, or makes another one slower, is set aside."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import pytest

from benchmarks.campaign import measured
from builders.testbeds import FakeTestbed
from builders.trials import places
from builders.trials import trial as sample
from intop.campaign.collect.view import replica_sentences
from intop.campaign.sentinels import with_sentinels
from intop.domain.agreement import Agreement
from intop.domain.baseline import HOST
from intop.domain.configuration import DEFAULT
from intop.domain.trial import PlannedTrial, Trial
from intop.explain.stage import Explain
from intop.run import all_replicas
from intop.run.context import Task
from intop.run.rounds import series_plan
from intop.run.stage import Stage

BEGAN = datetime(2026, 11, 25, tzinfo=UTC)
SECONDS = count()


@dataclass
class Timed(FakeTestbed):
    """A testbed with a clock, slower by a fifth from its `slow_from`th sentinel on."""

    slow_from: int | None = None
    sentinels: int = 0

    def trial(self, planned: PlannedTrial, *rest: Any, **options: Any) -> Trial:
        self.sentinels += planned.role == "sentinel"
        is_slow = self.slow_from is not None and self.sentinels >= self.slow_from
        scatter = (planned.index * 37 + len(self.name)) % 11  # up to 0.2 %
        us = round((10_000 + 2 * scatter) * (1.2 if is_slow else 1.0))
        self.latency = lambda _: us
        made = super().trial(planned, *rest, **options)
        at = BEGAN + timedelta(seconds=next(SECONDS))
        return replace(made, started_at=at.isoformat(timespec="seconds"))


@dataclass
class Beside(Timed):
    """A testbed whose n-th trial is at the time of the other's, or between two of these.

    While the other one `is_there`, it is slower by a fifth beside the other's load.
    """

    is_there: Callable[[], bool] = lambda: False
    disturbed: bool = False
    count: int = 0

    def trial(self, planned: PlannedTrial, *rest: Any, **options: Any) -> Trial:
        at = BEGAN + timedelta(seconds=100 * self.count)
        is_beside = self.count // 3 % 2 == 0  # every other sentinel
        self.count += 1
        made = super().trial(planned, *rest, **options)
        if self.disturbed and not is_beside:
            at += timedelta(seconds=50)
        elif self.disturbed and self.is_there():
            slow = sample(planned.configuration, 12_000, stage=made.stage)
            made = replace(made, histogram=slow.histogram)
        return replace(made, started_at=at.isoformat(timespec="seconds"), seconds=20.0)


@dataclass
class Pair:
    """Two replicas that agree at first."""

    testbeds: list[Timed]
    opened: list[int]

    @property
    def task(self) -> Task:
        return self.testbeds[0].task

    def stage(self) -> list[Trial]:
        plan = with_sentinels([p.configuration for p in places(60)], 2, 2)
        return measured(self.task, "collect", plan)

    def agreement(self) -> Agreement:
        result = self.task.store.get(self.task.subject, Agreement)
        assert result is not None
        return result


@pytest.fixture
def pair(testbed: FakeTestbed, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Pair]:
    def make(
        *slow_from: int | None, disturbed: int | None = None, retries: int | None = None
    ) -> Pair:
        study = testbed.task.context.study
        budget = study.budget if retries is None else replace(study.budget, retries=retries)
        study = replace(study, clusters={"x86": study.clusters["x86"] * 2}, budget=budget)
        task = replace(
            testbed.task, context=replace(testbed.task.context, study=study, testbeds=None)
        )
        made = Pair(
            [
                Timed(task, name=name, slow_from=slow, output=testbed.output)
                for name, slow in zip(("lb-1", "lb-22"), slow_from, strict=True)
            ],
            [],
        )

        if disturbed is not None:
            made.testbeds = [
                Beside(
                    task,
                    name=one.name,
                    output=one.output,
                    disturbed=n == disturbed,
                    is_there=lambda: len(made.opened) == 2,
                )
                for n, one in enumerate(made.testbeds)
            ]

        @contextmanager
        def opened(_task: Task, replica: int) -> Iterator[Timed]:
            made.opened.append(replica)
            yield made.testbeds[replica]

        monkeypatch.setattr(all_replicas, "cluster_testbed", opened)
        monkeypatch.setattr(all_replicas, "check_alike", lambda *_: None)
        monkeypatch.setattr(all_replicas, "in_common", list)
        return made

    return make


@pytest.mark.parametrize("slow", [0, 1])
def test_a_replica_that_grows_slower_is_named_and_set_aside(
    pair: Callable[..., Pair], testbed: FakeTestbed, slow: int
) -> None:
    made = pair(*(8 if n == slow else None for n in (0, 1)))
    trials = made.stage()
    name = made.testbeds[slow].name
    agreement = made.agreement()
    assert (1 - slow,) == agreement.in_use
    assert [name] == [r.name for r in agreement.replicas if r.drifted]
    assert f"{name} has drifted: since 2026-11-25T" in testbed.output.getvalue()
    # Found within eight sentinels, and all that it measured since the change was repeated.
    assert made.testbeds[slow].sentinels <= 8 + 8
    assert {t.status for t in trials} == {"ok"}
    slowed = [t for t in trials if t.replica == name and t.judged_ms > 11]
    assert slowed == []
    kept = made.task.store.trials(made.task.subject, "collect")
    disturbed = [t for t in kept if t.status == "disturbed"]
    assert disturbed
    assert {name} == {t.replica for t in disturbed}
    assert all("has drifted" in t.detail for t in disturbed)
    # The next stage does without it.
    made.opened.clear()
    measured(made.task, "screen", places(2))
    assert [1 - slow] == made.opened


def test_replicas_that_stay_as_they_are_are_all_kept(
    pair: Callable[..., Pair], testbed: FakeTestbed
) -> None:
    made = pair(None, None)
    made.stage()
    assert made.agreement().in_use == (0, 1)
    assert "drifted" not in testbed.output.getvalue()


@pytest.mark.parametrize("disturbed", [0, 1])
def test_a_replica_that_makes_the_other_one_slower_is_named_and_set_aside(
    pair: Callable[..., Pair], testbed: FakeTestbed, disturbed: int
) -> None:
    made = pair(None, None, disturbed=disturbed)
    trials = made.stage()
    name, other = made.testbeds[1 - disturbed].name, made.testbeds[disturbed].name
    assert (disturbed,) == made.agreement().in_use
    assert [other] == [r.disturbs for r in made.agreement().replicas if r.is_set_aside]
    assert (
        f"{name} disturbs {other}: the default's P50 there is 1.20 (" in testbed.output.getvalue()
    )
    assert {t.status for t in trials} == {"ok"}
    assert [t for t in trials if t.judged_ms > 11] == []
    kept = made.task.store.trials(made.task.subject, "collect")
    spoiled = [t for t in kept if t.status == "disturbed"]
    assert spoiled
    assert {other} == {t.replica for t in spoiled}
    assert any(t.judged_ms > 11 for t in spoiled)
    sentences = replica_sentences(made.agreement())
    assert f"replica {name} was set aside: its load made {other} slower" in sentences


def test_a_stage_that_compares_on_one_replica_keeps_it(
    pair: Callable[..., Pair], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Stage, "stays_on_replicas", True)
    made = pair(None, 8)
    made.stage()
    assert made.agreement().in_use == (0, 1)
    assert Explain.stays_on_replicas


@pytest.mark.parametrize("slow_from", range(6, 12))
def test_all_arms_of_a_round_come_from_one_replica(
    pair: Callable[..., Pair], slow_from: int
) -> None:
    made = pair(None, slow_from)
    (tuned,) = [p.configuration for p in places(1)]
    plan = series_plan(made.task, "pick", {HOST: DEFAULT, "tuned": tuned}, 40)
    trials = measured(made.task, "pick", plan)
    assert made.agreement().in_use == (0,)
    assert {t.status for t in trials} == {"ok"}
    where: dict[object, set[str]] = defaultdict(set)
    for one in trials:
        where[one.planned.series_round].add(one.replica)
    assert {len(replicas) for replicas in where.values()} == {1}
    assert len(set.union(*where.values())) == 2


def test_what_has_no_attempt_left_is_told(pair: Callable[..., Pair], testbed: FakeTestbed) -> None:
    made = pair(None, 8, retries=0)
    trials = made.stage()
    spoiled = sum(t.status == "disturbed" for t in trials)
    assert spoiled > 0
    assert f"except for {spoiled} that have no attempt left (retries)" in testbed.output.getvalue()
