"""The Python API for asyncio."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from dljob.client import Change, Client, Jobs, Submitted
from dljob.kinds import Resource
from dljob.view import JobView

if TYPE_CHECKING:
    from dljob.logs import LogLine
    from dljob.usage import Usages

AHEAD = 1000
"""Items that are read ahead of who takes them."""
_STOP_SECONDS = 0.5
_P = ParamSpec("_P")
_T = TypeVar("_T")


class AsyncClient:
    """:class:`Client` for asyncio: the same methods, as coroutines; :meth:`watch` is an asynchronous iterator."""

    def __init__(self, *arguments: Any, client: Client | None = None, **named: Any) -> None:
        self._client = client or Client(*arguments, **named)

    async def list(self, kind: str | None = None, **named: Any) -> Jobs:
        return await _thread(self._client.list, kind, **named)

    async def get(self, name: str, kind: str | None = None, **named: Any) -> JobView:
        return await _thread(self._client.get, name, kind, **named)

    async def usage(self, kind: str | None = None, **named: Any) -> Usages:
        return await _thread(self._client.usage, kind, **named)

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

    def watch(self, kind: str | None = None, **named: Any) -> AsyncIterator[Change]:
        """As :meth:`Client.watch`; when the iterator is closed, its thread ends within a second."""
        return iterate(lambda stop: self._client.watch(kind, stop=stop, **named))

    def logs(self, name: str, kind: str | None = None, **named: Any) -> AsyncIterator[LogLine]:
        """As :meth:`Client.logs`; when the iterator is closed, its thread ends within a second."""
        return iterate(lambda stop: self._client.logs(name, kind, stop=stop, **named))


async def iterate(begin: Callable[[Callable[[], bool]], Iterable[_T]], ahead: int = AHEAD) -> AsyncGenerator[_T]:
    """The items that a thread yields; ``begin`` gets what tells it to stop. At most ``ahead`` wait to be taken."""
    loop, queue = asyncio.get_running_loop(), asyncio.Queue[tuple[_T | None, Exception | None, bool]]()
    stopped, room = threading.Event(), threading.Semaphore(ahead)

    def put(item: _T | None, error: Exception | None = None, *, last: bool = False) -> None:
        if not stopped.is_set():
            loop.call_soon_threadsafe(queue.put_nowait, (item, error, last))

    def run() -> None:
        try:
            for item in begin(stopped.is_set):
                put(item)
                while not room.acquire(timeout=_STOP_SECONDS) and not stopped.is_set():
                    pass
                if stopped.is_set():
                    return
            put(None, last=True)
        except Exception as e:  # all are the caller's
            put(None, e)

    threading.Thread(target=run, daemon=True).start()
    try:
        while True:
            item, error, last = await queue.get()
            if error:
                raise error
            if last:
                return
            room.release()
            yield item  # type: ignore[misc]
    finally:
        stopped.set()


async def _thread(function: Callable[_P, _T], *arguments: _P.args, **named: _P.kwargs) -> _T:
    return await asyncio.to_thread(function, *arguments, **named)
