"""The tables of the store, as the latest migration leaves them."""

from typing import Any

import sqlalchemy as sa

VERSION_TABLE = "intop_version"
"""The table of the migration that a database is at. Other programs in the same database have tables
of other names."""
KNOWN = ("0100", "0101", "0102")
"""All migrations, the latest one last. Lower numbers had stores that were never released."""
HEAD = KNOWN[-1]

metadata = sa.MetaData()

SEED = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
"""Seeds have 32 bits and no sign."""


class Packed(sa.LargeBinary):
    """Bytes as they are stored. Their reader refuses what somebody else has written there."""

    cache_ok = True

    def result_processor(self, dialect: object, coltype: object) -> None:
        """Nothing is done to what the driver returns."""


campaign_table = sa.Table(
    "campaign",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("study", sa.String, nullable=False, index=True),
    sa.Column("started_at", sa.String, nullable=False),
    sa.Column("finished_at", sa.String),
    sa.Column("seed", SEED, nullable=False),
    sa.Column("tool_version", sa.String, nullable=False),
)


def _subject() -> list[sa.Column[Any]]:
    """Return the columns that name a row's subject."""
    return [
        sa.Column("campaign_id", sa.ForeignKey("campaign.id"), nullable=False),
        sa.Column("arch", sa.String, nullable=False),
        sa.Column("workload", sa.String, nullable=False),
    ]


planned_table = sa.Table(
    "planned",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    *_subject(),
    sa.Column("stage", sa.String, nullable=False),
    sa.Column("position", sa.Integer, nullable=False),
    sa.Column("role", sa.String, nullable=False),
    sa.Column("arm", sa.String, nullable=False),
    sa.Column("round", sa.Integer),
    sa.Column("series", sa.Integer, nullable=False),
    sa.Column("step", sa.Integer),
    sa.Column("reason", sa.String, nullable=False),
    sa.Column("duration_s", sa.Integer),
    sa.Column("rate_rps", sa.Float),
    sa.Column("connections", sa.Integer),
    sa.Column("closed_loop", sa.Boolean, nullable=False),
    sa.Column("path", sa.String, nullable=False),
    sa.Column("other_workload", sa.String, nullable=False),
    sa.Column("configuration", sa.Text, nullable=False),
    sa.UniqueConstraint("campaign_id", "arch", "workload", "stage", "position"),
)

trial_table = sa.Table(
    "trial",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("planned_id", sa.ForeignKey("planned.id"), nullable=False),
    sa.Column("attempt", sa.Integer, nullable=False),
    sa.Column("status", sa.String, nullable=False),
    sa.Column("detail", sa.Text, nullable=False),
    sa.Column("started_at", sa.String, nullable=False),
    sa.Column("seconds", sa.Float, nullable=False),
    sa.Column("seed", SEED, nullable=False),
    sa.Column("tool_version", sa.String, nullable=False),
    sa.Column("achieved_rps", sa.Float, nullable=False),
    sa.Column("judged_ms", sa.Float),  # for people with an SQL prompt; read back from the histogram
    sa.Column("histogram", Packed),  # HdrHistogram's compressed V2 encoding
    sa.Column("errors", sa.Text, nullable=False),
    sa.Column("metrics", sa.Text, nullable=False),
    sa.Column("conditions", sa.Text, nullable=False),
    sa.Column("replica", sa.String, nullable=False),
    sa.Column("pruned_above_ms", sa.Float),
    sa.Column("counters", Packed),  # see packed_counters.py
    sa.Column("received_mb_s", sa.Float),
    sa.UniqueConstraint("planned_id", "attempt"),
)

result_table = sa.Table(
    "result",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    *_subject(),
    sa.Column("kind", sa.String, nullable=False),
    sa.Column("created_at", sa.String, nullable=False),
    sa.Column("document", sa.Text, nullable=False),
    sa.UniqueConstraint("campaign_id", "arch", "workload", "kind"),
)

search_table = sa.Table(
    "search",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    *_subject(),
    sa.Column("fingerprint", sa.String, nullable=False),
    sa.Column("family", sa.String, nullable=False),
    sa.Column("fold", sa.Integer, nullable=False),
    sa.Column("number", sa.Integer, nullable=False),  # of a try; see searches.py
    sa.Column("document", sa.Text, nullable=False),
    sa.UniqueConstraint(
        "campaign_id", "arch", "workload", "fingerprint", "family", "fold", "number"
    ),
)

job_table = sa.Table(
    "job",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    *_subject(),
    sa.Column("replica", sa.Integer, nullable=False),
    sa.Column("kind", sa.String, nullable=False),
    sa.Column("planned_id", sa.ForeignKey("planned.id")),
    sa.Column("attempt", sa.Integer, nullable=False, server_default="0"),
    sa.Column("request", sa.Text, nullable=False),
    sa.Column("state", sa.String, nullable=False),
    sa.Column("answer", sa.Text, nullable=False, server_default=""),
    sa.Column("problem", sa.Text, nullable=False, server_default=""),
    sa.Column("worker", sa.String, nullable=False, server_default=""),
    sa.Column("token", sa.Integer, nullable=False, server_default="0"),
    sa.Column("lease_until", sa.Float, nullable=False, server_default="0"),
    sa.UniqueConstraint("planned_id", "attempt"),
    sqlite_autoincrement=True,  # whoever waits for a job that is gone must not meet another one
)
"""Jobs that are to be done now. A job of a trial is gone once the trial is stored."""

worker_table = sa.Table(
    "worker",
    metadata,
    sa.Column("name", sa.String, primary_key=True),
    sa.Column("started_at", sa.String, nullable=False),
    sa.Column("heard_at", sa.Float, nullable=False),
    sa.Column("doing", sa.Text, nullable=False),
    sa.Column("reach", sa.Text, nullable=False),
    sa.Column("trials", sa.Integer, nullable=False),
    sa.Column("failures", sa.Integer, nullable=False),
)

activity_table = sa.Table(
    "activity",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    *_subject(),
    sa.Column("process", sa.String, nullable=False),
    sa.Column("identity", sa.String, nullable=False),
    sa.Column("stage", sa.String, nullable=False),
    sa.Column("since", sa.String, nullable=False),
    sa.Column("heard_at", sa.Float, nullable=False),
    sa.UniqueConstraint("campaign_id", "arch", "workload"),
)
"""The processes at work now."""

late_trial_table = sa.Table(
    "late_trial",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("planned_id", sa.ForeignKey("planned.id"), nullable=False),
    sa.Column("attempt", sa.Integer, nullable=False),
    sa.Column("worker", sa.String, nullable=False),
    sa.Column("token", sa.Integer, nullable=False),
    sa.Column("stored_at", sa.String, nullable=False),
    sa.Column("document", sa.Text, nullable=False),
)
"""Results of workers that had lost their lease. They count for nothing, and are kept as evidence.
"""
