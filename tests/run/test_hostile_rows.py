"""A store in which somebody else writes rows, under a worker whose host only notes what it gets."""

import json
import math
import re
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders.nginx_files import FACTS, catalogue, conf
from builders.testbeds import FakeTestbed, probe_of
from builders.trials import CONDITIONS, trial
from intop.config.study import Study
from intop.domain.configuration import Configuration
from intop.domain.job import JobSettings, Spot
from intop.domain.nginx.probe import probed
from intop.domain.nginx.standing import Directives
from intop.domain.probing import Probe
from intop.domain.trial import PlannedTrial
from intop.domain.workload import Workload
from intop.errors import CommandError, HostError, RefusedValueError
from intop.hosts.expected import ExpectedAnswers
from intop.hosts.load.types import LoadTool
from intop.run import cluster_testbed, worker
from intop.run.available_space import probed_of
from intop.run.cluster_testbed import ClusterTestbed
from intop.run.comparability import check_same
from intop.run.context import Task
from intop.run.worker import Worker
from intop.store import Campaign, Subject
from intop.store.documents import document_of

pytestmark = pytest.mark.timeout(600)

PORTS = "net.ipv4.ip_local_port_range"
PROBING, OVERCOMMIT = "net.ipv4.tcp_mtu_probing", "vm.overcommit_memory"
LINGER = "net.ipv4.tcp_fin_timeout"
WORKERS, SENDFILE = "nginx:main.worker_processes", "nginx:http.sendfile"
OWN = {PORTS: "32768 60999", PROBING: "0", OVERCOMMIT: "0", LINGER: "60"}
SOME = Directives({key: catalogue().by_key[key] for key in (WORKERS, SENDFILE)})
"""Few, since all of them would take most of the time."""
PROBE = replace(probe_of(OWN), nginx=probed(SOME, conf(), FACTS))
ENGINE = LoadTool(name="engine", path="/usr/bin/luajit", version="2.1")
NOTHING: Any = None


def is_fit(key: str, value: str) -> bool:
    """Whether a value may be written, in words of this test's own."""
    is_numeric = re.fullmatch(r"-?[0-9]+( -?[0-9]+)*", value)
    numbers = [0, *map(int, value.split(" "))] if is_numeric else []
    if " ".join(map(str, numbers[1:])) != value:
        return value in ("on", "off") and key == SENDFILE
    return {
        PORTS: len(numbers) == 3 and numbers[1] >= 32768,
        PROBING: value in ("0", "1", "2"),
        OVERCOMMIT: value in ("0", "1"),
        LINGER: len(numbers) == 2,
        WORKERS: len(numbers) == 2,
    }.get(key, False)


def is_allowed(load: Workload, study: Study) -> bool:
    """Whether a load is one that the study allows."""
    own = study.workloads[load.name]
    same = replace(
        load,
        rate_rps=own.rate_rps,
        connections=own.connections,
        duration_s=own.duration_s,
        arrivals=own.arrivals,
        only_path="",
    )
    return (
        same == own
        and 1 <= load.rate_rps <= min(10_000_000, 100 * own.rate_rps)
        and 1 <= load.connections <= min(100_000, 100 * own.connections)
        and 1 <= load.counted_s <= 3600
        and load.arrivals in (own.arrivals, "closed")
        and bool(re.fullmatch(r"|/[!-~]*", load.only_path))
    )


@dataclass
class Host:
    """What a worker has set and sent, and which replicas it has opened."""

    written: list[Configuration] = field(default_factory=list)
    sent: list[Workload] = field(default_factory=list)
    opened: list[Task] = field(default_factory=list)
    refuses: str = ""
    """A key that the kernel does not take."""
    draining = 0

    def apply(self, configuration: Configuration) -> None:
        self.written.append(configuration)
        if value := configuration.values.get(self.refuses):
            raise RefusedValueError("lb", self.refuses, value, "1")

    def measure(self, _rig: Any, _tool: Any, workload: Workload, **_: Any) -> Any:
        self.sent.append(workload)
        raise CommandError("lg", "that is all")


@dataclass
class Site:
    """A worker, its host, and two campaigns of its store that somebody else writes to."""

    connection: sqlite3.Connection
    study: Study
    worker: Worker
    host: Host
    hostile: Campaign
    ours: Campaign
    when_open: Callable[[], None] = lambda: None
    """What happens once a replica is open, after all checks of opening it."""

    def sql(self, statement: str, *values: object) -> int:
        return self.connection.execute(statement, values).lastrowid or 0

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        return self.connection.execute(statement).fetchall()

    def clear(self) -> None:
        for table in ("job", "late_trial", "trial", "planned"):
            self.sql(f"delete from {table}")
        for notes in (self.host.written, self.host.sent, self.host.opened):
            notes.clear()
        self.when_open = lambda: None

    def request(self, **changes: Any) -> JobSettings:
        made = JobSettings(workload=self.study.workloads["slt"], tunes=self.study.tunes)
        return replace(made, **changes)

    def offer_ours(self) -> None:
        """A job of a campaign that nobody has touched, behind all others."""
        subject = Subject(campaign=self.ours, arch="x86", workload="slt")
        place = PlannedTrial(index=0, role="design", configuration=Configuration({LINGER: "5"}))
        self.worker.store.write_plan(subject, "collect", [place])
        self.worker.store.jobs.offer(
            subject, "collect", place, attempt=0, replica=0, request=self.request()
        )

    def ours_is_measured(self) -> bool:
        subject = Subject(campaign=self.ours, arch="x86", workload="slt")
        return len(self.worker.store.trials(subject)) == 1

    def plan(self, **changes: Any) -> int:
        """A row of the hostile campaign's plan."""
        values = {
            "campaign_id": self.hostile.id,
            "arch": "x86",
            "workload": "slt",
            "stage": "collect",
            "position": len(self.rows("select 1 from planned")),
            "role": "design",
            "arm": "",
            "series": 1,
            "reason": "",
            "closed_loop": 0,
            "path": "",
            "other_workload": "",
            "configuration": "{}",
        } | changes
        return self._insert("planned", values)

    def job(self, **changes: Any) -> int:
        """A row of a job of the hostile campaign, by default a good one that plans nothing."""
        values = {
            "campaign_id": self.hostile.id,
            "arch": "x86",
            "workload": "slt",
            "replica": 0,
            "kind": "open",
            "request": document_of(self.request()),
            "state": "offered",
        } | changes
        return self._insert("job", values)

    def _insert(self, table: str, values: dict[str, Any]) -> int:
        marks = ", ".join(
            "cast(? as text)" if isinstance(v, Broken) else "?" for v in values.values()
        )
        plain = [v.text if isinstance(v, Broken) else v for v in values.values()]
        return self.sql(
            f"insert or ignore into {table} ({', '.join(values)}) values ({marks})", *plain
        )

    def work(self) -> None:
        """Until there is nothing to do. Raises what ends a worker."""
        self.worker.run(idle_s=0.2)


@dataclass(frozen=True)
class Broken:
    """Text of a column that is no UTF-8."""

    text: bytes


@dataclass
class Clock:
    """Time that goes by where somebody waits, and a little whenever somebody looks."""

    now: float = 0.0

    def monotonic(self) -> float:
        self.now += 0.001
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def site(testbed: FakeTestbed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    monkeypatch.setattr(worker, "time", Clock())
    monkeypatch.setattr(worker, "LINGER_S", 0.5)
    monkeypatch.setattr("intop.config.study.load_directives", lambda _: SOME)
    context = testbed.task.context
    study = replace(context.study, workers=True, tunes=("kernel", "nginx"))
    host = Host()
    monkeypatch.setattr(cluster_testbed, "measure", host.measure)
    monkeypatch.setattr(cluster_testbed, "settle", lambda *_, **__: "")
    monkeypatch.setattr(ClusterTestbed, "wait_until_quiet", lambda _: None)

    def ready(workload: Workload) -> Any:
        return SimpleNamespace(
            rig=NOTHING,
            tool=ENGINE,
            expected=ExpectedAnswers(),
            conditions={"workload": workload.name},
        )

    @contextmanager
    def open_replica(task: Task, _replica: int) -> Iterator[ClusterTestbed]:
        host.opened.append(task)
        assert len(host.opened) < 40, "it opens the replica again and again"
        conditions = replace(CONDITIONS, workload=task.workload.name)
        check_same(task, conditions, PROBE, task.store.get(task.subject, Probe), "lb")
        made.when_open()
        balancer = SimpleNamespace(address=SimpleNamespace(name="lb"))
        yield ClusterTestbed(
            task=task,
            rig=SimpleNamespace(load_balancer=balancer),  # type: ignore[arg-type]
            loads=SimpleNamespace(ready=ready),  # type: ignore[arg-type]
            guard=host,  # type: ignore[arg-type]
            probe=PROBE,
            probed=probed_of(task.context.study, PROBE),
            conditions=conditions,
        )

    connection = sqlite3.connect(tmp_path / "store.db", isolation_level=None)
    connection.execute("pragma synchronous = off")
    connection.text_factory = bytes
    store = context.store
    campaigns = [store.begin(study.name, seed=n, tool_version="0") for n in range(2)]
    made = Site(
        connection=connection,
        study=study,
        worker=Worker(
            name="one",
            studies={study.name: study},
            spots=[Spot(study=study.name, arch="x86", replica=0)],
            store=store,
            connect=context.connect,
            progress=context.progress,
            open_replica=open_replica,
        ),
        host=host,
        hostile=campaigns[0],
        ours=campaigns[1],
    )
    with closing(connection):
        yield made


def check(site: Site) -> None:
    """What holds whatever rows there are."""
    for configuration in site.host.written:
        for key, value in configuration.values.items():
            assert is_fit(key, value), (key, value)
    assert all(is_allowed(load, site.study) for load in site.host.sent), site.host.sent
    for task in site.host.opened:
        assert set(task.context.study.tunes) <= set(site.study.tunes)
        assert task.workload.script == site.study.workloads[task.workload.name].script


# Each kind of row ---------------------------------------------------------------------------------


def changed(**changes: Any) -> Callable[[Site], dict[str, Any]]:
    """A job whose request has these fields of a workload."""

    def columns(site: Site) -> dict[str, Any]:
        document = json.loads(document_of(site.request()))
        document["workload"] |= changes
        return {"request": json.dumps(document)}

    return columns


def asked(**changes: Any) -> Callable[[Site], dict[str, Any]]:
    """A job whose request has these fields."""

    def columns(site: Site) -> dict[str, Any]:
        return {"request": json.dumps(json.loads(document_of(site.request())) | changes)}

    return columns


def refusal(**values: str) -> Callable[[Site], dict[str, Any]]:
    def columns(site: Site) -> dict[str, Any]:
        named = {key.replace("__", "."): value for key, value in values.items()}
        return asked(configuration={"values": named})(site) | {"kind": "refusal"}

    return columns


def of_plan(**place: Any) -> Callable[[Site], dict[str, Any]]:
    return lambda site: {"kind": "trial", "planned_id": site.plan(**place)}


def of_columns(**values: Any) -> Callable[[Site], dict[str, Any]]:
    return lambda _: values


def of_another_plan(site: Site) -> dict[str, Any]:
    return {"kind": "trial", "planned_id": site.plan(arch="arm")}


HOSTILE: dict[str, tuple[Callable[[Site], dict[str, Any]], str]] = {
    "rate": (changed(rate_rps=151), r"slt: rate_rps is 151.0 where .* and 150.0 in "),
    "no rate": (changed(rate_rps=1e12), "job .* is not as this .*: workload: rate_rps: Input sh"),
    "connections": (
        changed(connections=10**9),
        "job .* is not as this .*: workload: connectio",
    ),
    "duration": (changed(duration_s=3600), "slt: duration_s is 3600 where it was asked for, and 2"),
    "script": (changed(script="/etc/evil.lua"), "slt: script is 'evil' where .* and '' in "),
    "paths": (changed(paths=["/a\r\nX: y"]), "job .* is not as this .*: workload: paths: 0: "),
    "headers": (
        changed(clients=[{"headers": ["A: b\r\nHost: evil"]}]),
        "job .* is not as this intop writes it: workload: clients: 0: headers: 0: ",
    ),
    "name": (changed(name="dlt"), "slt: name is 'dlt' where"),
    "tunes": (asked(tunes=["nginx", "kernel", "all"]), "job .* is not as this intop writes it: "),
    "no tunes": (asked(tunes=[]), "asked is to tune nothing, and tunes in .study. of "),
    "pilot": (
        lambda s: asked(
            tries_durations=True,
            workload=json.loads(changed(duration_s=10**6)(s)["request"])["workload"],
        )(s),
        "job .* is not as this intop writes it: workload: duration_s: Input should be less than",
    ),
    "limit": (asked(prune_above_ms=-1), "slt: trials can't be pruned above -1.0 ms"),
    "workload": (of_columns(workload="cdn"), r"has no \[workload.cdn\]"),
    "kind": (of_columns(kind="shell"), "job .*: 'shell' is no kind of job"),
    "request": (of_columns(request="{"), "job .* is not as this intop writes it"),
    "bytes": (of_columns(request=b"\xff"), "job .* is not as this intop writes it"),
    "no text": (of_columns(request=Broken(b'{"\xff"')), "job .* is not as this intop writes it"),
    "attempt": (of_columns(attempt=1.5), "job .*: attempt is 1.5"),
    "no place": (of_columns(kind="trial"), "job .*: a job of kind trial has a place in no plan"),
    "another's place": (of_another_plan, "job .* is not as this intop writes it"),
    "no configuration": (of_columns(kind="refusal"), "job .*: .* refusal has no configuration"),
    "ports": (
        refusal(net__ipv4__ip_local_port_range="1024 1100"),
        f"lb: nothing was set, .* '{PORTS}' = '1024 1100', beyond a hard bound: 1024 is below",
    ),
    "not guarded": (refusal(kernel__core_pattern="|/x"), "'kernel.core_pattern' = .* deny list"),
    "no word": (refusal(**{"net.\ud800": "1"}), "job .* is not as this intop writes it"),
    "place": (of_plan(configuration='{"net.core.x": 7}'), "is not as this intop writes it"),
    "place's rate": (of_plan(rate_rps=1e12), "slt: trial . is planned with a load that the study"),
    "place's path": (of_plan(path="/ HTTP/1.1\r\nX: y"), "slt: trial . is planned with a load"),
    "place's workload": (of_plan(other_workload="cdn"), r"has no \[workload.cdn\] any more"),
    "soak": (of_plan(role="soak", rate_rps=1e6, duration_s=9), "a soak is measured by its own"),
}


@pytest.mark.parametrize(("columns", "why"), HOSTILE.values(), ids=HOSTILE.keys())
def test_a_bad_row_fails_its_own_job_with_its_reason_and_the_worker_goes_on(
    site: Site, columns: Callable[[Site], dict[str, Any]], why: str
) -> None:
    def write() -> None:
        site.when_open = lambda: None
        numbers.append(site.job(**columns(site)))

    for is_late in (False, True):
        site.clear()
        numbers: list[int] = []
        if is_late:  # on a replica that is open for the campaign already
            site.job()
            site.when_open = write
        else:
            write()
        site.offer_ours()
        site.work()
        ((state, reason),) = site.rows(f"select state, answer from job where id = {numbers[0]}")
        assert state == b"failed"
        assert re.search(f"one says of .*{why}", reason.decode()), reason
        assert site.ours_is_measured()
        check(site)


def test_a_planned_value_that_does_not_fit_is_not_set_whoever_has_measured_it(
    site: Site,
) -> None:
    """A place that has a trial is left out of the check of opening a replica."""
    place = site.plan(configuration=json.dumps({PORTS: "1024 1100"}))
    number = site.job(kind="trial", planned_id=place, attempt=1)
    subject = Subject(campaign=site.hostile, arch="x86", workload="slt")
    store = site.worker.store
    (planned,) = store.plan(subject, "collect")
    conditions = replace(CONDITIONS, workload="slt")
    store.add(
        subject, replace(trial(planned.configuration, conditions=conditions), planned=planned)
    )
    site.work()
    ((state, reason),) = site.rows(f"select state, answer from job where id = {number}")
    assert (state, b"1024 is below 32768" in reason) == (b"failed", True)
    check(site)


def test_a_job_does_not_add_to_what_a_workers_study_tunes(site: Site) -> None:
    number = site.job()
    site.worker.studies = {site.study.name: replace(site.study, tunes=("kernel",))}
    site.work()
    ((state, reason),) = site.rows(f"select state, answer from job where id = {number}")
    assert state == b"failed"
    assert b"asked is to tune kernel and nginx, and tunes in [study] of " in reason
    assert site.host.opened == []


def test_what_a_command_may_change_is_measured(site: Site) -> None:
    """A pilot's duration, fewer kinds of parameters, a sweep's places, another workload."""
    pilot = json.loads(document_of(site.request(tries_durations=True)))
    pilot["workload"]["duration_s"] = 7
    good = [
        {"request": json.dumps(pilot)},
        asked(tunes=["kernel"], prune_above_ms=12.5)(site),
        of_plan(configuration=json.dumps({PORTS: "40000 65000", PROBING: "2"}))(site),
        of_plan(rate_rps=120.0, connections=64, path="/a.css", duration_s=3)(site),
        of_plan(connections=16, closed_loop=1)(site),
        of_plan(other_workload="dlt")(site),
        refusal(net__ipv4__tcp_fin_timeout="5")(site),
    ]
    numbers = [site.job(**columns) for columns in good]
    site.host.refuses = LINGER
    site.work()
    assert site.rows("select id, answer from job where state <> 'done'") == []
    assert {numbers[0], numbers[1], numbers[6]} == {n for (n,) in site.rows("select id from job")}
    ((answer,),) = site.rows(f"select answer from job where id = {numbers[6]}")
    assert json.loads(answer) == {"host": "lb", "key": LINGER, "value": "5", "got": "1"}
    assert len(site.host.sent) == 4
    assert {t.context.study.tunes for t in site.host.opened} == {("kernel",), ("kernel", "nginx")}
    assert {task.workload.duration_s for task in site.host.opened} == {2, 7}
    check(site)


def test_a_host_in_trouble_fails_no_job(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    number = site.job()

    def busy() -> None:
        site.when_open = lambda: None
        raise HostError("lb", "is busy")

    site.when_open = busy
    site.worker.run(idle_s=worker.BACK_OFF_S + 1)
    assert [(number, b"done")] == site.rows("select id, state from job")


def test_ctrl_c_ends_a_worker_and_gives_its_job_back(site: Site) -> None:
    number = site.job(**of_plan()(site))

    def interrupted(_: Configuration) -> None:
        raise KeyboardInterrupt

    site.host.apply = interrupted  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        site.work()
    assert [(number, b"offered")] == site.rows("select id, state from job")


# Any row ------------------------------------------------------------------------------------------

WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
NUMBERS = st.integers(-(2**63), 2**63 - 1) | st.floats()
JUNK = WORDS | NUMBERS | st.binary(max_size=8) | st.binary(max_size=8).map(Broken) | st.none()
NUMERALS = [*"0127", "5", "600", "007", "0x1", "-1", "32767", "32768", "0100000", "40000", "65000"]
VALUES = (
    st.lists(st.sampled_from(NUMERALS), min_size=1, max_size=2).map(" ".join)
    | st.sampled_from(["on", "off; x", "40000\t65000", "40000\x0b65000", "\ud800", "1\n2", "\0"])
    | WORDS
)
FIT = {
    PORTS: ["40000 65000", "32768 60999", "32769 40000"],
    PROBING: ["1", "2"],
    OVERCOMMIT: ["1"],
    LINGER: ["5", "600"],
    WORKERS: ["2", "64"],
    SENDFILE: ["off"],
}
OFTEN_FIT = st.sampled_from(sorted(FIT)).flatmap(
    lambda key: st.tuples(st.just(key), st.sampled_from(FIT[key]) | VALUES)
)
ANYTHING = st.tuples(st.sampled_from(["kernel.core_pattern", "net.core.somaxconn"]) | WORDS, VALUES)
CONFIGURATIONS = (OFTEN_FIT | OFTEN_FIT | OFTEN_FIT | ANYTHING).map(lambda pair: dict([pair]))
CONFIGURATIONS |= st.lists(OFTEN_FIT, max_size=3).map(dict)
RATES = st.sampled_from([150.0, 1.0, 99.5, 15_000.0, 15_001.0, 1e12, 0.0, -1.0, math.inf])
RATES |= st.floats()
COUNTS = st.sampled_from([1, 2, 64, 3600, 6400, 6401, 10**5, 10**9, 0, -1])
COUNTS |= st.integers(-(2**63), 2**63 - 1)
PATHS = st.sampled_from(["", "/", "/a.css", "a", "--x", "/ HTTP/1.1\r\nX: y", "/\0"]) | WORDS


def few(fields: dict[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[dict[str, Any]]:
    """One of these fields, or two: of more, the first bad one would hide the others."""
    one = st.sampled_from(sorted(fields)).flatmap(lambda n: fields[n].map(lambda v: {n: v}))
    return st.tuples(one, one | st.just({})).map(lambda pair: pair[0] | pair[1])


PLACES = few(
    {
        "configuration": CONFIGURATIONS.map(json.dumps),
        "role": st.sampled_from(["sentinel", "soak", "boss"]),
        "rate_rps": RATES,
        "connections": COUNTS,
        "duration_s": COUNTS,
        "closed_loop": st.sampled_from([0, 1, 7]),
        "path": PATHS,
        "other_workload": st.sampled_from(["dlt", "cdn"]),
    }
)
BAD_PLACES = few(
    dict.fromkeys(("configuration", "role", "stage", "rate_rps", "duration_s", "path"), JUNK)
    | dict.fromkeys(("connections", "closed_loop", "other_workload", "round", "arm"), JUNK)
    | {"arch": st.just("arm")}
)
WORKLOADS = few(
    {
        "name": WORDS,
        "rate_rps": RATES,
        "connections": COUNTS,
        "duration_s": COUNTS | st.none(),
        "script": st.sampled_from(["/etc/passwd", "/x/evil.lua", "x;y.lua", "/any/.lua"]),
        "paths": st.lists(PATHS, max_size=2),
        "scheme": st.sampled_from(["http", "https", "file"]),
        "clients": st.lists(st.fixed_dictionaries({"headers": st.lists(WORDS)}), max_size=2),
        "only_path": PATHS,
    }
)
REQUESTS = few(
    {
        "tunes": st.lists(st.sampled_from(["kernel", "nginx", "all"]), max_size=3),
        "tries_durations": st.booleans(),
        "prune_above_ms": RATES | st.none(),
        "workload": WORDS | NUMBERS,
    }
)
COLUMNS = few(
    dict.fromkeys(("kind", "request", "attempt", "workload", "token", "answer"), JUNK)
    | {"planned_id": st.integers(1, 9) | JUNK, "attempt": st.integers(0, 3)}
    | {"workload": st.sampled_from(["slt", "dlt"]), "kind": st.sampled_from(["refusal", "trial"])}
)
ROWS = st.one_of(
    PLACES.map(lambda place: {"place": place}),
    CONFIGURATIONS.map(lambda values: {"configuration": values}),
    st.tuples(PLACES, REQUESTS).map(lambda two: {"place": two[0], "request": two[1]}),
    st.tuples(WORKLOADS, REQUESTS | st.just({})).map(
        lambda two: {"workload": two[0], "request": two[1]}
    ),
    BAD_PLACES.map(lambda place: {"place": place}),
    COLUMNS.map(lambda columns: {"columns": columns}),
)
"""What a job's row, or its place's, differs in from a good one."""


def write(site: Site, row: dict[str, dict[str, Any]]) -> None:
    """Put such a job, and its place, into the store."""
    document = json.loads(document_of(site.request()))
    document["workload"] |= row.get("workload", {})
    document |= row.get("request", {})
    columns: dict[str, Any] = {}
    if "place" in row:
        columns = {"kind": "trial", "planned_id": site.plan(**row["place"])}
    if "configuration" in row:
        document["configuration"] = {"values": row["configuration"]}
        columns = {"kind": "refusal"}
    site.job(**{"request": json.dumps(document)} | columns | row.get("columns", {}))


def test_whatever_rows_there_are_values_are_fit_loads_are_allowed_and_the_worker_goes_on(
    site: Site,
) -> None:
    seen: Counter[str] = Counter()

    @settings(max_examples=250)
    @given(
        st.lists(ROWS, min_size=1, max_size=5),
        st.sampled_from([True, True, False]),
        st.sampled_from(["", *OWN]),
    )
    def one(rows: list[dict[str, Any]], is_late: bool, refuses: str) -> None:
        site.clear()
        site.host.refuses = refuses

        def write_all() -> None:
            site.when_open = lambda: None
            for row in rows:
                with suppress(sqlite3.IntegrityError, OverflowError):  # NaN is null to SQLite
                    write(site, row)

        if is_late:  # on a replica that is open for the campaign already
            site.job()
            site.when_open = write_all
        else:
            write_all()
        site.offer_ours()
        site.work()
        check(site)
        assert site.ours_is_measured()
        seen["examples"] += 1
        seen["written"] += sum(bool(c.values) for c in site.host.written) - 1
        seen["sent"] += len(site.host.sent) - 1
        seen.update(state.decode() for (state,) in site.rows("select state from job"))

    one()
    # It is a test only if much of it is done, and much refused.
    assert seen["examples"] >= 250
    assert min(seen["written"], seen["sent"], seen["done"], seen["failed"]) >= 20, seen
