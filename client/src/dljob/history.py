"""The history of jobs, which an operator with ``--history-database`` writes: reads it, and adds up its reports.

The queries are the operator's own: `client/vendored.py` copies them when the package is built, and an editable
installation beside the operator uses those.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any

from dljob import shared
from dljob.errors import Refused

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dljob.account import Prices

VARIABLE = "DLJOB_HISTORY_DATABASE"
"""The environment variable with the URL of the database."""
QUERIES = "dljob_operator.history.queries"
GROUPS = ("namespace", "user", "queue", "kind", "cluster")
_HOUR = 3600.0
_LIBRARIES = ("sqlalchemy", "psycopg")


@contextmanager
def opened(url: str) -> Iterator[tuple[Any, Any]]:
    """The history in a database, and the class of its filters. Raises Refused for whatever goes wrong with it."""
    if not url:
        raise Refused("Name the database of the history with --database, or with DLJOB_HISTORY_DATABASE.")
    try:
        queries = _queries()
        history = queries.History(url)
    except ModuleNotFoundError as e:
        raise _missing(e) from None
    except Exception as e:
        raise _refused(e) from None
    try:
        yield history, queries.Filter
    except Exception as e:
        raise _refused(e) from None
    finally:
        history.close()


def _queries() -> Any:
    """The copy in the built package, else the operator's own where it is installed too, as in its image."""
    return shared.copy_of(QUERIES) or importlib.import_module(QUERIES)


def _missing(error: ModuleNotFoundError) -> Exception:
    name = error.name or ""
    if name.partition(".")[0] in _LIBRARIES:
        return Refused("The history needs SQLAlchemy and psycopg: pip install 'dljob[history]'")
    if f"{QUERIES}.".startswith(f"{name}."):
        return Refused("An editable installation of dljob has no history: use pip install './client[history]'.")
    return error


def _refused(error: Exception) -> Exception:
    """The error for the user; the class of the copied modules is known by its name alone."""
    return Refused(str(error)) if type(error).__name__ == "HistoryError" else error


def month_of(text: str) -> tuple[int, int] | None:
    """The year and the month of ``2026-11``; ``None`` for anything else."""
    found = re.fullmatch(r"([0-9]{4})-(0[1-9]|1[0-2])", text)
    return (int(found[1]), int(found[2])) if found and 1 < int(found[1]) < 9999 else None


def plain(row: Mapping[str, Any]) -> dict[str, Any]:
    """A job of the history as plain data, with camelCase keys and times as in the API."""
    return {_camel(name): _plain(value) for name, value in row.items()}


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.title() for word in rest)


def _plain(value: Any) -> Any:
    return value.isoformat().replace("+00:00", "Z") if isinstance(value, datetime) else value


def report(
    rows: Sequence[Any], by: Sequence[str], asked: Prices | None, resources: Mapping[tuple[str, ...], Any]
) -> list[dict[str, Any]]:
    """The lines of a report as plain data. ``resources`` are the seconds of each resource by group, for the prices."""
    return [
        {
            **dict(zip(by, row.group, strict=True)),
            "jobs": row.jobs,
            "succeeded": row.succeeded,
            "failed": row.failed,
            "restarts": row.restarts,
            "preemptions": row.preemptions,
            "gpuHours": round(row.gpu_seconds / _HOUR, 6),
            "cpuHours": round(row.cpu_core_seconds / _HOUR, 6),
            "memoryGibHours": round(row.memory_gib_seconds / _HOUR, 6),
            **({} if asked is None else _cost(asked, resources.get(row.group, {}))),
        }
        for row in rows
    ]


def _cost(asked: Prices, seconds: Mapping[str, float]) -> dict[str, Any]:
    cost = sum(amount / _HOUR * asked.per_hour.get(name, 0.0) for name, amount in seconds.items())
    return {"cost": round(cost, 6), "currency": asked.currency}
