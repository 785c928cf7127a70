"""The revisions, each a file that Alembic loads by its path."""
