"""Run by Alembic. The connection is the one that `intop.store.opening` has open."""

from alembic import context

from intop.store.schema import VERSION_TABLE, metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    version_table=VERSION_TABLE,
    render_as_batch=True,  # SQLite can't alter a column in place
)
with context.begin_transaction():
    context.run_migrations()
