"""Trials in the store: everything comes back, and is on disk at once."""

import signal
import sys
from dataclasses import replace

import pytest

from builders.stored import FAILED, MADE, PLAN, begun, kept, rows, trial
from builders.trials import METRICS
from intop.domain.counters import HostCounters
from intop.domain.trial import Trial
from intop.errors import IntopError
from intop.store import Store, Subject, opened
from kit.commands import ran


@pytest.mark.parametrize(
    "made",
    [
        trial(),
        FAILED,
        trial(status="disturbed", detail="x"),
        trial(status="pruned", attempt=2, pruned_above_ms=450.5),
    ],
)
def test_a_trial_comes_back_as_it_was_measured(store: Store, made: Trial) -> None:
    subject = kept(store, made)
    assert [made] == store.trials(subject)


def test_trials_come_back_in_order_of_measurement_and_by_stage(store: Store) -> None:
    subject = begun(store)
    for stage in ("screen", "collect"):
        store.write_plan(subject, stage, PLAN)  # type: ignore[arg-type]
    made = [
        trial(stage="collect", planned=PLAN[2]),
        trial(stage="screen", planned=PLAN[0]),
        trial(stage="collect", planned=PLAN[0]),
    ]
    for one in made:
        store.add(subject, one)
    assert made == store.trials(subject)
    assert [made[1]] == store.trials(subject, "screen")
    assert made == store.trials(subject, "screen", "collect")
    assert store.trials(subject, "judge") == []
    assert store.trials(replace(subject, arch="arm")) == []


def test_conditions_are_those_of_each_stages_last_trial_in_order_of_measurement(
    store: Store,
) -> None:
    subject = begun(store)
    for stage in ("screen", "collect"):
        store.write_plan(subject, stage, PLAN)
    early, late = (replace(MADE.conditions, kernel=kernel) for kernel in ("6.1", "6.12"))
    for stage, place, conditions in (
        ("collect", 0, early),
        ("collect", 1, late),
        ("screen", 0, early),
    ):
        store.add(subject, trial(stage=stage, planned=PLAN[place], conditions=conditions))
    result = store.conditions(subject)
    assert [("collect", late), ("screen", early)] == list(result.items())
    assert {"screen": early} == store.conditions(subject, "screen")
    assert store.conditions(replace(subject, arch="arm")) == {}


def test_places_are_those_of_the_stages_that_are_asked_for(store: Store) -> None:
    subject = begun(store)
    for stage in ("screen", "collect"):
        store.write_plan(subject, stage, PLAN)
    store.add(subject, trial(stage="collect", planned=PLAN[1]))
    places = store.places(subject, "collect")
    assert {place.stage for place in places} == {"collect"}
    assert [place.status for place in places] == [None, "ok", None]
    assert 2 * len(PLAN) == len(store.places(subject))


def test_a_trial_is_stored_once_for_each_attempt(url: str) -> None:
    with opened(url) as store:
        subject = kept(store, trial(attempt=0), trial(attempt=1))
    with pytest.raises(IntopError, match=r"(?i)unique"), opened(url) as store:
        store.add(subject, trial(attempt=1))
    with opened(url) as store:
        assert [t.attempt for t in store.trials(subject)] == [0, 1]


def test_a_trial_without_a_place_in_a_plan_is_refused(url: str) -> None:
    with pytest.raises(IntopError, match=r"the store .*: .*(?i:not.null)"), opened(url) as store:
        store.add(begun(store), trial())


def test_p99_is_there_for_people_with_an_sql_prompt(store: Store, url: str) -> None:
    kept(store, trial(), replace(FAILED, attempt=1))
    result = rows(url, "select judged_ms, status from trial order by id")
    assert [(trial().judged_ms, "ok"), (None, "failed")] == result


KILLED = """
import os, signal, sys
sys.path[:0] = {paths!r}
from intop.store import opened
from builders.stored import PLAN, kept, trial
with opened(sys.argv[1]) as store:
    kept(store, trial(), trial(planned=PLAN[2]))
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_trials_outlive_a_process_that_is_killed_right_after_adding_them(url: str) -> None:
    script = KILLED.format(paths=[p for p in sys.path if p])
    done = ran(sys.executable, "-c", script, url)
    assert done.returncode == -signal.SIGKILL, done.stderr
    with opened(url) as store:
        campaign = store.latest("study")
        assert campaign is not None
        subject = Subject(campaign=campaign, arch="x86", workload="slt")
        assert [trial(), trial(planned=PLAN[2])] == store.trials(subject)


SEEN = """
import sys
sys.path[:0] = {paths!r}
from builders.stored import rows
print(rows(sys.argv[1], "select count(*) from trial"))
"""


def test_another_process_sees_a_trial_as_soon_as_it_is_added(store: Store, url: str) -> None:
    kept(store, trial())
    script = SEEN.format(paths=[p for p in sys.path if p])
    done = ran(sys.executable, "-c", script, url, check=True)
    assert done.stdout.strip() == "[(1,)]"


def test_evidence_comes_back(store: Store) -> None:
    before = replace(METRICS, memory_before_mib=90.5, time_wait_before=7)
    seen = replace(before, foreign_cpu=0.25, foreign_program="cc1", load_cpu=0.5)
    seen = replace(seen, cpus=48, max_cpu_steal=0.25, max_cpu_softirq=0.5)
    seen = replace(seen, softnet_drops=3, softnet_squeezes=4)
    seen = replace(seen, context_switches_per_s=1234.5, power_w=88.25)
    subject = kept(store, trial(metrics={"lg": seen}))
    (result,) = store.trials(subject)
    assert {"lg": seen} == result.metrics


def test_counters_come_back(store: Store, url: str) -> None:
    growth = {"TcpExt.TCPTimeouts": (0, 3), "clients.busy_ms": (12, 2**63)}
    counted = HostCounters(
        at_s=(0.5, 1.25),
        growth=growth,
        levels={"clients.rtt_us.p50": (1.5, 0)},
        unread=("sockets",),
    )
    subject = kept(store, trial(counters={"lb": counted, "lg": HostCounters(at_s=(1.0,))}))
    (result,) = store.trials(subject)
    assert {"lb": counted, "lg": HostCounters(at_s=(1.0,))} == result.counters
    rows(url, "update trial set counters = null")
    assert store.trials(subject)[0].counters == {}
