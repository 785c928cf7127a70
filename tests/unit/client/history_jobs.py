"""A history of a few jobs, in SQLite, for the client."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from support.history import ended, stamp

from dljob_operator.history.database import Database
from dljob_operator.history.record import Place, job_record
from dljob_operator.history.store import Store

NOW = datetime.now(UTC).replace(microsecond=0)
OCTOBER = datetime(2026, 10, 15, tzinfo=UTC)


def save(store: Store, name: str, at: datetime, namespace: str = "team", **more: Any) -> None:
    made = ended(name, more.get("state", "Succeeded"), at, labels={"dljob.operator/user": more.get("user", "ada")})
    made["metadata"] |= {"namespace": namespace, "creationTimestamp": stamp(at - timedelta(hours=2))}
    gpu = {"nvidia.com/gpu": 7200, "cpu": 3600, "memory": 1800}
    made["status"] |= {
        "startTime": stamp(at - timedelta(hours=1)),
        "usage": {"asOf": stamp(at), "seconds": {"running": 3600}, "resourceSeconds": gpu},
    }
    found = job_record(made, Place("lab", "https://logs.example.com/a/rather/long/address/of/the/logs?uid={uid}"), NOW)
    assert found is not None
    store.save([found])


def history_of_five(folder: Path) -> str:
    """The URL of a database with three jobs of the last days, and two of October."""
    made = f"sqlite:///{folder}/history.db"
    store = Store(Database(made))
    store.migrate()
    save(store, "new", NOW - timedelta(minutes=5))
    save(store, "failed", NOW - timedelta(hours=5), state="Failed", user="bob\x1b[2J")
    save(store, "elsewhere", NOW - timedelta(days=3), namespace="other")
    save(store, "october", OCTOBER)
    save(store, "october-2", OCTOBER, state="Failed", user="bob")
    store.close()
    return made
