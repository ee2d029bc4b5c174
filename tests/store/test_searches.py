"""The store's records of searches."""

import math
from dataclasses import replace

import pytest
import sqlalchemy as sa

from intop.domain.training import FinishedSearch, FittedFamily, SearchRecord, Try
from intop.errors import IntopError
from intop.store import Store, Subject

TRY = Try(
    number=0,
    hyperparameters={"trees": 100, "rate": 0.1 + 0.2, "kernel": "rbf", "condense": False},
    errors=(1e-17, math.inf),
    pruned=True,
    seconds=0.5,
)
END = FinishedSearch(
    fitted=FittedFamily(family="SVR", hyperparameters={"C": 1.5}, inner_score=0.25),
    predicted=(0.1 + 0.2, 1e-17),
    low=(-1.0, 0.0),
    high=(math.inf, 1.0),
    seconds=0.5,
)
RECORDS = [
    SearchRecord(family="SVR", fold=2, known=TRY),
    SearchRecord(family="SVR", fold=2, known=replace(TRY, number=1, pruned=False)),
    SearchRecord(family="SVR", fold=2, known=END),
    SearchRecord(family="RFR", fold=2, known=TRY),
]


@pytest.fixture
def subject(store: Store) -> Subject:
    campaign = store.begin("study", seed=1, tool_version="0")
    return Subject(campaign=campaign, arch="x86", workload="slt")


def test_records_come_back_as_they_were_added(store: Store, subject: Subject) -> None:
    store.searches(subject).add("abc", RECORDS)
    result = store.searches(subject).new("abc")
    assert result == RECORDS
    kinds = [type(v) for one in result[:1] for v in one.known.hyperparameters.values()]
    assert [int, float, str, bool] == kinds


def test_each_object_gives_a_record_once_also_those_of_others(
    store: Store, subject: Subject
) -> None:
    one, other = store.searches(subject), store.searches(subject)
    assert one.new("abc") == []
    other.add("abc", RECORDS[:2])
    assert RECORDS[:2] == one.new("abc")
    assert one.new("abc") == []
    one.add("abc", RECORDS[2:3])
    assert RECORDS[2:3] == one.new("abc")
    assert RECORDS[:3] == other.new("abc")


def test_what_somebody_has_added_already_is_left_as_it_is(store: Store, subject: Subject) -> None:
    one, other = store.searches(subject), store.searches(subject)
    one.add("abc", RECORDS[:1])
    other.add("abc", [replace(RECORDS[0], known=replace(TRY, seconds=9.0)), RECORDS[1]])
    assert RECORDS[:2] == store.searches(subject).new("abc")


def test_another_training_takes_the_place_of_an_earlier_one(store: Store, subject: Subject) -> None:
    elsewhere = replace(subject, workload="dlt")
    store.searches(subject).add("abc", RECORDS)
    store.searches(elsewhere).add("abc", RECORDS[:1])
    assert store.searches(subject).new("def") == []
    store.searches(subject).add("def", RECORDS[:1])
    assert RECORDS[:1] == store.searches(subject).new("def")
    assert store.searches(subject).new("abc") == []
    assert RECORDS[:1] == store.searches(elsewhere).new("abc")


def test_a_damaged_record_is_named(store: Store, subject: Subject) -> None:
    store.searches(subject).add("abc", RECORDS[:1])
    store.session.change(sa.text("UPDATE search SET document = '{}'"))
    with pytest.raises(IntopError, match="the store's search 1 is not as this intop writes it"):
        store.searches(subject).new("abc")
