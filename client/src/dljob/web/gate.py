"""Who may see the page in the cluster: who has a token that the API server takes, from a browser at the page's names.

The token comes with each request from a proxy, or once from a form; then a cookie with a random id stands for it.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from contextlib import ExitStack

from anyio import to_thread
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from dljob.client import Client
from dljob.errors import ApiError, DljobError, Refused
from dljob.web import limits, rendering, viewer
from dljob.web.forms import fields, same
from dljob.web.guard import SAFE, is_own, of_port, with_headers
from dljob.web.hub import Hub
from dljob.web.limits import AtOnce
from dljob.web.sessions import Session, Sessions
from dljob.web.viewer import NoNamespace

HEALTH = "/healthz"
_COOKIE, _LOGIN_COOKIE = "dljob", "dljob-login"
_LARGEST_LOGIN = 100_000
"""Bytes of the form with a token."""
_THREADS = 200
"""Requests that wait for the API server at a time."""
_PATH = re.compile(r"/(?!/)[\w/.%~:-]*(\?[\w=&%.+~:-]*)?", re.ASCII)
"""A page of this site, as the target after the login."""
_NAMESPACE = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_FIRST_LIST = 10.0
_WRONG_TOKEN = "The cluster does not accept this token: it is wrong or has expired."
_ENDED = "The session has ended: log in again."


class ClusterViewer:
    """The user of a session."""

    patience = _FIRST_LIST

    def __init__(self, session: Session, all_sessions: Sessions, hub: Hub) -> None:
        self._session = session
        self._sessions = all_sessions
        self._hub = hub

    @property
    def client(self) -> Client:
        return self._session.client

    @property
    def form_key(self) -> str:
        return self._session.form_key

    @property
    def title(self) -> str:
        return self._session.user

    @property
    def may_leave(self) -> bool:
        return self._session.is_of_form

    @property
    def has_left(self) -> bool:
        return not self._sessions.is_on(self._session)

    def scope(self, namespace: str) -> viewer.Scope:
        if namespace and not _NAMESPACE.fullmatch(namespace):
            raise NoNamespace(f"{namespace} is no name of a namespace.")
        kinds = self._sessions.watchable(self._session, namespace)
        where = f"in the namespace {namespace}" if namespace else "in all namespaces"
        if not kinds:
            self._hub.leave(self._session, namespace)
            raise NoNamespace(f"You may not list and watch jobs {where}.")
        hidden = viewer.hidden_sentence(kinds, where)
        return viewer.Scope(self._hub.join(self._session, namespace, kinds), hidden)

    def scope_with(self, namespace: str) -> viewer.Scope:
        return self.scope("" if self._sessions.watchable(self._session, "") else namespace)

    def reads_logs(self, namespace: str) -> bool:
        self._sessions.confirm(self._session)
        return self._sessions.reads_logs(self._session, namespace)

    def home(self, namespace: str) -> str:
        try:
            sees_all = bool(self._sessions.watchable(self._session, ""))
        except DljobError:
            sees_all = False
        return "/" if sees_all else f"/?namespace={namespace}"


class Gate:
    """Wraps the application. ``hosts`` are the values of Host; ``secure`` cookies travel by HTTPS alone."""

    def __init__(
        self, app: ASGIApp, all_sessions: Sessions, hub: Hub, hosts: Sequence[str], *, secure: bool = True
    ) -> None:
        self._app = app
        self._sessions = all_sessions
        self._hub = hub
        self._hosts = frozenset(host.lower() for host in hosts)
        self._secure = secure
        self._prefix = "__Host-" if secure else ""
        self._requests = AtOnce(limits.MOST_REQUESTS)
        self._of_users = AtOnce(limits.MOST_OF_USER)
        self._of_tenants = AtOnce(limits.MOST_OF_TENANT)
        self._actions_of_users = AtOnce(limits.MOST_ACTIONS_OF_USER)
        self._actions_of_tenants = AtOnce(limits.MOST_ACTIONS_OF_TENANT)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer in place of the application what it must not see."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                to_thread.current_default_thread_limiter().total_tokens = _THREADS
                await self._app(scope, receive, send)
            return
        send = with_headers(send)
        if scope["path"] == HEALTH:
            await PlainTextResponse("ok\n")(scope, receive, send)
            return
        with self._requests.one() as has_room:
            if has_room:
                await self._answer(Request(scope, receive), receive, send)
            else:
                await PlainTextResponse("The page is busy: try again in a minute.\n", 503)(scope, receive, send)

    async def _answer(self, request: Request, receive: Receive, send: Send) -> None:
        scope = request.scope
        path = str(scope["path"])
        if request.headers.get("host", "").lower() not in self._hosts:
            await PlainTextResponse("This name is not the page's: start it with --host.\n", 421)(scope, receive, send)
        elif path.startswith(f"{rendering.STATIC}/") and request.method in SAFE:
            await self._app(scope, receive, send)
        elif request.method not in SAFE and not is_own(request, self._hosts):
            await PlainTextResponse("This request comes from another site.\n", 403)(scope, receive, send)
        elif path == "/login":
            await (await self._login(request))(scope, receive, send)
        else:
            await self._enter(request, receive, send)

    async def _enter(self, request: Request, receive: Receive, send: Send) -> None:
        """Let a request with a session in."""
        scope = request.scope
        found = await self._session(request)
        if isinstance(found, Response):
            await found(scope, receive, send)
        elif scope["path"] == "/logout":
            await (await self._logout(request, found))(scope, receive, send)
        else:
            if not (_is_stream(request) or "x-live" in request.headers):
                self._sessions.touch(found)  # of the user, not of a page that keeps itself up to date
            viewer.let_in(scope, ClusterViewer(found, self._sessions, self._hub))
            with ExitStack() as until_answered:
                for limit, key, sentence in self._limits(request, found):
                    if not until_answered.enter_context(limit.one(key)):
                        await PlainTextResponse(f"{sentence}\n", 429)(scope, receive, send)
                        return
                await self._app(scope, receive, send)

    def _limits(self, request: Request, session: Session) -> Sequence[tuple[AtOnce, str, str]]:
        """With what each is counted by, and its sentence."""
        pages = "You have too many pages open: close some."
        found = [(self._of_users, session.user, pages), (self._of_tenants, session.tenant, pages)]
        if request.method not in SAFE:
            actions = "Your last actions are still being done: wait for them."
            found += [(self._actions_of_users, session.user, actions)]
            found += [(self._actions_of_tenants, session.tenant, actions)]
        return found

    async def _session(self, request: Request) -> Session | Response:
        """Whose request it is, or why it is not let in. A token in the header decides, whatever the cookie says."""
        headers = request.headers.getlist("authorization")
        tokens = [one.partition(" ")[2].strip() for one in headers if one[:7].lower() == "bearer "]
        try:
            if len(tokens) > 1:
                raise Refused("The request has several tokens.")
            if tokens:
                return await run_in_threadpool(self._sessions.of_header, tokens[0])
            found = await run_in_threadpool(self._sessions.of_cookie, request.cookies.get(self._cookie(request), ""))
        except DljobError as e:
            return self._refusal(request, *_said(e), form=not tokens)
        return found or self._refusal(request, _ENDED, 401)

    def _refusal(self, request: Request, sentence: str, status: int, *, form: bool = True) -> Response:
        """With the form to log in for a page, in plain text for what is no page."""
        headers = {"WWW-Authenticate": "Bearer"} if status == 401 else None
        if request.method not in SAFE or _is_stream(request):
            return PlainTextResponse(f"{sentence}\n", status, headers)
        if not form or status != 401:
            return HTMLResponse(rendering.text("error.html", sentence=sentence), status, headers)
        target = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        is_first = sentence == _ENDED and not request.cookies.get(self._cookie(request))
        response = self._form(request, target, "" if is_first else sentence, status)
        response.headers.update(headers or {})
        return response

    # --- in and out

    def _form(self, request: Request, target: str = "/", sentence: str = "", status: int = 200) -> Response:
        cookie = self._cookie(request, _LOGIN_COOKIE)
        key = request.cookies.get(cookie, "")
        if len(key) != 43:
            key = secrets.token_urlsafe(32)
        page = rendering.text("login.html", sentence=sentence, login_key=key, to=_page_of(target))
        response = HTMLResponse(page, status)
        self._set(response, cookie, key)
        return response

    async def _login(self, request: Request) -> Response:
        if request.method != "POST":
            return self._form(request)
        given = await fields(request, _LARGEST_LOGIN)
        target = _page_of(given.get("to", "/"))
        key = request.cookies.get(self._cookie(request, _LOGIN_COOKIE), "")
        if not key or not same(given.get("key", ""), key):
            return self._form(request, target, "This form is not of this page: try again.", 403)
        try:
            name = await run_in_threadpool(self._sessions.log_in, given.get("token", "").strip())
        except DljobError as e:
            sentence, status = _said(e)
            return self._form(request, target, _WRONG_TOKEN if status == 401 else sentence, status)
        await run_in_threadpool(self._end, request)
        response = RedirectResponse(target, 303)
        self._set(response, self._cookie(request), name)
        self._set(response, self._cookie(request, _LOGIN_COOKIE), "")
        return response

    async def _logout(self, request: Request, session: Session) -> Response:
        if request.method != "POST":
            return PlainTextResponse("Log out with the button of a page.\n", 405, {"Allow": "POST"})
        if not same((await fields(request)).get("key", ""), session.form_key):
            return HTMLResponse(rendering.text("error.html", sentence="This form is not of this page."), 403)
        await run_in_threadpool(self._sessions.end, session)
        response = RedirectResponse("/login", 303)
        self._set(response, self._cookie(request), "")
        return response

    def _end(self, request: Request) -> None:
        """The session that the browser had before, if any."""
        self._sessions.end_of_cookie(request.cookies.get(self._cookie(request), ""))

    def _cookie(self, request: Request, name: str = _COOKIE) -> str:
        return self._prefix + of_port(name, request.headers["host"])

    def _set(self, response: Response, name: str, value: str) -> None:
        """A cookie until the browser is closed; an empty value deletes it."""
        response.set_cookie(
            name,
            value,
            max_age=None if value else 0,
            path="/",
            secure=self._secure,
            httponly=True,
            samesite="lax",  # a link to a job in a chat works; no GET changes anything
        )


def _is_stream(request: Request) -> bool:
    """``/live``, ``/jobs/NAMESPACE/KIND/NAME/live`` or ``…/logs/live``, but not the page of a job with this name."""
    parts = request.scope["path"].split("/")[1:]
    return parts[-1] == "live" and len(parts) in (1, 5, 6)


def _page_of(target: str) -> str:
    return target if _PATH.fullmatch(target) and not target.startswith("/log") else "/"


def _said(error: DljobError) -> tuple[str, int]:
    """The sentence and the status."""
    if isinstance(error, ApiError):
        return (_WRONG_TOKEN, 401) if error.status == 401 else (str(error), 502)
    return str(error), 400 if isinstance(error, Refused) else 502
