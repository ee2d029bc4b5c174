"""Where a trial belongs was one text, `label`; now it is columns of their own."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Take the labels of all plans apart, and name the arms of models in verdicts so."""
    # Renamed and not dropped: for that, SQLite before 3.35 would have to make the table again.
    op.alter_column("planned", "label", new_column_name="arm")
    op.add_column("planned", sa.Column("round", sa.Integer))
    op.add_column("planned", sa.Column("series", sa.Integer, nullable=False, server_default="1"))
    op.add_column("planned", sa.Column("step", sa.Integer))
    op.add_column("planned", sa.Column("reason", sa.String, nullable=False, server_default=""))
    op.add_column("planned", sa.Column("duration_s", sa.Integer))
    names = ("id", "stage", "arm", "round", "series", "step", "reason", "duration_s")
    planned = sa.table("planned", *(sa.column(name) for name in names))
    labels = sa.select(planned.c.id, planned.c.stage, planned.c.arm).where(planned.c.arm != "")
    for row in op.get_bind().execute(labels).all():
        op.execute(
            planned.update().where(planned.c.id == row.id).values(coordinates(row.stage, row.arm))
        )
    result = sa.table("result", sa.column("kind"), sa.column("document"))
    # In a JSON text a quotation mark has a backslash before it, so only names of fields are meant.
    op.execute(
        result.update()
        .where(result.c.kind == "verdict")
        .values(document=sa.func.replace(result.c.document, '"side":', '"arm":'))
    )


def coordinates(stage: str, label: str) -> dict[str, int | str | None]:
    """What a label said: "STEP.PLACE: REASON" in a refinement, "NUMBER: DURATION s" in a pilot,
    else "ROUND: ARM" or "SERIES.ROUND: ARM".

    Raises ValueError for a label that no intop wrote.
    """
    number, _, words = label.partition(": ")
    first, _, last = number.rpartition(".")
    if stage == "refine":
        return {"arm": "", "step": int(first), "reason": words}
    if stage == "pilot":
        return {"arm": "", "duration_s": int(words.removesuffix(" s"))}
    # The benchmark of tuners has arms without rounds.
    return {"arm": words, "series": int(first or 1), "round": int(last) if last else None}
