"""A histogram held the answered requests only; now it holds those that failed, too."""

import json
from typing import Any

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
        try:
            whole = with_failures(row)
        except (AttributeError, KeyError, RecursionError, TypeError) as error:
            raise ValueError(f"trial {row.id} is not as an intop writes it: {error!r}") from error
        if whole is not None:
            op.execute(trial.update().where(trial.c.id == row.id).values(histogram=whole))


def with_failures(row: Any) -> str | None:
    """A trial's histogram with its failures, None where it has none.

    Raises one of several errors for a row that no intop wrote.
    """
    failures = list(json.loads(row.errors).values())
    if not any(failures):
        return None
    timeout_s = json.loads(row.conditions)["timeout_s"]
    if not all(type(number) is int for number in (timeout_s, *failures)):
        raise ValueError(f"trial {row.id} has errors or a timeout that aren't whole numbers")
    added = Histogram.from_pairs([(timeout_s * 1_000_000, sum(failures))])
    return Histogram.from_text(row.histogram).merge(added).to_text()
