"""The tables of intop 0.1.0. `schema` makes them in a new store, so there is nothing to do."""

revision = "0100"
down_revision = None


def upgrade() -> None:
    """Leave the store as it is: no earlier one was released."""
