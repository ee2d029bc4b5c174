"""The tables of intop 0.1, whether a store of that time is there, a part of one, or nothing."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make what is missing, add what trials have got since schema 1, drop the old version."""
    present = set(sa.inspect(op.get_bind()).get_table_names())
    if "campaign" not in present:
        op.create_table(
            "campaign",
            sa.Column("id", sa.Integer, primary_key=True),
            sa.Column("study", sa.String, nullable=False),
            sa.Column("started_at", sa.String, nullable=False),
            sa.Column("finished_at", sa.String),
            sa.Column("seed", sa.Integer, nullable=False),
            sa.Column("tool_version", sa.String, nullable=False),
        )
        op.create_index("ix_campaign_study", "campaign", ["study"])
    if "planned" not in present:
        op.create_table(
            "planned",
            sa.Column("id", sa.Integer, primary_key=True),
            *_subject(),
            sa.Column("stage", sa.String, nullable=False),
            sa.Column("position", sa.Integer, nullable=False),
            sa.Column("role", sa.String, nullable=False),
            sa.Column("label", sa.String, nullable=False),
            sa.Column("configuration", sa.Text, nullable=False),
            sa.UniqueConstraint("campaign_id", "arch", "workload", "stage", "position"),
        )
    if "trial" not in present:
        op.create_table(
            "trial",
            sa.Column("id", sa.Integer, primary_key=True),
            sa.Column("planned_id", sa.Integer, sa.ForeignKey("planned.id"), nullable=False),
            sa.Column("attempt", sa.Integer, nullable=False),
            sa.Column("status", sa.String, nullable=False),
            sa.Column("detail", sa.Text, nullable=False),
            sa.Column("started_at", sa.String, nullable=False),
            sa.Column("seconds", sa.Float, nullable=False),
            sa.Column("seed", sa.Integer, nullable=False),
            sa.Column("tool_version", sa.String, nullable=False),
            sa.Column("achieved_rps", sa.Float, nullable=False),
            sa.Column("p99_ms", sa.Float),
            sa.Column("histogram", sa.Text),
            sa.Column("errors", sa.Text, nullable=False),
            sa.Column("metrics", sa.Text, nullable=False),
            sa.Column("conditions", sa.Text, nullable=False),
            sa.Column("replica", sa.String, nullable=False, server_default=""),
            sa.Column("p99_above_ms", sa.Float),
            sa.UniqueConstraint("planned_id", "attempt"),
        )
    else:
        known = {column["name"] for column in sa.inspect(op.get_bind()).get_columns("trial")}
        if "replica" not in known:
            op.add_column(
                "trial", sa.Column("replica", sa.String, nullable=False, server_default="")
            )
        if "p99_above_ms" not in known:
            op.add_column("trial", sa.Column("p99_above_ms", sa.Float))
    if "result" not in present:
        op.create_table(
            "result",
            sa.Column("id", sa.Integer, primary_key=True),
            *_subject(),
            sa.Column("kind", sa.String, nullable=False),
            sa.Column("created_at", sa.String, nullable=False),
            sa.Column("document", sa.Text, nullable=False),
            sa.UniqueConstraint("campaign_id", "arch", "workload", "kind"),
        )
    if "meta" in present:
        op.drop_table("meta")


def _subject() -> tuple[sa.Column[int], sa.Column[str], sa.Column[str]]:
    return (
        sa.Column("campaign_id", sa.Integer, sa.ForeignKey("campaign.id"), nullable=False),
        sa.Column("arch", sa.String, nullable=False),
        sa.Column("workload", sa.String, nullable=False),
    )
