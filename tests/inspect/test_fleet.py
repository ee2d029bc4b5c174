"""All campaigns and workers of a store."""

from dataclasses import replace

import pytest

from builders.shipped_studies import lab_study
from builders.stored import PLAN, begun, trial
from intop.domain.job import Fleet, JobSettings, Spot, WorkerStatus
from intop.inspect.status import fleet
from intop.inspect.store_view import fleet as document
from intop.store import opened
from kit.golden import Golden
from kit.printed import shown

WORKER = WorkerStatus(
    name="one",
    started_at="2026-11-25T01:00:00+00:00",
    silent_s=0.0,
    doing="opening web x86 replica 2",
    reach=(
        Spot(study="web", arch="x86", replica=0),
        Spot(study="web", arch="x86", replica=1),
        Spot(study="web", arch="arm", replica=0),
    ),
    trials=17,
    failures=2,
)


def test_campaigns_and_workers_are_counted(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    with opened(url) as store:
        first = begun(store)
        store.write_plan(first, "collect", PLAN)
        store.add(first, trial())
        store.add(first, trial(attempt=1))
        second = begun(store)
        store.write_plan(second, "collect", PLAN)
        store.finish(second.campaign)
        request = JobSettings(workload=lab_study().workloads["slt"], tunes=("kernel",))
        for planned in PLAN[:2]:
            store.jobs.offer(second, "collect", planned, attempt=0, replica=0, request=request)
        spot = Spot(study=second.campaign.study, arch=second.arch, replica=0)
        store.jobs.claim(spot, second.campaign.id, second.workload, worker="one", lease_s=60)
        store.workers.heard(WORKER)
        result = fleet(url, store)
    one, two = result.campaigns
    assert (
        one.planned,
        one.measured,
        one.waiting,
        one.held,
        one.finished_at,
    ) == (3, 1, 0, 0, None)
    assert (two.planned, two.measured, two.waiting, two.held) == (3, 0, 1, 1)
    assert two.finished_at is not None
    (worker,) = result.workers
    assert replace(worker, silent_s=0.0) == WORKER
    text = shown(capsys, *document(result))
    assert "2 campaigns, 1 worker" in text
    assert "web x86 1, 2; web arm 1" in text
    assert "finished" in text


def test_a_worker_that_fell_silent_is_lost(
    capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    lost = replace(WORKER, silent_s=700.0)
    text = shown(capsys, *document(Fleet(store="x.db", campaigns=(), workers=(lost,))))
    golden(text)


def test_nothing_is_there_yet(capsys: pytest.CaptureFixture[str], golden: Golden) -> None:
    text = shown(capsys, *document(fleet("postgresql+psycopg://me:secret@db/x", None)))
    golden(text)
