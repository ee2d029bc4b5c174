"""Screening: looks, an early end and what a kill does to them, with effects that are made up."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from builders.testbeds import FakeTestbed, probe_of
from builders.trials import importance, ranking, screening
from intop.campaign.collected import required_space
from intop.campaign.screen import stage as screen
from intop.domain.encoding import Matrix
from intop.domain.ranking import Ranking, Screening
from intop.errors import ResultMissingError
from intop.learn import effects
from intop.learn import screening as models
from intop.learn.samples import Samples
from intop.run.campaigns import new
from intop.store import Subject

COUNT = 40
OFFERED = {
    "net.core.somaxconn": "4096",
    "net.ipv4.tcp_fin_timeout": "60",
    "net.ipv4.tcp_sack": "1",
}
LOOKED_AT = [12, 16, 20, 24, 28, 32, 36]
"""After so many configurations; in parts of 4, and not before the tenth."""


def made_up(acting: Callable[[int], str]) -> Callable[..., Screening]:
    """A screening that finds the parameters of these letters, by the number of configurations."""

    def screened(
        variables: object,
        values: Matrix,
        responses: object,
        *,
        seed: int,
        hinted: Sequence[str],
    ) -> Screening:
        del variables, responses, seed, hinted
        result = acting(len(values))
        return screening(result, still=sorted(set("abc") - set(result)))

    return screened


def ranked(samples: Samples, *, screening: Screening, keep: int, seed: int) -> Ranking:
    """In place of the models."""
    del seed
    return ranking(
        *map(importance, "abc"),
        chosen=screening.keys("chosen"),
        trials=len(samples),
        keep=keep,
        screening=screening,
    )


@pytest.fixture(name="screened")
def _screened(testbed: FakeTestbed, monkeypatch: pytest.MonkeyPatch) -> FakeTestbed:
    """A testbed whose screening has 40 configurations, and finds b as well from the 17th on."""
    monkeypatch.setattr(screen, "FIRST_LOOK", 10)
    monkeypatch.setattr(models, "rank", ranked)
    finding(monkeypatch, lambda count: "ab" if count > 16 else "a")
    with_budget(testbed, screen_stable=3)  # the lab's study has none
    testbed.task.store.put(testbed.task.subject, probe_of(OFFERED))
    testbed.probed = SimpleNamespace(space=required_space(testbed.task))
    return testbed


def finding(monkeypatch: pytest.MonkeyPatch, acting: Callable[[int], str]) -> None:
    monkeypatch.setattr(effects, "screening", made_up(acting))


def with_budget(testbed: FakeTestbed, **changes: Any) -> None:
    context = testbed.task.context
    study = replace(context.study, budget=replace(context.study.budget, **changes))
    testbed.task = replace(testbed.task, context=replace(context, study=study))


def design(testbed: FakeTestbed) -> int:
    """How many configurations were measured."""
    return sum(not t.configuration.is_default for t in testbed.task.trials("screen"))


def test_it_is_looked_at_after_each_part_but_not_too_early(
    screened: FakeTestbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    finding(monkeypatch, lambda count: asked.append(count) or "")
    assert screen.screen(screened.task, COUNT).saved == 0
    assert asked == [*LOOKED_AT, COUNT]
    assert design(screened) == COUNT


def test_it_ends_when_three_looks_in_a_row_chose_the_same(screened: FakeTestbed) -> None:
    ranking = screen.screen(screened.task, COUNT)
    assert design(screened) == 28
    plan = screened.task.store.plan(screened.task.subject, "screen")
    assert sum(p.role == "design" for p in plan) == COUNT
    assert len(plan) - len(screened.measured) == ranking.saved > 12
    assert f"{ranking.saved} trials need not be measured" in screened.output.getvalue()
    assert (ranking.chosen, ranking.space) == (("a", "b"), ("a", "b", "c"))
    assert ranking == screened.task.store.get(screened.task.subject, Ranking)


def test_asked_again_it_has_ended(screened: FakeTestbed) -> None:
    first = screen.screen(screened.task, COUNT)
    count = len(screened.measured)
    assert first == screen.screen(screened.task)
    assert first == screen.screen(screened.task, COUNT)
    assert count == len(screened.measured)


@pytest.mark.parametrize("killed_after", [1, 14, 20, 31])
def test_a_killed_screening_ends_where_it_would_have(
    screened: FakeTestbed, killed_after: int
) -> None:
    undisturbed = screen.screen(screened.task, COUNT)
    measured = screened.measured

    campaign = new(screened.task.store, screened.task.context.study)
    probe = probe_of(OFFERED)
    screened.task = replace(
        screened.task, subject=replace(screened.task.subject, campaign=campaign)
    )
    screened.task.store.put(screened.task.subject, probe)
    screened.measured, screened.dies_after = [], killed_after
    with pytest.raises(KeyboardInterrupt):
        screen.screen(screened.task, COUNT)
    screened.dies_after = None
    assert undisturbed == screen.screen(screened.task)
    assert measured == screened.measured


def test_without_looks_all_of_it_is_measured(screened: FakeTestbed) -> None:
    assert screen.screen(screened.task, COUNT).saved
    with_budget(screened, screen_stable=0)
    assert screen.screen(screened.task, COUNT).saved == 0
    assert design(screened) == COUNT


def test_noise_is_never_stable(screened: FakeTestbed, monkeypatch: pytest.MonkeyPatch) -> None:
    finding(monkeypatch, lambda _: "")
    assert screen.screen(screened.task, COUNT).saved == 0


def test_too_few_usable_trials_are_named_with_the_next_step(testbed: FakeTestbed) -> None:
    testbed.task.store.put(testbed.task.subject, probe_of(OFFERED))
    testbed.probed = SimpleNamespace(space=required_space(testbed.task))
    testbed.statuses = ["ok", *("failed",) * 6]
    with pytest.raises(ResultMissingError, match=r"2 configurations are too few.*--new --samples"):
        screen.screen(testbed.task, 8)


def test_two_workloads_are_held_against_each_other_where_both_are_ranked(
    testbed: FakeTestbed,
) -> None:
    store, context = testbed.task.store, testbed.task.context
    result = ranking(*map(importance, "abc"), chosen="ab")
    for arch, workload in (("x86", "slt"), ("arm", "slt"), ("x86", "dlt")):
        subject = Subject(campaign=context.campaign, arch=arch, workload=workload)
        assert screen.workloads_agree(context) == {}
        store.put(subject, result)
    agreed = screen.workloads_agree(replace(context, archs=("x86", "arm")))
    assert list(agreed) == ["x86 slt and x86 dlt"]
    assert agreed["x86 slt and x86 dlt"].chosen_by_both == ("a", "b")
