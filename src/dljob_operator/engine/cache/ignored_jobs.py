"""Tell users, in an Event, of a job that the operator ignores because it is nested too deeply.

The informer that finds such a job must not wait for the API server, so a thread of its own writes the Events. A user
may write many such jobs, or one again and again: Events that wait beyond a limit are left out, as the log has each job.
"""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from queue import SimpleQueue

from dljob_operator import logs
from dljob_operator.engine.cache.nesting import LIMIT
from dljob_operator.engine.cache.predicates import object_fields, uid_of, version_of
from dljob_operator.engine.cache.transforms import Object
from dljob_operator.engine.events import EventRecorder
from dljob_operator.watches import GVK

_LOG = logging.getLogger(__name__)
_REASON = "NestedTooDeeply"
_MESSAGE = (
    f"The operator ignores this job because its fields are nested more than {LIMIT} levels deep; "
    "remove the fields that are nested so deeply, which no pod template needs"
)
_MOST_WAITING = 100
_REMEMBERED = 2_000


class IgnoredJobs:
    """Writes one Event for each version of such a job, on a thread of its own from `start` to `stop`."""

    def __init__(self, recorder: EventRecorder) -> None:
        self._recorder = recorder
        self._lock = threading.Lock()
        self._noted: OrderedDict[str, str] = OrderedDict()  # the last version of each job, by its UID
        self._waiting: SimpleQueue[Object | None] = SimpleQueue()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="ignored jobs", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Request the end of the thread and return immediately; Events that wait are not written."""
        self._stopping.set()
        self._waiting.put(None)

    def join(self, timeout: float | None = None) -> bool:
        """Wait `timeout` seconds for the end of the thread, or without a limit; return whether it has ended."""
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def note(self, gvk: GVK, metadata: Object) -> None:
        """A job of the kind `gvk` is ignored. Any thread may call this, and it does not wait."""
        names = ("name", "namespace", "uid", "resourceVersion")
        identity = {key: metadata[key] for key in names if metadata.get(key)}
        job = {"apiVersion": gvk.api_version, "kind": gvk.kind, "metadata": identity}
        uid, version = uid_of(job), version_of(job)
        with self._lock:
            if self._noted.get(uid) == version or self._waiting.qsize() >= _MOST_WAITING:
                return
            self._noted.pop(uid, None)
            self._noted[uid] = version
            while len(self._noted) > _REMEMBERED:
                self._noted.popitem(last=False)
            self._waiting.put(job)

    def _run(self) -> None:
        while (job := self._waiting.get()) is not None and not self._stopping.is_set():
            try:
                self._recorder.warn(job, _REASON, _MESSAGE)
            except Exception:
                _LOG.exception("an Event failed with an internal error", extra=logs.fields(**object_fields(job)))
