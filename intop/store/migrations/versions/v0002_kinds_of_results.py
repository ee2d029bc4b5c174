"""Results were called by the class that they were written from; now by names of their own."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

KINDS = (
    "Agreement",
    "Compromise",
    "Contest",
    "Crosswise",
    "Decisions",
    "Explanation",
    "Front",
    "Pilot",
    "Probe",
    "Ranking",
    "Refined",
    "Refusals",
    "Rollout",
    "Search",
    "Searches",
    "Training",
    "Verdict",
)


def upgrade() -> None:
    """Rename the kinds of all results."""
    result = sa.table("result", sa.column("kind", sa.String))
    for kind in KINDS:
        op.execute(result.update().where(result.c.kind == kind).values(kind=kind.lower()))
