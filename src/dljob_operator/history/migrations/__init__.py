"""The environment of Alembic, and the revisions of the tables."""
