"""What Alembic runs for each of its commands: the revisions, on the connection that `migrate` has opened."""

from __future__ import annotations

from alembic import context

from dljob_operator.history.tables import METADATA, VERSION_TABLE

context.configure(
    connection=context.config.attributes["connection"], target_metadata=METADATA, version_table=VERSION_TABLE
)
with context.begin_transaction():
    context.run_migrations()
