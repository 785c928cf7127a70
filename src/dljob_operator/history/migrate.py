"""Bring the tables of a database to the revision of this version, with Alembic."""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, text

from dljob_operator.history.database import POSTGRESQL, HistoryError
from dljob_operator.history.tables import VERSION_TABLE

_FOLDER = Path(__file__).with_name("migrations")
_LOCK = 0x646C6A6F62  # "dljob": the advisory lock of the operators that share a database
_LONGEST = "10min"  # of a statement that changes a table, or waits for another operator to do so


def head() -> str:
    """The newest revision that this version knows."""
    return str(ScriptDirectory.from_config(_config()).get_current_head())


def migrate(engine: Engine) -> str:
    """Create the tables, or change them to the newest revision, and return it. Several operators may do so at once.

    A database that has the newest revision needs no right to change tables. Raises HistoryError for one whose revision
    this version does not know, and SQLAlchemyError.
    """
    with engine.connect() as connection:
        if _current(connection) == head():
            return head()
    with engine.begin() as connection:
        if engine.dialect.name == POSTGRESQL:
            connection.execute(text(f"SET LOCAL statement_timeout = '{_LONGEST}'"))
            connection.execute(text(f"SET LOCAL lock_timeout = '{_LONGEST}'"))
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})
        _current(connection)  # another operator may have been faster, and newer
        config = _config()
        config.attributes["connection"] = connection
        command.upgrade(config, "head")
    return head()


def _current(connection: Connection) -> str:
    """The revision of a database, "" for an empty one. Raises HistoryError for one that is not known."""
    context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE})
    found = context.get_current_revision() or ""
    known = {script.revision for script in ScriptDirectory.from_config(_config()).walk_revisions()}
    if found and found not in known:
        raise HistoryError(
            f"the history's database has the revision {found[:40]!r}, and this version knows none after {head()}: a "
            "newer operator has changed it. Run that version or a newer one, or name another database"
        )
    return found


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(_FOLDER).replace("%", "%%"))
    return config
