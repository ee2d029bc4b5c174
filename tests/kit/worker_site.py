"""A worker whose host only notes what it gets, and a store to which somebody else writes rows."""

import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from builders.nginx_files import FACTS, catalogue, conf
from builders.testbeds import FakeTestbed, probe_of
from builders.trials import CONDITIONS
from intop.config.study import Study
from intop.domain.configuration import Configuration
from intop.domain.job import JobSettings, Spot
from intop.domain.nginx.probe import probed
from intop.domain.nginx.standing import Directives
from intop.domain.probing import Probe
from intop.domain.trial import PlannedTrial
from intop.domain.workload import Workload
from intop.errors import CommandError, RefusedValueError
from intop.hosts.expected import ExpectedAnswers
from intop.hosts.load.types import LoadTool
from intop.hosts.settle import Unsettled
from intop.run import cluster_testbed, worker
from intop.run.available_space import probed_of
from intop.run.cluster_testbed import ClusterTestbed
from intop.run.comparability import check_same
from intop.run.context import Task
from intop.run.worker import Worker
from intop.store import Campaign, Subject
from intop.store.documents import document_of

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


@contextmanager
def worker_site(
    testbed: FakeTestbed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Site]:
    monkeypatch.setattr(worker, "time", Clock())
    monkeypatch.setattr(worker, "LINGER_S", 0.5)
    monkeypatch.setattr("intop.config.study.load_directives", lambda _: SOME)
    context = testbed.task.context
    study = replace(context.study, workers=True, tunes=("kernel", "nginx"))
    host = Host()
    monkeypatch.setattr(cluster_testbed, "measure", host.measure)
    monkeypatch.setattr(cluster_testbed, "settle", lambda *_, **__: Unsettled())
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
