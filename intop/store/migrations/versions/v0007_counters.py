"""Trials have the kernel's counters of each host."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Add the counters to all trials: those so far have none."""
    op.add_column("trial", sa.Column("counters", sa.Text))
