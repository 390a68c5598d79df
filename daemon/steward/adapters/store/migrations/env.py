"""Alembic's entry: runs on the connection that `engine.migrate` gave it, inside that one's transaction."""

from alembic import context

from steward.adapters.store.tables import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
context.run_migrations()
