"""A histogram held the answered requests only; now it holds those that failed, too."""

import json

import sqlalchemy as sa
from alembic import op

from intop.domain.histogram import Histogram

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Add each failed request to its trial's histogram, as one that took the whole timeout."""
    names = ("id", "histogram", "errors", "conditions")
    trial = sa.table("trial", *(sa.column(name) for name in names))
    measured = sa.select(*trial.c).where(trial.c.histogram.is_not(None))
    for row in op.get_bind().execute(measured).all():
        failed = sum(json.loads(row.errors).values())
        if failed:
            timeout_us = json.loads(row.conditions)["timeout_s"] * 1_000_000
            whole = Histogram.from_text(row.histogram).merge(
                Histogram.from_pairs([(timeout_us, failed)])
            )
            op.execute(trial.update().where(trial.c.id == row.id).values(histogram=whole.to_text()))
