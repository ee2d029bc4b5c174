"""Trials are claimed as jobs, by workers that are known."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    """Make the tables. No store so far has a job."""
    op.create_table(
        "job",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("campaign_id", sa.Integer, sa.ForeignKey("campaign.id"), nullable=False),
        sa.Column("arch", sa.String, nullable=False),
        sa.Column("workload", sa.String, nullable=False),
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
