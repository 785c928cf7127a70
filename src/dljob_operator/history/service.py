"""What `dljob-operator run` needs of the history, without SQLAlchemy where it is off."""

from __future__ import annotations

import argparse
from datetime import timedelta
from typing import TYPE_CHECKING

from dljob_operator.history.record import Place

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

    from dljob_operator.history.recorder import Recorder

_MISSING = "--history-database needs SQLAlchemy, Alembic and psycopg: pip install 'dljob-operator[history]'"


def prepare_recorder(options: argparse.Namespace, registry: CollectorRegistry) -> Recorder | None:
    """Return the recorder that the options ask for, which connects to nothing yet; None where the history is off.

    Raises ValueError where a package is missing, or the URL is none.
    """
    if not options.history_database:
        return None
    try:
        from dljob_operator.history.database import Database, HistoryError
        from dljob_operator.history.recorder import Recorder, Settings
        from dljob_operator.history.store import Store
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("sqlalchemy", "alembic", "psycopg"):
            raise
        raise ValueError(_MISSING) from None
    database = Database(options.history_database, options.history_password_file)
    place = Place(options.history_cluster, options.history_log_link)
    try:
        store = Store(database)
    except ModuleNotFoundError:  # the driver, which SQLAlchemy imports by the URL
        raise ValueError(_MISSING) from None
    except HistoryError as error:
        raise ValueError(f"--history-database: {error}") from None
    return Recorder(Settings(database, timedelta(days=options.history_retention_days), place), store, registry)
