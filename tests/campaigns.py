"""A small study whose lab isn't up, and campaigns of it as they lie in a store."""

import sqlite3
from base64 import b64encode
from contextlib import closing
from pathlib import Path
from typing import Any

from intop import __version__
from intop.domain.configuration import DEFAULT, Configuration
from intop.domain.trial import PlannedTrial, Status
from intop.store import Campaign, Store, Subject, opened
from intop.store.kinds import KINDS
from intop.store.schema import VERSION_TABLE
from samples import trial

LOAD = """\
[study]
name = "mine"
store = "{folder}/mine.db"

[workload.slt]
rate_rps = 100
connections = 8
threads = 2
duration_s = 2

"""
LAB = (
    LOAD
    + """\
[cluster.x86]
lab = "t-cli"
machines = ["x86_64", "aarch64"]

"""
)
STUDY = (
    LAB
    + """\
[budget]
screen_trials = 8
collect_trials = 8
refine_trials = 4
sentinel_every = 4
"""
)


def begun(folder: Path, statuses: list[Status], *, planned: int = 8) -> tuple[Campaign, Subject]:
    """A campaign whose screening has so many places, the first of which have been measured."""
    with opened(str(folder / "mine.db")) as store:
        campaign = store.begin("mine", seed=1, tool_version="0.1.0")
        subject = Subject(campaign=campaign, arch="x86", workload="slt")
        store.write_plan(subject, "screen", [place(n) for n in range(planned)])
        for n, status in enumerate(statuses):
            add(store, subject, n, status)
    return campaign, subject


def just_begun(study: Path, *, arch: str = "x86", finished: bool = False) -> None:
    """A campaign of the study in this file with one place in its plan, and no trial."""
    with opened(str(study.parent / "mine.db")) as store:
        campaign = store.begin("mine", seed=1, tool_version=__version__)
        subject = Subject(campaign=campaign, arch=arch, workload="slt")
        baseline = PlannedTrial(index=0, role="baseline", configuration=DEFAULT)
        store.write_plan(subject, "screen", [baseline])
        if finished:
            store.finish(campaign)


def place(n: int) -> PlannedTrial:
    """The default first, then configurations of their own."""
    configuration = Configuration({"net.core.somaxconn": str(n)}) if n else DEFAULT
    role = "design" if n else "baseline"
    return PlannedTrial(index=n, role=role, configuration=configuration)


def add(store: Store, subject: Subject, n: int, status: Status = "ok") -> None:
    """A trial of a place: of 9 ms at the second one, and 1 ms less at each of the next eight."""
    made = trial(
        place(n).configuration, 1000 * (10 - n % 10), stage="screen", index=n, status=status
    )
    store.add(subject, made)


LABELS = """
update planned set arm = case
    when step is not null then step || '.' || position || ': ' || reason
    when duration_s is not null then (position + 1) || ': ' || duration_s || ' s'
    when round is not null and series > 1 then series || '.' || round || ': ' || arm
    when round is not null then round || ': ' || arm
    when arm != '' then ': ' || arm
    else ''
end
"""


def sql(path: Path, statement: str, *values: object) -> list[tuple[Any, ...]]:
    """The rows that a statement gives; what it changes in a store is kept."""
    with closing(sqlite3.connect(path)) as connection, connection:
        return connection.execute(statement, values).fetchall()


OWN_LOAD = ("rate_rps", "connections", "closed_loop", "path", "other_workload")
"""Columns of plans that say what a trial's load has of its own; an early intop had none."""
TRIALS_LATER = ("counters", "received_mb_s")
"""Columns of trials that an early intop didn't have."""


TABLES_LATER = {"late_trial": "0011", "job": "0011", "worker": "0011", "search": "0013"}
"""Tables that an early intop didn't have, and the migration that made each."""


def with_texts(connection: sqlite3.Connection) -> None:
    """A store as an intop wrote it that had histograms and counters in base64."""

    def text(data: bytes | None) -> str | None:
        return None if data is None else b64encode(data).decode()

    connection.create_function("text", 1, text)
    for column in ("histogram", "counters"):
        connection.execute("alter table trial add column plain text")
        connection.execute(f"update trial set plain = text({column})")
        connection.execute(f"alter table trial drop column {column}")
        connection.execute(f"alter table trial rename column plain to {column}")


def with_numbers_given_again(connection: sqlite3.Connection) -> None:
    """Jobs as an intop wrote them that gave the number of one that is done to the next one."""
    (made,) = connection.execute("select sql from sqlite_master where name = 'job'").fetchone()
    connection.execute("alter table job rename to job_later")
    connection.execute(made.replace(" AUTOINCREMENT", ""))
    connection.execute("insert into job select * from job_later")
    connection.execute("drop table job_later")


def before(path: Path, version: str) -> None:
    """The store as an intop wrote it whose latest migration was this one, "0004" or later."""
    with closing(sqlite3.connect(path)) as connection, connection:
        for table, since in TABLES_LATER.items():
            if version < since:
                connection.execute(f"drop table {table}")
        if "0011" <= version < "0014":
            with_numbers_given_again(connection)
        if version < "0010":
            with_texts(connection)
        later = ["rate_rps"] if version < "0006" else []
        later += ["connections", "closed_loop", "path"] if version < "0008" else []
        later += ["other_workload"] if version < "0012" else []
        for column in later:
            connection.execute(f"alter table planned drop column {column}")
        for column, since in (("counters", "0007"), ("received_mb_s", "0009")):
            if version < since:
                connection.execute(f"alter table trial drop column {column}")
        connection.execute(f"update {VERSION_TABLE} set version_num = ?", (version,))


def with_labels(connection: sqlite3.Connection) -> None:
    """A store as an intop wrote it that had labels, and no pruned trials."""
    for table in TABLES_LATER:
        connection.execute(f"drop table {table}")
    with_texts(connection)
    connection.execute(LABELS)
    connection.execute("alter table planned rename column arm to label")
    for column in ("round", "series", "step", "reason", "duration_s", *OWN_LOAD):
        connection.execute(f"alter table planned drop column {column}")
    connection.execute(
        "update result set document = replace(document, '\"arm\":', '\"side\":') "
        "where kind = 'verdict'"
    )
    connection.execute("update trial set status = 'overloaded' where status = 'pruned'")
    for column in TRIALS_LATER:
        connection.execute(f"alter table trial drop column {column}")
    connection.execute("alter table trial rename column pruned_above_ms to p99_above_ms")


def as_before_migrations(path: Path, version: object) -> None:
    """The store as an intop without migrations wrote it."""
    with sqlite3.connect(path) as connection:
        with_labels(connection)
        connection.execute(f"drop table {VERSION_TABLE}")
        connection.execute("create table meta (schema_version integer not null)")
        connection.execute("insert into meta values (?)", (version,))
        for kind in KINDS:
            connection.execute(
                "update result set kind = ? where kind = ?", (kind.__name__, KINDS[kind])
            )
    connection.close()
