"""Searches for hyper-parameters are stored try by try."""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    """Add their table. A training that was killed before begins again."""
    op.create_table(
        "search",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("campaign_id", sa.Integer, sa.ForeignKey("campaign.id"), nullable=False),
        sa.Column("arch", sa.String, nullable=False),
        sa.Column("workload", sa.String, nullable=False),
        sa.Column("fingerprint", sa.String, nullable=False),
        sa.Column("family", sa.String, nullable=False),
        sa.Column("fold", sa.Integer, nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("document", sa.Text, nullable=False),
        sa.UniqueConstraint(
            "campaign_id", "arch", "workload", "fingerprint", "family", "fold", "number"
        ),
    )
    result = sa.table("result", sa.column("kind", sa.String))
    op.execute(result.delete().where(result.c.kind == "searches"))
