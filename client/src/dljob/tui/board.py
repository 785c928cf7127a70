"""The jobs that the terminal view shows, filtered and sorted. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dljob.client import Change
from dljob.kinds import Resource
from dljob.matching import matches
from dljob.output import COLUMNS, SORT_KEYS
from dljob.view import JobView, view

SHOWN = (
    *("NAMESPACE", "NAME", "STATE", "READY", "GPUS", "RESTARTS", "QUEUE"),
    *("RUNNING", "PROGRESS", "AGE", "USER", "REASON"),
)


class Board:
    """All jobs by uid; those that match :attr:`filter` are shown."""

    def __init__(self) -> None:
        self.filter = ""
        self.sort_key = "namespace"
        self.descending = False
        self._jobs: dict[str, JobView] = {}
        self._objects: dict[str, Resource] = {}

    def __len__(self) -> int:
        return len(self._jobs)

    def apply(self, changes: Iterable[Change]) -> set[str]:
        """Take over what has changed; returns the uids of these jobs."""
        touched = set()
        for change in changes:
            uid = change.job.uid
            touched.add(uid)
            if change.type == "DELETED":
                self._jobs.pop(uid, None)
                self._objects.pop(uid, None)
            else:
                self._jobs[uid], self._objects[uid] = change.job, change.object
        return touched

    def grow_older(self, uids: Iterable[str]) -> None:
        """Compute ages and durations anew."""
        for uid in uids:
            if uid in self._objects:
                self._jobs[uid] = view(self._objects[uid])

    def job(self, uid: str) -> JobView | None:
        return self._jobs.get(uid)

    @property
    def uids(self) -> list[str]:
        """Of all jobs, shown or not."""
        return list(self._jobs)

    def shows(self, uid: str) -> bool:
        """Whether there is such a job, and the filter matches it."""
        job = self._jobs.get(uid)
        return job is not None and matches(job, self.filter)

    def place(self, uid: str) -> Any:
        """What to sort by; equal jobs are by namespace and name."""
        job = self._jobs[uid]
        return SORT_KEYS[self.sort_key](job), job.namespace, job.name, job.resource


def cells(job: JobView) -> list[str]:
    """The columns of ``SHOWN``."""
    return [COLUMNS[name](job) for name in SHOWN]
