"""Databases of the history: SQLite, and a real PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from devtools.testbed.offline.postgresql import PostgreSQL
from sqlalchemy import text
from support.postgresql import running

from dljob_operator.history import database as databases
from dljob_operator.history.database import Database
from dljob_operator.history.store import Store


@pytest.fixture(scope="session")
def postgresql() -> Iterator[PostgreSQL]:
    with running() as made:
        yield made


@dataclass
class Empty:
    """A database without tables."""

    url: str

    def store(self) -> Store:
        return Store(Database(self.url))

    def run(self, *statements: str) -> list[tuple[object, ...]]:
        """Run statements in one transaction, and return the rows of the last one."""
        engine = databases.connect(Database(self.url))
        try:
            with engine.begin() as connection:
                for statement in statements[:-1]:
                    connection.execute(text(statement))
                found = connection.execute(text(statements[-1]))
                return [tuple(row) for row in found] if found.returns_rows else []
        finally:
            engine.dispose()


@pytest.fixture(params=["sqlite", "postgresql"])
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Empty]:
    if request.param == "sqlite":
        yield Empty(f"sqlite:///{tmp_path}/history.db")
        return
    made = Empty(request.getfixturevalue("postgresql").url)
    made.run("DROP SCHEMA public CASCADE", "CREATE SCHEMA public")
    yield made


@pytest.fixture
def store(empty: Empty) -> Iterator[Store]:
    """A database with the tables."""
    made = empty.store()
    made.migrate()
    yield made
    made.close()
