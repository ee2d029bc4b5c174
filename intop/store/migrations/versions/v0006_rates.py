"""Trials of a sweep over rates have a rate of their own."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Add the rate to all plans: so far, all trials have their workload's."""
    op.add_column("planned", sa.Column("rate_rps", sa.Float))
