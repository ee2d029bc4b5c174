"""A job's number is never given again.

SQLite gave the number of a job that was done to the next one. Whoever still waited for the first
took the second for its own.
"""

from alembic import op

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    """Copy the table, with its rows. PostgreSQL never gives a number twice."""
    if op.get_context().dialect.name == "sqlite":
        with op.batch_alter_table(
            "job", recreate="always", table_kwargs={"sqlite_autoincrement": True}
        ):
            pass
