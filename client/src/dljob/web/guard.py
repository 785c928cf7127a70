"""Who may see the page: the one who was given its address, from a browser on this machine, and no other site.

A process of another user may connect to 127.0.0.1 too, and a page of another site may let the browser send requests
there. So every request needs a cookie, which the address with the token gives once. The name in Host must be that of
this machine, against names that resolve to it. Every change needs a value that only this page has shown.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Awaitable, Callable, Container, Sequence

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dljob.web.forms import same
from dljob.web.viewer import Viewer, let_in

_COOKIE = "dljob"
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",  # with no-referrer, browsers send a form of this page with "Origin: null"
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
SAFE = ("GET", "HEAD")


class Keys:
    """The secrets of one run."""

    def __init__(self) -> None:
        self.token = secrets.token_urlsafe(32)
        """Of the address; it is taken once."""
        self.session = secrets.token_urlsafe(32)
        """Of the cookie."""
        self.form = secrets.token_urlsafe(32)
        """Of the forms."""
        self._is_taken = False

    def take(self, token: str) -> bool:
        """Whether this is the token, for the first time."""
        if self._is_taken or not same(token, self.token):
            return False
        self._is_taken = True
        return True


class Guard:
    """Wraps the application."""

    def __init__(self, app: ASGIApp, viewer: Viewer, keys: Keys, hosts: Sequence[str]) -> None:
        self._app = app
        self._viewer = viewer
        self._keys = keys
        self._hosts = frozenset(hosts)
        """Values of Host, with the port."""
        self.cookie = of_port(_COOKIE, hosts[0])

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer in place of the application what it must not see."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        refusal = await self._refusal(Request(scope, receive))
        let_in(scope, self._viewer)
        await (refusal or self._app)(scope, receive, with_headers(send))

    async def _refusal(self, request: Request) -> Response | None:
        if request.headers.get("host", "") not in self._hosts:
            return PlainTextResponse("This name is not the page's.\n", 421)
        if request.url.path == "/login" and request.method == "GET":
            return self._login(request.query_params.get("token", ""))
        if not same(request.cookies.get(self.cookie, ""), self._keys.session):
            return PlainTextResponse("Open the address that `dljob ui` has printed; it is good for one browser.\n", 401)
        if request.method not in SAFE and not is_own(request, self._hosts):
            return PlainTextResponse("This request comes from another site.\n", 403)
        return None

    def _login(self, token: str) -> Response:
        if not self._keys.take(token):
            return PlainTextResponse("The address was used before, or is wrong: start `dljob ui` again.\n", 403)
        response = RedirectResponse("/", 303)
        # lax: the browser comes from a file, and no GET changes anything
        response.set_cookie(self.cookie, self._keys.session, httponly=True, samesite="lax", path="/")
        return response


def of_port(cookie: str, host: str) -> str:
    """The name of a cookie for the port of ``host``, if it has one: pages of other ports get all cookies of a name."""
    port = re.search(r":(\d+)$", host, re.ASCII)
    return f"{cookie}-{port[1]}" if port else cookie


def is_own(request: Request, hosts: Container[str]) -> bool:
    """By what browsers say of the origin; the value of the form is asked for besides."""
    origin = request.headers.get("origin")
    site = request.headers.get("sec-fetch-site", "same-origin")
    return site == "same-origin" and (origin is None or origin.partition("://")[2] in hosts)


def with_headers(send: Send) -> Callable[[Message], Awaitable[None]]:
    async def sends(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers[name] = value
        await send(message)

    return sends
