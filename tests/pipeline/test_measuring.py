"""Carrying out a plan, with a bench that says what each trial comes to."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from intop import config
from intop.domain.configuration import DEFAULT, Configuration
from intop.domain.histogram import Histogram
from intop.domain.trial import PlannedTrial, Status, Trial
from intop.errors import BaselineError, IntopError, ResultMissingError, UnreachableError, UsageError
from intop.pipeline import measuring, sampling, verifying
from intop.pipeline.campaigns import new
from intop.pipeline.context import Context, Task
from intop.report.progress import LineProgress
from intop.resources import shipped
from intop.store import Subject, opened
from samples import CONDITIONS


@dataclass
class FakeBench:
    """Answers with the statuses it was given, then with ok; P99 by configuration digest."""

    task: Task
    statuses: list[Status] = field(default_factory=list)
    p99_us: dict[str, int] = field(default_factory=dict)
    connected: bool = True
    measured: list[int] = field(default_factory=list)

    def trial(self, planned: PlannedTrial, stage: Any, attempt: int) -> Trial:
        self.measured.append(planned.index)
        status = self.statuses.pop(0) if self.statuses else "ok"
        latency = self.p99_us.get(planned.configuration.digest, 5_000)
        good = status in ("ok", "overloaded")
        return Trial(
            planned=planned,
            stage=stage,
            attempt=attempt,
            status=status,
            detail="" if good else "because",
            conditions=CONDITIONS,
            started_at="2026-01-01T00:00:00+00:00",
            seconds=1.0,
            seed=1,
            tool_version="0",
            histogram=Histogram.from_pairs([(latency, 100)]) if good else None,
            achieved_rps=600,
        )

    def check_connections(self) -> None:
        if not self.connected:
            raise UnreachableError("lb", "gone")


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeBench]:
    study = config.load_study(shipped("configs") / "lab.toml")
    with opened(str(tmp_path / "store.db")) as store:
        context = Context(
            study=study,
            store=store,
            campaign=new(store, study),
            connect=lambda address: pytest.fail(f"connects to {address}"),
            progress=LineProgress(),
            archs=("x86",),
            workloads=(study.workloads["slt"],),
        )
        subject = Subject(campaign=context.campaign, arch="x86", workload="slt")
        fake = FakeBench(Task(context=context, subject=subject, workload=study.workloads["slt"]))

        @contextmanager
        def ready(_task: Task) -> Iterator[FakeBench]:
            yield fake

        monkeypatch.setattr(measuring, "bench", ready)
        yield fake


def configurations(count: int) -> list[Configuration]:
    return [Configuration({"net.core.somaxconn": str(n)}) for n in range(1, count + 1)]


def plan(count: int) -> Callable[[Any], list[PlannedTrial]]:
    return lambda _: measuring.with_sentinels(configurations(count), 2)


def test_sentinels_stand_between_the_configurations() -> None:
    made = measuring.with_sentinels(configurations(5), 2)
    roles = ["baseline", *("design",) * 2, "sentinel", *("design",) * 2, "sentinel", "design"]
    assert roles == [p.role for p in made]
    assert list(range(8)) == [p.index for p in made]
    assert all(p.configuration == DEFAULT for p in made if p.role != "design")


def test_what_is_stored_is_not_measured_again(bench: FakeBench) -> None:
    first = measuring.measure_plan(bench.task, "collect", plan(4))
    assert [0, 1, 2, 3, 4, 5, 6] == bench.measured
    again = measuring.measure_plan(bench.task, "collect", lambda _: pytest.fail("a new plan"))
    assert first == again
    assert 7 == len(bench.measured)


def test_a_disturbed_trial_is_measured_again_and_both_are_kept(bench: FakeBench) -> None:
    bench.statuses = ["ok", "disturbed", "ok"]
    trials = measuring.measure_plan(bench.task, "collect", plan(2))
    assert [0, 1, 1, 2, 3] == bench.measured
    assert {"ok"} == {t.status for t in trials}
    stored = bench.task.store.trials(bench.task.subject, "collect")
    assert [(1, 0, "disturbed"), (1, 1, "ok")] == [
        (t.planned.index, t.attempt, t.status) for t in stored if t.planned.index == 1
    ]


def test_a_trial_that_stays_disturbed_is_given_up(bench: FakeBench) -> None:
    bench.statuses = ["ok", *("disturbed",) * 3]
    trials = measuring.measure_plan(bench.task, "collect", plan(2))
    assert [0, 1, 1, 1, 2, 3] == bench.measured
    assert "disturbed" == next(t.status for t in trials if t.planned.index == 1)


def test_a_lost_connection_stops_and_the_trial_is_due_again(bench: FakeBench) -> None:
    bench.statuses, bench.connected = ["ok", "disturbed"], False
    with pytest.raises(UnreachableError):
        measuring.measure_plan(bench.task, "collect", plan(2))
    bench.connected = True
    measuring.measure_plan(bench.task, "collect", plan(2))
    assert [0, 1, 1, 2, 3] == bench.measured


def test_nothing_goes_on_after_a_failed_baseline(bench: FakeBench) -> None:
    bench.statuses = ["failed"]
    with pytest.raises(BaselineError, match="intop doctor --arch x86"):
        measuring.measure_plan(bench.task, "collect", plan(4))
    assert [0] == bench.measured
    measuring.measure_plan(bench.task, "collect", plan(4))
    assert [0, 0, 1, 2, 3, 4, 5, 6] == bench.measured


def test_a_failed_configuration_is_a_result(bench: FakeBench) -> None:
    bench.statuses = ["ok", "failed"]
    trials = measuring.measure_plan(bench.task, "collect", plan(4))
    assert [0, 1, 2, 3, 4, 5, 6] == bench.measured
    assert [False, True] == [t.usable for t in trials[1:3]]


def test_too_many_failures_stop_the_stage(bench: FakeBench) -> None:
    limit = bench.task.context.study.budget.max_failures
    bench.statuses = ["ok", *("failed",) * 50]
    everything = measuring.with_sentinels(configurations(40), 100)
    with pytest.raises(IntopError, match=f"more than max_failures \\({limit}\\)"):
        measuring.measure_plan(bench.task, "collect", lambda _: everything)
    assert limit + 2 == len(bench.measured)


def test_training_waits_for_the_whole_plan(bench: FakeBench) -> None:
    bench.task.store.write_plan(bench.task.subject, "collect", plan(4)(None))
    with pytest.raises(ResultMissingError, match="0 of 7 trials are collected"):
        sampling.collected(bench.task)


def test_a_plan_of_another_size_is_refused(bench: FakeBench) -> None:
    measuring.measure_plan(bench.task, "collect", plan(4))
    with pytest.raises(UsageError, match="has 4 configurations already"):
        sampling.collect(bench.task, 9)


def test_every_round_has_every_side_in_an_order_of_its_own(bench: FakeBench) -> None:
    sides = [(f"candidate {n}", c) for n, c in enumerate(configurations(4))]
    made = verifying._blocks(bench.task, "pick", sides, 6)
    rounds = [made[start : start + 4] for start in range(0, 24, 4)]
    for number, one in enumerate(rounds, start=1):
        assert {f"{number}: {name}" for name, _ in sides} == {p.label for p in one}
    assert 1 < len({tuple(p.configuration.digest for p in one) for one in rounds})


def test_the_best_finalist_is_one_that_never_failed(bench: FakeBench) -> None:
    quick, slow = configurations(2)
    sides = [("quick", quick), ("slow", slow), ("default", DEFAULT)]
    made = verifying._blocks(bench.task, "pick", sides, 2)
    bench.p99_us = {quick.digest: 1_000, slow.digest: 2_000}
    picked = measuring.measure_plan(bench.task, "pick", lambda _: made)
    assert ("quick", quick) == verifying._best(bench.task, picked)
    quicks = [p.label.endswith("quick") for p in made]
    bench.statuses = ["failed" if mine else "ok" for mine in quicks]
    failing = measuring.measure_plan(bench.task, "judge", lambda _: made)
    assert ("slow", slow) == verifying._best(bench.task, failing)


def test_a_tuned_side_that_fails_is_worse(bench: FakeBench) -> None:
    (tuned,) = configurations(1)
    bench.p99_us = {tuned.digest: 1_000}
    made = verifying._blocks(bench.task, "judge", [("tuned", tuned), ("default", DEFAULT)], 4)
    first = next(n for n, p in enumerate(made) if not p.configuration.is_default)
    bench.statuses = ["failed" if n == first else "ok" for n in range(8)]
    judged = measuring.measure_plan(bench.task, "judge", lambda _: made)
    verdict = verifying._verdict(bench.task, "tuned", tuned, judged)
    assert (3, 1, "worse") == (verdict.pairs, verdict.failures, verdict.outcome)
    assert 5 == pytest.approx(verdict.ratio, rel=0.01)
