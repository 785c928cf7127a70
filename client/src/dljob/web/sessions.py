"""The viewers of the page in the cluster, each with a token of its own, which stays in memory here."""

from __future__ import annotations

import hashlib
import re
import secrets
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from dljob.api import Api
from dljob.client import Client
from dljob.config import Config
from dljob.errors import ApiError, Refused
from dljob.kinds import Kind
from dljob.web import rights
from dljob.web.viewer import NoNamespace

IDLE = 3600.0
"""Seconds without a request of the user, after which a session ends."""
LONGEST = 12 * 3600.0
"""Seconds after which a session ends in any case."""
RECHECK = 45.0
"""Seconds for which an answer on a token or a right holds; streams ask within 5 s after that."""
PRESENT = 60.0
"""Seconds for which a viewer counts as present after the last look."""
MOST = 1000
"""Sessions; of the tenants with the most, the one that was used longest ago leaves for a new one."""
MOST_OF_USER = 10
MOST_SCOPES = 10
"""Namespaces that a session follows at a time, besides all together."""
_T = TypeVar("_T")
_TOKEN = re.compile(r"[!-~]{1,32768}")
"""No character that could end a header."""
_SERVICE_ACCOUNT = "system:serviceaccount:"


@dataclass(frozen=True, slots=True)
class Watchable:
    """What a user may list and watch in a namespace."""

    confirmed: float
    used: float
    kinds: Sequence[Kind]


@dataclass(eq=False)
class Session:
    """A user with a token."""

    client: Client = field(repr=False)
    user: str
    form_key: str = field(repr=False)
    is_of_form: bool
    """Whether the user logged in at the page; otherwise a proxy sends the token with each request."""
    began: float
    used: float
    confirmed: float
    has_ended: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    scopes: OrderedDict[str, Watchable] = field(default_factory=OrderedDict)
    """By namespace, "" for all; the one that was used last is the last."""
    logs: dict[str, tuple[float, bool]] = field(default_factory=dict)
    """By namespace: when the right to read logs was asked for, and whether there is."""

    @property
    def tenant(self) -> str:
        """Who counts as one: a user, or all service accounts of a namespace, whose admin makes as many as it likes."""
        return self.user.rpartition(":")[0] if self.user.startswith(_SERVICE_ACCOUNT) else self.user


class Sessions:
    """All of them. Thread-safe. ``on_leave`` hears of each one that ends, ``on_drop`` of a namespace of one.

    ``config_of`` gives the configuration for a token.
    """

    def __init__(self, config_of: Callable[[str], Config], clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self._config_of = config_of
        self._lock = threading.Lock()
        self._secret = secrets.token_bytes(32)
        self._sessions: dict[bytes, Session] = {}
        self.on_leave: Callable[[Session], None] = lambda _: None
        self.on_drop: Callable[[Session, str], None] = lambda _, __: None

    def all(self) -> Sequence[Session]:
        """The sessions that are kept."""
        with self._lock:
            return list(self._sessions.values())

    # --- come

    def log_in(self, token: str) -> str:
        """A new session; returns its id. Raises ApiError (401 for a wrong token), Refused, ConnectionFailed."""
        session = self._new(token, is_of_form=True)
        name = secrets.token_urlsafe(32)
        self._keep(self._digest("cookie", name), session)
        return name

    def of_cookie(self, name: str) -> Session | None:
        """The session of this id, confirmed; ``None`` where there is none. Raises ApiError as :meth:`confirm`."""
        return self._found(self._digest("cookie", name))

    def of_header(self, token: str) -> Session:
        """The session of a token that came with the request. Raises as :meth:`log_in`."""
        key = self._digest("header", token)
        session = self._found(key)
        if session is None:
            session = self._keep(key, self._new(token, is_of_form=False))
        return session

    def _found(self, key: bytes) -> Session | None:
        session = self._sessions.get(key)
        if session is None or not self.is_on(session):
            return None
        self.confirm(session)
        return session

    def _new(self, token: str, *, is_of_form: bool) -> Session:
        if not _TOKEN.fullmatch(token):
            raise Refused("This is no token: it is empty, too long, or has other characters than a token.")
        client = Client(api=Api(self._config_of(token)))
        user = rights.user(client.api)
        # a proxy renews tokens, and an open form stays good
        form_key = secrets.token_urlsafe(32) if is_of_form else self._digest("form", user).hex()
        now = self.clock()
        return Session(client, user, form_key, is_of_form, began=now, used=now, confirmed=now)

    def _keep(self, key: bytes, session: Session) -> Session:
        leaving = []
        with self._lock:
            if key in self._sessions and self.is_on(self._sessions[key]):
                return self._sessions[key]  # of another request with this token, at the same time
            own = [one for one in self._sessions.values() if one.user == session.user]
            if len(own) >= MOST_OF_USER:
                leaving.append(min(own, key=lambda one: one.used))
            elif len(self._sessions) >= MOST:
                leaving.append(self._next_to_leave(session))
            self._sessions[key] = session
        for one in leaving:
            self.end(one)
        return session

    def _next_to_leave(self, coming: Session) -> Session:
        """So that a tenant with many sessions ends its own."""
        counts = Counter(one.tenant for one in (*self._sessions.values(), coming))
        most = max(counts.values())
        return min((one for one in self._sessions.values() if counts[one.tenant] == most), key=lambda one: one.used)

    # --- stay

    def is_on(self, session: Session) -> bool:
        """Whether neither an end nor a limit has come."""
        now = self.clock()
        return not session.has_ended and now - session.used < IDLE and now - session.began < LONGEST

    def touch(self, session: Session) -> None:
        """The user has asked for something."""
        session.used = self.clock()

    def confirm(self, session: Session) -> None:
        """The API server still takes the token. Raises ApiError, and ends the session with the status 401."""
        if self.clock() - session.confirmed >= RECHECK:
            with session.lock:
                if self.clock() - session.confirmed >= RECHECK:
                    self._ask(session, lambda: rights.user(session.client.api))
                    session.confirmed = self.clock()

    def watchable(self, session: Session, namespace: str) -> Sequence[Kind]:
        """The kinds that the user may list and watch there, ``RECHECK`` seconds ago at most.

        Raises ApiError, and NoNamespace for one more than ``MOST_SCOPES`` that are in use.
        """
        with session.lock:
            dropped = self._make_room(session, namespace)
            now = self.clock()
            found = session.scopes.pop(namespace, None)
            if found is None or now - found.confirmed >= RECHECK:
                kinds = self._ask(session, lambda: rights.watchable(session.client.api, namespace))
                found = Watchable(now, now, kinds)
            session.scopes[namespace] = replace(found, used=now)
        if dropped:
            self.on_drop(session, dropped)
        return found.kinds

    def _make_room(self, session: Session, namespace: str) -> str:
        """Forget the namespace that was used longest ago, if one has to go; returns it, or ""."""
        others = [name for name in session.scopes if name]
        if namespace in ("", *others) or len(others) < MOST_SCOPES:
            return ""
        for name in others:
            scope = session.scopes[name]
            if not scope.kinds or self.clock() - scope.used >= PRESENT:
                del session.scopes[name]
                return name
        raise NoNamespace("Too many namespaces are open: close some.")

    def forget(self, session: Session, namespace: str) -> None:
        """Ask again: the API server has refused what it had allowed."""
        with session.lock:
            session.scopes.pop(namespace, None)

    def reads_logs(self, session: Session, namespace: str) -> bool:
        """Whether the user may read logs there, ``RECHECK`` seconds ago at most. Raises ApiError."""
        with session.lock:
            now = self.clock()
            session.logs = {name: one for name, one in session.logs.items() if now - one[0] < RECHECK}
            if namespace not in session.logs:
                allowed = self._ask(session, lambda: rights.reads_logs(session.client.api, namespace))
                session.logs[namespace] = now, allowed
            return session.logs[namespace][1]

    def _ask(self, session: Session, question: Callable[[], _T]) -> _T:
        try:
            return question()
        except ApiError as e:
            if e.status == 401:
                self.end(session)
            raise

    # --- go

    def end(self, session: Session) -> None:
        """End a session, and what it follows."""
        session.has_ended = True
        with self._lock:
            self._sessions = {key: one for key, one in self._sessions.items() if one is not session}
        self.on_leave(session)

    def end_of_cookie(self, name: str) -> None:
        """End the session of this id, if there is one."""
        if session := self._sessions.get(self._digest("cookie", name)):
            self.end(session)

    def sweep(self) -> None:
        """End the sessions whose time is over."""
        for session in [one for one in self.all() if not self.is_on(one)]:
            self.end(session)

    def _digest(self, *parts: str) -> bytes:
        """What stands for a secret here."""
        return hashlib.blake2b("\0".join(parts).encode(), key=self._secret).digest()
