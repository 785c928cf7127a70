"""The engine's API client, whose lists and watches a test scripts."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterable, Iterator
from typing import Any

from dljob_operator.engine.kube import KubeApi


class Served(KubeApi):
    """Answers each list with the next of `lists`, and each watch with the next of `watches`.

    A list is a page or an error; the last one is repeated. A watch is an error, or the events that it yields, which may
    end in an error; after the last watch one stays open until it is stopped.
    """

    def __init__(self, lists: list[Any], watches: list[Any] | None = None) -> None:
        self.lists = lists
        self.watches = list(watches or [])
        self.listed: list[dict[str, Any]] = []
        self.watched: list[dict[str, Any]] = []
        self.paths: list[str] = []
        self.opened = threading.Event()

    def list_objects(self, path: str, query: Any = None) -> dict[str, Any]:
        self.paths.append(path)
        self.listed.append(dict(query))
        page = self.lists.pop(0) if len(self.lists) > 1 else self.lists[0]
        if isinstance(page, BaseException):
            raise page
        return dict(page)

    @contextlib.contextmanager
    def watch(self, path: str, query: Any, quiet_for: float) -> Iterator[Any]:
        self.paths.append(path)
        self.watched.append(dict(query))
        script = self.watches.pop(0) if self.watches else None
        if isinstance(script, BaseException):
            raise script
        yield Stream(script, self.opened)


class Stream:
    """A watch; without a script one that stays open."""

    def __init__(self, script: Iterable[Any] | None, opened: threading.Event) -> None:
        self._script = script
        self._opened = opened
        self._stopped = threading.Event()

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for event in self._script or []:
            if isinstance(event, BaseException):
                raise event
            yield event
        if self._script is None:
            self._opened.set()
            self._stopped.wait(30)

    def stop(self) -> None:
        self._stopped.set()
