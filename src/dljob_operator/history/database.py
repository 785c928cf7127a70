"""Connections to the database of the history. No text of this module has the password."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError

POSTGRESQL, SQLITE = "postgresql", "sqlite"
_CONNECT_SECONDS = 5
_STATEMENT_SECONDS = 60
_LOCK_SECONDS = 10
_SQLITE_BUSY_SECONDS = 10
_LONGEST_ERROR = 300
_KEEPALIVES: Mapping[str, str] = {
    "connect_timeout": str(_CONNECT_SECONDS),
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": "30000",
    "application_name": "dljob-history",
}
"""Of libpq: a server whose machine is gone answers nothing, and is noticed within a minute."""
_COMMON: Mapping[str, Any] = {"pool_size": 1, "max_overflow": 1, "hide_parameters": True}


class HistoryError(Exception):
    """The history cannot be used; the text is a sentence that says what to do."""


@dataclass(frozen=True)
class Database:
    """Where the history is."""

    url: str
    """sqlite:////PATH, or postgresql+psycopg://USER@HOST/NAME with or without a password."""
    password_file: Path | None = None
    """Read at each connection, so that a new password needs no restart; else that of the URL, or PGPASSWORD."""
    is_read_only: bool = False

    def __repr__(self) -> str:
        return f"Database({shown(self.url)!r})"


def parse(text: str) -> URL:
    """The URL of a text. Raises HistoryError, whose sentence has nothing of the text."""
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        raise HistoryError(
            "the URL of the history's database cannot be read: write sqlite:////PATH or "
            "postgresql+psycopg://USER@HOST/NAME, with %-codes in place of special characters of a password"
        ) from None
    if url.get_backend_name() not in (POSTGRESQL, SQLITE):
        raise HistoryError("the history's database must be sqlite or postgresql+psycopg")
    if url.get_backend_name() == SQLITE and not url.database:
        raise HistoryError("the history's database has no path: write sqlite:////PATH")
    return url.set(drivername="postgresql+psycopg") if url.get_backend_name() == POSTGRESQL else url


def shown(text: str) -> str:
    """The URL without its password, for logs and errors."""
    try:
        return parse(text).render_as_string(hide_password=True)
    except HistoryError:
        return "(a URL that cannot be read)"


def connect(database: Database) -> Engine:
    """Return the engine of a database, which connects at its first use. Raises HistoryError for a URL that is none."""
    url = parse(database.url)
    if url.get_backend_name() == SQLITE:
        return _sqlite(url, is_read_only=database.is_read_only)
    return _postgresql(url, database)


def explained(error: SQLAlchemyError, database: Database) -> str:
    """One line that says what the database has answered, without statements, parameters and the password."""
    said = str(error.orig) if isinstance(error, DBAPIError) and error.orig is not None else str(error)
    line = " ".join(said.split())[:_LONGEST_ERROR]
    for secret in _secrets(database):
        line = line.replace(secret, "***")
    return line or type(error).__name__


def is_refused_value(error: SQLAlchemyError) -> bool:
    """Whether the database refuses what it was given, so that a second try with the same would fail too.

    An outage, a missing table or a missing right is no such error.
    """
    names = {"DataError", "IntegrityError", "StatementError"}
    return type(error).__name__ in names


def _secrets(database: Database) -> list[str]:
    found = [str(parse(database.url).password or ""), os.environ.get("PGPASSWORD", "")]
    if database.password_file is not None:
        with contextlib.suppress(OSError, ValueError):
            found.append(database.password_file.read_text(encoding="utf-8").strip())
    return [secret for secret in found if secret]


def _sqlite(url: URL, *, is_read_only: bool) -> Engine:
    path = str(url.database)
    if is_read_only:
        if not Path(path).is_file():
            raise HistoryError(f"there is no database at {path}")
        url = url.set(database=f"file:{quote(path)}", query={"mode": "ro", "uri": "true"})
    given: dict[str, Any] = {"connect_args": {"timeout": _SQLITE_BUSY_SECONDS}, **_COMMON}
    if is_read_only:
        return create_engine(url, isolation_level="AUTOCOMMIT", **given)
    engine = create_engine(url, **given)

    # the driver of Python 3.11 would end a transaction at each statement that changes a table
    @event.listens_for(engine, "connect")
    def _on_connect(connection: Any, record: Any) -> None:
        connection.isolation_level = None

    @event.listens_for(engine, "begin")
    def _on_begin(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    return engine


def _postgresql(url: URL, database: Database) -> Engine:
    # of several hosts, or after a failover, the one that takes writes; a reader may ask any
    writable = {} if database.is_read_only else {"target_session_attrs": "read-write"}
    given = {**_KEEPALIVES, **writable, **url.query}
    engine = create_engine(
        url.set(query=given),
        pool_pre_ping=not database.is_read_only,
        # a reader asks once: without a transaction it waits for the server once less at its begin and at its end
        **({"isolation_level": "AUTOCOMMIT"} if database.is_read_only else {}),
        **_COMMON,
        # a pool between this process and the server, such as PgBouncer, may have no prepared statements
        connect_args={"prepare_threshold": None},
    )

    @event.listens_for(engine, "do_connect")
    def _on_do_connect(dialect: Any, record: Any, args: Any, params: dict[str, Any]) -> None:
        if database.password_file is not None:
            try:
                params["password"] = database.password_file.read_text(encoding="utf-8").strip()
            except (OSError, ValueError) as error:
                raise HistoryError(f"the file with the password cannot be read: {error}") from None

    @event.listens_for(engine, "connect")
    def _on_connect(connection: Any, record: Any) -> None:
        with connection.cursor() as cursor:
            cursor.execute(
                f"SET statement_timeout = '{_STATEMENT_SECONDS}s'; SET lock_timeout = '{_LOCK_SECONDS}s'; "
                f"SET timezone = 'UTC'{'; SET default_transaction_read_only = on' if database.is_read_only else ''}"
            )
        connection.commit()

    return engine
