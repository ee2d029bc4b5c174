import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from statistics import median

import pytest

from intop.config.study import load_study
from intop.domain.ablation import ablate
from intop.domain.campaign_status import (
    Place,
    StageStatus,
    SubjectStatus,
    designed,
    expected,
    is_at_work,
    likely_and_most,
    lowest,
    pace_s,
)
from intop.domain.configuration import DEFAULT, Configuration
from intop.domain.results import TREE_MODELS
from intop.resources import shipped

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
BUDGET = load_study(shipped("configs") / "lab.toml").budget


def place(n: int, *, at_s: float | None = None, **changes: object) -> Place:
    made = Place(
        stage="collect",
        index=n,
        role="design",
        configuration=Configuration({"net.core.somaxconn": str(n)}) if n else DEFAULT,
    )
    if at_s is not None:
        started = (BEGIN + timedelta(seconds=at_s)).isoformat()
        made = replace(made, status="ok", attempts=1, started_at=started, seconds=2.5, p99_ms=10.0)
    return replace(made, **changes)


@pytest.mark.parametrize(
    ("configurations", "every", "replicas", "trials"),
    [(8, 4, 1, 11), (8, 4, 2, 12), (48, 8, 2, 56), (20, 8, 2, 24), (3, 8, 1, 4)],
)
def test_a_design_has_the_default_before_and_after_every_few(
    configurations: int, every: int, replicas: int, trials: int
) -> None:
    assert trials == designed(configurations, every, replicas)


def test_a_place_is_done_once_it_is_not_measured_again() -> None:
    assert not place(1).is_done(2)
    assert place(1, at_s=0).is_done(2)
    assert place(1, at_s=0, status="failed").is_done(2)
    assert not place(1, at_s=0, status="disturbed", attempts=2).is_done(2)
    assert place(1, at_s=0, status="disturbed", attempts=3).is_done(2)


def test_a_stage_without_a_plan_has_what_the_budget_allows() -> None:
    def trials(stage: str) -> tuple[int, str]:
        return expected(stage, [], BUDGET, replicas=2)  # type: ignore[arg-type]

    assert (12, "") == trials("replicas")
    assert (56, "") == trials("screen")
    assert (24, "") == trials("collect")
    assert (24, "at most") == trials("refine")
    # 3 finalists, 4 models' own winners and the default, in 3 rounds.
    assert (24, "at most") == trials("pick")
    assert (2, "") == expected("pick", [place(0), place(1)], BUDGET, replicas=1)
    assert (20, "at most") == trials("judge")
    few, bound = expected("explain", [], BUDGET, replicas=2, winner=2)
    assert "about" == bound
    assert few < trials("explain")[0]
    assert 3 * BUDGET.explain_pairs < few


def explained(changes: int, seed: int) -> int:
    """The trials that a made-up explanation asks for: three changes help, the others do nothing.

    With the effects and the noise of the lab, between the rows of benchmarks/results/ablation.md.
    """
    rng = random.Random(seed)
    names = [f"{n:02}" for n in range(changes)]
    effects = dict(zip(names, (0.9, 0.6, 0.5), strict=False))
    search = ablate(names, rounds=BUDGET.explain_rounds, level=BUDGET.level)
    asked, trials = next(search), 3 * BUDGET.explain_pairs
    try:
        while True:
            trials += len(asked.sets) * asked.rounds
            told = [
                {s: rng.gauss(-sum(effects.get(n, 0.0) for n in s), 0.2) for s in asked.sets}
                for _ in range(asked.rounds)
            ]
            asked = search.send(told)
    except StopIteration:
        return trials


@pytest.mark.parametrize("changes", [2, 3, 5, 8, 14, 20, 30])
def test_all_phases_of_an_explanation_are_reckoned_with(changes: int) -> None:
    made = sorted(explained(changes, seed) for seed in range(20))
    likely, _ = expected("explain", [], BUDGET, replicas=2, winner=changes)
    assert 0.75 < likely / median(made) < 1.25
    _, most = likely_and_most("explain", [], BUDGET, likely, changes)
    assert made[-2] <= most


def test_a_judgement_likely_ends_at_its_first_look() -> None:
    assert (14, 20) == likely_and_most("judge", [], BUDGET, 20)
    assert (20, 20) == likely_and_most("judge", [], replace(BUDGET, judge_looks=1), 20)
    assert (20, 20) == likely_and_most("judge", [place(n) for n in range(20)], BUDGET, 20)


def test_what_meets_in_a_round_of_picking_is_counted_in_one_place() -> None:
    assert BUDGET.finalists + len(TREE_MODELS) + 1 == BUDGET.pick_arms
    wanted = BUDGET.pick_arms * BUDGET.pick_rounds
    assert (wanted, "at most") == expected("pick", [], BUDGET, replicas=1)


def test_what_is_added_to_a_plan_later_is_counted_from_the_start() -> None:
    design = [place(n) for n in range(1, 21)]
    without = replace(BUDGET, refine_trials=0)
    # A quarter of 20 as replicates; the default after each eight is in none of five.
    assert (25, "") == expected("collect", design, without, replicas=1)
    replicates = [place(n, role="replicate") for n in range(21, 24)]
    assert (25, "") == expected("collect", design + replicates, without, replicas=1)
    refined = [place(0, role="baseline"), *(place(n, role="proposal") for n in range(1, 5))]
    # 16 are left, and the default twice.
    assert (23, "at most") == expected("refine", refined, BUDGET, replicas=1)


def test_the_pace_leaves_pauses_out() -> None:
    steady = [place(n, at_s=3.0 * n) for n in range(6)]
    assert 3.0 == pace_s(steady)
    later = [place(n, at_s=3600 + 3.0 * n) for n in range(6)]
    assert 3.0 == pace_s(steady + later)
    assert 3.0 == pace_s([*steady, place(9)])


def test_few_trials_have_no_pace() -> None:
    assert pace_s([]) is None
    assert pace_s([place(n, at_s=3.0 * n) for n in range(3)]) is None


def test_two_replicas_are_twice_as_quick() -> None:
    both = [place(2 * n + m, at_s=3.0 * n) for n in range(8) for m in range(2)]
    assert 1.4 == pytest.approx(pace_s(both))


@pytest.mark.parametrize(
    ("silent_s", "usual_s", "expected_answer"),
    [(5, 2, True), (119, 2, True), (121, 2, False), (300, 60, True), (601, 60, False)],
)
def test_who_is_silent_for_many_trials_is_not_at_work(
    silent_s: float, usual_s: float, expected_answer: bool
) -> None:
    assert expected_answer is is_at_work(silent_s, usual_s)


def test_the_lowest_is_told_with_how_many_it_was_chosen_from() -> None:
    made = [
        place(0, at_s=0, p99_ms=40.0),
        place(1, at_s=1, p99_ms=10.0),
        place(1, at_s=2, p99_ms=40.0),
        place(2, at_s=3, p99_ms=25.0),
        place(3, at_s=4, p99_ms=1.0, status="disturbed"),
        place(4, at_s=4, p99_ms=None, status="failed"),
    ]
    best = lowest(made)
    assert best is not None
    assert (pytest.approx(20.0), 2, 2) == (best.p99_ms, best.trials, best.configurations)
    assert (pytest.approx(40.0), 1) == (best.default_p99_ms, best.default_trials)
    assert not best.by_models


def test_without_a_configuration_there_is_no_best() -> None:
    assert lowest([place(0, at_s=0)]) is None


def test_what_is_left_is_the_sum_of_what_is_not_done() -> None:
    done = StageStatus(name="screen", state="done", trials=8, done=6, left_s=4.0)
    runs = StageStatus(name="collect", state="begun", trials=8, done=6, left_s=4.0)
    comes = StageStatus(name="refine", state="to come", trials=5, left_s=10.0)
    subject = SubjectStatus(
        arch="x86",
        workload="slt",
        stages=(done, runs, comes),
        trial_s=2.0,
        measured_in=1,
        best=None,
        verdict=None,
    )
    assert (0, 2, 5) == (done.left, runs.left, comes.left)
    assert 14.0 == subject.left_s
    assert subject.most_s is None
    computes = StageStatus(name="train", state="to come", left_s=60.0, most_s=180.0)
    alone = replace(subject, stages=(computes,))
    assert (60.0, 180.0) == (alone.left_s, alone.most_s)
    assert runs == subject.current
    unknown = replace(subject, stages=(runs, replace(comes, left_s=None)))
    assert unknown.left_s is None
