"""Results in the store."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from builders import trials as samples
from builders.campaigns import sql
from builders.results import COSTLY, SIDES, SWEEP, VERDICT
from builders.stored import JUDGED, SEARCH, begun
from builders.trials import FACTS
from intop.domain.explanation import Explanation
from intop.domain.pilot import Pilot, TriedDuration
from intop.domain.probing import Probe, Reading
from intop.domain.ranking import Ranking
from intop.domain.search import Search
from intop.domain.sweep import Sweeps
from intop.domain.training import Ceiling, FittedFamily, HeldOut, Training
from intop.domain.verdict import PairwiseLatency, Verdict
from intop.errors import IntopError
from intop.store import Store

RANKING = samples.ranking(
    samples.importance("a.b", 0.75, sd=0.1),
    samples.importance("a.c", 0.25),
    chosen=["a.b"],
    screening=replace(samples.screening(["a.b"], ["a.c"], ["a.d"]), detectable=None),
)

ERROR = samples.model_error("svr", 50.0, r2=-0.5, coverage=0.1 + 0.2)

TRAINING = samples.training(
    ERROR,
    keys=("a.b",),
    fitted=(
        FittedFamily(
            family="svr",
            hyperparameters={"C": 1.5, "degree": 3, "kernel": "rbf", "shrinking": True},
            inner_score=-0.25,
        ),
    ),
)

PROBE = Probe(
    facts=replace(FACTS, memory_bytes=1 << 34, in_namespace=True, clock_s=1795245568.331601),
    readings={
        "net.core.somaxconn": Reading("writable", "4096"),
        "vm.nosuch": Reading("missing", ""),
    },
)

TRIED = TriedDuration(
    duration_s=7, requests=1050, trials=5, judged_ms=80.25, sd=0.5, sd_low=0.3, sd_high=1.4375,
    resolution=1.75, resolution_low=1.4, resolution_high=1e9, pairs_needed=None, seconds=7.25,
)  # fmt: skip

PILOT = Pilot(
    duration_s=7, tried=(TRIED,), reached=False, stalled=True, wanted=1.25, pairs=10, level=0.95
)

JUDGED_TRAINING = replace(
    TRAINING,
    errors=(
        replace(
            ERROR,
            coverage=0.9,
            level=0.8,
            regret=3.5,
            held_out=(HeldOut(measured=2.0, predicted=2.5, low=1.0, high=float("inf")),),
        ),
    ),
    ceiling=Ceiling(mape=12.5, r2=0.75, spearman=0.9, sd=0.125, configurations=3),
    target="run time",
    unit="s",
)

RESTARTED = replace(
    SEARCH,
    candidates=(replace(SEARCH.candidates[0], spread=0.125, penalised_ms=10.25),),
    convergences=(replace(SEARCH.convergences[0], algorithm="swarm", predictions=400, restarts=1),),
    winners=(replace(SEARCH.candidates[0], model="rf"),),
)

FEW = replace(
    VERDICT,
    sides=replace(
        SIDES,
        latencies_ms={"P99.9": PairwiseLatency(default=None, tuned=None)},
        fewest_requests=300,
    ),
    guardrails=COSTLY.guardrails,
)

RESULTS = [
    PILOT,
    VERDICT,
    FEW,
    Sweeps((SWEEP,)),
    RANKING,
    JUDGED_TRAINING,
    RESTARTED,
    PROBE,
]


@pytest.mark.parametrize("result", RESULTS, ids=lambda r: type(r).__name__)
def test_a_result_comes_back_as_it_was_found(store: Store, result: Any) -> None:
    subject = begun(store)
    assert store.get(subject, type(result)) is None
    store.put(subject, result)
    assert result == store.get(subject, type(result))
    assert isinstance(store.get(subject, type(result)), type(result))


def test_a_verdict_keeps_its_sides_and_what_models_were_worth(store: Store) -> None:
    subject = begun(store)
    store.put(subject, JUDGED)
    assert store.get(subject, Verdict) == JUDGED


def test_a_result_that_lacks_something_is_named_with_its_campaign(
    sqlite_store: Store, path: Path
) -> None:
    """Nothing is made up for it."""
    subject = begun(sqlite_store)
    sqlite_store.put(subject, VERDICT)
    sql(path, "update result set document = json_remove(document, '$.looks')")
    message = (
        r"result verdict of campaign 1 is not as this intop writes it: looks: Field required\. B"
    )
    with pytest.raises(IntopError, match=message):
        sqlite_store.get(subject, Verdict)


def test_hyperparameters_keep_their_types(store: Store) -> None:
    subject = begun(store)
    store.put(subject, TRAINING)
    results = store.get(subject, Training)
    assert results is not None
    kept = results.fitted[0].hyperparameters
    assert [float, int, str, bool] == [type(value) for value in kept.values()]


def test_a_models_infinite_error_can_be_stored(store: Store) -> None:
    subject = begun(store)
    wild = replace(TRAINING, errors=(replace(ERROR, mape=float("inf"), r2=float("-inf")),))
    store.put(subject, wild)
    assert wild == store.get(subject, Training)


def test_results_of_all_types_stand_side_by_side_and_a_later_one_replaces_its_like(
    store: Store,
) -> None:
    subject = begun(store)
    for result in RESULTS:
        store.put(subject, result)
    later = replace(VERDICT, pairs=9)
    store.put(subject, later)
    assert later == store.get(subject, Verdict)
    assert store.get(subject, Ranking) == RANKING


def test_what_has_a_result_is_found_in_all_campaigns(store: Store) -> None:
    first, second = begun(store), begun(store, "other", "arm")
    bare = begun(store)
    store.put(second, JUDGED)
    store.put(first, SEARCH)
    store.put(first, JUDGED)
    store.put(bare, SEARCH)
    assert [first, second] == store.subjects_with(Verdict)
    assert [first, second, bare] == store.subjects_with(Verdict, Search)
    assert store.subjects_with(Explanation) == []


def test_a_result_belongs_to_its_subject(store: Store) -> None:
    subject = begun(store)
    store.put(subject, VERDICT)
    assert store.get(replace(subject, workload="dlt"), Verdict) is None
    assert store.get(replace(subject, arch="arm"), Verdict) is None
    assert store.get(begun(store), Verdict) is None
