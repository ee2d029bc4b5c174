"""A trial that was stopped before its end counted as overloaded; now it is pruned."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Rename the limit's column, and give these trials their status."""
    op.alter_column("trial", "p99_above_ms", new_column_name="pruned_above_ms")
    trial = sa.table("trial", sa.column("status"), sa.column("pruned_above_ms"))
    op.execute(
        trial.update()
        .where(trial.c.pruned_above_ms.is_not(None), trial.c.status == "overloaded")
        .values(status="pruned")
    )
