"""Serve /metrics, with TLS and authentication where the administrator configured them."""

from __future__ import annotations

from collections.abc import Iterable
from http import HTTPStatus
from typing import Any, Protocol

from prometheus_client import CollectorRegistry, make_wsgi_app

from dljob_operator.engine.serving.certificate import Certificate
from dljob_operator.engine.serving.http_server import HttpRequest, HttpResponse, HttpServer, parse_address

_OFF = ("", "0")
_PATH = "/metrics"
_EXAMPLES = ":8080, 127.0.0.1:8080, or 0 for none"


class Access(Protocol):
    """Decides who may read; MetricsAccess does."""

    def check(self, authorization: str, path: str) -> HTTPStatus: ...


def serve_metrics(
    registry: CollectorRegistry, address: str, certificate: Certificate | None = None, access: Access | None = None
) -> HttpServer | None:
    """Serve at `address` ("host:port", ":port" for all interfaces); "0" or "" disables it, and None is returned.

    Raises ValueError for another address.
    """
    if address in _OFF:
        return None
    exposition: Any = make_wsgi_app(registry)

    def respond(request: HttpRequest) -> HttpResponse:
        if access is not None:
            status = access.check(request.headers.get("authorization", ""), request.path)
            if status is not HTTPStatus.OK:
                return _refusal(status)
        if request.path != _PATH:
            return HttpResponse(HTTPStatus.NOT_FOUND, f"{_PATH}\n".encode())
        return _through_wsgi(exposition, request)

    server = HttpServer(parse_address("--metrics-bind-address", address, _EXAMPLES), respond, certificate)
    server.start()
    return server


def _refusal(status: HTTPStatus) -> HttpResponse:
    plain = {"Content-Type": "text/plain; charset=utf-8"}
    more = {"WWW-Authenticate": "Bearer"} if status is HTTPStatus.UNAUTHORIZED else {}
    return HttpResponse(status, f"{status.phrase}\n".encode(), {**plain, **more})


def _through_wsgi(application: Any, request: HttpRequest) -> HttpResponse:
    """prometheus_client's own application chooses the format and compresses."""
    started: list[tuple[str, list[tuple[str, str]]]] = []
    environ = {
        "REQUEST_METHOD": "GET",
        "PATH_INFO": request.path,
        "QUERY_STRING": request.query,
        "HTTP_ACCEPT": request.headers.get("accept", ""),
        "HTTP_ACCEPT_ENCODING": request.headers.get("accept-encoding", ""),
    }
    chunks: Iterable[bytes] = application(environ, lambda status, headers: started.append((status, headers)))
    body = b"".join(chunks)
    status, headers = started[0]
    return HttpResponse(int(status.split(" ")[0]), body, dict(headers))
