"""Jobs: who holds them, and what counts of what they come to."""

import time
from dataclasses import replace
from threading import Thread

import pytest

from builders.stored import PLAN, WORKLOAD, begun, rows, trial
from intop.domain.configuration import Configuration
from intop.domain.job import Job, JobSettings, Lease, Refusal, Spot, WorkerStatus
from intop.domain.trial import PlannedTrial
from intop.errors import UnreadableJobError
from intop.store import Store, Subject

REQUEST = JobSettings(workload=WORKLOAD, tunes=("kernel",), prune_above_ms=12.5)


@pytest.fixture
def subject(store: Store) -> Subject:
    result = begun(store)
    store.write_plan(result, "collect", PLAN)
    return result


def spot(subject: Subject, replica: int = 0) -> Spot:
    return Spot(study=subject.campaign.study, arch=subject.arch, replica=replica)


def offered(store: Store, subject: Subject, planned: PlannedTrial, **changes: int) -> int:
    return store.jobs.offer(
        subject,
        "collect",
        planned,
        **({"attempt": 0, "replica": 0} | changes),
        request=REQUEST,
    )


def claimed(
    store: Store, subject: Subject, worker: str = "one", replica: int = 0, lease_s: float = 60
) -> Lease | None:
    return store.jobs.claim(
        spot(subject, replica),
        subject.campaign.id,
        subject.workload,
        worker=worker,
        lease_s=lease_s,
    )


def taken(store: Store, subject: Subject, lease_s: float = 60) -> Lease:
    return store.jobs.take(
        subject,
        "collect",
        PLAN[0],
        attempt=0,
        request=REQUEST,
        worker="here",
        lease_s=lease_s,
    )


def held(lease: Lease | None) -> Lease:
    assert lease is not None
    return lease


def test_what_is_offered_is_claimed_once_in_the_order_of_offers(
    store: Store, subject: Subject
) -> None:
    first, second = (offered(store, subject, planned) for planned in PLAN[1::-1])
    assert first == held(claimed(store, subject)).job.id
    lease = held(claimed(store, subject, "two"))
    assert second == lease.job.id
    assert claimed(store, subject) is None
    assert (
        Job(
            id=second,
            kind="trial",
            campaign_id=subject.campaign.id,
            spot=spot(subject),
            workload=subject.workload,
            request=REQUEST,
            stage="collect",
            planned=PLAN[0],
        )
        == lease.job
    )


def test_a_replica_has_only_its_own_jobs(store: Store, subject: Subject) -> None:
    offered(store, subject, PLAN[0], replica=1)
    assert claimed(store, subject) is None
    assert store.jobs.next([spot(subject)]) is None
    job = store.jobs.next([spot(subject), spot(subject, 1)])
    assert job is not None
    assert spot(subject, 1) == job.spot
    assert held(claimed(store, subject, replica=1)).job == job


def test_a_trial_is_stored_with_the_end_of_its_job(store: Store, subject: Subject) -> None:
    number = offered(store, subject, PLAN[0])
    lease = held(claimed(store, subject))
    made = replace(trial(), planned=PLAN[0])
    assert store.attempt(subject, "collect", PLAN[0].index, 0) is None
    assert store.jobs.complete(lease, made)
    assert store.jobs.status(number) is None
    assert made == store.attempt(subject, "collect", PLAN[0].index, 0)
    assert [made] == store.trials(subject)


def test_the_number_of_a_job_that_is_gone_is_not_given_again(
    store: Store, subject: Subject
) -> None:
    """Whoever still waits for the first one must not take another's job for its own."""
    number = offered(store, subject, PLAN[0])
    assert store.jobs.complete(held(claimed(store, subject)), replace(trial(), planned=PLAN[0]))
    assert number < offered(store, subject, PLAN[1])
    assert store.jobs.status(number) is None


@pytest.mark.parametrize("order", ["late first", "late last"])
def test_a_fenced_worker_counts_for_nothing_and_is_kept_as_evidence(
    store: Store, subject: Subject, order: str
) -> None:
    offered(store, subject, PLAN[0])
    lost = held(claimed(store, subject, "slow", lease_s=-1))
    lease = held(claimed(store, subject, "quick"))
    assert lost.token + 1 == lease.token
    assert not store.jobs.renew(lost, 60)
    slow, quick = (replace(trial(), planned=PLAN[0], seconds=s) for s in (99.0, 3.0))
    if order == "late first":
        assert not store.jobs.complete(lost, slow)
    assert store.jobs.complete(lease, quick)
    if order == "late last":
        assert not store.jobs.complete(lost, slow)
    assert [quick] == store.trials(subject)
    ((worker, _),) = store.jobs.late(subject)
    assert worker == "slow"


def test_a_lease_runs_out_unless_it_is_renewed(store: Store, subject: Subject) -> None:
    offered(store, subject, PLAN[0])
    lease = held(claimed(store, subject, lease_s=0.2))
    assert store.jobs.renew(lease, 60)
    time.sleep(0.3)
    assert claimed(store, subject, "two") is None
    assert store.jobs.renew(lease, 0.2)
    time.sleep(0.3)
    assert held(claimed(store, subject, "two")).worker == "two"


def test_a_released_job_is_free_at_once_and_says_why(store: Store, subject: Subject) -> None:
    number = offered(store, subject, PLAN[0])
    store.jobs.release(held(claimed(store, subject)), "the host is gone")
    status = store.jobs.status(number)
    assert status is not None
    assert (status.state, status.is_free, status.problem) == ("offered", True, "the host is gone")
    assert held(claimed(store, subject, "two"))


def test_an_offer_that_is_repeated_leaves_the_job_to_who_holds_it(
    store: Store, subject: Subject
) -> None:
    """As by a command that was killed and typed again."""
    number = offered(store, subject, PLAN[0])
    lease = held(claimed(store, subject))
    assert number == offered(store, subject, PLAN[0], replica=1)
    assert claimed(store, subject, "two", replica=1) is None
    assert store.jobs.complete(lease, replace(trial(), planned=PLAN[0]))


def test_an_offer_that_is_repeated_revives_what_failed(store: Store, subject: Subject) -> None:
    number = offered(store, subject, PLAN[0])
    store.jobs.fail(held(claimed(store, subject)), "another kernel")
    status = store.jobs.status(number)
    assert status is not None
    assert (status.state, status.answer, status.why) == ("failed", None, "another kernel")
    assert claimed(store, subject) is None
    assert number == offered(store, subject, PLAN[0], replica=1)
    assert number == held(claimed(store, subject, replica=1)).job.id


def test_whoever_has_the_host_takes_a_trial_over(store: Store, subject: Subject) -> None:
    offered(store, subject, PLAN[0])
    lost = held(claimed(store, subject, "elsewhere"))
    lease = taken(store, subject)
    made = replace(trial(), planned=PLAN[0])
    assert not store.jobs.complete(lost, replace(made, seconds=77.0))
    assert store.jobs.complete(lease, made)
    assert [made] == store.trials(subject)


def test_an_attempt_that_is_stored_already_counts_once(store: Store, subject: Subject) -> None:
    """Whoever asked for it had read the store before."""
    made = replace(trial(), planned=PLAN[0])
    assert store.jobs.complete(taken(store, subject), made)
    assert not store.jobs.complete(taken(store, subject), replace(made, seconds=77.0))
    offered(store, subject, PLAN[0])
    lease = held(claimed(store, subject, "elsewhere"))
    assert not store.jobs.complete(lease, replace(made, seconds=78.0))
    assert [made] == store.trials(subject)
    assert [worker for worker, _ in store.jobs.late(subject)] == ["here", "elsewhere"]
    assert store.jobs.waiting() == {}


def test_no_worker_gets_what_a_process_measures_itself(store: Store, subject: Subject) -> None:
    lease = taken(store, subject, lease_s=-1)
    assert claimed(store, subject) is None
    store.jobs.drop(lease)
    assert store.jobs.waiting() == {}
    offered(store, subject, PLAN[0])
    store.jobs.drop(taken(store, subject))
    assert claimed(store, subject) is None


def test_only_what_nobody_holds_is_moved_or_withdrawn(store: Store, subject: Subject) -> None:
    number = offered(store, subject, PLAN[0])
    assert store.jobs.move(number, 2)
    lease = held(claimed(store, subject, replica=2))
    assert not store.jobs.move(number, 0)
    store.jobs.withdraw(number)
    assert store.jobs.status(number) is not None
    store.jobs.release(lease)
    store.jobs.withdraw(number)
    assert store.jobs.status(number) is None


def test_a_question_is_answered(store: Store, subject: Subject) -> None:
    request = replace(REQUEST, configuration=Configuration({"net.core.somaxconn": "7"}))
    number = store.jobs.ask(subject, 0, "refusal", request)
    lease = held(claimed(store, subject))
    assert ("refusal", request, None) == (lease.job.kind, lease.job.request, lease.job.planned)
    refusal = Refusal(host="lb", key="net.core.somaxconn", value="7", got="128")
    store.jobs.answer(lease, refusal)
    status = store.jobs.status(number)
    assert status is not None
    assert ("done", refusal, "") == (status.state, status.answer, status.why)
    assert claimed(store, subject) is None
    store.jobs.withdraw(number)
    assert store.jobs.status(number) is None


def test_many_who_claim_at_once_get_each_job_once(store: Store, subject: Subject) -> None:
    for planned in PLAN:
        for attempt in range(8):
            offered(store, subject, planned, attempt=attempt)
    got: list[int] = []

    def claim() -> None:
        while (lease := claimed(store, subject)) is not None:
            got.append(lease.job.id)

    threads = [Thread(target=claim) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert 8 * len(PLAN) == len(got) == len(set(got))


def test_workers_are_known_by_their_signs_of_life(store: Store, subject: Subject) -> None:
    one = WorkerStatus(
        name="one",
        started_at="2026-11-25T01:00:00+00:00",
        silent_s=0.0,
        doing="waiting for work",
        reach=(spot(subject), spot(subject, 1)),
        trials=0,
        failures=0,
    )
    store.workers.heard(one)
    store.workers.heard(replace(one, name="two"))
    store.workers.heard(replace(one, trials=3, doing="at work", reach=()))
    result = store.workers.all()
    assert {w.name for w in result} == {"one", "two"}
    assert all(w.is_alive and w.silent_s < 60 for w in result)
    (again,) = (w for w in result if w.name == "one")
    assert (again.trials, again.doing, again.reach) == (3, "at work", ())
    store.workers.ended("one")
    assert [w.name for w in store.workers.all()] == ["two"]


def test_how_many_jobs_are_free_and_held(store: Store, subject: Subject) -> None:
    assert store.jobs.waiting() == {}
    for planned in PLAN[:2]:
        offered(store, subject, planned)
    claimed(store, subject)
    assert {subject.campaign.id: (1, 1)} == store.jobs.waiting()


def test_a_row_that_is_no_job_is_named_and_rejected_by_its_number(
    store: Store, subject: Subject, url: str
) -> None:
    first, second = (offered(store, subject, planned) for planned in PLAN[:2])
    rows(url, f"update job set request = '{{' where id = {first}")
    for ask in (lambda: store.jobs.next([spot(subject)]), lambda: claimed(store, subject)):
        with pytest.raises(
            UnreadableJobError, match=f"the store's job {first} is not as"
        ) as caught:
            ask()
        assert first == caught.value.job
    assert [(first, "offered", 0)] == rows(
        url, f"select id, state, token from job where id = {first}"
    )
    store.jobs.reject(first, "no JSON")
    status = store.jobs.status(first)
    assert status is not None
    assert (status.state, status.why) == ("failed", "no JSON")
    assert second == held(claimed(store, subject)).job.id
    # Whoever asks for the trial again has it measured.
    assert first == offered(store, subject, PLAN[0])
    assert first == held(claimed(store, subject)).job.id


def test_what_somebody_holds_is_not_rejected(store: Store, subject: Subject) -> None:
    number = offered(store, subject, PLAN[0])
    lease = held(claimed(store, subject))
    store.jobs.reject(number, "no")
    assert store.jobs.complete(lease, replace(trial(), planned=PLAN[0]))


@pytest.mark.parametrize(
    "change",
    [
        "kind = 'shell'",
        "kind = 'refusal'",
        "kind = 'open'",
        "planned_id = null",
        "attempt = -1",
        "arch = 'arm'",
        "request = '{}'",
    ],
)
def test_a_job_that_does_not_fit_together_is_none(
    store: Store, subject: Subject, url: str, change: str
) -> None:
    number = offered(store, subject, PLAN[0])
    rows(url, f"update job set {change}")
    arch = "arm" if "arch" in change else "x86"
    with pytest.raises(UnreadableJobError, match=f"job {number} is not as this intop writes it"):
        store.jobs.next([replace(spot(subject), arch=arch)])


def test_a_token_that_can_not_grow_is_claimed_by_nobody(
    store: Store, subject: Subject, url: str
) -> None:
    offered(store, subject, PLAN[0])
    second = offered(store, subject, PLAN[1])
    rows(url, "update job set token = 2147483647 where id = (select min(id) from job)")
    job = store.jobs.next([spot(subject)])
    assert second == (job and job.id) == held(claimed(store, subject)).job.id


def test_a_place_is_its_campaigns_whoever_has_a_row_of_it(
    store: Store, subject: Subject, url: str
) -> None:
    number = offered(store, subject, PLAN[0])
    other = begun(store)
    rows(url, f"update job set campaign_id = {other.campaign.id}, kind = 'open'")
    assert number == offered(store, subject, PLAN[0])
    job = held(claimed(store, subject)).job
    assert ("trial", subject.campaign.id) == (job.kind, job.campaign_id)
