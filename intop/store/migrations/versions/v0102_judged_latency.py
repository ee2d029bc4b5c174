"""The latency that trials are judged by is no longer always P99, and has a name that says so."""

import re

import sqlalchemy as sa
from alembic import op

revision = "0102"
down_revision = "0101"

NAMES = re.compile(r'"(?:(default|tuned|predicted|penalised)_)?p99_ms":')
SOAK = "soak"
"""The result whose P99 is always one."""


def upgrade() -> None:
    """Rename the column, and the fields of stored results."""
    op.execute("alter table trial rename column p99_ms to judged_ms")
    connection = op.get_bind()
    results = sa.table("result", sa.column("id"), sa.column("kind"), sa.column("document"))
    rows = sa.select(results).where(results.c.kind != SOAK)
    for row in connection.execute(rows).all():
        document = NAMES.sub(lambda name: f'"{name[1] or "judged"}_ms":', row.document)
        if document != row.document:
            changed = results.update().where(results.c.id == row.id).values(document=document)
            connection.execute(changed)
