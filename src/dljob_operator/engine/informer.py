"""One thread that keeps a Store in step with the API server: a list, then watches from there on."""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable
from typing import Any

from dljob_operator.engine.cache import Store
from dljob_operator.engine.discovery import Resource
from dljob_operator.engine.kube import ApiConnectionError, ApiError, KubeApi, WatchStream
from dljob_operator.engine.predicates import Change
from dljob_operator.engine.transforms import Object, Transform

_LOG = logging.getLogger(__name__)
_PAGE = 500
_WATCH_SECONDS = (240, 300)  # how long the server is asked to keep a watch open
_QUIET_SECONDS = 90.0  # bookmarks come about once a minute; a connection quieter than this is taken for dead
_SHORTEST_WATCH = 1.0  # a watch that ends sooner is followed by a pause, lest a broken proxy keep us busy
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 30.0


class _Expired(Exception):
    """The server no longer has the changes since our version: everything must be listed again."""


class Informer:
    """Watches what `find` names and calls `on_change` for each change of the store, on a thread of its own.

    `find` returns the resource, or None while the server has no such kind; `missing` is then said in the
    log, once. `selector` is a label selector, `only` a name: no other objects are seen then. `synced` is set
    from the first complete list on, `settled` from then on too, and where there is nothing to wait for: no
    such kind (`missing_now`), or an informer that was stopped.

    What is `optional` may be forbidden: that settles it too. `without` then says in the log what is lost.
    """

    def __init__(
        self,
        api: KubeApi,
        what: str,
        find: Callable[[], Resource | None],
        on_change: Callable[[Change], None],
        *,
        transform: Transform,
        namespace: str = "",
        selector: str = "",
        only: str = "",
        missing: str = "",
        optional: bool = False,
        without: str = "",
    ) -> None:
        self.what = f"{what} in namespace {namespace}" if namespace else what
        self.store = Store()
        self.synced = threading.Event()
        self.has_synced = threading.Event()
        self.missing_now = False
        self._api = api
        self._find = find
        self._on_change = on_change
        self._transform = transform
        self._namespace = namespace
        chosen = {"labelSelector": selector, "fieldSelector": only and f"metadata.name={only}"}
        self._selection = {key: value for key, value in chosen.items() if value}
        self._version = ""  # where to watch from; "" where everything must be listed first
        self._missing = missing
        self._optional = optional
        self._without = without
        self._stopping = threading.Event()
        self._stream: WatchStream | None = None
        self._said = ""
        self._thread = threading.Thread(target=self._run, name=f"informer {self.what}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Order the end, and return at once."""
        self._stopping.set()
        self.has_synced.set()
        stream = self._stream
        if stream is not None:
            stream.stop()

    def join(self, timeout: float | None = None) -> None:
        self._thread.join(timeout)

    def _run(self) -> None:
        pause = _FIRST_PAUSE
        while not self._stopping.is_set():
            try:
                resource = self._find()
                if resource is None:
                    self._no_such_kind()
                elif self._follow(resource):
                    pause = _FIRST_PAUSE
            except _Expired:
                self._version = ""
                continue
            except ApiError as error:
                self._version = ""
                # After a 404 the kind has gone, and `find` will say so.
                if error.status != 404:
                    self._complain(f"cannot watch {self.what}: {error}{self._without}")
                    if error.status == 403 and self._optional:
                        self._forget()
            except ApiConnectionError as error:
                # What was seen stays good: the next watch goes on from there.
                self._complain(f"cannot watch {self.what}: {error}")
            except Exception:
                self._version = ""
                _LOG.exception("a watch of %s failed; it starts anew", self.what)
            # Some of everything, so that many informers do not come back to the server at once.
            self._stopping.wait(pause * random.uniform(0.5, 1.0))
            pause = min(pause * 2, _LONGEST_PAUSE)

    def _no_such_kind(self) -> None:
        self._version = ""
        self._complain(self._missing or f"the API server has no {self.what}")
        self._forget()

    def _forget(self) -> None:
        """Nothing is to be seen for now: what was seen is gone, and nobody need wait for more."""
        for change in self.store.replace([]):
            self._on_change(change)
        self.missing_now = True
        self.has_synced.set()

    def _follow(self, resource: Resource) -> bool:
        """List if need be, then watch for as long as watches last; return whether the last one did."""
        path = resource.collection(self._namespace)
        if not self._version:
            self._version = self._list(path)
        self.missing_now = False
        self.synced.set()
        self.has_synced.set()
        while not self._stopping.is_set():
            began = time.monotonic()
            self._watch(path)
            if time.monotonic() - began < _SHORTEST_WATCH:
                return False
        return True

    def _list(self, path: str) -> str:
        items: list[Object] = []
        query: dict[str, Any] = {"limit": _PAGE, **self._selection}
        while True:
            try:
                page = self._api.get(path, query)
            except ApiError as error:
                if error.status == 410:
                    raise _Expired from None
                raise
            items += map(self._transform, page["items"])
            token = page["metadata"].get("continue")
            if not token:
                break
            query["continue"] = token
        for change in self.store.replace(items):
            self._on_change(change)
        version: str = page["metadata"]["resourceVersion"]
        return version

    def _watch(self, path: str) -> None:
        """Follow one watch to its end, which is no error: the next one goes on from there."""
        query: dict[str, Any] = {
            "resourceVersion": self._version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": random.randint(*_WATCH_SECONDS),
            **self._selection,
        }
        try:
            with self._api.watch(path, query, _QUIET_SECONDS) as stream:
                self._stream = stream
                if self._stopping.is_set():
                    return
                if self._said:
                    _LOG.info("watching %s", self.what)
                    self._said = ""
                self._read(stream)
        except ApiError as error:
            if error.status == 410:
                raise _Expired from None
            raise
        finally:
            self._stream = None

    def _read(self, stream: WatchStream) -> None:
        try:
            for event in stream:
                self._take(event)
        except ApiConnectionError as error:
            _LOG.debug("the watch of %s broke off: %s", self.what, error)

    def _take(self, event: dict[str, Any]) -> None:
        kind, obj = event["type"], event["object"]
        if kind == "ERROR":
            raise ApiError(obj.get("code", 500), obj.get("message", "the watch ended with an error"))
        if kind != "BOOKMARK":
            trimmed = self._transform(obj)
            change = self.store.remove(trimmed) if kind == "DELETED" else self.store.put(trimmed)
            self._on_change(change)
        self._version = obj["metadata"]["resourceVersion"]

    def _complain(self, message: str) -> None:
        """Say what is wrong once, not at every attempt."""
        if message != self._said:
            _LOG.warning("%s", message)
            self._said = message
