"""A sweep may be over other things than the rate, and is a command of its own."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    """Add what a trial's load may have of its own: so far, all have their workload's.

    The winner's trials at other rates are those of a sweep. What they came to is worked out of them
    when the sweep is asked for.
    """
    op.add_column("planned", sa.Column("connections", sa.Integer))
    op.add_column(
        "planned", sa.Column("closed_loop", sa.Boolean, nullable=False, server_default=sa.false())
    )
    op.add_column("planned", sa.Column("path", sa.String, nullable=False, server_default=""))
    planned = sa.table("planned", sa.column("stage", sa.String))
    op.execute(planned.update().where(planned.c.stage == "rates").values(stage="sweep"))
    result = sa.table("result", sa.column("kind", sa.String))
    op.execute(result.delete().where(result.c.kind == "rate_sweep"))
