"""Trials say how much their load generators received."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    """Add it to all trials: those so far don't know it."""
    op.add_column("trial", sa.Column("received_mb_s", sa.Float))
