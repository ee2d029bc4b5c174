"""The best finalist, and what it is worth against the default or a baseline."""

import pytest

from fakes import FakeBench, probe_of
from intop.domain.configuration import DEFAULT, Configuration
from intop.domain.results import Candidate, Search
from intop.domain.trial import PlannedTrial
from intop.errors import IntopError, UsageError
from intop.pipeline import verifying
from intop.pipeline.blocks import blocks
from intop.pipeline.measuring import measure_plan, with_sentinels

QUICK = Configuration({"net.core.somaxconn": "64"})


def configurations(count: int) -> list[Configuration]:
    return [Configuration({"net.core.somaxconn": str(n)}) for n in range(1, count + 1)]


def test_the_best_finalist_is_one_that_never_failed(bench: FakeBench) -> None:
    quick, slow = configurations(2)
    sides = {"quick": quick, "slow": slow, "default": DEFAULT}
    made = blocks(bench.task, "pick", sides, 2)
    bench.p99_us = {quick.digest: 1_000, slow.digest: 2_000}
    picked = measure_plan(bench.task, "pick", lambda _: made)
    assert ("quick", quick) == verifying._best(bench.task, picked)
    quicks = [p.label.endswith("quick") for p in made]
    bench.statuses = ["failed" if mine else "ok" for mine in quicks]
    failing = measure_plan(bench.task, "judge", lambda _: made)
    assert ("slow", slow) == verifying._best(bench.task, failing)


def test_a_tuned_side_that_fails_is_worse(bench: FakeBench) -> None:
    (tuned,) = configurations(1)
    bench.p99_us = {tuned.digest: 1_000}
    made = blocks(bench.task, "judge", {"tuned": tuned, "default": DEFAULT}, 4)
    first = next(n for n, p in enumerate(made) if not p.configuration.is_default)
    bench.statuses = ["failed" if n == first else "ok" for n in range(8)]
    judged = measure_plan(bench.task, "judge", lambda _: made)
    verdict = verifying._verdict(bench.task, "tuned", tuned, judged)
    assert (3, 1, "worse") == (verdict.pairs, verdict.failures, verdict.outcome)
    assert 5 == pytest.approx(verdict.ratio, rel=0.01)


def searched(bench: FakeBench) -> None:
    """A campaign that is ready to be verified; QUICK is five times as quick as the default."""
    task = bench.task
    measure_plan(task, "collect", lambda _: with_sentinels(configurations(2), 2))
    found = Candidate(configuration=QUICK, predicted_p99_ms=1.0, model="ensemble")
    task.store.put(task.subject, Search(candidates=(found,), convergences=()))
    task.store.put(task.subject, probe_of({"net.ipv4.tcp_fin_timeout": "60"}))
    bench.p99_us[QUICK.digest] = 1_000


def test_a_verdict_is_against_the_hosts_own_values(bench: FakeBench) -> None:
    searched(bench)
    verdict = verifying.verify(bench.task)
    assert ("", QUICK) == (verdict.against, verdict.configuration)
    assert 5 == pytest.approx(verdict.ratio, rel=0.01)


def test_a_verdict_against_a_baseline_measures_that_in_place_of_the_default(
    bench: FakeBench,
) -> None:
    searched(bench)
    baseline = Configuration({"net.ipv4.tcp_fin_timeout": "30"})
    bench.p99_us[baseline.digest] = 2_000
    verdict = verifying.verify(bench.task, "openeuler-25.09")
    assert "openeuler-25.09" == verdict.against
    assert 2 == pytest.approx(verdict.ratio, rel=0.01)
    judged = bench.task.store.plan(bench.task.subject, "judge")
    assert {QUICK.digest, baseline.digest} == {p.configuration.digest for p in judged}


def test_a_baseline_that_changes_nothing_is_the_hosts_own_values(
    bench: FakeBench,
) -> None:
    searched(bench)
    bench.task.store.put(bench.task.subject, probe_of({"net.ipv4.tcp_fin_timeout": "30"}))
    verdict = verifying.verify(bench.task, "openeuler-25.09")
    assert 5 == pytest.approx(verdict.ratio, rel=0.01)
    assert "openeuler-25.09 changes nothing on this host" in bench.told.getvalue()


@pytest.mark.parametrize(
    ("first", "later", "way_out"),
    [
        ("default", "openeuler-25.09", "Go on with: intop verify\n"),
        ("openeuler-25.09", "default", "Go on with: intop verify --default openeuler-25.09\n"),
        ("kernel-6.1", "openeuler-25.09", "Go on with: intop verify --default kernel-6.1\n"),
    ],
)
def test_a_verdict_planned_against_another_default_is_refused(
    bench: FakeBench, first: str, later: str, way_out: str
) -> None:
    searched(bench)
    verdict = verifying.verify(bench.task, first)
    assert verdict == verifying.verify(bench.task, first)
    with pytest.raises(UsageError, match=f"was planned against {first}, not {later}") as caught:
        verifying.verify(bench.task, later)
    assert way_out in str(caught.value)


def test_an_unknown_default_is_refused_before_anything_is_measured(bench: FakeBench) -> None:
    with pytest.raises(UsageError, match="there is no baseline nosuch; there are kernel"):
        verifying.verify(bench.task, "nosuch")
    assert [] == bench.measured


def test_a_baseline_that_fails_gives_no_verdict(bench: FakeBench) -> None:
    sides = {"tuned": QUICK, "mine": configurations(1)[0]}
    made: list[PlannedTrial] = blocks(bench.task, "judge", sides, 3)
    bench.statuses = ["failed" if p.side == "mine" else "ok" for p in made]
    judged = measure_plan(bench.task, "judge", lambda _: made)
    with pytest.raises(
        IntopError, match="only 0 pairs could be measured, a verdict needs two: because"
    ):
        verifying._verdict(bench.task, "tuned", QUICK, judged, "mine")
