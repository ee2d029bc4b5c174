"""The store, against real SQLite files."""

import json
import signal
import sqlite3
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

import samples
from campaigns import OWN_LOAD, as_before_migrations, sql, with_labels
from commands import ran
from intop.domain.configuration import DEFAULT, Configuration
from intop.domain.counters import HostCounters
from intop.domain.histogram import Histogram
from intop.domain.pilot import Pilot, TriedDuration
from intop.domain.probing import Probe, Reading
from intop.domain.ranking import Ranking
from intop.domain.search import Candidate, Search
from intop.domain.sweep import Sweeps
from intop.domain.training import Ceiling, FinishedSearch, FittedFamily, HeldOut, Searches, Training
from intop.domain.trial import RECORDED_LATER, PlannedTrial, Trial
from intop.domain.verdict import PairwiseLatency, Verdict
from intop.errors import IntopError, UsageError
from intop.store import Store, Subject, opened, opened_to_read, opening
from intop.store.kinds import KINDS
from intop.store.schema import HEAD, KNOWN, VERSION_TABLE, metadata
from samples import COSTLY, FACTS, METRICS, MODELS, SIDES, SWEEP, VERDICT

TUNED = Configuration({"net.core.somaxconn": "64", "net.ipv4.tcp_rmem": "4096 8192 65536"})
PLAN = [
    PlannedTrial(
        index=0,
        role="baseline",
        configuration=DEFAULT,
        rate_rps=75.5,
        connections=12,
        closed_loop=True,
    ),
    PlannedTrial(index=1, role="design", configuration=TUNED, arm="candidate 1", round=1),
    PlannedTrial(index=2, role="sentinel", configuration=DEFAULT),
]


MADE = replace(
    samples.trial(),
    planned=PLAN[1],
    seconds=12.25,
    seed=4_294_967_295,
    histogram=Histogram.from_pairs([(1000, 980), (50_000, 20)]),
    achieved_rps=99.5,
    errors={"connect": 0, "timeout": 2},
    metrics={"lb": METRICS, "lg": replace(METRICS, cpu=0.5)},
    replica="lb",
)


def trial(**changes: Any) -> Trial:
    return replace(MADE, **changes)


FAILED = trial(
    status="failed", detail="refused", histogram=None, achieved_rps=0.0, errors={}, metrics={}
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "intop.db"


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    with opened(str(path)) as made:
        yield made


def begun(store: Store, study: str = "study", arch: str = "x86", workload: str = "slt") -> Subject:
    campaign = store.begin(study, seed=7, tool_version="0.1.0")
    return Subject(campaign=campaign, arch=arch, workload=workload)


def kept(store: Store, *trials: Trial) -> Subject:
    """A campaign with a plan and these trials."""
    subject = begun(store)
    store.write_plan(subject, "collect", PLAN)
    for one in trials:
        store.add(subject, one)
    return subject


# Campaigns ----------------------------------------------------------------------------------------


def test_a_study_has_no_campaign_at_first(store: Store) -> None:
    assert store.latest("study") is None


def test_a_campaign_comes_back_as_it_was_begun(store: Store, path: Path) -> None:
    campaign = begun(store).campaign
    assert ("study", 7, None) == (campaign.study, campaign.seed, campaign.finished_at)
    with opened(str(path)) as again:
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
    assert [] == store.earlier(first)


def test_a_finished_campaign_says_when(store: Store) -> None:
    first = begun(store).campaign
    second = begun(store).campaign
    store.finish(second)
    found = store.latest("study")
    assert found is not None
    assert found.finished_at is not None
    assert replace(second, finished_at=found.finished_at) == found
    assert first.finished_at is None


# Plans --------------------------------------------------------------------------------------------


def test_a_plan_comes_back_in_order(store: Store) -> None:
    subject = begun(store)
    assert [] == store.plan(subject, "collect")
    store.write_plan(subject, "collect", reversed(PLAN))
    assert PLAN == store.plan(subject, "collect")


def test_a_plan_belongs_to_its_stage_workload_architecture_and_campaign(store: Store) -> None:
    subject = begun(store)
    store.write_plan(subject, "collect", PLAN)
    assert [] == store.plan(subject, "screen")
    assert [] == store.plan(replace(subject, workload="dlt"), "collect")
    assert [] == store.plan(replace(subject, arch="arm"), "collect")
    assert [] == store.plan(begun(store), "collect")


def test_a_plan_is_written_once_and_all_of_it_or_nothing(path: Path) -> None:
    with opened(str(path)) as store:
        subject = begun(store)
        store.write_plan(subject, "collect", PLAN[1:])
    with pytest.raises(IntopError, match="UNIQUE"), opened(str(path)) as store:
        store.write_plan(subject, "collect", PLAN)
    with opened(str(path)) as store:
        assert PLAN[1:] == store.plan(subject, "collect")


# Trials -------------------------------------------------------------------------------------------


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
    assert [] == store.trials(subject, "judge")
    assert [] == store.trials(replace(subject, arch="arm"))


def test_a_trial_is_stored_once_for_each_attempt(path: Path) -> None:
    with opened(str(path)) as store:
        subject = kept(store, trial(attempt=0), trial(attempt=1))
    with pytest.raises(IntopError, match="UNIQUE"), opened(str(path)) as store:
        store.add(subject, trial(attempt=1))
    with opened(str(path)) as store:
        assert [0, 1] == [t.attempt for t in store.trials(subject)]


def test_a_trial_without_a_place_in_a_plan_is_refused(path: Path) -> None:
    with pytest.raises(IntopError, match=r"intop\.db: .*NOT NULL"), opened(str(path)) as store:
        store.add(begun(store), trial())


def test_p99_is_there_for_people_with_an_sql_prompt(store: Store, path: Path) -> None:
    kept(store, trial(), replace(FAILED, attempt=1))
    found = sql(path, "select p99_ms, status from trial order by id")
    assert [(trial().p99_ms, "ok"), (None, "failed")] == found


KILLED = """
import os, signal, sys
sys.path[:0] = {paths!r}
import importlib.util
spec = importlib.util.spec_from_file_location("test_store", {file!r})
t = importlib.util.module_from_spec(spec)
spec.loader.exec_module(t)
with t.opened(sys.argv[1]) as store:
    t.kept(store, t.trial(), t.trial(planned=t.PLAN[2]))
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_trials_outlive_a_process_that_is_killed_right_after_adding_them(path: Path) -> None:
    script = KILLED.format(paths=[p for p in sys.path if p], file=__file__)
    done = ran(sys.executable, "-c", script, path)
    assert -signal.SIGKILL == done.returncode, done.stderr
    with opened(str(path)) as store:
        campaign = store.latest("study")
        assert campaign is not None
        subject = Subject(campaign=campaign, arch="x86", workload="slt")
        assert [trial(), trial(planned=PLAN[2])] == store.trials(subject)


def test_another_process_sees_a_trial_as_soon_as_it_is_added(store: Store, path: Path) -> None:
    kept(store, trial())
    query = f"sqlite3.connect({str(path)!r}).execute('select count(*) from trial').fetchone()"
    done = ran(sys.executable, "-c", f"import sqlite3; print({query})", check=True)
    assert "(1,)" == done.stdout.strip()


def test_evidence_comes_back(store: Store) -> None:
    before = replace(METRICS, memory_before_mib=90.5, time_wait_before=7)
    seen = replace(before, foreign_cpu=0.25, foreign_program="cc1", load_cpu=0.5)
    seen = replace(seen, cpus=48, max_cpu_steal=0.25, max_cpu_softirq=0.5)
    seen = replace(seen, softnet_drops=3, softnet_squeezes=4)
    subject = kept(store, trial(metrics={"lg": seen}))
    (found,) = store.trials(subject)
    assert {"lg": seen} == found.metrics


def test_counters_come_back(store: Store, path: Path) -> None:
    growth = {"TcpExt.TCPTimeouts": (0, 3), "clients.busy_ms": (12, 2**63)}
    counted = HostCounters(
        at_s=(0.5, 1.25),
        growth=growth,
        levels={"clients.rtt_us.p50": (1.5, 0)},
        unread=("sockets",),
    )
    subject = kept(store, trial(counters={"lb": counted, "lg": HostCounters(at_s=(1.0,))}))
    (found,) = store.trials(subject)
    assert {"lb": counted, "lg": HostCounters(at_s=(1.0,))} == found.counters
    sql(path, "update trial set counters = null")
    assert {} == store.trials(subject)[0].counters


def test_a_trial_of_an_intop_that_recorded_less_lacks_it(store: Store, path: Path) -> None:
    subject = kept(store, trial(metrics={"lb": replace(METRICS, cpus=2, softnet_drops=0)}))
    for name in RECORDED_LATER:
        sql(path, f"update trial set conditions = json_remove(conditions, '$.{name}')")
    for name in ("cpus", "max_cpu_steal", "max_cpu_softirq", "softnet_drops", "softnet_squeezes"):
        sql(path, f"update trial set metrics = json_remove(metrics, '$.lb.{name}')")
    (found,) = store.trials(subject)
    blank = {"cpus": None} | dict.fromkeys(RECORDED_LATER[1:], "")
    assert replace(MADE.conditions, **blank) == found.conditions
    assert [] == found.conditions.differences(MADE.conditions)
    assert {"lb": METRICS} == found.metrics


# Results ------------------------------------------------------------------------------------------

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
SEARCH = samples.search(
    samples.run("rf", 30.0, 9.5),
    candidates=(Candidate(configuration=TUNED, predicted_p99_ms=9.5, model="ensemble"),),
)
PROBE = Probe(
    facts=replace(FACTS, memory_bytes=1 << 34, in_namespace=True, clock_s=1795245568.331601),
    readings={
        "net.core.somaxconn": Reading("writable", "4096"),
        "vm.nosuch": Reading("missing", ""),
    },
)
JUDGED = replace(VERDICT, rounds=5, planned_rounds=10, looks=2, models=MODELS)
TRIED = TriedDuration(
    duration_s=7, requests=1050, trials=5, p99_ms=80.25, sd=0.5, sd_low=0.3, sd_high=1.4375,
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
SEARCHES = Searches(
    fingerprint="abc",
    finished=(
        FinishedSearch(
            fold=2,
            fitted=TRAINING.fitted[0],
            predicted=(0.1 + 0.2, 1e-17),
            low=(-1.0, 0.0),
            high=(float("inf"), 1.0),
            seconds=0.5,
        ),
    ),
)
RESTARTED = replace(
    SEARCH,
    candidates=(replace(SEARCH.candidates[0], spread=0.125, penalised_p99_ms=10.25),),
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
    SEARCHES,
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
    assert JUDGED == store.get(subject, Verdict)


def test_a_verdict_of_an_intop_without_guardrails_can_be_read(store: Store, path: Path) -> None:
    subject = begun(store)
    store.put(subject, FEW)
    removed = "json_remove(document, '$.guardrails', '$.sides.fewest_requests')"
    sql(path, f"update result set document = {removed}")
    found = store.get(subject, Verdict)
    assert found is not None
    assert ((), None, "gain") == (found.guardrails, found.sides.fewest_requests, found.outcome)


def test_a_result_that_lacks_something_is_named_with_its_campaign(store: Store, path: Path) -> None:
    """Such as one of an intop that was never released. Nothing is made up for it."""
    subject = begun(store)
    store.put(subject, VERDICT)
    sql(path, "update result set document = json_remove(document, '$.looks')")
    told = r"result verdict of campaign 1 is not as this intop writes it: looks: Field required\. B"
    with pytest.raises(IntopError, match=told):
        store.get(subject, Verdict)


def test_hyperparameters_keep_their_types(store: Store) -> None:
    subject = begun(store)
    store.put(subject, TRAINING)
    found = store.get(subject, Training)
    assert found is not None
    kept = found.fitted[0].hyperparameters
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
    assert RANKING == store.get(subject, Ranking)


def test_a_result_belongs_to_its_subject(store: Store) -> None:
    subject = begun(store)
    store.put(subject, VERDICT)
    assert store.get(replace(subject, workload="dlt"), Verdict) is None
    assert store.get(replace(subject, arch="arm"), Verdict) is None
    assert store.get(begun(store), Verdict) is None


# Opening ------------------------------------------------------------------------------------------


def test_opening_again_keeps_what_is_there(path: Path) -> None:
    for expected in (1, 2):
        with opened(str(path)) as store:
            assert expected == begun(store).campaign.id


def tables(path: Path) -> dict[str, str]:
    return dict(sql(path, "select name, sql from sqlite_master where sql not null"))


def test_threads_may_make_stores_at_the_same_time(tmp_path: Path) -> None:
    def made(number: int) -> int:
        with opened(str(tmp_path / f"{number % 16}.db")) as store:
            return begun(store).campaign.id

    with ThreadPoolExecutor(8) as pool:
        assert [1] * 16 + [2] * 16 == sorted(pool.map(made, range(32)))


def test_a_store_of_a_later_intop_is_refused_and_left_as_it_is(path: Path) -> None:
    with opened(str(path)):
        pass
    sql(path, f"update {VERSION_TABLE} set version_num = '0099'")
    sql(path, "pragma journal_mode = delete")
    before = path.read_bytes()
    told = rf"intop\.db has schema 0099, and this intop knows {HEAD} at most: name anoth"
    for way in (opened, opened_to_read):
        with pytest.raises(UsageError, match=told), way(str(path)):
            pytest.fail("must not open")
    assert before == path.read_bytes()


@pytest.mark.parametrize("version", [1, 2])
def test_a_store_from_before_migrations_is_taken_over(path: Path, version: int) -> None:
    with opened(str(path)) as store:
        subject = kept(store, trial())
        store.put(subject, SEARCH)
    made = tables(path)
    as_before_migrations(path, version)
    if version == 1:
        for column in ("replica", "p99_above_ms"):
            sql(path, f"alter table trial drop column {column}")
    with (
        pytest.raises(UsageError, match="made by an earlier intop: any stage brings it up to date"),
        opened_to_read(str(path)),
    ):
        pytest.fail("must not open")
    for _ in range(2):
        with opened(str(path)) as store:
            (found,) = store.trials(subject, "collect")
            assert SEARCH == store.get(subject, Search)
            assert ["search"] == list(store.results(subject))
    assert ("" if version == 1 else "lb", None) == (found.replica, found.pruned_above_ms)
    with opened_to_read(str(path)) as reading:
        assert reading is not None
        assert SEARCH == reading.get(subject, Search)
    if version == 2:
        assert made == tables(path)


LABELLED: list[tuple[str, PlannedTrial, str]] = [
    (stage, PlannedTrial(role="finalist", configuration=TUNED, **coordinates), label)
    for stage, coordinates, label in (
        ("collect", {"index": 0}, ""),
        ("collect", {"index": 1, "arm": "random 1"}, ": random 1"),
        ("pilot", {"index": 9, "duration_s": 14}, "10: 14 s"),
        ("refine", {"index": 0}, ""),
        ("refine", {"index": 12, "step": 3, "reason": "promise"}, "3.12: promise"),
        ("judge", {"index": 0, "arm": "candidate 1", "round": 1}, "1: candidate 1"),
        ("contest", {"index": 0, "arm": "a.b: 1", "round": 12}, "12: a.b: 1"),
        ("contest", {"index": 1, "arm": "tuned", "round": 3, "series": 2}, "2.3: tuned"),
        ("explain", {"index": 7, "arm": "only a.b, c", "round": 1, "series": 11},
         "11.1: only a.b, c"),
    )
]  # fmt: skip
"""Places of plans, with the labels that they had before they had coordinates."""


@pytest.mark.parametrize("has_migrations", [True, False])
def test_a_store_with_labels_gets_the_coordinates_that_they_stand_for(
    path: Path, has_migrations: bool
) -> None:
    plans: dict[str, list[PlannedTrial]] = {}
    for stage, planned, _ in LABELLED:
        plans.setdefault(stage, []).append(planned)
    with opened(str(path)) as store:
        subject = begun(store)
        for stage, plan in plans.items():
            store.write_plan(subject, stage, plan)
        store.put(subject, JUDGED)
    if has_migrations:
        with sqlite3.connect(path) as connection:
            with_labels(connection)
            connection.execute(f"update {VERSION_TABLE} set version_num = '0002'")
    else:
        as_before_migrations(path, 2)
    labels = sql(path, "select label from planned order by id")
    ((document,),) = sql(path, "select document from result")
    assert [label for _, _, label in LABELLED] == [label for (label,) in labels]
    assert ["RFR", "candidate 1", "LightGBM"] == [
        m["side"] for m in json.loads(document)["models"]["models"]
    ]
    with opened(str(path)) as store:
        assert plans == {stage: store.plan(subject, stage) for stage in plans}
        assert JUDGED == store.get(subject, Verdict)


@pytest.mark.parametrize(
    ("stage", "label"),
    [("judge", "candidate 1"), ("judge", "one: candidate 1"), ("refine", "3: promise"),
     ("pilot", "1: long"), ("contest", b"\xff: tuned")],
)  # fmt: skip
def test_a_store_with_a_label_that_nobody_of_us_wrote_is_left_as_it_is(
    path: Path, stage: str, label: str | bytes
) -> None:
    with opened(str(path)) as store:
        store.write_plan(begun(store), stage, PLAN[1:2])
    as_before_migrations(path, 2)
    sql(path, "update planned set label = ?", label)
    for _ in range(2):
        with pytest.raises(UsageError, match=r"intop\.db can't be opened"), opened(str(path)):
            pytest.fail("must not open")
    assert [(label,)] == sql(path, "select label from planned")


ANSWERED, TIMED_OUT = ((1000, 980), (50_000, 20)), 2_000_895
"""As an intop before 0005 kept them, and the bucket of the timeout of 2 s."""


def before_0005(path: Path, *trials: Trial) -> None:
    """A store that an intop wrote which had no failures in histograms."""
    with opened(str(path)) as store:
        kept(store, *trials)
    for column in OWN_LOAD:
        sql(path, f"alter table planned drop column {column}")
    sql(path, "alter table trial drop column counters")
    sql(path, f"update {VERSION_TABLE} set version_num = '0004'")


def test_failures_go_into_histograms_and_p99_stays_what_it_was(path: Path) -> None:
    answered = Histogram.from_pairs(ANSWERED)
    whole = answered.merge(Histogram.from_pairs([(TIMED_OUT, 11)]))
    errors = {"connect": 4, "timeout": 7, "read": 0}
    one = trial(histogram=answered, errors=errors)
    before_0005(path, one, trial(attempt=1, errors={"timeout": 0}), replace(FAILED, attempt=2))
    # What an intop before it judged by, and kept for people with an SQL prompt.
    sql(path, "update trial set p99_ms = ? where attempt = 0", whole.percentile_ms(99))
    for _ in range(2):
        with opened(str(path)) as store:
            campaign = store.latest("study")
            assert campaign is not None
            subject = Subject(campaign=campaign, arch="x86", workload="slt")
            found, without, failed = store.trials(subject)
        assert replace(one, histogram=whole) == found
        assert (1011, errors) == (whole.total, found.errors)
        assert MADE.histogram == without.histogram
        assert None is failed.histogram
    ((stored,),) = sql(path, "select p99_ms from trial where attempt = 0")
    assert stored == found.p99_ms == 2000.895


def test_failures_count_as_the_timeout_of_their_own_trial(path: Path) -> None:
    conditions = replace(MADE.conditions, timeout_s=600)
    before_0005(path, trial(conditions=conditions, errors={"timeout": 1}))
    with opened(str(path)) as store:
        campaign = store.latest("study")
        assert campaign is not None
        (found,) = store.trials(Subject(campaign=campaign, arch="x86", workload="slt"))
    assert found.histogram is not None
    assert 600_000 <= found.histogram.max_ms < 600_600


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("errors", "null"),
        ("errors", "5"),
        ("errors", '{"timeout": "many"}'),
        ("errors", '{"timeout": -5}'),
        ("errors", '{"timeout": 0.5}'),
        ("errors", '{"timeout": 1e400}'),
        ("errors", '{"timeout": ' + "[" * 100_000),
        ("errors", "no JSON"),
        ("errors", b"\xff"),
        ("conditions", "{}"),
        ("conditions", "[]"),
        ("conditions", '{"timeout_s": "long"}'),
        ("conditions", '{"timeout_s": -1}'),
        ("histogram", "SElTVEZBQUFB"),
        ("histogram", ""),
    ],
    ids=lambda value: str(value)[:24],
)
def test_a_store_with_a_trial_that_nobody_of_us_wrote_is_left_as_it_is(
    path: Path, column: str, value: str | bytes
) -> None:
    before_0005(path, trial())
    sql(path, f"update trial set {column} = ?", value)
    for _ in range(2):
        with pytest.raises(UsageError, match=r"intop\.db can't be opened"), opened(str(path)):
            pytest.fail("must not open")
    assert [(value,)] == sql(path, f"select {column} from trial")
    assert [("0004",)] == sql(path, f"select version_num from {VERSION_TABLE}")


def test_what_was_stopped_before_its_end_is_pruned_and_the_rest_stays_overloaded(
    path: Path,
) -> None:
    with opened(str(path)) as store:
        subject = begun(store)
        store.write_plan(subject, "collect", PLAN)
        store.add(subject, trial(status="pruned", pruned_above_ms=450.5))
        store.add(subject, trial(attempt=1, status="overloaded"))
    as_before_migrations(path, 2)
    with sqlite3.connect(path) as connection:
        statuses = connection.execute("select distinct status from trial").fetchall()
    connection.close()
    assert [("overloaded",)] == statuses
    with opened(str(path)) as store:
        assert [("pruned", 450.5), ("overloaded", None)] == [
            (t.status, t.pruned_above_ms) for t in store.trials(subject, "collect")
        ]


def test_plans_of_before_have_no_load_of_their_own(path: Path) -> None:
    with opened(str(path)) as store:
        subject = begun(store)
        store.write_plan(subject, "judge", PLAN)
    for column in OWN_LOAD:
        sql(path, f"alter table planned drop column {column}")
    sql(path, "alter table trial drop column counters")
    sql(path, f"update {VERSION_TABLE} set version_num = '0004'")
    with opened(str(path)) as store:
        bare = [replace(p, rate_rps=None, connections=None, closed_loop=False) for p in PLAN]
        assert bare == store.plan(subject, "judge")
        store.write_plan(subject, "sweep", PLAN)
        assert PLAN == store.plan(subject, "sweep")


def test_trials_at_other_rates_are_those_of_a_sweep(path: Path) -> None:
    plan = [replace(p, connections=None, closed_loop=False) for p in PLAN]
    with opened(str(path)) as store:
        subject = begun(store)
        store.write_plan(subject, "rates", plan)
        store.add(subject, replace(trial(), planned=plan[0], stage="rates"))
        store.put(subject, VERDICT)
    for column in ("connections", "closed_loop"):
        sql(path, f"alter table planned drop column {column}")
    sql(path, "update result set kind = 'rate_sweep'")
    sql(path, f"update {VERSION_TABLE} set version_num = '0007'")
    with opened(str(path)) as store:
        assert plan == store.plan(subject, "sweep")
        assert [("sweep", 75.5)] == [
            (t.stage, t.planned.rate_rps) for t in store.trials(subject, "sweep")
        ]
        assert {} == store.results(subject)


def test_the_tables_are_those_that_the_migrations_make(path: Path) -> None:
    with opened(str(path)):
        pass
    engine = sa.create_engine(f"sqlite:///{path}")
    with engine.connect() as connection:
        migrated = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE})
        assert [] == compare_metadata(migrated, metadata)
        assert HEAD == migrated.get_current_revision()
    engine.dispose()
    folder = Path(opening.__file__).with_name("migrations")
    scripts = ScriptDirectory(str(folder))
    assert list(KNOWN) == [s.revision for s in scripts.walk_revisions()][::-1]


def test_every_result_that_is_stored_has_a_name(path: Path) -> None:
    assert len(KINDS) == len(set(KINDS.values()))
    migration = import_module("intop.store.migrations.versions.v0002_kinds_of_results")
    later = {"mediation", "sweeps"}
    assert {name.lower() for name in migration.KINDS} == set(KINDS.values()) - later


def test_a_file_that_is_no_database_is_refused(path: Path) -> None:
    path.write_text("these are my notes " * 100)
    with pytest.raises(UsageError, match=r"intop\.db can't be opened"), opened(str(path)):
        pytest.fail("must not open")
    assert path.read_text().startswith("these are my notes")


def test_a_store_in_a_folder_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    with (
        pytest.raises(UsageError, match=f"there is no folder {tmp_path}/nosuch"),
        opened(str(tmp_path / "nosuch" / "intop.db")),
    ):
        pytest.fail("must not open")


def test_a_store_can_be_named_by_url(tmp_path: Path) -> None:
    with opened(f"sqlite:///{tmp_path}/by-url.db") as store:
        begun(store)
    assert (tmp_path / "by-url.db").is_file()


@pytest.mark.parametrize(
    "url",
    [
        "nosuch://me:s3cret@db.example/intop",
        "postgresql+nosuch://me:s3cret@db.example/intop",
        "postgresql://me:s3cret@db.example:port/intop",
        "://me:s3cret@db.example",
    ],
)
def test_a_url_that_is_no_store_is_refused_without_showing_its_password(url: str) -> None:
    with pytest.raises(UsageError) as caught, opened(url):
        pytest.fail("must not open")
    assert "s3cret" not in str(caught.value)


def test_a_second_controller_can_read_while_the_first_writes(store: Store, path: Path) -> None:
    subject = begun(store)
    with opened(str(path)) as other:
        store.write_plan(subject, "collect", PLAN)
        store.add(subject, trial())
        assert [trial()] == other.trials(subject)
        other.add(subject, trial(planned=PLAN[0]))
    assert 2 == len(store.trials(subject))
