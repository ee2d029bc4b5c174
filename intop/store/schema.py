"""The tables of the store, as the latest migration leaves them."""

from typing import Any

import sqlalchemy as sa

VERSION_TABLE = "intop_version"
"""Which migration a database is at. Other programs in the same database have tables of other names.
"""
KNOWN = ("0001", "0002", "0003", "0004", "0005", "0006", "0007", "0008", "0009", "0010")
"""All migrations."""
HEAD = KNOWN[-1]

metadata = sa.MetaData()

campaign_table = sa.Table(
    "campaign",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("study", sa.String, nullable=False, index=True),
    sa.Column("started_at", sa.String, nullable=False),
    sa.Column("finished_at", sa.String),
    sa.Column("seed", sa.Integer, nullable=False),
    sa.Column("tool_version", sa.String, nullable=False),
)


def _subject() -> list[sa.Column[Any]]:
    """What a row is about."""
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
    sa.Column("series", sa.Integer, nullable=False, server_default="1"),
    sa.Column("step", sa.Integer),
    sa.Column("reason", sa.String, nullable=False, server_default=""),
    sa.Column("duration_s", sa.Integer),
    sa.Column("rate_rps", sa.Float),
    sa.Column("connections", sa.Integer),
    sa.Column("closed_loop", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column("path", sa.String, nullable=False, server_default=""),
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
    sa.Column("seed", sa.Integer, nullable=False),
    sa.Column("tool_version", sa.String, nullable=False),
    sa.Column("achieved_rps", sa.Float, nullable=False),
    sa.Column("p99_ms", sa.Float),  # for people with an SQL prompt; read back from the histogram
    sa.Column("histogram", sa.Text),
    sa.Column("errors", sa.Text, nullable=False),
    sa.Column("metrics", sa.Text, nullable=False),
    sa.Column("conditions", sa.Text, nullable=False),
    sa.Column("replica", sa.String, nullable=False, server_default=""),
    sa.Column("pruned_above_ms", sa.Float),
    sa.Column("counters", sa.Text),  # see packed_counters.py
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
