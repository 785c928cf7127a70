"""The endpoint with real TLS: who may report, what comes of it, and what a flood does."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.shared.response import ApiError
from support.polling import until

from dljob_operator.engine.progress.report import LARGEST, Report
from dljob_operator.engine.progress.reporter import PodIdentity, Reporter
from dljob_operator.engine.serving.http_server import HttpLimits, HttpServer
from dljob_operator.engine.serving.progress import certificate, endpoint
from dljob_operator.engine.serving.progress.identity import Identities
from dljob_operator.engine.serving.progress.service import _Loaded
from dljob_operator.engine.serving.rates import Rate

HALF = json.dumps({"trainerStatus": {"progressPercentage": 50}}).encode()
KEY = certificate.create("127.0.0.1")
AUDIENCE = "dljob.operator/progress"


class Tokens:
    """An API server that knows tokens ``<namespace>/<pod uid>``."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.fails = False

    def request(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        assert (method, path) == ("POST", "/apis/authentication.k8s.io/v1/tokenreviews")
        assert body["spec"]["audiences"] == [AUDIENCE]
        if self.fails:
            raise ApiError(500, "", "no etcd")
        token = body["spec"]["token"]
        self.asked.append(token)
        namespace, slash, pod = token.partition("/")
        if not slash:
            return {"status": {"authenticated": False, "error": "invalid"}}
        user = {
            "username": f"system:serviceaccount:{namespace}:default",
            "extra": {"authentication.kubernetes.io/pod-uid": [pod]} if pod else {},
        }
        return {"status": {"authenticated": True, "audiences": [AUDIENCE], "user": user}}


class Endpoint:
    def __init__(self, limits: HttpLimits = endpoint.LIMITS) -> None:
        self.tokens = Tokens()
        self.reports: list[tuple[str, Report]] = []
        self.addresses: set[str] = set()
        self.lost: list[str] = []
        answers = endpoint.ProgressEndpoint(Identities(self.tokens), self)
        self.server = HttpServer(("127.0.0.1", 0), answers.respond, _Loaded(KEY), limits, self.report_lost)
        self.server.start()
        self.tls = ssl.create_default_context(cadata=KEY.authority)
        self.tls.verify_flags |= ssl.VERIFY_X509_STRICT  # the default from Python 3.13 on

    def reporter_of(self, pod: PodIdentity) -> Reporter | None:
        if not pod.uid.startswith("pod-"):
            return None
        job = pod.uid.removeprefix("pod-")
        return Reporter(job, pod.namespace, "TFJob", f"job-{job}", f"p-{job}", "worker-0", "n", is_first=True)

    def report(self, given: Reporter, report: Report) -> None:
        self.reports.append((f"{given.namespace}/{given.name}", report))
        self.addresses.add(given.address)

    def report_lost(self, address: str) -> None:
        self.lost.append(address)

    def post(self, body: bytes = HALF, token: str | None = "team/pod-1", path: str = "/progress") -> tuple[int, Any]:
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        request = urllib.request.Request(f"https://127.0.0.1:{self.server.port}{path}", body, headers)
        try:
            with urllib.request.urlopen(request, timeout=20, context=self.tls) as response:
                return response.status, json.loads(response.read())
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read())


@pytest.fixture
def here() -> Iterator[Endpoint]:
    started = Endpoint()
    yield started
    started.server.stop()


def test_a_report_goes_to_the_job_of_its_pod_alone(here: Endpoint) -> None:
    assert here.post() == (200, {})
    named = json.dumps({"namespace": "other", "name": "job-2", "trainerStatus": {"progressPercentage": 51}}).encode()
    assert here.post(named) == (200, {})
    assert here.post(path="/progress?namespace=other&name=job-2") == (200, {})
    assert here.reports == [("team/job-1", Report(50)), ("team/job-1", Report(51)), ("team/job-1", Report(50))]


@pytest.mark.parametrize(
    ("token", "status"),
    [
        (None, 401),
        ("", 401),
        ("forged", 401),
        ("team/", 401),  # of an account, but of no pod
        ("team/other-1", 403),
    ],
)
def test_a_token_of_no_pod_of_a_job_is_refused(here: Endpoint, token: str | None, status: int) -> None:
    code, answer = here.post(token=token)
    assert (code, answer["kind"], answer["code"]) == (status, "Status", status)
    assert here.reports == []


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        (b'{"trainerStatus": {"progressPercentage": 101}}', 422, "progressPercentage must be a number from 0 to 100"),
        (b"no json", 422, "Expecting value"),
        (b"{}", 200, ""),
        (b" " * LARGEST, 422, "Expecting value"),
    ],
)
def test_bad_bodies(here: Endpoint, body: bytes, status: int, words: str) -> None:
    code, answer = here.post(body)
    assert code == status
    assert words in answer.get("message", "")
    assert here.reports == []


def test_a_body_of_a_megabyte_is_not_read(here: Endpoint) -> None:
    with closing(
        http.client.HTTPSConnection("127.0.0.1", here.server.port, timeout=20, context=here.tls)
    ) as connection:
        connection.putrequest("POST", "/progress")
        connection.putheader("Content-Length", str(1024 * 1024))
        connection.endheaders()
        assert connection.getresponse().status == 413
    assert here.tokens.asked == []


@pytest.mark.parametrize(("name", "value"), [("Transfer-Encoding", "chunked"), ("Content-Length", "٣"), ("X", "1")])
def test_a_body_without_a_length_is_refused(here: Endpoint, name: str, value: str) -> None:
    with closing(
        http.client.HTTPSConnection("127.0.0.1", here.server.port, timeout=20, context=here.tls)
    ) as connection:
        connection.putrequest("POST", "/progress")
        connection.putheader(name, value.encode())
        connection.endheaders()
        assert connection.getresponse().status == 411


@pytest.mark.parametrize(("path", "method", "status"), [("/", "POST", 404), ("/progress", "GET", 405)])
def test_other_requests(here: Endpoint, path: str, method: str, status: int) -> None:
    with closing(
        http.client.HTTPSConnection("127.0.0.1", here.server.port, timeout=20, context=here.tls)
    ) as connection:
        connection.request(method, path, headers={"Content-Length": "0"} if method == "POST" else {})
        assert connection.getresponse().status == status


def test_a_token_is_reviewed_once(here: Endpoint) -> None:
    for _ in range(5):
        here.post()
        here.post(token="forged")
    assert here.tokens.asked == ["team/pod-1", "forged"]


def test_a_flood_from_one_address_is_cut() -> None:
    here = Endpoint(HttpLimits(body_bytes=LARGEST, per_address=Rate(0.001, 3), in_all=Rate(300, 600)))
    try:
        codes = []
        for _ in range(20):
            try:
                codes.append(here.post()[0])
            except (OSError, http.client.HTTPException):
                codes.append(0)
        assert codes == [200] * 3 + [0] * 17
        assert (here.addresses, here.lost) == ({"127.0.0.1"}, ["127.0.0.1"] * 17)
    finally:
        here.server.stop()


@pytest.mark.parametrize("limits", [{"in_all": Rate(0.001, 1)}, {"connections": 1}])
def test_a_report_that_a_limit_for_all_closes_may_be_of_any_job(limits: dict[str, Any]) -> None:
    here = Endpoint(HttpLimits(body_bytes=LARGEST, **limits))
    try:
        with closing(socket.create_connection(("127.0.0.1", here.server.port), timeout=20)):
            with contextlib.suppress(OSError, http.client.HTTPException):
                here.post()
            until(lambda: here.lost == [""])
    finally:
        here.server.stop()


def test_a_report_of_which_the_pod_cannot_be_found_out_may_be_of_any_job(here: Endpoint) -> None:
    here.tokens.fails = True
    assert here.post()[0] == 503
    assert here.lost == [""]


def test_what_is_before_the_first_request_is_lost() -> None:
    here = Endpoint()
    here.server.stop()
    server = endpoint.serve(Identities(here.tokens), here, ("127.0.0.1", 0), _Loaded(KEY))
    server.stop()
    assert here.lost == [""]
