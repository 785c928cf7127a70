"""The watches of all viewers in the cluster: one for those who may list and watch the same kinds in the same scope.

What a watch has seen is shown to a viewer only after the API server has confirmed, for the viewer's own token, the
right to list and to watch each of its kinds there. The watch itself runs with the token of one viewer who is present.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence

from dljob.client import Change
from dljob.errors import ApiError, Refused
from dljob.kinds import Kind
from dljob.web.live import LiveJobs
from dljob.web.sessions import PRESENT, Session, Sessions

MOST = 200
"""Watches."""
MOST_OF_TENANT = MOST // 4
MOST_OF_NAMESPACE = 10
"""Each for viewers of other rights."""
_PAUSE = 0.1
_Key = tuple[str, frozenset[str]]
"""Namespace, "" for all, and kinds."""


class _Denied(Exception):
    """A list has left kinds out."""


class Feed:
    """The jobs of some kinds in a scope, for the viewers who are present."""

    def __init__(self, namespace: str, kinds: Sequence[Kind], sessions: Sessions, first: Session) -> None:
        self.namespace = namespace
        self._kinds = kinds
        self._sessions = sessions
        self._seen = {first: sessions.clock()}
        self.live = LiveJobs(self._watch)

    def touch(self, session: Session) -> None:
        """The viewer is present."""
        self._seen[session] = self._sessions.clock()

    def remove(self, session: Session) -> None:
        """The viewer has left."""
        self._seen.pop(session, None)

    def sweep(self) -> None:
        """Remove who is no longer present."""
        now = self._sessions.clock()
        for session, seen in list(self._seen.items()):
            if now - seen >= PRESENT or not self._sessions.is_on(session):
                self.remove(session)

    @property
    def viewers(self) -> Sequence[Session]:
        """Who is present; the watch runs with the token of the first whose session is on."""
        return list(self._seen)

    def is_of(self, tenant: str) -> bool:
        """Whether a viewer of the tenant is present."""
        return any(one.tenant == tenant for one in self.viewers)

    def _watch(self, stop: Callable[[], bool]) -> Iterator[Change | None]:
        leader = next(filter(self._sessions.is_on, self.viewers), None)
        if leader is None:  # it is about to be closed
            time.sleep(_PAUSE)
            return
        is_over = lambda: stop() or leader not in self._seen or not self._sessions.is_on(leader)  # noqa: E731
        try:
            yield from leader.client.follow(self._kinds, self.namespace or None, stop=is_over, tell=_refuse)
        except (_Denied, ApiError) as e:
            if isinstance(e, ApiError) and e.status not in (401, 403):
                # the message may name the user
                raise Refused(f"The API server does not list the jobs at the moment: HTTP {e.status}.") from None
            self.remove(leader)
            self._sessions.forget(leader, self.namespace)
        time.sleep(_PAUSE)  # whatever ends it at once


def _refuse(problems: Sequence[str]) -> None:
    if problems:
        raise _Denied


class Hub:
    """All watches. Thread-safe."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions
        self._lock = threading.Lock()
        self._feeds: dict[_Key, Feed] = {}
        sessions.on_leave = self.leave
        sessions.on_drop = self.leave

    @property
    def feeds(self) -> Sequence[Feed]:
        """The watches that run."""
        return list(self._feeds.values())

    def join(self, session: Session, namespace: str, kinds: Sequence[Kind]) -> LiveJobs:
        """The jobs, for a viewer whose right to them was confirmed. Raises Refused."""
        key = namespace, frozenset(kind.resource for kind in kinds)
        with self._lock:
            if not self._sessions.is_on(session):
                raise Refused("The session has ended: log in again.")
            for of, other in self._feeds.items():
                if other.namespace == namespace and of != key:  # the rights were others
                    other.remove(session)
            feed = self._feeds.get(key)
            if feed is not None:
                feed.touch(session)
            self._close_empty()
            if feed is None or feed.live.is_closed:
                self._check_limits(session, namespace)
                feed = self._feeds[key] = Feed(namespace, kinds, self._sessions, session)
            return feed.live

    def _check_limits(self, session: Session, namespace: str) -> None:
        feeds = self._feeds.values()
        if sum(one.namespace == namespace for one in feeds) >= MOST_OF_NAMESPACE:
            raise Refused("Too many users of other rights watch these jobs: try again in a minute.")
        if len(feeds) >= MOST or sum(one.is_of(session.tenant) for one in feeds) >= MOST_OF_TENANT:
            raise Refused("Too many namespaces are being watched: try again in a minute.")

    def leave(self, session: Session, namespace: str | None = None) -> None:
        """The viewer follows nothing more, or nothing of this scope."""
        with self._lock:
            for feed in self._feeds.values():
                if namespace in (None, feed.namespace):
                    feed.remove(session)
            self._close_empty()

    def sweep(self) -> None:
        """End the watches without viewers."""
        with self._lock:
            for feed in self._feeds.values():
                feed.sweep()
            self._close_empty()

    def close(self) -> None:
        """End all."""
        with self._lock:
            for feed in self._feeds.values():
                feed.live.close()
            self._feeds.clear()

    def _close_empty(self) -> None:
        for key, feed in list(self._feeds.items()):
            if not feed.viewers:
                feed.live.close()
                del self._feeds[key]
