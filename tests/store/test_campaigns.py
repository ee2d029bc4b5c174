"""Campaigns and plans in the store."""

from dataclasses import replace

import pytest

from builders.stored import PLAN, begun
from intop.errors import IntopError
from intop.store import Store, opened


def test_a_study_has_no_campaign_at_first(store: Store) -> None:
    assert store.latest("study") is None


def test_a_campaign_comes_back_as_it_was_begun(store: Store, url: str) -> None:
    campaign = begun(store).campaign
    assert (campaign.study, campaign.seed, campaign.finished_at) == ("study", 7, None)
    with opened(url) as again:
        assert campaign == again.latest("study")


def test_the_latest_campaign_is_the_studys_newest(store: Store) -> None:
    first = begun(store).campaign
    second = begun(store).campaign
    begun(store, study="another")
    assert first.id != second.id
    assert second == store.latest("study")


def test_earlier_campaigns_are_those_of_the_same_study_oldest_first(store: Store) -> None:
    first = begun(store).campaign
    begun(store, study="another")
    second, third = begun(store).campaign, begun(store).campaign
    assert [first, second] == store.earlier(third)
    assert store.earlier(first) == []


def test_a_finished_campaign_says_when(store: Store) -> None:
    first = begun(store).campaign
    second = begun(store).campaign
    store.finish(second)
    result = store.latest("study")
    assert result is not None
    assert result.finished_at is not None
    assert replace(second, finished_at=result.finished_at) == result
    assert first.finished_at is None


def test_a_plan_comes_back_in_order(store: Store) -> None:
    subject = begun(store)
    assert store.plan(subject, "collect") == []
    store.write_plan(subject, "collect", reversed(PLAN))
    assert store.plan(subject, "collect") == PLAN


def test_a_plan_belongs_to_its_stage_workload_architecture_and_campaign(store: Store) -> None:
    subject = begun(store)
    store.write_plan(subject, "collect", PLAN)
    assert store.plan(subject, "screen") == []
    assert store.plan(replace(subject, workload="dlt"), "collect") == []
    assert store.plan(replace(subject, arch="arm"), "collect") == []
    assert store.plan(begun(store), "collect") == []


def test_a_plan_is_written_once_and_all_of_it_or_nothing(url: str) -> None:
    with opened(url) as store:
        subject = begun(store)
        store.write_plan(subject, "collect", PLAN[1:])
    with pytest.raises(IntopError, match=r"(?i)unique"), opened(url) as store:
        store.write_plan(subject, "collect", PLAN)
    with opened(url) as store:
        assert PLAN[1:] == store.plan(subject, "collect")
