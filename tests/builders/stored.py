"""What the tests of the store keep in it."""

from dataclasses import replace
from typing import Any

import sqlalchemy as sa

from builders import trials as samples
from builders.results import MODELS, VERDICT
from builders.trials import METRICS
from intop.domain.configuration import DEFAULT, Configuration
from intop.domain.histogram import Histogram
from intop.domain.search import Candidate
from intop.domain.trial import PlannedTrial, Trial
from intop.domain.workload import Clients, Workload
from intop.store import Store, Subject

WORKLOAD = Workload(
    name="slt",
    kind="slt",
    rate_rps=60.0,
    connections=32,
    threads=1,
    duration_s=2,
    warmup_s=1,
    timeout_s=2,
    clients=(Clients(share=0.5, headers=("A: b",)), Clients(name="far", share=0.5, think_ms=2.5)),
)

TUNED = Configuration({"net.core.somaxconn": "64", "net.ipv4.tcp_rmem": "4096 8192 65536"})

PLAN = [
    PlannedTrial(
        index=0,
        role="baseline",
        configuration=DEFAULT,
        rate_rps=75.5,
        connections=12,
        closed_loop=True,
        path="/a.html",
        other_workload="cdn",
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
    received_mb_s=4.5,
    errors={"connect": 0, "timeout": 2},
    metrics={"lb": METRICS, "lg": replace(METRICS, cpu=0.5)},
    replica="lb",
)


def trial(**changes: Any) -> Trial:
    return replace(MADE, **changes)


FAILED = trial(
    status="failed",
    detail="refused",
    histogram=None,
    achieved_rps=0.0,
    received_mb_s=None,
    errors={},
    metrics={},
)


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


SEARCH = samples.search(
    samples.run("rf", 30.0, 9.5),
    candidates=(Candidate(configuration=TUNED, predicted_ms=9.5, model="ensemble"),),
)

JUDGED = replace(VERDICT, rounds=5, planned_rounds=10, looks=2, models=MODELS)


def rows(url: str, statement: str) -> list[tuple[Any, ...]]:
    """What a statement gives in either database; what it changes is kept."""
    engine = sa.create_engine(url if "://" in url else f"sqlite:///{url}")
    with engine.begin() as connection:
        done = connection.exec_driver_sql(statement)
        result = [tuple(row) for row in done] if done.returns_rows else []
    engine.dispose()
    return result
