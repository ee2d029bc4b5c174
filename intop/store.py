"""The store: campaigns, plans, trials and results in one SQL database.

SQLite by default, any other database by its URL. A trial is committed before the next one
begins, and found again by its campaign, architecture, workload, stage, place in the plan and
attempt. Nothing is ever deleted: to start anew is a new campaign.
"""

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import Any, TypeVar

import sqlalchemy as sa
from pydantic import TypeAdapter
from sqlalchemy.exc import SQLAlchemyError

from intop.domain.campaign_status import Place
from intop.domain.configuration import Configuration
from intop.domain.histogram import Histogram
from intop.domain.trial import Conditions, PlannedTrial, Stage, Trial
from intop.errors import IntopError, UsageError

T = TypeVar("T")
SCHEMA = 2
LONGEST_S = 1e6
"""No trial takes eleven days."""

_metadata = sa.MetaData()

_meta = sa.Table("meta", _metadata, sa.Column("schema_version", sa.Integer, nullable=False))

_campaign = sa.Table(
    "campaign",
    _metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("study", sa.String, nullable=False, index=True),
    sa.Column("started_at", sa.String, nullable=False),
    sa.Column("finished_at", sa.String),
    sa.Column("seed", sa.Integer, nullable=False),
    sa.Column("tool_version", sa.String, nullable=False),
)


def _subject() -> list[sa.Column[Any]]:
    """What a row is about."""
    return [
        sa.Column("campaign_id", sa.ForeignKey("campaign.id"), nullable=False),
        sa.Column("arch", sa.String, nullable=False),
        sa.Column("workload", sa.String, nullable=False),
    ]


_planned = sa.Table(
    "planned",
    _metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    *_subject(),
    sa.Column("stage", sa.String, nullable=False),
    sa.Column("position", sa.Integer, nullable=False),
    sa.Column("role", sa.String, nullable=False),
    sa.Column("label", sa.String, nullable=False),
    sa.Column("configuration", sa.Text, nullable=False),
    sa.UniqueConstraint("campaign_id", "arch", "workload", "stage", "position"),
)

_trial = sa.Table(
    "trial",
    _metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("planned_id", sa.ForeignKey("planned.id"), nullable=False),
    sa.Column("attempt", sa.Integer, nullable=False),
    sa.Column("status", sa.String, nullable=False),
    sa.Column("detail", sa.Text, nullable=False),
    sa.Column("started_at", sa.String, nullable=False),
    sa.Column("seconds", sa.Float, nullable=False),
    sa.Column("seed", sa.Integer, nullable=False),
    sa.Column("tool_version", sa.String, nullable=False),
    sa.Column("achieved_rps", sa.Float, nullable=False),
    sa.Column("p99_ms", sa.Float),  # for people with an SQL prompt; read back from the histogram
    sa.Column("histogram", sa.Text),
    sa.Column("errors", sa.Text, nullable=False),
    sa.Column("metrics", sa.Text, nullable=False),
    sa.Column("conditions", sa.Text, nullable=False),
    sa.Column("replica", sa.String, nullable=False, server_default=""),
    sa.Column("p99_above_ms", sa.Float),
    sa.UniqueConstraint("planned_id", "attempt"),
)

_result = sa.Table(
    "result",
    _metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    *_subject(),
    sa.Column("kind", sa.String, nullable=False),
    sa.Column("created_at", sa.String, nullable=False),
    sa.Column("document", sa.Text, nullable=False),
    sa.UniqueConstraint("campaign_id", "arch", "workload", "kind"),
)


@dataclass(frozen=True, kw_only=True)
class Campaign:
    """One run of a study, which may take several sittings."""

    id: int
    study: str
    started_at: str
    finished_at: str | None
    seed: int


@dataclass(frozen=True, kw_only=True)
class Subject:
    """What a plan, a trial or a result is about."""

    campaign: Campaign
    arch: str
    workload: str


class Store:
    """An open database. Every method is a transaction of its own."""

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine

    def latest(self, study: str) -> Campaign | None:
        """The newest campaign of a study."""
        query = _campaign.select().where(_campaign.c.study == study)
        with self._engine.connect() as connection:
            row = connection.execute(query.order_by(_campaign.c.id.desc()).limit(1)).first()
        if row is None:
            return None
        with _as_written(f"campaign {row.id}"):
            return _campaign_of(row)

    def earlier(self, campaign: Campaign) -> list[Campaign]:
        """The campaigns of the same study before this one, the oldest first."""
        return [c for c in self.campaigns() if c.study == campaign.study and c.id < campaign.id]

    def campaigns(self) -> list[Campaign]:
        """All campaigns of all studies, the oldest first."""
        with self._engine.connect() as connection:
            rows = connection.execute(_campaign.select().order_by(_campaign.c.id)).all()
        found: list[Campaign] = []
        for row in rows:
            with _as_written(f"campaign {row.id}"):
                found.append(_campaign_of(row))
        return found

    def subjects(self, campaign: Campaign) -> list[Subject]:
        """What was planned for in a campaign, in the order in which it began."""
        of = (_planned.c.arch, _planned.c.workload)
        query = sa.select(*of).where(_planned.c.campaign_id == campaign.id)
        with self._engine.connect() as connection:
            rows = connection.execute(query.group_by(*of).order_by(sa.func.min(_planned.c.id)))
            return [Subject(campaign=campaign, arch=r.arch, workload=r.workload) for r in rows]

    def begin(self, study: str, *, seed: int, tool_version: str) -> Campaign:
        """A new campaign of a study."""
        values = {
            "study": study,
            "started_at": _now(),
            "seed": seed,
            "tool_version": tool_version,
        }
        with self._engine.begin() as connection:
            connection.execute(_campaign.insert().values(values))
        made = self.latest(study)
        if made is None:
            raise IntopError(f"campaign of {study} was written and can't be read back")
        return made

    def is_empty(self, campaign: Campaign, arch: str | None = None) -> bool:
        """Whether nothing was even planned in a campaign, for one architecture or at all."""
        query = sa.select(_planned.c.id).where(_planned.c.campaign_id == campaign.id)
        if arch is not None:
            query = query.where(_planned.c.arch == arch)
        with self._engine.connect() as connection:
            return connection.execute(query.limit(1)).first() is None

    def finish(self, campaign: Campaign) -> None:
        """Note that a campaign has all that it was to have."""
        update = _campaign.update().where(_campaign.c.id == campaign.id)
        with self._engine.begin() as connection:
            connection.execute(update.values(finished_at=_now()))

    def plan(self, subject: Subject, stage: Stage) -> list[PlannedTrial]:
        """A stage's plan, in the order of measurement; empty when there is none yet."""
        query = _planned.select().where(*_about(_planned, subject), _planned.c.stage == stage)
        with self._engine.connect() as connection:
            rows = connection.execute(query.order_by(_planned.c.position)).all()
        with _as_written(f"plan of {stage}"):
            return [_planned_of(row) for row in rows]

    def write_plan(self, subject: Subject, stage: Stage, plan: Iterable[PlannedTrial]) -> None:
        """Store a stage's plan, all of it or nothing."""
        rows = [
            {
                **_key(subject),
                "stage": stage,
                "position": p.index,
                "role": p.role,
                "label": p.label,
                "configuration": p.configuration.to_json(),
            }
            for p in plan
        ]
        with self._engine.begin() as connection:
            connection.execute(_planned.insert(), rows)

    def add(self, subject: Subject, trial: Trial) -> None:
        """Store one trial. It is on disk when this returns."""
        planned = sa.select(_planned.c.id).where(
            *_about(_planned, subject),
            _planned.c.stage == trial.stage,
            _planned.c.position == trial.planned.index,
        )
        values = {
            "planned_id": planned.scalar_subquery(),
            "attempt": trial.attempt,
            "status": trial.status,
            "detail": trial.detail,
            "started_at": trial.started_at,
            "seconds": trial.seconds,
            "seed": trial.seed,
            "tool_version": trial.tool_version,
            "achieved_rps": trial.achieved_rps,
            "p99_ms": trial.p99_ms if trial.histogram is not None else None,
            "histogram": None if trial.histogram is None else trial.histogram.to_text(),
            "errors": json.dumps(dict(trial.errors)),
            "metrics": json.dumps({name: asdict(m) for name, m in trial.metrics.items()}),
            "conditions": json.dumps(asdict(trial.conditions)),
            "replica": trial.replica,
            "p99_above_ms": trial.p99_above_ms,
        }
        with self._engine.begin() as connection:
            connection.execute(_trial.insert().values(values))

    def trials(self, subject: Subject, *stages: Stage) -> list[Trial]:
        """All attempts at the trials of these stages (default: all), in order of measurement."""
        query = (
            sa.select(_planned, _trial)
            .join(_trial, _trial.c.planned_id == _planned.c.id)
            .where(*_about(_planned, subject))
            .order_by(_trial.c.id)
        )
        if stages:
            query = query.where(_planned.c.stage.in_(stages))
        found: list[Trial] = []
        with self._engine.connect() as connection:
            for row in connection.execute(query):
                mapping = row._mapping  # noqa: SLF001
                with _as_written(f"trial {mapping[_trial.c.id]}"):
                    found.append(_trial_of(mapping))
        return found

    def places(self, subject: Subject) -> list[Place]:
        """All plans in the order of measurement, with what their trials came to, in one query.

        It is quick, since no histogram is decoded.
        """
        last = _trial.c.attempt.desc()
        columns = ("attempt", "status", "started_at", "seconds", "p99_ms")
        query = (
            sa.select(_planned, *(_trial.c[name] for name in columns))
            .outerjoin(_trial, _trial.c.planned_id == _planned.c.id)
            .where(*_about(_planned, subject))
            .order_by(_planned.c.id, last)
        )
        found: list[Place] = []
        with self._engine.connect() as connection:
            rows = connection.execute(query).all()
        for _, attempts in groupby(rows, lambda row: row.id):
            made = list(attempts)
            with _as_written(f"plan of {made[0].stage}"):
                found.append(_place_of(made))
        return found

    def results(self, subject: Subject) -> dict[str, str]:
        """The types of the results that there are, and when each was stored (UTC, ISO 8601)."""
        query = sa.select(_result.c.kind, _result.c.created_at).where(*_about(_result, subject))
        with self._engine.connect() as connection:
            found = {row.kind: row.created_at for row in connection.execute(query)}
        for kind, at in found.items():
            with _as_written(f"result {kind}"):
                _check_instant(at)
        return found

    def put(self, subject: Subject, result: object) -> None:
        """Store a result, a dataclass; a later one of the same type replaces it."""
        kind = type(result).__name__
        values = {
            **_key(subject),
            "kind": kind,
            "created_at": _now(),
            # pydantic's own JSON turns an infinite error of a model into null.
            "document": json.dumps(TypeAdapter(type(result)).dump_python(result)),
        }
        with self._engine.begin() as connection:
            connection.execute(
                _result.delete().where(*_about(_result, subject), _result.c.kind == kind)
            )
            connection.execute(_result.insert().values(values))

    def get(self, subject: Subject, kind: type[T]) -> T | None:
        """The result of a type, or None."""
        query = sa.select(_result.c.document).where(
            *_about(_result, subject), _result.c.kind == kind.__name__
        )
        with self._engine.connect() as connection:
            text = connection.execute(query).scalar()
        if text is None:
            return None
        with _as_written(f"result {kind.__name__}"):
            return TypeAdapter(kind).validate_json(text)


@contextmanager
def opened(url: str) -> Iterator[Store]:
    """The store at a URL or in an SQLite file, made when it is missing.

    Raises UsageError when it can't be opened or was made by another version of the schema.
    """
    engine = _engine(url)
    try:
        _prepare(engine, url)
        yield Store(engine)
    except SQLAlchemyError as error:
        raise IntopError(f"the store {_shown(url)}: {str(error).splitlines()[0]}") from error
    finally:
        engine.dispose()


@contextmanager
def opened_to_read(url: str) -> Iterator[Store | None]:
    """The store as it is, None where there is none yet; nothing is made, changed or locked.

    Others may write meanwhile. Raises UsageError when it can't be opened, or another version of
    the schema has made it.
    """
    if "://" not in url and not Path(url).expanduser().is_file():
        yield None
        return
    engine = _engine(url, reads_only=True)
    try:
        yield Store(engine) if _is_begun(engine, url) else None
    except SQLAlchemyError as error:
        raise IntopError(f"the store {_shown(url)}: {str(error).splitlines()[0]}") from error
    finally:
        engine.dispose()


def _is_begun(engine: sa.Engine, url: str) -> bool:
    """Whether there is anything to read. Raises UsageError."""
    try:
        with engine.connect() as connection:
            _check_ours(connection, url)
            names = set(sa.inspect(connection).get_table_names())
            if not names.issuperset(_metadata.tables):
                return False
            found = connection.execute(sa.select(_meta.c.schema_version)).scalar()
    except SQLAlchemyError as error:
        raise UsageError(
            f"the store {_shown(url)} can't be opened: {str(error).splitlines()[0]}"
        ) from error
    if found is not None and found != SCHEMA:
        raise UsageError(
            f"the store {_shown(url)} has schema {found}, this intop needs {SCHEMA}: any stage "
            f"brings an earlier one up to date; this command only reads it"
        )
    return found is not None


def _engine(url: str, *, reads_only: bool = False) -> sa.Engine:
    if "://" not in url:
        folder = Path(url).expanduser().absolute().parent
        if not folder.is_dir():
            raise UsageError(f"the store can't be made: there is no folder {folder}")
    try:
        # A file's name may have a question mark in it; it is no URL.
        parsed = (
            sa.make_url(url)
            if "://" in url
            else sa.URL.create("sqlite", database=str(Path(url).expanduser()))
        )
        if reads_only and parsed.get_backend_name() == "sqlite" and parsed.database:
            parsed = _to_read(Path(parsed.database))
    except (SQLAlchemyError, ValueError):
        # Not shown: what can't be taken apart may have a password anywhere.
        raise UsageError(
            "the store in [study] is no URL: write such as postgresql+psycopg://user@host/name"
        ) from None
    try:
        engine = sa.create_engine(parsed)
    except (SQLAlchemyError, ImportError, TypeError, ValueError) as error:
        raise UsageError(f"{_shown(url)} is no store: {error}") from error
    if engine.dialect.name == "sqlite":
        sa.event.listen(engine, "connect", _patient if reads_only else _careful)
    return engine


def _to_read(path: Path) -> sa.URL:
    """The URL that opens an SQLite file without writing to it.

    The files of a write-ahead log are there while somebody has it open, or since a kill. Where
    there are none, SQLite makes them even to read, and takes them away again where it may write.
    """
    uri = path.absolute().as_uri()
    query = {"uri": "true", "mode": "ro"}
    if not path.with_name(f"{path.name}-wal").exists():
        query |= {"mode": "rw"} if os.access(path.parent, os.W_OK) else {"immutable": "1"}
    return sa.URL.create("sqlite", database=uri, query=query)


def _patient(connection: Any, _record: object) -> None:
    """SQLite: wait for a writer, and refuse to write."""
    connection.execute("PRAGMA busy_timeout = 10000")
    connection.execute("PRAGMA query_only = ON")


def _careful(connection: Any, _record: object) -> None:
    """SQLite: check references, keep every commit through a power cut, wait for a reader."""
    for pragma in ("foreign_keys = ON", "journal_mode = WAL", "synchronous = FULL"):
        connection.execute(f"PRAGMA {pragma}")
    connection.execute("PRAGMA busy_timeout = 10000")


def _prepare(engine: sa.Engine, url: str) -> None:
    try:
        with engine.begin() as connection:
            _check_ours(connection, url)
            _metadata.create_all(connection)
            found = connection.execute(sa.select(_meta.c.schema_version)).scalar()
            if found is None:
                connection.execute(_meta.insert().values(schema_version=SCHEMA))
            elif found == 1:
                _add_columns(connection)
                connection.execute(_meta.update().values(schema_version=SCHEMA))
    except (SQLAlchemyError, TypeError, ValueError) as error:  # the latter for a URL's options
        raise UsageError(
            f"the store {_shown(url)} can't be opened: {str(error).splitlines()[0]}"
        ) from error
    if found not in (None, 1, SCHEMA):
        raise UsageError(
            f"the store {_shown(url)} has schema {found}, this intop needs {SCHEMA}: "
            f"name another store in [study]"
        )


def _check_ours(connection: sa.Connection, url: str) -> None:
    """Refuse another program's database before anything is written to it. Raises UsageError.

    A store of which a kill left some tables only is still one.
    """
    inspector = sa.inspect(connection)
    names = set(inspector.get_table_names())
    ours = names & set(_metadata.tables)
    lacking = [
        name
        for name in sorted(ours)
        if {
            c.name
            for c in _metadata.tables[name].columns
            if not c.nullable and not c.server_default
        }
        - {column["name"] for column in inspector.get_columns(name)}
    ]
    if (_meta.name in ours and _meta.name not in lacking) or not names:
        return
    # A server's database may be shared, a file is not.
    if lacking or (not ours and connection.dialect.name == "sqlite"):
        raise UsageError(
            f"the store {_shown(url)} is the database of another program: "
            f"name another store in [study]"
        )


def _add_columns(connection: sa.Connection) -> None:
    """What trials have got since schema 1. Those of then have the new columns' defaults."""
    present = {column["name"] for column in sa.inspect(connection).get_columns(_trial.name)}
    for column in _trial.columns:
        if column.name not in present:
            declared = sa.schema.CreateColumn(column).compile(connection)
            connection.execute(sa.text(f"ALTER TABLE {_trial.name} ADD COLUMN {declared}"))


def _shown(url: str) -> str:
    """The URL without its password."""
    return sa.make_url(url).render_as_string() if "://" in url else url


def _key(subject: Subject) -> dict[str, object]:
    return {
        "campaign_id": subject.campaign.id,
        "arch": subject.arch,
        "workload": subject.workload,
    }


def _about(table: sa.Table, subject: Subject) -> tuple[sa.ColumnElement[bool], ...]:
    return tuple(table.c[name] == value for name, value in _key(subject).items())


@contextmanager
def _as_written(what: str) -> Iterator[None]:
    """Name what can't be read: somebody else has written there, or a later version of intop."""
    try:
        yield
    except (TypeError, ValueError, LookupError, AttributeError, RecursionError) as error:
        said = " ".join(str(error).split())[:300]
        raise IntopError(
            f"the store's {what} is not as this intop writes it: {said}. "
            f"Bring back a copy of the store, or start anew with another one in [study]"
        ) from error


def _loaded(text: str) -> Any:
    """JSON as we write it. Raises ValueError, also for NaN and its like, which no trial has."""

    def refuse(word: str) -> None:
        raise ValueError(f"{word} is no number")

    return json.loads(text, parse_constant=refuse)


def _campaign_of(row: Any) -> Campaign:
    return TypeAdapter(Campaign).validate_python(
        {
            "id": row.id,
            "study": row.study,
            "started_at": row.started_at,
            "finished_at": row.finished_at,
            "seed": row.seed,
        }
    )


_PLANNED = TypeAdapter(PlannedTrial)
_PLACE = TypeAdapter(Place)
_TRIAL = TypeAdapter(Trial)


def _planned_of(row: Any) -> PlannedTrial:
    return _PLANNED.validate_python(
        {
            "index": row.position,
            "role": row.role,
            "configuration": Configuration.from_json(row.configuration),
            "label": row.label,
        }
    )


def _place_of(attempts: Sequence[Any]) -> Place:
    """A place by its attempts, the last one first; without one its row has no trial."""
    row = attempts[0]
    made = [attempt for attempt in attempts if attempt.attempt is not None]
    values = {
        "stage": row.stage,
        "index": row.position,
        "role": row.role,
        "label": row.label,
        "configuration": Configuration.from_json(row.configuration),
        "attempts": len(made),
        "disturbed": sum(attempt.status == "disturbed" for attempt in made),
    }
    if made:
        names = ("status", "started_at", "seconds", "p99_ms")
        values |= {name: getattr(row, name) for name in names}
        _check_instant(row.started_at)
        if not 0 <= row.seconds < LONGEST_S or not (row.p99_ms is None or row.p99_ms > 0):
            raise ValueError(f"{row.seconds} s, P99 {row.p99_ms} ms")
    return _PLACE.validate_python(values)


def _check_instant(text: str) -> None:
    """Raises ValueError for what is no time with its zone."""
    if datetime.fromisoformat(text).tzinfo is None:
        raise ValueError(f"{text} has no time zone")


def _trial_of(row: Any) -> Trial:
    histogram = row[_trial.c.histogram]
    conditions = _loaded(row[_trial.c.conditions])
    if unknown := set(conditions) - {field.name for field in fields(Conditions)}:
        # Left out, trials of other conditions would look alike.
        raise ValueError(f"unknown conditions {', '.join(sorted(unknown))}")
    return _TRIAL.validate_python(
        {
            "planned": {
                "index": row[_planned.c.position],
                "role": row[_planned.c.role],
                "configuration": Configuration.from_json(row[_planned.c.configuration]),
                "label": row[_planned.c.label],
            },
            "stage": row[_planned.c.stage],
            "attempt": row[_trial.c.attempt],
            "status": row[_trial.c.status],
            "detail": row[_trial.c.detail],
            "conditions": conditions,
            "started_at": row[_trial.c.started_at],
            "seconds": row[_trial.c.seconds],
            "seed": row[_trial.c.seed],
            "tool_version": row[_trial.c.tool_version],
            "histogram": None if histogram is None else Histogram.from_text(histogram),
            "achieved_rps": row[_trial.c.achieved_rps],
            "errors": _loaded(row[_trial.c.errors]),
            "metrics": _loaded(row[_trial.c.metrics]),
            "replica": row[_trial.c.replica],
            "p99_above_ms": row[_trial.c.p99_above_ms],
        }
    )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
