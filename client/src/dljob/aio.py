"""The Python API for asyncio."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any, ParamSpec, TypeVar

from dljob.client import Change, Client, Jobs, Submitted
from dljob.kinds import Resource
from dljob.view import JobView

_P = ParamSpec("_P")
_T = TypeVar("_T")


class AsyncClient:
    """:class:`Client` for asyncio: the same methods, as coroutines; :meth:`watch` is an asynchronous iterator."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        self._client = Client(*arguments, **named)

    async def list(self, kind: str | None = None, **named: Any) -> Jobs:
        return await _thread(self._client.list, kind, **named)

    async def get(self, name: str, kind: str | None = None, **named: Any) -> JobView:
        return await _thread(self._client.get, name, kind, **named)

    async def wait(self, name: str, kind: str | None = None, **named: Any) -> JobView:
        return await _thread(self._client.wait, name, kind, **named)

    async def suspend(self, name: str, kind: str | None = None, **named: Any) -> JobView:
        return await _thread(self._client.suspend, name, kind, **named)

    async def resume(self, name: str, kind: str | None = None, **named: Any) -> JobView:
        return await _thread(self._client.resume, name, kind, **named)

    async def restart(self, name: str, kind: str | None = None, **named: Any) -> JobView:
        return await _thread(self._client.restart, name, kind, **named)

    async def delete(self, name: str, kind: str | None = None, **named: Any) -> JobView:
        return await _thread(self._client.delete, name, kind, **named)

    async def submit(self, manifest: Resource, **named: Any) -> Submitted:
        return await _thread(self._client.submit, manifest, **named)

    async def watch(self, kind: str | None = None, **named: Any) -> AsyncIterator[Change]:
        """As :meth:`Client.watch`; when the iterator is closed, its thread ends within half a second."""
        loop, queue = asyncio.get_running_loop(), asyncio.Queue[Change | Exception | None]()
        stopped = threading.Event()

        def put(item: Change | Exception | None) -> None:
            if not stopped.is_set():
                loop.call_soon_threadsafe(queue.put_nowait, item)

        def run() -> None:
            try:
                for change in self._client.watch(kind, stop=stopped.is_set, **named):
                    put(change)
                put(None)
            except Exception as e:  # all are the caller's
                put(e)

        threading.Thread(target=run, daemon=True).start()
        try:
            while (item := await queue.get()) is not None:
                if isinstance(item, Exception):
                    raise item
                yield item
        finally:
            stopped.set()


async def _thread(function: Callable[_P, _T], *arguments: _P.args, **named: _P.kwargs) -> _T:
    return await asyncio.to_thread(function, *arguments, **named)
