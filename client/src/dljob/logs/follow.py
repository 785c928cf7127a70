"""Follows the logs of a job: pods that come, containers that restart, connections that break, until the job ends."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

from dljob import decoding
from dljob.api import Api, Request, Response, Streams
from dljob.around import uid_of
from dljob.errors import ApiError, DljobError
from dljob.kinds import Resource
from dljob.logs.line import LogLine, Moment, is_removed, moment, split
from dljob.logs.read import Place, Tell, explain, line_of
from dljob.logs.source import LONGEST, RUNNING, WAITING, Choice, Key, Source, sources
from dljob.view import FINAL, belongs, view

WINDOW = 0.2
"""Seconds in which lines that arrive are brought into the order of their times."""
_WATCH_SECONDS = 300
_PAUSE = 1.0
"""Seconds until a request that failed, or a watch that has ended, is sent again."""
_LAST_TRIES = 2
"""How often a log of a job that has ended is read again."""
JOB = "job"
"""The key of the watch of the job."""


class Follower:
    """Follows one job. The logs' earlier lines were read up to ``places``; logs that are not there are read whole."""

    def __init__(  # noqa: PLR0913
        self,
        api: Api,
        job: Resource,
        watches: dict[str, Request],
        choice: Choice,
        places: dict[Key, Place],
        tell: Tell,
        stop: Callable[[], bool] = lambda: False,
    ) -> None:
        self._api = api
        self._job = job
        self._watches = watches
        """Of the job, and of pods among which are the job's; each with a key of its own."""
        self._choice = choice
        self._places = places
        self._tell = tell
        self._stop = stop
        self._pods: set[str] = set()
        self._sources: dict[Key, Source] = {}
        self._open: set[Key] = set()
        self._begun: dict[Key, int] = {}
        """By the container whose log was begun its restarts then."""
        self._read = frozenset(places)
        self._tries: dict[Key, int] = {}
        self._again: dict[Any, float] = {}
        """When what failed or ended is begun again, by its key."""
        self._is_over = False
        self._held: list[tuple[Moment, int, LogLine]] = []

    def lines(self) -> Iterator[LogLine]:
        """The lines as they come, until the job has ended and so have its logs. Raises DljobError."""
        flush_at = 0.0
        with self._api.streams() as streams:
            for key in self._watches:
                streams.add(key, self._watch(key))
            while not self._stop():
                self._begin_again(streams)
                for key, item in streams.take(WINDOW if self._held else _PAUSE):
                    if isinstance(key, str):
                        self._see(key, item, streams)
                    else:
                        self._hear(key, item)
                now = time.monotonic()
                if self._held and not flush_at:
                    flush_at = now + WINDOW
                if self._held and now >= flush_at:
                    yield from self._flush()
                    flush_at = 0.0
                if self._is_over and not self._open and not any(isinstance(key, tuple) for key in self._again):
                    break
            yield from self._flush()

    # --- what there is to follow

    def _watch(self, key: str) -> Request:
        request = self._watches[key]
        # without a resourceVersion it begins with all that there is
        query = {**request.query, "watch": "1", "timeoutSeconds": _WATCH_SECONDS}
        return Request(request.path, query)

    def _see(self, key: str, item: bytes | Response | DljobError, streams: Streams) -> None:
        """An event of a watch, or its end."""
        if not isinstance(item, bytes):
            error = item if isinstance(item, DljobError) else item.error()
            if isinstance(error, ApiError) and error.status in (401, 403):
                raise error
            self._again[key] = time.monotonic() + _PAUSE
            return
        type_, found = decoding.event(item) or (decoding.ERROR, {})
        if type_ == decoding.ERROR:
            return  # as for an event that cannot be decoded: the watch goes on, or ends and begins anew
        if key == JOB:
            self._see_job(type_, found)
        elif belongs(found, self._job):
            self._see_pod(type_, found, streams)

    def _see_job(self, type_: str, job: Resource) -> None:
        is_other = job["metadata"].get("uid") != self._job["metadata"].get("uid")
        # its watch is of one kind, also where an event does not say so
        job = {**job, "apiVersion": self._job["apiVersion"], "kind": self._job["kind"]}
        self._is_over = type_ == "DELETED" or is_other or view(job).state in FINAL

    def _see_pod(self, type_: str, pod: Resource, streams: Streams) -> None:
        uid = uid_of(pod)
        if type_ == "DELETED":
            self._pods.discard(uid)
            return
        self._pods.add(uid)
        for source in sources(self._job, [pod], self._choice):
            self._sources[source.key] = source
            is_busy = source.key in self._open or source.key in self._again
            if not is_busy and source.state != WAITING and source.restarts > self._begun.get(source.key, -1):
                self._begin(source, streams)

    def _begin(self, source: Source, streams: Streams) -> None:
        place = self._places.setdefault(source.key, Place())
        place.restart()
        # a log of which nothing was wanted, or that was empty, goes on as it was wanted
        is_new = source.key not in self._read
        request = source.request(self._choice, follow=True, since=place.since, whole=is_new)
        streams.add(source.key, request, LONGEST)
        self._open.add(source.key)
        self._begun[source.key] = source.restarts

    def _begin_again(self, streams: Streams) -> None:
        now = time.monotonic()
        for key in [key for key, at in self._again.items() if at <= now]:
            del self._again[key]
            if isinstance(key, str):
                streams.add(key, self._watch(key))
            else:
                self._begin(self._sources[key], streams)

    # --- what it says

    def _hear(self, key: Key, item: bytes | Response | DljobError) -> None:
        """A line of a log, or its end."""
        source = self._sources[key]
        if isinstance(item, bytes):
            self._hold(source, item)
            return
        self._open.discard(key)
        error = item if isinstance(item, DljobError) else item.error()
        if isinstance(item, Response) and error is None and item.body:
            self._hold(source, item.body)
        if isinstance(error, ApiError) and error.status in (403, 404):
            if error.status == 403:
                self._tell(f"The log of {source.replica} cannot be read: {explain(error, source)}")
        elif self._has_more(source, item):
            self._again[key] = time.monotonic() + _PAUSE

    def _has_more(self, source: Source, item: Response | DljobError) -> bool:
        """Whether the log is to be read again from where it was read to."""
        if self._is_over:  # its node may be lost
            self._tries[source.key] = self._tries.get(source.key, 0) + 1
            if self._tries[source.key] > _LAST_TRIES:
                return False
        broke = not isinstance(item, Response) or item.cut or item.status >= 400
        # a container that has not ended, as far as is known: only the connection has, or it has restarted
        is_current = source.pod_uid in self._pods and source.state == RUNNING
        return bool(broke) or is_current or source.restarts > self._begun[source.key]

    def _hold(self, source: Source, raw: bytes) -> None:
        if is_removed(raw):
            return
        at, text = split(raw)
        place = self._places[source.key]
        if place.was_read(at):
            return
        place.pass_by(at)
        # a piece of a long line has no time of its own
        self._held.append((max(moment(at), place.at), len(self._held), line_of(source, at, text)))

    def _flush(self) -> Iterator[LogLine]:
        held, self._held = sorted(self._held), []
        yield from (line for _, _, line in held)
