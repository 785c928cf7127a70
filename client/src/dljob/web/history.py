"""The pages of the history: the jobs that have ended, and the report of a month.

They are for the page on the user's own machine, with the user's own account of the database: it knows no rights of
Kubernetes, by which a page for many users shows each of them only what they may see.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

from dljob.errors import Refused
from dljob.history import GROUPS, month_of, opened, report
from dljob.times import time_of

PAGE = 50
"""Jobs of a page."""
_MOST_LETTERS = 253
_FILTERS = ("namespace", "user", "kind", "state")


def ended_jobs(url: str, given: Mapping[str, str]) -> dict[str, Any]:
    """What the template of the jobs needs; ``given`` is the query of the address. Raises Refused."""
    query = {name: given.get(name, "")[:_MOST_LETTERS] for name in _FILTERS}
    last = time_of(given.get("ended"))
    with opened(url) as (history, filter_):
        where = filter_(
            namespace=query["namespace"],
            user=query["user"],
            kind=query["kind"],
            result=query["state"],
            before=None if last is None else (last, given.get("uid", "")[:_MOST_LETTERS]),
        )
        found = history.newest(PAGE + 1, where)
    jobs, older = found[:PAGE], ""
    if len(found) > PAGE:
        at = {"ended": jobs[-1]["ended"].isoformat(), "uid": jobs[-1]["uid"]}
        older = "/history?" + urlencode({**{name: value for name, value in query.items() if value}, **at})
    return {"jobs": jobs, "older": older, "query": query}


def month_report(url: str, given: Mapping[str, str]) -> dict[str, Any]:
    """What the template of the report needs. Raises Refused, also for a month or a key that is none."""
    text = given.get("month") or f"{datetime.now(UTC):%Y-%m}"
    chosen = month_of(text)
    by = tuple(dict.fromkeys(filter(None, (given.get("by") or "namespace,user").split(","))))
    if chosen is None or not by or not set(by) <= {*GROUPS}:
        raise Refused(f"Write a month such as 2026-11, and keys of {', '.join(GROUPS)}.")
    with opened(url) as (history, _):
        rows = report(history.month(*chosen, by), by, None, {})
    return {"rows": rows, "by": by, "month": text}
