"""The tables of intop 0.1.0."""

import sqlalchemy as sa
from alembic import op

revision = "0100"
down_revision = None


def upgrade() -> None:
    """Make them all. They stand here as they were then, whatever `schema` has by now."""
    _measured()
    _found()
    _at_work()


def _subject() -> list["sa.Column[int] | sa.Column[str]"]:
    return [
        sa.Column("campaign_id", sa.Integer, sa.ForeignKey("campaign.id"), nullable=False),
        sa.Column("arch", sa.String, nullable=False),
        sa.Column("workload", sa.String, nullable=False),
    ]


def _seed() -> "sa.Column[int]":
    """32 bits and no sign, which SQLite's integers have room for."""
    kind = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    return sa.Column("seed", kind, nullable=False)


def _measured() -> None:
    op.create_table(
        "campaign",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("study", sa.String, nullable=False, index=True),
        sa.Column("started_at", sa.String, nullable=False),
        sa.Column("finished_at", sa.String),
        _seed(),
        sa.Column("tool_version", sa.String, nullable=False),
    )
    op.create_table(
        "planned",
        sa.Column("id", sa.Integer, primary_key=True),
        *_subject(),
        sa.Column("stage", sa.String, nullable=False),
        sa.Column("position", sa.Integer, nullable=False),
        sa.Column("role", sa.String, nullable=False),
        sa.Column("arm", sa.String, nullable=False),
        sa.Column("round", sa.Integer),
        sa.Column("series", sa.Integer, nullable=False),
        sa.Column("step", sa.Integer),
        sa.Column("reason", sa.String, nullable=False),
        sa.Column("duration_s", sa.Integer),
        sa.Column("rate_rps", sa.Float),
        sa.Column("connections", sa.Integer),
        sa.Column("closed_loop", sa.Boolean, nullable=False),
        sa.Column("path", sa.String, nullable=False),
        sa.Column("other_workload", sa.String, nullable=False),
        sa.Column("configuration", sa.Text, nullable=False),
        sa.UniqueConstraint("campaign_id", "arch", "workload", "stage", "position"),
    )
    op.create_table(
        "trial",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("planned_id", sa.Integer, sa.ForeignKey("planned.id"), nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("status", sa.String, nullable=False),
        sa.Column("detail", sa.Text, nullable=False),
        sa.Column("started_at", sa.String, nullable=False),
        sa.Column("seconds", sa.Float, nullable=False),
        _seed(),
        sa.Column("tool_version", sa.String, nullable=False),
        sa.Column("achieved_rps", sa.Float, nullable=False),
        sa.Column("p99_ms", sa.Float),
        sa.Column("histogram", sa.LargeBinary),
        sa.Column("errors", sa.Text, nullable=False),
        sa.Column("metrics", sa.Text, nullable=False),
        sa.Column("conditions", sa.Text, nullable=False),
        sa.Column("replica", sa.String, nullable=False),
        sa.Column("pruned_above_ms", sa.Float),
        sa.Column("counters", sa.LargeBinary),
        sa.Column("received_mb_s", sa.Float),
        sa.UniqueConstraint("planned_id", "attempt"),
    )


def _found() -> None:
    op.create_table(
        "result",
        sa.Column("id", sa.Integer, primary_key=True),
        *_subject(),
        sa.Column("kind", sa.String, nullable=False),
        sa.Column("created_at", sa.String, nullable=False),
        sa.Column("document", sa.Text, nullable=False),
        sa.UniqueConstraint("campaign_id", "arch", "workload", "kind"),
    )
    op.create_table(
        "search",
        sa.Column("id", sa.Integer, primary_key=True),
        *_subject(),
        sa.Column("fingerprint", sa.String, nullable=False),
        sa.Column("family", sa.String, nullable=False),
        sa.Column("fold", sa.Integer, nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("document", sa.Text, nullable=False),
        sa.UniqueConstraint(
            "campaign_id", "arch", "workload", "fingerprint", "family", "fold", "number"
        ),
    )


def _at_work() -> None:
    op.create_table(
        "job",
        sa.Column("id", sa.Integer, primary_key=True),
        *_subject(),
        sa.Column("replica", sa.Integer, nullable=False),
        sa.Column("kind", sa.String, nullable=False),
        sa.Column("planned_id", sa.Integer, sa.ForeignKey("planned.id")),
        sa.Column("attempt", sa.Integer, nullable=False, server_default="0"),
        sa.Column("request", sa.Text, nullable=False),
        sa.Column("state", sa.String, nullable=False),
        sa.Column("answer", sa.Text, nullable=False, server_default=""),
        sa.Column("problem", sa.Text, nullable=False, server_default=""),
        sa.Column("worker", sa.String, nullable=False, server_default=""),
        sa.Column("token", sa.Integer, nullable=False, server_default="0"),
        sa.Column("lease_until", sa.Float, nullable=False, server_default="0"),
        sa.UniqueConstraint("planned_id", "attempt"),
        # SQLite would give the number of a job that is done to the next one.
        sqlite_autoincrement=True,
    )
    op.create_table(
        "worker",
        sa.Column("name", sa.String, primary_key=True),
        sa.Column("started_at", sa.String, nullable=False),
        sa.Column("heard_at", sa.Float, nullable=False),
        sa.Column("doing", sa.Text, nullable=False),
        sa.Column("reach", sa.Text, nullable=False),
        sa.Column("trials", sa.Integer, nullable=False),
        sa.Column("failures", sa.Integer, nullable=False),
    )
    op.create_table(
        "late_trial",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("planned_id", sa.Integer, sa.ForeignKey("planned.id"), nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("worker", sa.String, nullable=False),
        sa.Column("token", sa.Integer, nullable=False),
        sa.Column("stored_at", sa.String, nullable=False),
        sa.Column("document", sa.Text, nullable=False),
    )
