"""`dljob-operator history`: what an administrator does with the database of the history."""

from __future__ import annotations

import argparse

from dljob_operator.options import HISTORY_DATABASE, HISTORY_PASSWORD_FILE, add_options


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the parser of `dljob-operator`."""
    parser = commands.add_parser("history", help="prepare the database of the history of jobs")
    parser.set_defaults(log_level="warning", log_format="text")
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    migrates = actions.add_parser(
        "migrate", help="create its tables, or bring them to the revision of this version, as `run` does at its start"
    )
    migrates.set_defaults(do=run_migrate)
    add_options(migrates, (HISTORY_DATABASE, HISTORY_PASSWORD_FILE))


def run_migrate(options: argparse.Namespace) -> int:
    """Migrate the database. Raises ValueError for what an administrator must mend."""
    if not options.history_database:
        raise ValueError(f"name the database with {HISTORY_DATABASE.option}, or with {HISTORY_DATABASE.variable}")
    # only here: no other command but `run` with a history needs SQLAlchemy
    from sqlalchemy.exc import SQLAlchemyError

    from dljob_operator.history.database import Database, HistoryError, explained, shown
    from dljob_operator.history.store import Store

    database = Database(options.history_database, options.history_password_file)
    try:
        store = Store(database)
        revision = store.migrate()
        store.close()
    except HistoryError as error:
        raise ValueError(str(error)) from None
    except SQLAlchemyError as error:
        raise ValueError(f"{shown(database.url)}: {explained(error, database)}") from None
    print(f"{shown(database.url)} has the revision {revision}")
    return 0
