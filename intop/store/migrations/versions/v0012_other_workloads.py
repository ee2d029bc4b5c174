"""A trial may be measured under another workload of its study."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    """Add which one: trials so far are under their own."""
    op.add_column(
        "planned", sa.Column("other_workload", sa.String, nullable=False, server_default="")
    )
