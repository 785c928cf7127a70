"""Keep a Store in sync with the API server on one thread: list once, then watch.

No library's informer is used, for these reasons:

- The Python client's `kubernetes.informer` (of 37.0; 33.1, which ansible-operator's image has, has none) keeps whole
  objects, as models. For a pod of one container an event took 2.0 ms of processor time and the object 42 KiB, and here,
  parsed, reduced by a `Transform` and kept as text, 0.03 ms and 1 KiB. A whole job of 4 pods takes this operator 10 ms
  (benchmarks/RESULTS.md). That informer also lists without pages, requests no bookmarks, notices no connection that has
  gone silent, reopens a failed watch without a pause, and does not report when its cache is complete.
- The client's `Watch` without models is half of this module's `_read`: the list, the cache, the expired version, the
  pauses and the silence remain, and it reads through an API class that has to be found for each kind.
- kopf brings its own loop of handlers and its own state in the objects' annotations instead of a cache that Ansible
  runs can get. benchmarks/programs/kopf_operator.py needed 76 s for 1,000 jobs of 4 pods, and this operator 50 s, in
  one round each (benchmarks/RESULTS.md).
"""

from __future__ import annotations

import logging
import math
import random
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.shared.paging import pages
from ansible_collections.dljob.operator.plugins.module_utils.shared.response import ApiError

from dljob_operator import logs
from dljob_operator.engine.cache import nesting
from dljob_operator.engine.cache.cache import Listed, Store
from dljob_operator.engine.cache.predicates import Change
from dljob_operator.engine.cache.transforms import Object, Transform
from dljob_operator.engine.cache.watch_health import LIST_AGAIN_AFTER, WatchHealth
from dljob_operator.engine.discovery import ApiResource
from dljob_operator.engine.kube import ApiConnectionError, KubeApi, UntrustedServer, WatchStream
from dljob_operator.failed_check import FailedCheck

_LOG = logging.getLogger(__name__)
PAGE_SIZE = 500
_WATCH_SECONDS = (240, 300)  # the requested duration of a watch


class _Expired(Exception):
    """The API server no longer has the changes since our resource version, so the informer must list again."""


@dataclass(frozen=True)
class WatchSource:
    """What an informer watches."""

    what: str
    """Its name in logs."""
    find: Callable[[], ApiResource | None]
    """Returns the resource, or None while the API server does not serve the kind."""
    transform: Transform
    """Reduces an object to what the store keeps."""
    namespace: str = ""
    """"" for all namespaces."""
    selector: str = ""
    """A label selector that restricts the objects."""
    only: str = ""
    """The name of the only object to watch, "" for all."""
    missing: str = ""
    """What to log once while the kind is not served; a general text by default."""
    optional: bool = False
    """Whether RBAC may forbid to watch it."""
    without: str = ""
    """The effect of that, which the log then adds to the error."""
    from_tenants: bool = False
    """Whether users write these objects themselves, so that their nesting is checked."""
    page_size: int = PAGE_SIZE
    """Objects in one response of a list."""


@dataclass(frozen=True)
class Pace:
    """The times of an informer, in seconds."""

    first_pause: float = 0.5
    longest_pause: float = 30.0
    quiet: float = 90.0
    """Bookmarks arrive about once a minute; without any data for so long the connection is broken."""
    forbidden: float = 120.0
    """A permission that is missing for so long was revoked."""
    shortest_watch: float = 1.0
    """After a shorter watch the informer pauses, so that a broken proxy causes no busy loop."""
    clock: Callable[[], float] = time.monotonic
    """Monotonic seconds, for the health of the watch alone: pauses are real ones."""

    def spread(self, pause: float) -> float:
        """A random part of a pause, so that the informers do not reconnect at the same time."""
        return pause * random.uniform(0.5, 1.0)


class Informer:
    """Watches `source` and calls `on_change` for each change of the store, on a thread of its own.

    It calls `on_ignored` with the metadata of an object that it leaves out because that is nested too deeply.
    `synced` is set after the first complete list. `has_synced` is set then too, and when no list will come: the kind is
    not served (`missing_now`), RBAC forbids an optional source, or `stop` was called.
    """

    def __init__(
        self,
        api: KubeApi,
        source: WatchSource,
        on_change: Callable[[Change], None],
        on_ignored: Callable[[Object], None] = lambda metadata: None,
        pace: Pace | None = None,
    ) -> None:
        what, namespace = source.what, source.namespace
        self.source = source
        self.what = f"{what} in namespace {namespace}" if namespace else what
        self._log_fields = {"resource": what, "namespace": namespace or None}
        self.store = Store()
        self.applying = threading.Lock()
        """Held from the removal of an object from the store until `on_change` has returned."""
        self.synced = threading.Event()
        self.has_synced = threading.Event()
        self.missing_now = False
        self._api = api
        self._on_change = on_change
        self._on_ignored = on_ignored
        self._pace = pace or Pace()
        chosen = {"labelSelector": source.selector, "fieldSelector": source.only and f"metadata.name={source.only}"}
        self._selection = {key: value for key, value in chosen.items() if value}
        self._version = ""  # the resource version to watch from; "" to list first
        self._stopping = threading.Event()
        self._stream: WatchStream | None = None
        self._last_error: tuple[int, str] | None = None
        self._pause = self._pace.first_pause
        self._forbidden_since: float | None = None
        self._health = WatchHealth(self.what, self._pace.clock)
        self._thread = threading.Thread(target=self._run, name=f"informer {self.what}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Request the end of the thread and return immediately."""
        self._stopping.set()
        self.has_synced.set()
        stream = self._stream
        if stream is not None:
            stream.stop()

    def join(self, timeout: float | None = None) -> bool:
        """Wait `timeout` seconds for the end of the thread, or without a limit; return whether it has ended."""
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def problem(self) -> str:
        """Why it no longer watches although a restart may help, "" if it does; see `WatchHealth`."""
        if self._stopping.is_set() or self._thread.ident is None:
            return ""
        if self._thread.is_alive():
            return self._health.problem()
        return FailedCheck("a watch has ended", f"the watch of {self.what} has ended")

    def not_ready(self) -> str:
        """Why the store is not up to date, "" if it is."""
        return self._health.not_ready(self.has_synced.is_set())

    def _run(self) -> None:
        self._health.received()
        while not self._stopping.is_set():
            try:
                api_resource = self.source.find()
                if api_resource is None:
                    self._kind_is_missing()
                else:
                    self._list_and_watch(api_resource)
            except _Expired:
                self._version = ""
            except ApiError as error:
                if error.status != 429:  # an overloaded API server gets no list in addition
                    self._version = ""
                # After a 404 the kind is no longer served, and `find` returns None.
                if error.status != 404:
                    said = f"{error}{self.source.without}"
                    self._failed(said, rejected=error.status == 401, is_starting=_is_starting(error))
                    if error.status == 403 and self.source.optional and self._is_forbidden():
                        self._clear()
            except ApiConnectionError as error:
                # The store stays valid: the next watch continues from its resource version.
                self._failed(str(error), rejected=isinstance(error, UntrustedServer))
            except RecursionError:
                self._version = ""  # an event that cannot be decoded: the next list leaves its object out
                self._failed("an object is nested too deeply to be read; listing the others again")
            except Exception as error:
                self._version = ""
                self._health.failed(f"{type(error).__name__}: {error}")
                _LOG.exception("watch failed unexpectedly; restarting it", extra=logs.fields(**self._log_fields))
            self._stopping.wait(self._pace.spread(self._pause))
            self._pause = min(self._pause * 2, self._pace.longest_pause)

    def _is_forbidden(self) -> bool:
        """Whether a 403 says that RBAC forbids the kind: at first, or later if it has lasted.

        An API server that has just started answers 403 until it has read its roles.
        """
        if self._forbidden_since is None:
            self._forbidden_since = time.monotonic()
        return not self.synced.is_set() or time.monotonic() - self._forbidden_since >= self._pace.forbidden

    def _kind_is_missing(self) -> None:
        self._version = ""
        self._warn_once(self.source.missing or f"the API server has no {self.what}")
        self._clear()

    def _clear(self) -> None:
        """Empty the store, report the deletions, and end all waiting for the first list."""
        self._replace({})
        self.missing_now = True
        self._health.absent()
        self.has_synced.set()

    def _list_and_watch(self, api_resource: ApiResource) -> None:
        """List if necessary, then watch until stopped; return if a watch ended too soon."""
        path = api_resource.collection(self.source.namespace)
        if not self._version:
            self._version = self._list(api_resource)
        self.missing_now = False
        if not self.synced.is_set():
            _LOG.info("watch synced", extra=logs.fields(**self._log_fields, objects=len(self.store)))
        self.synced.set()
        self.has_synced.set()
        while not self._stopping.is_set():
            silent = self._health.silent_for
            if silent > LIST_AGAIN_AFTER:
                _LOG.warning(
                    "watch received nothing; listing again",
                    extra=logs.fields(**self._log_fields, silent_seconds=silent),
                )
                self._version = self._list(api_resource)
            if not self._watch(path):
                return

    def _list(self, api_resource: ApiResource) -> str:
        version = ""

        def listed() -> Iterator[Object]:
            nonlocal version
            path = api_resource.collection(self.source.namespace)
            for page in pages(
                lambda query: self._api.list_objects(path, query), self._selection, self.source.page_size
            ):
                self._health.received()
                version = page["metadata"]["resourceVersion"]
                yield from (self.source.transform(obj) for obj in page["items"] if self._is_usable(obj))

        try:
            packed = self.store.packed(listed())
        except ApiError as error:
            if error.status == 410:
                raise _Expired from None
            raise
        self._replace(packed)
        return version

    def _replace(self, listed: Listed) -> None:
        with self.applying:
            for change in self.store.replace(listed):
                self._on_change(change)

    def _is_usable(self, obj: Object) -> bool:
        is_read = nesting.UNREADABLE not in obj
        if is_read and not (self.source.from_tenants and nesting.is_too_deep(obj)):
            return True
        self._ignored(obj["metadata"])
        return False

    def _is_unreadable(self, event: Object) -> bool:
        if nesting.UNREADABLE not in event:
            return False
        self._ignored(event["object"]["metadata"])
        return True

    def _ignored(self, metadata: Object) -> None:
        identity = {"namespace": metadata.get("namespace"), "name": metadata["name"]}
        nesting.log_ignored(_LOG, **{**self._log_fields, **identity})
        self._on_ignored(metadata)

    def _watch(self, path: str) -> bool:
        """Read one watch to its end, which is no error: the next watch continues from there.

        Return whether it lasted long enough for the next one to follow without a pause.
        """
        query: dict[str, Any] = {
            "resourceVersion": self._version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": random.randint(*_WATCH_SECONDS),
            **self._selection,
        }
        began = math.inf
        try:
            with self._api.watch(path, query, self._pace.quiet) as stream:
                self._stream = stream
                if self._stopping.is_set():
                    return False
                began = time.monotonic()
                self._forbidden_since = None
                self._health.opened()
                if self._last_error:
                    _LOG.info("watch resumed", extra=logs.fields(**self._log_fields))
                    self._last_error = None
                self._read(stream)
        except ApiError as error:
            if error.status == 410:
                raise _Expired from None
            raise
        finally:
            self._stream = None
            lasted = time.monotonic() - began >= self._pace.shortest_watch
            if lasted:
                self._pause = self._pace.first_pause
        return lasted

    def _read(self, stream: WatchStream) -> None:
        try:
            for event in stream:
                self._health.received()
                self.handle(event)
        except ApiConnectionError as error:
            _LOG.debug("watch interrupted", extra=logs.fields(**self._log_fields, error=error))

    def handle(self, event: dict[str, Any]) -> None:
        """Apply an event of the watch to the store and report the changes, on the informer's thread.

        Raises ApiError for an event that says why the watch ends.
        """
        kind, obj = event["type"], event["object"]
        if kind == "ERROR":
            message = obj.get("message", "the watch ended with an error")
            raise ApiError(obj.get("code", 500), obj.get("reason", ""), message)
        if kind != "BOOKMARK":
            gone = kind == "DELETED" or self._is_unreadable(event) or not self._is_usable(obj)
            kept = self.source.transform(obj)
            with self.applying:
                for change in [self.store.remove(kept)] if gone else self.store.put(kept):
                    self._on_change(change)
        self._version = obj["metadata"]["resourceVersion"]

    def _failed(self, error: str, *, rejected: bool = False, is_starting: bool = False) -> None:
        self._health.failed(error, rejected=rejected)
        self._warn_once(error, is_starting=is_starting)

    def _warn_once(self, error: str, *, is_starting: bool = False) -> None:
        """Log an error once, not at every attempt.

        One that passes by itself, as `is_starting` says, becomes a warning once the pauses have their full length.
        """
        level = logging.INFO if is_starting and self._pause < self._pace.longest_pause else logging.WARNING
        if (level, error) != self._last_error:
            _LOG.log(level, "cannot watch", extra=logs.fields(**self._log_fields, error=error))
            self._last_error = (level, error)


def _is_starting(error: ApiError) -> bool:
    """Whether the API server is about to serve the kind, as it says for up to a second after a CRD has been created."""
    return error.status == 429 and "(re)initializing" in error.message
