"""The processes at work on campaigns, and the present name of a stage."""

import sqlalchemy as sa
from alembic import op

revision = "0101"
down_revision = "0100"


def upgrade() -> None:
    """Make the table of activities, and rename the stage mediation."""
    op.execute("update planned set stage = 'causes' where stage = 'mediation'")
    op.create_table(
        "activity",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("campaign_id", sa.Integer, sa.ForeignKey("campaign.id"), nullable=False),
        sa.Column("arch", sa.String, nullable=False),
        sa.Column("workload", sa.String, nullable=False),
        sa.Column("process", sa.String, nullable=False),
        sa.Column("identity", sa.String, nullable=False),
        sa.Column("stage", sa.String, nullable=False),
        sa.Column("since", sa.String, nullable=False),
        sa.Column("heard_at", sa.Float, nullable=False),
        sa.UniqueConstraint("campaign_id", "arch", "workload"),
    )
