"""What a store costs as it grows: a trial to add, and report, status and compare of a campaign.

    python -m benchmarks.store_size build/store.db postgresql://user@/empty?host=/run/postgresql

Each store is made: a file must not exist, and a database must be empty. It gets campaigns made of
the recorded one of `tests/data/campaign`: its trials over and over, with made-up counters of the
usual size, in all of its stages. The first campaign has a thousand trials and all others ten
thousand, until the store has `--most` trials. After a thousand, ten thousand, and so on, trials of
a new plan are added one by one, as campaigns do it: a lease is taken on each in one transaction,
and another one stores the trial and ends the lease. The commands are run as they are typed, each
`--repeats` times. Prints a table in Markdown for each store: the mean and the 99th percentile of a
trial to add, the median of each command's wall time, the size on disk.
"""

import argparse
import lzma
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import groupby
from pathlib import Path
from statistics import fmean, median, quantiles
from typing import Any

import sqlalchemy as sa

from intop.config.study import load_study
from intop.domain.counters import HostCounters
from intop.domain.job import JobSettings
from intop.domain.trial import Trial
from intop.store import Store, Subject, opened
from intop.store.packed_counters import packed
from intop.store.schema import campaign_table, planned_table, result_table, trial_table
from intop.store.upkeep import size

RECORDED = Path(__file__).parents[1] / "tests" / "data" / "campaign"
PASS = timedelta(minutes=16)
"""What the recorded campaign took, for all of its stages once."""
SMALL, LARGE = "small", "recorded"
"""The studies of the first campaign and of all others."""
ADDED = 200
COMMANDS = {
    "report": ("report", "--output", "report.html"),
    "status": ("status", "--campaign"),
    "compare": ("compare", "x86", "arm"),
}


def main() -> None:
    arguments = parsed()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        recorded = folder / "recorded.db"
        recorded.write_bytes(lzma.decompress((RECORDED / "finished.db.xz").read_bytes()))
        shutil.copy(RECORDED / "parameters.toml", folder)
        with opened(str(recorded)) as source:
            for url in arguments.stores:
                print(f"\n{url.partition(':')[0] if '://' in url else 'sqlite'}\n", flush=True)
                with opened(url) as store:
                    measure(store, url, source, folder, arguments.most, arguments.repeats)


def measure(store: Store, url: str, source: Store, folder: Path, most: int, repeats: int) -> None:
    print("| trials | bytes a trial | to add, ms (P99) | report | status | compare |", flush=True)
    print("|---:|---:|---:|---:|---:|---:|")
    trials = recorded_trials(source)
    total = grow(store, source, SMALL, 1000)
    row(store, url, total, trials, seconds(folder, url, SMALL, repeats))
    step = grow(store, source, LARGE, 10_000)
    total += step
    row(store, url, total, trials, seconds(folder, url, LARGE, repeats))
    at = 100_000
    while at <= most:
        while total + step <= at * 1.005:
            total += repeat(store)
        row(store, url, total, trials, seconds(folder, url, LARGE, repeats))
        at *= 10


def row(store: Store, url: str, total: int, trials: Sequence[Trial], took: list[float]) -> None:
    tidy(store)
    bytes_each = size(store, url) / total
    added = added_s(store, trials)
    ms = f"{1000 * fmean(added):.2f} ({1000 * quantiles(added, n=100)[-1]:.2f})"
    commands = " | ".join(f"{s:.2f} s" for s in took)
    print(f"| {total:,} | {bytes_each:,.0f} | {ms} | {commands} |", flush=True)


def seconds(folder: Path, url: str, study: str, repeats: int) -> list[float]:
    """The median wall time of each command."""
    text = (RECORDED / "intop.toml").read_text()
    place = url if "://" in url else Path(url).absolute()
    text = text.replace('"recorded.db"', f'"{place}"').replace('"recorded"', f'"{study}"')
    (folder / "intop.toml").write_text(text)
    intop = Path(sys.executable).with_name("intop")
    found = []
    for words in COMMANDS.values():
        times = []
        for _ in range(repeats):
            started = time.perf_counter()
            done = subprocess.run([intop, *words], cwd=folder, capture_output=True, text=True)
            times.append(time.perf_counter() - started)
            if done.returncode:
                raise SystemExit(f"intop {' '.join(words)}: {done.stderr}")
        found.append(median(times))
    return found


def added_s(store: Store, trials: Sequence[Trial]) -> list[float]:
    """What each of ADDED trials takes to be stored."""
    campaign = store.begin("added", seed=1, tool_version="benchmark")
    subject = Subject(campaign=campaign, arch="x86", workload="slt")
    made = [trials[n % len(trials)] for n in range(ADDED)]
    plan = [replace(t.planned, index=n) for n, t in enumerate(made)]
    store.write_plan(subject, "collect", plan)
    request = JobSettings(workload=load_study(RECORDED / "intop.toml").workloads["slt"], tunes=())
    found = []
    for place, trial in zip(plan, made, strict=True):
        one = replace(trial, planned=place, stage="collect", attempt=0)
        started = time.perf_counter()
        lease = store.jobs.take(
            *(subject, "collect", place), attempt=0, request=request, worker="one", lease_s=60
        )
        is_counted = store.jobs.complete(lease, one)
        found.append(time.perf_counter() - started)
        assert is_counted
    return found


def recorded_trials(source: Store) -> list[Trial]:
    (campaign,) = source.campaigns()
    subject = Subject(campaign=campaign, arch="x86", workload="slt")
    made_up = [counters(random.Random(n)) for n in range(20)]
    trials = source.trials(subject)[:40]
    return [replace(t, counters=made_up[n % 20]) for n, t in enumerate(trials)]


def counters(rng: random.Random) -> dict[str, HostCounters]:
    """Made up: ten points of each host, and as many counters as pack into the usual size."""
    return {
        host: HostCounters(
            at_s=tuple(round(0.5 * n + rng.random() / 100, 6) for n in range(10)),
            growth={
                f"{'TcpExt' if n % 2 else 'softirq'}.{host}{n}": tuple(
                    rng.choice([0, 0, rng.randrange(10), rng.randrange(10_000)]) for _ in range(10)
                )
                for n in range(52)
            },
        )
        for host in ("lg", "lb", "b1", "b2")
    }


# Filling ------------------------------------------------------------------------------------------


def grow(store: Store, source: Store, study: str, trials: int) -> int:
    """A campaign of so many trials or a few more; how many it has."""
    (recorded,) = source.campaigns()

    def all_of(table: sa.Table) -> list[dict[str, Any]]:
        query = table.select().order_by(table.c.id)
        rows = source.session.read(lambda connection: connection.execute(query).all())
        return [
            {n: v for n, v in row._asdict().items() if n != "id"} | {"old": row.id} for row in rows
        ]

    plan, made, results = map(all_of, (planned_table, trial_table, result_table))
    passes = -(-trials // len(made))
    made_up = [packed(counters(random.Random(n))) for n in range(40)]

    def work(connection: sa.Connection) -> int:
        values = {"study": study, "started_at": recorded.started_at, "seed": recorded.seed}
        values |= {"finished_at": recorded.finished_at, "tool_version": "benchmark"}
        insert = campaign_table.insert().values(values).returning(campaign_table.c.id)
        campaign = connection.execute(insert).scalar_one()
        places: dict[tuple[int, int], int] = {}
        number = _last(connection, planned_table)
        for n, place, _ in _passes(plan, passes):
            number += 1
            places[n, place] = number
        rows = [
            v | {"campaign_id": campaign, "id": places[n, old]}
            for n, old, v in _passes(plan, passes)
        ]
        _insert(connection, planned_table, rows)
        number, rows = _last(connection, trial_table), []
        for n in range(passes):
            for one in made:
                number += 1
                started = datetime.fromisoformat(one["started_at"]) + n * PASS
                rows.append(
                    {name: value for name, value in one.items() if name != "old"}
                    | {"id": number, "planned_id": places[n, one["planned_id"]]}
                    | {"counters": made_up[number % 40], "started_at": started.isoformat()}
                )
        _insert(connection, trial_table, rows)
        kept = [
            {n: v for n, v in one.items() if n != "old"} | {"campaign_id": campaign}
            for one in results
        ]
        connection.execute(result_table.insert(), kept)
        _continue_ids(connection)
        return len(rows)

    return store.session.write(work)


def _passes(
    plan: Sequence[dict[str, Any]], passes: int
) -> Iterator[tuple[int, int, dict[str, Any]]]:
    """Each stage's plan, as often: the pass, the old number of the place, and its columns."""

    def stage(place: dict[str, Any]) -> tuple[str, str, str]:
        return place["arch"], place["workload"], place["stage"]

    for _, group in groupby(sorted(plan, key=stage), stage):
        places = list(group)
        rounds = max((p["round"] or 0 for p in places), default=0)
        positions = max(p["position"] for p in places) + 1
        for n in range(passes):
            for place in places:
                values = {name: value for name, value in place.items() if name != "old"}
                values["position"] += n * positions
                if values["round"] is not None:
                    values["round"] += n * rounds
                yield n, place["old"], values


def repeat(store: Store) -> int:
    """The last campaign once more, by the database itself; how many trials it has."""

    def work(connection: sa.Connection) -> int:
        last = campaign_table.c.study == LARGE
        first = connection.scalar(sa.select(sa.func.max(campaign_table.c.id)).where(last))
        values = [c for c in campaign_table.c if c.name != "id"]
        insert = campaign_table.insert().from_select(
            [c.name for c in values], sa.select(*values).where(campaign_table.c.id == first)
        )
        connection.execute(insert)
        copy = connection.scalar(sa.select(sa.func.max(campaign_table.c.id)))
        moved = {}
        for table in (planned_table, trial_table):
            of = sa.select(sa.func.min(table.c.id)).select_from(table)
            if table is trial_table:
                of = of.join(planned_table, planned_table.c.id == trial_table.c.planned_id)
            begin = connection.scalar(of.where(planned_table.c.campaign_id == first))
            moved[table] = _last(connection, table) + 1 - (begin or 0)
        made = 0
        for table in (planned_table, trial_table, result_table):
            changed: dict[str, Any] = {"campaign_id": copy}
            if table is not result_table:
                changed["id"] = table.c.id + moved[table]
            if table is trial_table:
                changed["planned_id"] = table.c.planned_id + moved[planned_table]
            names = [c.name for c in table.c if c.name != "id" or table is not result_table]
            query = sa.select(*(changed.get(name, table.c[name]) for name in names))
            query = query.select_from(table)
            if table is trial_table:
                query = query.join(planned_table, planned_table.c.id == trial_table.c.planned_id)
            owner = planned_table if table is trial_table else table
            query = query.where(owner.c.campaign_id == first)
            done = connection.execute(
                table.insert().from_select(names, query),
                execution_options={"preserve_rowcount": True},
            )
            made = done.rowcount if table is trial_table else made
        _continue_ids(connection)
        return made

    return store.session.write(work)


def _last(connection: sa.Connection, table: sa.Table) -> int:
    return connection.scalar(sa.select(sa.func.max(table.c.id))) or 0


def _insert(connection: sa.Connection, table: sa.Table, rows: Sequence[dict[str, Any]]) -> None:
    for start in range(0, len(rows), 1000):
        connection.execute(table.insert(), rows[start : start + 1000])


def _continue_ids(connection: sa.Connection) -> None:
    """PostgreSQL's sequences go on behind the numbers that were given here."""
    if connection.dialect.name == "postgresql":
        for name in ("planned", "trial"):
            last = f"select setval('{name}_id_seq', (select max(id) from {name}))"
            connection.exec_driver_sql(last)


def tidy(store: Store) -> None:
    """What autovacuum would have done meanwhile; SQLite's log goes into its file."""
    is_sqlite = store.session.dialect == "sqlite"
    with store.session.connected() as connection:
        automatic = connection.execution_options(isolation_level="AUTOCOMMIT")
        said = "pragma wal_checkpoint(truncate)" if is_sqlite else "vacuum analyze"
        automatic.exec_driver_sql(said)


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("stores", nargs="+", metavar="STORE")
    parser.add_argument("--most", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=5)
    return parser.parse_args()


if __name__ == "__main__":
    main()
