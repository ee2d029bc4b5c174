"""A contest of baselines, with a testbed that says what each trial comes to."""

from dataclasses import replace
from typing import Any

import pytest

from builders import results as findings
from builders.testbeds import FakeTestbed, probe_of
from intop.domain.configuration import DEFAULT, Configuration
from intop.domain.multi_arm import Contest, Contestant
from intop.domain.trial import PlannedTrial, Trial
from intop.errors import BaselineError, UsageError
from intop.experiment.contest.stage import ContestRequest, MultiArm
from intop.run.context import Task
from intop.run.executor import execute

BLOG, UBUNTU = "openeuler-25.09", "ubuntu-18.04"
BOTH = (UBUNTU, BLOG)
ON_HOST = {
    BLOG: Configuration({"net.ipv4.tcp_fin_timeout": "30"}),
    UBUNTU: Configuration({"net.core.somaxconn": "128"}),
    "tuned": Configuration({"net.core.somaxconn": "64"}),
}
P99_US = {BLOG: 10_000, UBUNTU: 5_000, "tuned": 1_000, "default": 5_000}
VERDICT = replace(findings.VERDICT, configuration=ON_HOST["tuned"])


@pytest.fixture
def arena(testbed: FakeTestbed) -> FakeTestbed:
    """A probed host on which each of the two baselines changes one key."""
    context = testbed.task.context
    blog = replace(context.study.baselines[BLOG], values={"net.ipv4.tcp_fin_timeout": "30"})
    study = replace(context.study, own_baselines={BLOG: blog})
    testbed.task = replace(testbed.task, context=replace(context, study=study))
    probe = probe_of({"net.ipv4.tcp_fin_timeout": "60", "net.core.somaxconn": "4096"})
    testbed.task.store.put(testbed.task.subject, probe)
    testbed.p99_us = {c.digest: P99_US[name] for name, c in ON_HOST.items()}
    testbed.p99_us[DEFAULT.digest] = P99_US["default"]
    return testbed


def contest(task: Task, names: tuple[str, ...], **options: Any) -> Contest:
    return execute(MultiArm(task, ContestRequest(names=names, **options)))


def named(result: Contest) -> dict[str, Contestant]:
    return {c.name: c for c in result.contestants}


def fail(testbed: FakeTestbed, name: str) -> None:
    """Let all trials of one arm fail."""
    original = testbed.trial

    def trial(planned: PlannedTrial, *rest: Any) -> Trial:
        testbed.statuses = ["failed" if planned.arm == name else "ok"]
        return original(planned, *rest)

    testbed.trial = trial  # type: ignore[method-assign]


def killed(testbed: FakeTestbed, *names: str, again: bool = False) -> None:
    """A contest that is planned, and stopped before its first trial."""

    def stop(*_: object) -> Trial:
        raise KeyboardInterrupt

    original, testbed.trial = testbed.trial, stop  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        contest(testbed.task, names, rounds=3, again=again)
    testbed.trial = original  # type: ignore[method-assign]


def test_everybody_meets_in_every_round(arena: FakeTestbed) -> None:
    result = contest(arena.task, BOTH, rounds=4)
    assert (result.rounds, result.reference) == (4, "default")
    assert [c.name for c in result.contestants] == ["default", UBUNTU, BLOG]
    plan = arena.task.store.plan(arena.task.subject, "contest")
    for number in range(4):
        arms = {p.arm: p.configuration for p in plan[3 * number : 3 * number + 3]}
        assert {"default": DEFAULT, BLOG: ON_HOST[BLOG], UBUNTU: ON_HOST[UBUNTU]} == arms
    assert result == arena.task.store.get(arena.task.subject, Contest)


def test_the_default_of_rounds_is_that_of_the_judgement(arena: FakeTestbed) -> None:
    assert arena.task.context.study.budget.judge_pairs == contest(arena.task, BOTH).rounds


def test_each_is_judged_against_the_reference(arena: FakeTestbed) -> None:
    arena.task.store.put(arena.task.subject, VERDICT)
    result = contest(arena.task, BOTH, rounds=3)
    outcomes = {name: one.outcome for name, one in named(result).items()}
    assert outcomes == {
        "default": "reference",
        UBUNTU: "no significant gain",
        BLOG: "worse",
        "tuned": "gain",
    }
    tuned = named(result)["tuned"]
    assert tuned.ratio is not None
    assert tuned.judged_ms is not None
    assert pytest.approx(tuned.ratio.value, rel=0.01) == 5
    assert pytest.approx(tuned.judged_ms.value, rel=0.01) == 1
    # Three comparisons share the error that one would have.
    assert pytest.approx((result.level, result.ratio_level)) == (0.95, 1 - 0.05 / 3)


def test_another_reference_measures_nothing(arena: FakeTestbed) -> None:
    contest(arena.task, BOTH, rounds=3)
    count = len(arena.measured)
    result = contest(arena.task, BOTH, rounds=3, reference=BLOG)
    assert count == len(arena.measured)
    assert named(result)[BLOG].outcome == "reference"
    host = named(result)["default"]
    assert host.ratio is not None
    assert pytest.approx(host.ratio.value, rel=0.01) == 2
    assert host.outcome == "gain"


def test_a_baseline_that_changes_nothing_is_not_measured_twice(
    arena: FakeTestbed,
) -> None:
    same = probe_of({"net.ipv4.tcp_fin_timeout": "30", "net.core.somaxconn": "4096"})
    arena.task.store.put(arena.task.subject, same)
    result = contest(arena.task, BOTH, rounds=3)
    assert len(arena.measured) == 6
    assert (
        named(result)[BLOG].outcome,
        named(result)[BLOG].judged_ms,
        named(result)[BLOG].already,
    ) == ("same as default", None, 1)
    assert pytest.approx(result.ratio_level) == 0.95
    # As the reference it is the host's own values.
    against = contest(arena.task, BOTH, rounds=3, reference=BLOG)
    assert against.reference == "default"
    assert named(result) == named(against)
    assert f"{BLOG} changes nothing on this host" in arena.output.getvalue()


def test_what_the_kernel_does_not_take_is_left_out(arena: FakeTestbed) -> None:
    arena.refuses = {"net.core.somaxconn": "4096"}
    result = named(contest(arena.task, BOTH, rounds=3))
    assert (result[UBUNTU].outcome, result[BLOG].outcome) == ("same as default", "worse")
    reason = result[UBUNTU].left_out["net.core.somaxconn"]
    assert reason == "not taken by the kernel: '128' reads back as '4096'"
    # What was found out is stored: the same contest again is the same one.
    assert result == named(contest(arena.task, BOTH, rounds=3))
    assert len(arena.measured) == 6


def test_an_entrant_that_the_kernel_refuses_has_failed_and_the_others_go_on(
    arena: FakeTestbed,
) -> None:
    rounds = arena.task.context.study.budget.max_failures + 2
    fail(arena, BLOG)
    result = contest(arena.task, BOTH, rounds=rounds)
    assert 3 * rounds == len(arena.measured)
    failed = named(result)[BLOG]
    assert ("failed", rounds, "because", None) == (
        failed.outcome,
        failed.failures,
        failed.detail,
        failed.judged_ms,
    )
    assert named(result)[UBUNTU].outcome == "no significant gain"


def test_a_contest_needs_the_hosts_own_values(arena: FakeTestbed) -> None:
    fail(arena, "default")
    with pytest.raises(BaselineError):
        contest(arena.task, BOTH, rounds=3)


def test_a_contest_goes_on_where_it_stopped(arena: FakeTestbed) -> None:
    killed(arena, *BOTH)
    result = contest(arena.task, BOTH)
    assert (result.rounds, len(arena.measured)) == (3, 9)
    assert result == contest(arena.task, BOTH, rounds=3)
    assert len(arena.measured) == 9


@pytest.mark.parametrize(
    ("names", "rounds", "message"),
    [
        ((BLOG,), 3, f"entrants: default, {BLOG}, {UBUNTU} against default, {BLOG}"),
        (BOTH, 4, "rounds: 3 against 4"),
    ],
)
def test_a_contest_that_was_planned_otherwise_is_refused(
    arena: FakeTestbed, names: tuple[str, ...], rounds: int, message: str
) -> None:
    contest(arena.task, BOTH, rounds=3)
    with pytest.raises(UsageError) as caught:
        contest(arena.task, names, rounds=rounds)
    assert message in str(caught.value)
    assert "intop contest --again" in str(caught.value)
    assert len(arena.measured) == 9


def test_a_baseline_whose_values_changed_meanwhile_is_refused(arena: FakeTestbed) -> None:
    contest(arena.task, (BLOG,), rounds=3)
    study = arena.task.context.study
    changed = replace(study.baselines[BLOG], values={"net.ipv4.tcp_fin_timeout": "15"})
    context = replace(arena.task.context, study=replace(study, own_baselines={BLOG: changed}))
    with pytest.raises(UsageError, match=f"{BLOG}: its values are not those of then"):
        contest(replace(arena.task, context=context), (BLOG,), rounds=3)


def test_again_measures_another_series_and_keeps_the_first(arena: FakeTestbed) -> None:
    contest(arena.task, BOTH, rounds=3)
    arena.p99_us[ON_HOST[BLOG].digest] = 1_000
    result = contest(arena.task, (BLOG,), rounds=2, again=True)
    assert (result.rounds, named(result)[BLOG].outcome) == (2, "gain")
    assert len(arena.task.store.trials(arena.task.subject, "contest")) == 9 + 4
    # The new one is the one to go on with.
    assert result == contest(arena.task, (BLOG,))
    assert len(arena.measured) == 13


def test_a_series_that_was_given_up_is_not_finished(arena: FakeTestbed) -> None:
    killed(arena, *BOTH)
    contest(arena.task, (BLOG,), rounds=2, again=True)
    assert arena.measured == [9, 10, 11, 12]


def test_a_killed_second_series_goes_on_by_the_same_command(arena: FakeTestbed) -> None:
    contest(arena.task, BOTH, rounds=3)
    killed(arena, *BOTH, again=True)
    contest(arena.task, BOTH, rounds=3, again=True)
    assert list(range(18)) == arena.measured
    contest(arena.task, BOTH, rounds=3, again=True)
    assert list(range(27)) == arena.measured


def test_unknown_names_are_refused_before_anything_is_measured(arena: FakeTestbed) -> None:
    with pytest.raises(UsageError, match="there is no baseline nosuch; there are kernel"):
        contest(arena.task, ("nosuch",))
    with pytest.raises(UsageError, match="kernel-6\\.1 is no entrant of this contest"):
        contest(arena.task, BOTH, reference="kernel-6.1")
    with pytest.raises(UsageError, match="tuned is no entrant of this contest"):
        contest(arena.task, BOTH, reference="tuned")
    assert arena.measured == []
