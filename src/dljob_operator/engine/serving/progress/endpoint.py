"""The endpoint to which programs report: it takes a report for the job of the pod whose token comes with it.

A program never names a job, so it cannot report for another one. Its reports cost the operator little: more connections
than a cluster of well-behaved programs opens are closed before their TLS handshake, and a report that comes sooner than
another is due is answered like any other, since programs send a refused one again.
"""

from __future__ import annotations

import json
from dataclasses import replace
from http import HTTPStatus
from typing import Protocol

from ansible_collections.dljob.operator.plugins.module_utils.shared.progress import PATH

from dljob_operator.engine.progress.report import LARGEST, Report, parse
from dljob_operator.engine.progress.reporter import PodIdentity, Reporter
from dljob_operator.engine.serving.certificate import TlsContexts
from dljob_operator.engine.serving.http_server import (
    HttpLimits,
    HttpRequest,
    HttpResponse,
    HttpServer,
    parse_address,
)
from dljob_operator.engine.serving.progress.identity import Identities
from dljob_operator.engine.serving.rates import Rate

LIMITS = HttpLimits(
    connections=256,
    body_bytes=LARGEST,
    per_address=Rate(20, 100),
    in_all=Rate(300, 600),
)
"""A program reports every five seconds at most. Pods of one address are those with the network of one node."""
_EXAMPLES = ":8444, or 10.0.0.1:8444"


class Jobs(Protocol):
    """Knows who reports and keeps what they report; InformerSet does."""

    def reporter_of(self, pod: PodIdentity) -> Reporter | None:
        """Who reports, None for a pod that is of no job."""

    def report(self, given: Reporter, report: Report) -> None: ...

    def report_lost(self, address: str) -> None:
        """A report from that address may have been lost, or for "" any one."""


class ProgressEndpoint:
    """Answers requests; it is safe to use from several threads. ``jobs`` gets each report."""

    def __init__(self, identities: Identities, jobs: Jobs) -> None:
        self._identities = identities
        self._jobs = jobs

    def respond(self, request: HttpRequest) -> HttpResponse:
        if request.path != PATH:
            return _failure(HTTPStatus.NOT_FOUND, f"programs report to {PATH}")
        if request.method != "POST":
            return _failure(HTTPStatus.METHOD_NOT_ALLOWED, "send a report with POST")
        pod = self._identities.of(request.headers.get("authorization", ""))
        if pod is HTTPStatus.SERVICE_UNAVAILABLE:
            self._jobs.report_lost("")
        if isinstance(pod, HTTPStatus):
            return _failure(pod, "the token is not that of a pod for this endpoint")
        try:
            report = parse(request.body)
        except ValueError as error:
            return _failure(HTTPStatus.UNPROCESSABLE_ENTITY, str(error))
        reporter = self._jobs.reporter_of(pod)
        if reporter is None:
            return _failure(HTTPStatus.FORBIDDEN, "the pod of the token is of no job of this operator")
        if report is not None:
            self._jobs.report(replace(reporter, address=request.address), report)
        return _response(HTTPStatus.OK, {})


def address_of(text: str) -> tuple[str, int]:
    """Where to serve: "host:port", or ":port" for all interfaces. Raises ValueError for another text."""
    return parse_address("--progress-bind-address", text, _EXAMPLES)


def serve(identities: Identities, jobs: Jobs, address: tuple[str, int], certificate: TlsContexts) -> HttpServer:
    """Answer at `address` from now on. Raises OSError where that is in use."""
    server = HttpServer(address, ProgressEndpoint(identities, jobs).respond, certificate, LIMITS, jobs.report_lost)
    server.start()
    jobs.report_lost("")  # those of before
    return server


def _failure(status: HTTPStatus, message: str) -> HttpResponse:
    """As the API server, and Trainer's endpoint, describe a failure."""
    body = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "code": status.value}
    return _response(status, body)


def _response(status: HTTPStatus, document: object) -> HttpResponse:
    return HttpResponse(status, json.dumps(document).encode(), {"Content-Type": "application/json"})
