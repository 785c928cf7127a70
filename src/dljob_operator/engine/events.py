"""Record Events on jobs, which `kubectl describe` shows."""

from __future__ import annotations

import datetime
import hashlib
import logging
import threading
from collections import OrderedDict

from ansible_collections.dljob.operator.plugins.module_utils.shared.connection import MERGE_PATCH
from ansible_collections.dljob.operator.plugins.module_utils.shared.event import EventNote, event_of, timestamp
from ansible_collections.dljob.operator.plugins.module_utils.shared.response import ApiError

from dljob_operator import logs
from dljob_operator.engine.cache.predicates import object_fields, uid_of
from dljob_operator.engine.cache.transforms import Object
from dljob_operator.engine.discovery import EVENTS
from dljob_operator.engine.kube import ApiConnectionError, KubeApi

_LOG = logging.getLogger(__name__)
_LONGEST_MESSAGE = 1000  # the API server's limit is 1,024 bytes
_REMEMBERED = 2_000


class EventRecorder:
    """Records Events. A repeated Event only increases its count. Errors are logged and have no other effect."""

    def __init__(self, api: KubeApi) -> None:
        self._api = api
        self._lock = threading.Lock()
        self._counts: OrderedDict[str, int] = OrderedDict()

    def warn(self, obj: Object, reason: str, message: str) -> None:
        """Record a Warning about `obj`. `reason` is one word in CamelCase."""
        note = EventNote("Warning", reason, _shorten(message))
        now = datetime.datetime.now(datetime.UTC)
        event = event_of(obj, note, now, _suffix(obj, note))
        name = event["metadata"]["name"]
        with self._lock:
            count = self._counts[name] = self._counts.pop(name, 0) + 1
            while len(self._counts) > _REMEMBERED:
                self._counts.popitem(last=False)
        try:
            self._write(event, count, now)
        except (ApiError, ApiConnectionError) as error:
            _LOG.warning("cannot record an Event", extra=logs.fields(**object_fields(obj), error=error))

    def _write(self, event: Object, count: int, now: datetime.datetime) -> None:
        """Create the Event, or count it up if it exists."""
        namespace, name = event["metadata"]["namespace"], event["metadata"]["name"]
        if count > 1 and self._count_up(namespace, name, count, now):
            return
        try:
            self._api.request("POST", EVENTS.collection(namespace), event)
        except ApiError as error:
            if error.status != 409:
                raise
            self._continue(namespace, name, now)

    def _count_up(self, namespace: str, name: str, count: int, now: datetime.datetime) -> bool:
        """Update the count of an Event; return False if it no longer exists."""
        try:
            self._patch(namespace, name, {"count": count, "lastTimestamp": timestamp(now)})
        except ApiError as error:
            if error.status == 404:
                return False
            raise
        return True

    def _continue(self, namespace: str, name: str, now: datetime.datetime) -> None:
        """Count up an Event that was recorded before this process started.

        Its count is in the response to a patch, so that the operator needs no permission to read Events.
        """
        stored = self._patch(namespace, name, {"lastTimestamp": timestamp(now)})
        count = int(stored.get("count") or 0) + 1
        self._patch(namespace, name, {"count": count})
        with self._lock:
            self._counts[name] = count

    def _patch(self, namespace: str, name: str, body: Object) -> Object:
        return self._api.request("PATCH", EVENTS.item(namespace, name), body, content_type=MERGE_PATCH)


def _suffix(obj: Object, note: EventNote) -> str:
    """Return the same name for the same error, so that a restarted operator continues the Event."""
    return hashlib.sha256("\0".join((uid_of(obj), note.reason, note.message)).encode()).hexdigest()[:16]


def _shorten(message: str) -> str:
    data = message.encode()
    if len(data) <= _LONGEST_MESSAGE:
        return message
    return data[: _LONGEST_MESSAGE - 4].decode(errors="ignore") + " ..."
