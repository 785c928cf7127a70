"""Writes to SQLite and to a real PostgreSQL."""

from __future__ import annotations

import threading
from datetime import datetime, timedelta
from typing import Any

import pytest
from devtools.testbed.offline.postgresql import PostgreSQL
from hypothesis import HealthCheck, given, settings
from sqlalchemy.exc import SQLAlchemyError
from support.history import NOW, USAGE, ended, job

from dljob_operator.history import store as stores
from dljob_operator.history.database import Database, HistoryError, explained, is_refused_value, shown
from dljob_operator.history.migrate import head, migrate
from dljob_operator.history.queries import Filter, History
from dljob_operator.history.record import JobRecord, Place, day_record, job_record
from dljob_operator.history.store import Store

from .conftest import Empty
from .test_record import STATUSES, row


def record(found: dict[str, Any], *, is_deleted: bool = False, now: datetime = NOW) -> JobRecord:
    made = job_record(found, Place(), now, is_deleted=is_deleted)
    assert made is not None
    return made


def saved(empty: Empty) -> list[dict[str, Any]]:
    history = History(empty.url)
    try:
        return history.newest(100_000)
    finally:
        history.close()


def test_a_job_is_read_as_it_was_written_and_once(empty: Empty, store: Store) -> None:
    made = ended(labels={"dljob.operator/user": "ada"})
    made["status"]["usage"] = USAGE
    for _ in range(2):
        store.save([record(made), record(ended("other", at=NOW - timedelta(minutes=1)))])
    first, second = saved(empty)
    assert first == {**row(made), "log_link": "", "cluster": ""}
    assert second["name"] == "other"


def test_a_newer_row_stays(empty: Empty, store: Store) -> None:
    """A leader that has lost its lease may write late."""
    store.save([record(ended(version=7))])
    store.save([record(ended(version=6, state="Failed"))])
    assert [one["result"] for one in saved(empty)] == ["Succeeded"]
    store.save([record(ended(version=8, state="Failed"))])
    assert [one["result"] for one in saved(empty)] == ["Failed"]
    store.save([record(ended(version=2, at=NOW + timedelta(seconds=1)), now=NOW + timedelta(seconds=1))])
    assert [one["result"] for one in saved(empty)] == ["Succeeded"], "a cluster that was restored from a copy"


def test_a_job_that_seemed_deleted_and_ended_later_has_its_end(empty: Empty, store: Store) -> None:
    store.save([record(job(version=3), is_deleted=True, now=NOW - timedelta(minutes=5))])
    assert [one["result"] for one in saved(empty)] == ["Deleted"]
    store.save([record(ended(version=4))])
    assert [one["result"] for one in saved(empty)] == ["Succeeded"]


def test_two_writers_of_the_same_rows_do_not_block_each_other(empty: Empty, store: Store) -> None:
    other = empty.store()
    errors: list[Exception] = []

    def write(to: Store, order: int) -> None:
        try:
            for _ in range(10):
                to.save([record(ended(f"j{number}")) for number in range(100)][::order])
        except SQLAlchemyError as error:
            errors.append(error)

    threads = [threading.Thread(target=write, args=one) for one in ((store, 1), (other, -1))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    other.close()
    assert errors == []
    assert len(saved(empty)) == 100


@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(status=STATUSES)
def test_every_database_takes_what_any_status_gives(empty: Empty, store: Store, status: Any) -> None:
    store.save([record({**job(), "status": status})])
    assert [one["result"] for one in saved(empty)] == [status["state"]]


def test_old_jobs_and_days_are_deleted_in_small_steps(
    empty: Empty, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stores, "PRUNED_AT_ONCE", 10)
    store.save([record(ended(f"j{number}", at=NOW - timedelta(minutes=number))) for number in range(45)])
    running = {**job("long"), "status": {"usage": USAGE}}
    days = [day_record(running, Place(), NOW + timedelta(days=number)) for number in range(3)]
    store.save_days([one for one in days if one is not None])
    steps: list[int] = []
    assert store.prune(NOW - timedelta(minutes=20), lambda: not steps.append(1) and len(steps) < 2) == 10
    assert store.prune(NOW - timedelta(minutes=20)) == 14 + 1
    assert {one["name"] for one in saved(empty)} == {f"j{number}" for number in range(21)}
    assert empty.run("SELECT count(*) FROM job_days") == [(2,)]
    assert store.prune(NOW + timedelta(days=1)) == 21 + 1
    assert empty.run("SELECT count(*) FROM job_days") == [(1,)]


def test_a_later_look_on_a_day_counts(empty: Empty, store: Store) -> None:
    running = {**job(), "status": {"usage": USAGE}}
    for hours in (2, 1, 3):
        found = day_record(running, Place(), NOW + timedelta(hours=hours))
        assert found is not None
        store.save_days([found])
    assert empty.run("SELECT cpu_core_seconds FROM job_days") == [(100 + 600 + 3 * 3600,)]


def test_tables_are_made_once_also_by_several_operators_at_a_time(empty: Empty) -> None:
    operators = [empty.store() for _ in range(4)]
    found: list[str] = []
    threads = [threading.Thread(target=lambda one=one: found.append(one.migrate())) for one in operators]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for one in operators:
        one.close()
    assert found == [head()] * 4
    assert empty.run("SELECT version_num FROM dljob_history_version") == [(head(),)]


def test_the_revisions_make_the_tables_of_this_version(empty: Empty, store: Store) -> None:
    from alembic.autogenerate import compare_metadata
    from alembic.runtime.migration import MigrationContext

    from dljob_operator.history import database as databases
    from dljob_operator.history.tables import METADATA, VERSION_TABLE

    engine = databases.connect(Database(empty.url))
    with engine.connect() as connection:
        options = {"version_table": VERSION_TABLE, "compare_type": True}
        assert compare_metadata(MigrationContext.configure(connection, opts=options), METADATA) == []
    engine.dispose()


def test_a_newer_revision_is_refused_with_the_fix(empty: Empty, store: Store) -> None:
    empty.run("UPDATE dljob_history_version SET version_num = '9999'")
    with pytest.raises(HistoryError, match=r"revision '9999'.* Run that version or a newer one"):
        store.migrate()
    assert empty.run("SELECT version_num FROM dljob_history_version") == [("9999",)]


def test_a_prepared_database_needs_no_right_to_change_tables(postgresql: PostgreSQL) -> None:
    owner = Empty(postgresql.url)
    owner.run(
        "DROP SCHEMA public CASCADE", "CREATE SCHEMA public", "DROP ROLE IF EXISTS writer", "CREATE ROLE writer LOGIN"
    )
    writer = Empty(postgresql.url.replace("postgres@", "writer@"))
    with pytest.raises(SQLAlchemyError, match=r"permission denied|no schema has been selected"):
        writer.store().migrate()
    owner.store().migrate()
    owner.run("GRANT USAGE ON SCHEMA public TO writer", "GRANT ALL ON ALL TABLES IN SCHEMA public TO writer")
    assert writer.store().migrate() == head()


def test_a_reader_changes_nothing(empty: Empty, store: Store) -> None:
    from dljob_operator.history import database as databases

    engine = databases.connect(Database(empty.url, is_read_only=True))
    with pytest.raises(SQLAlchemyError, match=r"read-?only"), engine.begin() as connection:
        connection.exec_driver_sql("DELETE FROM jobs")
    empty.run("DROP TABLE jobs", "DROP TABLE job_days", "DROP TABLE dljob_history_version")
    with pytest.raises(SQLAlchemyError, match=r"read-?only"):
        migrate(engine)
    engine.dispose()


def test_a_database_without_a_history_says_how_to_make_one(empty: Empty) -> None:
    if empty.url.startswith("sqlite"):
        with pytest.raises(HistoryError, match="there is no database at"):
            History(empty.url)
        empty.run("CREATE TABLE other (id INTEGER)")
    with pytest.raises(HistoryError, match=r"has no history: .* dljob-operator history migrate"):
        History(empty.url).newest(1, Filter())


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("postgresql+psycopg://u:geheim@h/d", "postgresql+psycopg://u:***@h/d"),
        ("postgresql://u:geheim@h/d", "postgresql+psycopg://u:***@h/d"),
        ("postgresql://u:geheim@h:port/d", "(a URL that cannot be read)"),
        ("mysql://u:geheim@h/d", "(a URL that cannot be read)"),
    ],
)
def test_a_password_is_shown_nowhere(url: str, said: str) -> None:
    assert shown(url) == said
    assert "geheim" not in repr(Database(url))
    try:
        Store(Database(url))
    except HistoryError as error:
        assert "geheim" not in str(error)


def test_a_server_that_refuses_a_password_does_not_show_it(
    postgresql: PostgreSQL, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    configuration = postgresql.data / "pg_hba.conf"
    trusting = configuration.read_text()
    owner = Empty(postgresql.url)
    owner.run("DROP ROLE IF EXISTS secured", "CREATE ROLE secured LOGIN SUPERUSER PASSWORD 'right'")
    try:
        configuration.write_text("host all secured 127.0.0.1/32 scram-sha-256\n" + trusting)
        owner.run("SELECT pg_reload_conf()")
        url = postgresql.url.replace("postgres@", "secured:geheim@")
        database = Database(url)
        with pytest.raises(SQLAlchemyError) as refused:
            Store(database).migrate()
        assert "password authentication failed" in explained(refused.value, database)
        assert "geheim" not in explained(refused.value, database)
        assert not is_refused_value(refused.value)
        file = tmp_path / "password"
        file.write_text("right\n")
        Store(Database(url, file)).migrate()
        monkeypatch.setenv("PGPASSWORD", "right")
        Store(Database(url.replace(":geheim", ""))).migrate()
        file.unlink()
        with pytest.raises(HistoryError, match="the file with the password cannot be read"):
            Store(Database(url, file)).migrate()
    finally:
        configuration.write_text(trusting)
        owner.run("SELECT pg_reload_conf()")
