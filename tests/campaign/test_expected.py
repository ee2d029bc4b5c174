"""How many trials each stage is expected to have, by the budget and what is planned."""

import random
from dataclasses import replace
from statistics import median
from typing import Any

import pytest

from builders.results import VERDICT
from builders.shipped_studies import lab_study
from intop.causes import stage as mediation
from intop.domain.campaign_status import Place
from intop.domain.configuration import DEFAULT, Configuration
from intop.domain.training import TREE_MODELS
from intop.domain.trial import TrialRole
from intop.experiment.across import stage as across
from intop.experiment.contest import stage as contest
from intop.experiment.sweep import request as sweep_request
from intop.explain.ablation import ablate
from intop.explain.stage import explained, explained_at_most
from intop.run import registry
from intop.run.prospect import Prospect, designed
from intop.run.stage import Expected
from intop.soak.stage import SoakRequest

STUDY = lab_study()
BUDGET = STUDY.budget


def place(stage: str, n: int, role: TrialRole = "design") -> Place:
    configuration = Configuration({"net.core.somaxconn": str(n)}) if n else DEFAULT
    return Place(stage=stage, index=n, role=role, configuration=configuration)


def expected(
    stage: str,
    *places: Place,
    replicas: int = 1,
    verdict: Any = None,
    request: object = None,
    **budget: Any,
) -> Expected:
    """Of a stage with this plan, where so many replicas are in the file."""
    study = replace(
        STUDY,
        clusters={"x86": STUDY.clusters["x86"][:1] * replicas},
        budget=replace(BUDGET, **budget),
    )
    prospect = Prospect(
        study=study,
        workload=study.workloads["slt"],
        arch="x86",
        stored=places,
        verdict=verdict,
        request=request,
    )
    return registry.stage(stage).expected(prospect)


@pytest.mark.parametrize(
    ("configurations", "every", "replicas", "trials"),
    [(8, 4, 1, 11), (8, 4, 2, 12), (48, 8, 2, 56), (20, 8, 2, 24), (3, 8, 1, 4)],
)
def test_a_design_has_the_default_before_and_after_every_few(
    configurations: int, every: int, replicas: int, trials: int
) -> None:
    assert trials == designed(configurations, every, replicas)


def test_a_stage_without_a_plan_has_what_the_budget_allows() -> None:
    def trials(stage: str) -> tuple[int, str]:
        result = expected(stage, replicas=2)
        return result.trials, result.bound

    assert trials("pilot") == (5, "at least")
    assert trials("replicas") == (12, "")
    assert trials("screen") == (56, "")
    assert trials("collect") == (24, "")
    assert trials("refine") == (24, "at most")
    # 3 finalists, 4 models' own winners and the default, in 3 rounds.
    assert trials("pick") == (24, "at most")
    # The default, the first 1, 2, 3, 5 and 8 of 14 changes, all of them, and fourteen arms to test
    # what stays, in four rounds.
    assert trials("trim") == (84, "about")
    assert trials("judge") == (20, "at most")
    assert trials("explain")[1] == "about"


@pytest.mark.parametrize(
    ("stage", "request_of", "trials"),
    [
        # With the host's own values and a winner, in 10 rounds; 4 baselines come with intop.
        ("contest", contest.ContestRequest(), 10 * (4 + 2)),
        ("contest", contest.ContestRequest(names=("kernel-6.1",)), 10 * (1 + 2)),
        ("transfer", None, 10 * 4),
        ("causes", mediation.MediationRequest(rounds=5), 5 * 6),
        ("across", across.AcrossRequest(workloads=(STUDY.workloads["dlt"],)), 10 * 2),
        ("across", across.AcrossRequest(), 10 * 2 * len(STUDY.workloads)),
        ("sweep", sweep_request.SweepRequest(points="0.5x,2x", rounds=4), 4 * 2 * 2),
        ("sweep", sweep_request.SweepRequest(names=("kernel-6.1",)), 3 * 7 * 3),
        ("soak", SoakRequest(hours=2, block_s=120), 60),
    ],
)
def test_a_stage_of_its_own_has_what_is_asked_of_it_until_it_has_a_plan(
    stage: str, request_of: object, trials: int
) -> None:
    assert trials == expected(stage, request=request_of).trials
    assert expected(stage, place(stage, 0), request=request_of).trials == 1


def test_a_screening_that_may_end_before_its_plan_has_it_at_most() -> None:
    assert expected("screen", screen_stable=3).bound == "at most"


def test_what_is_planned_is_no_longer_at_most() -> None:
    result = expected("pick", place("pick", 0), place("pick", 1))
    assert (result.trials, result.bound) == (2, "")


def test_what_meets_in_a_round_of_picking_is_counted_in_one_place() -> None:
    assert BUDGET.finalists + len(TREE_MODELS) + 1 == BUDGET.pick_arms
    assert BUDGET.pick_arms * BUDGET.pick_rounds == expected("pick").trials


def test_a_judgement_likely_ends_at_its_first_look() -> None:
    assert Expected(trials=20, bound="at most", likely=14) == expected("judge")
    assert Expected(trials=20, likely=20) == expected("judge", judge_looks=1)
    begun = [place("judge", n) for n in range(20)]
    assert Expected(trials=20, bound="at most") == expected("judge", *begun)


def test_a_judgement_of_longer_trials_takes_longer() -> None:
    result = expected("judge", replicas=2, judge_duration_s=60)
    assert (result.trials, result.likely) == (20, 14)
    assert result.time is not None
    assert 7 * 60 < result.time.likely_s < 10 * 60 < result.time.most_s
    measured = [replace(place("judge", n), attempts=1, status="ok") for n in range(4)]
    begun = [*measured, *(place("judge", n) for n in range(4, 20))]
    left = expected("judge", *begun, replicas=2, judge_duration_s=60).time
    assert left is not None
    assert left.likely_s == pytest.approx(result.time.likely_s * 16 / 14)


def test_what_is_added_to_a_plan_later_is_counted_from_the_start() -> None:
    design = [place("collect", n) for n in range(1, 21)]
    # A quarter of 20 as replicates; the default after each eight is in none of five.
    assert Expected(trials=25) == expected("collect", *design, refine_trials=0)
    replicates = [place("collect", n, "replicate") for n in range(21, 24)]
    assert Expected(trials=25) == expected("collect", *design, *replicates, refine_trials=0)
    refined = [place("refine", n, "proposal") for n in range(1, 5)]
    # 16 are left, and the default twice.
    result = expected("refine", place("refine", 0, "baseline"), *refined)
    assert Expected(trials=23, bound="at most") == result


# Of an explanation --------------------------------------------------------------------------------


def test_what_is_explained_is_the_winner_that_there_is() -> None:
    result = expected("explain", verdict=VERDICT)
    keys = len(VERDICT.configuration.values)
    assert (explained(BUDGET, keys), explained_at_most(BUDGET, keys)) == (
        result.trials,
        result.most,
    )
    assert 3 * BUDGET.explain_pairs < result.trials < expected("explain").trials


def asked_for(changes: int, seed: int) -> int:
    """The trials that a made-up explanation asks for: three changes help, the others do nothing.

    With the effects and the noise of the lab, between the rows of benchmarks/results/screening.md,
    and models that are wrong by a third of an effect.
    """
    rng = random.Random(seed)
    names = [f"{n:02}" for n in range(changes)]
    effects = dict(zip(names, (0.9, 0.6, 0.5), strict=False))
    promised = sorted(names, key=lambda name: -effects.get(name, 0.0) - rng.gauss(0, 0.2))
    search = ablate(names, rounds=BUDGET.explain_rounds, level=BUDGET.level, promised=promised)
    asked, trials = next(search), 3 * BUDGET.explain_pairs
    try:
        while True:
            trials += len(asked.sets) * asked.rounds
            message = [
                {s: rng.gauss(-sum(effects.get(n, 0.0) for n in s), 0.2) for s in asked.sets}
                for _ in range(asked.rounds)
            ]
            asked = search.send(message)
    except StopIteration:
        return trials


@pytest.mark.parametrize("changes", [2, 3, 5, 8, 14, 20, 30])
def test_all_phases_of_an_explanation_are_reckoned_with(changes: int) -> None:
    made = sorted(asked_for(changes, seed) for seed in range(20))
    assert 0.75 < explained(BUDGET, changes) / median(made) < 1.25
    assert made[-2] <= explained_at_most(BUDGET, changes)
