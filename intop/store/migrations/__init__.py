"""Alembic's: how a store of an earlier intop becomes one of this."""
