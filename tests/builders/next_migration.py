"""A made-up migration after the latest one: today's stores are an earlier intop's then."""

import shutil
from pathlib import Path
from typing import Any

from intop.store import opening
from intop.store.schema import HEAD, KNOWN

NUMBER = "9999"

SCRIPT = """
import sqlalchemy as sa
from alembic import op

revision, down_revision = "{number}", "{before}"

def upgrade():
    with op.batch_alter_table("trial") as trial:
        trial.add_column(sa.Column("weather", sa.String, nullable=False, server_default="dry"))
        trial.alter_column("detail", type_=sa.String())
"""


def with_next_migration(folder: Path, end: str = "pass") -> dict[str, Any]:
    """What `intop.store.opening` has where this migration is the latest.

    `end` is what Alembic does last, in a new store and in an earlier one.
    """
    copy = folder / "migrations"
    shutil.copytree(opening.MIGRATIONS, copy, ignore=shutil.ignore_patterns("__pycache__"))
    with (copy / "env.py").open("a") as environment:
        environment.write(f"import os\n{end}\n")
    script = SCRIPT.format(number=NUMBER, before=HEAD)
    (copy / "versions" / f"v{NUMBER}_weather.py").write_text(script)
    return {"MIGRATIONS": copy, "KNOWN": (*KNOWN, NUMBER), "HEAD": NUMBER}


def as_python(names: dict[str, Any]) -> str:
    """A program that gives `intop.store.opening` these names, to be run in another process."""
    imports = "from pathlib import PosixPath\nfrom intop.store import opening\n"
    return f"{imports}vars(opening).update({names!r})"
