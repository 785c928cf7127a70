"""/metrics over the network: its format, TLS, and who may read it."""

from __future__ import annotations

import gzip
import http.client
import ssl
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.shared.response import ApiError
from support.certificates import write_certificate

from dljob_operator import cli
from dljob_operator.engine.kube import ApiConnectionError
from dljob_operator.engine.serving.certificate import Certificate
from dljob_operator.engine.serving.http_server import HttpServer
from dljob_operator.engine.serving.metrics import Metrics
from dljob_operator.engine.serving.metrics_access import MetricsAccess
from dljob_operator.engine.serving.metrics_server import serve_metrics

READER = {
    "username": "system:serviceaccount:monitoring:prometheus",
    "uid": "u",
    "groups": ["a", "b"],
    "extra": {"k": ["v"]},
}


class Api:
    """A fake API server: the users by token, and who of them may read. It records the requests."""

    def __init__(self) -> None:
        self.users: dict[str, Mapping[str, Any]] = {"good": READER, "other": {"username": "tenant"}}
        self.asked: list[tuple[str, Any]] = []
        self.error: Exception | None = None

    def request(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        assert method == "POST"
        if self.error:
            raise self.error
        spec = body["spec"]
        assert body["apiVersion"] == "/".join(path.split("/")[2:4])
        self.asked.append((body["kind"], spec))
        if path == "/apis/authentication.k8s.io/v1/tokenreviews":
            user = self.users.get(spec["token"])
            return {"status": {"authenticated": True, "user": user} if user else {"error": "invalid"}}
        assert path == "/apis/authorization.k8s.io/v1/subjectaccessreviews"
        return {"status": {"allowed": spec["user"] == READER["username"]}}


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def served(stack: ExitStack, *arguments: Any) -> HttpServer:
    metrics = Metrics()
    metrics.watch(lambda: 7)
    server = serve_metrics(metrics.registry, "127.0.0.1:0", *arguments)
    assert server is not None
    stack.callback(server.stop)
    return server


def get(server: HttpServer, path: str = "/metrics", trust: Path | None = None, **headers: str) -> tuple[int, bytes]:
    if trust is None:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    else:
        context = ssl.create_default_context(cafile=str(trust))
        connection = http.client.HTTPSConnection("localhost", server.port, timeout=20, context=context)
    with closing(connection):
        connection.request("GET", path, headers={name.replace("_", "-"): value for name, value in headers.items()})
        response = connection.getresponse()
        return response.status, response.read()


def test_it_is_served_in_prometheus_format(stack: ExitStack) -> None:
    server = served(stack)
    status, text = get(server)
    assert status == 200
    assert b"dljob_queue_jobs 7.0" in text
    assert b"process_cpu_seconds_total" in text
    assert b"dljob_queue_jobs 7.0" in gzip.decompress(get(server, Accept_Encoding="gzip")[1])
    assert b"process_cpu" not in get(server, "/metrics?name[]=dljob_queue_jobs")[1]
    assert get(server, Accept="application/openmetrics-text; version=1.0.0")[1].endswith(b"# EOF\n")
    assert get(server, "/")[0] == 404


@pytest.mark.parametrize("address", ["0", ""])
def test_nowhere(address: str) -> None:
    assert serve_metrics(Metrics().registry, address) is None


def test_an_address_without_a_port_is_reported() -> None:
    with pytest.raises(ValueError, match=r"--metrics-bind-address: 'localhost' has no port; write :8080"):
        serve_metrics(Metrics().registry, "localhost")


def test_who_may_read_over_tls(stack: ExitStack, tmp_path: Path) -> None:
    certificate, key = write_certificate(tmp_path)
    server = served(stack, Certificate(certificate, key), MetricsAccess(Api()))

    def status(**headers: str) -> int:
        return get(server, trust=certificate, **headers)[0]

    assert status() == 401
    assert status(Authorization="Basic Z29vZDpnb29k") == 401
    assert status(Authorization="Bearer bad") == 401
    assert status(Authorization="Bearer other") == 403
    assert status(Authorization="Bearer good") == 200
    assert get(server, "/", certificate)[0] == 401, "nobody learns which paths there are"


@pytest.mark.parametrize(
    ("authorization", "status", "challenge"), [("Bearer bad", 401, "Bearer"), ("Bearer other", 403, None)]
)
def test_only_a_reader_without_a_valid_token_is_asked_for_one(
    stack: ExitStack, authorization: str, status: int, challenge: str | None
) -> None:
    """RFC 9110: a response 401 names the scheme."""
    server = served(stack, None, MetricsAccess(Api()))
    with closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)) as connection:
        connection.request("GET", "/metrics", headers={"Authorization": authorization})
        response = connection.getresponse()
        assert (response.status, response.headers["WWW-Authenticate"]) == (status, challenge)
        assert response.headers["Content-Type"] == "text/plain; charset=utf-8"
        assert response.read() == f"{HTTPStatus(status).phrase}\n".encode()


def test_the_api_server_gets_the_whole_user_and_the_path() -> None:
    api = Api()
    assert MetricsAccess(api).check("bearer good", "/metrics") is HTTPStatus.OK
    given = {name: value for name, value in READER.items() if name != "username"}
    wanted = {"user": READER["username"], "nonResourceAttributes": {"path": "/metrics", "verb": "get"}, **given}
    assert api.asked == [("TokenReview", {"token": "good"}), ("SubjectAccessReview", wanted)]


def test_a_result_is_kept_for_a_short_time() -> None:
    api, now = Api(), [0.0]
    access = MetricsAccess(api, lambda: now[0])

    def requests_for(token: str) -> int:
        before = len(api.asked)
        access.check(f"Bearer {token}", "/metrics")
        return len(api.asked) - before

    assert [requests_for("good"), requests_for("good"), requests_for("bad"), requests_for("bad")] == [2, 0, 1, 0]
    now[0] = 9.9
    assert [requests_for("good"), requests_for("bad")] == [0, 0]
    now[0] = 10.0
    assert [requests_for("good"), requests_for("bad")] == [0, 1]
    now[0] = 59.9
    assert requests_for("good") == 0
    assert access.check("Bearer good", "/metrics") is HTTPStatus.OK
    now[0] = 60.0
    del api.users["good"]
    assert access.check("Bearer good", "/metrics") is HTTPStatus.UNAUTHORIZED
    for number in range(255):
        assert requests_for(str(number)) == 1
    assert requests_for("good") == 0, "what was asked again is new again"
    for number in range(1000):
        access.check(f"Bearer {number}", "/metrics")
    assert requests_for("999") == 0
    assert sum(requests_for(str(number)) for number in range(744, 1000)) == 0
    assert requests_for("743") == 1, "256 are kept"


@pytest.mark.parametrize("authorization", ["", "good", "Bearer", "Bearer  ", "Basic good"])
def test_without_a_bearer_token_the_api_server_is_not_asked(authorization: str) -> None:
    api = Api()
    assert MetricsAccess(api).check(authorization, "/metrics") is HTTPStatus.UNAUTHORIZED
    assert api.asked == []


@pytest.mark.parametrize(
    "status",
    [
        {"authenticated": False, "user": READER},
        {"user": READER},
        {"authenticated": True, "user": {**READER, "username": ""}},
        {"authenticated": True, "user": None},
        {"authenticated": True},
        {},
        None,
    ],
    ids=str,
)
def test_a_token_whose_user_the_api_server_does_not_confirm_is_not_valid(status: dict[str, Any] | None) -> None:
    class Reviews(Api):
        def request(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
            return {"status": {"allowed": True}} if body["kind"] != "TokenReview" else {"status": status}

    assert MetricsAccess(Reviews()).check("Bearer good", "/metrics") is HTTPStatus.UNAUTHORIZED


@pytest.mark.parametrize("status", [{"allowed": "yes"}, {"denied": False}, {}, None], ids=str)
def test_who_is_not_expressly_allowed_may_not_read(status: dict[str, Any] | None) -> None:
    class Reviews(Api):
        def request(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
            is_user = body["kind"] == "TokenReview"
            return super().request(method, path, body) if is_user else {"status": status}

    assert MetricsAccess(Reviews()).check("Bearer good", "/metrics") is HTTPStatus.FORBIDDEN


@pytest.mark.parametrize(
    "error",
    [ApiError(403, "Forbidden", "cannot create resource tokenreviews"), ApiConnectionError("no answer")],
    ids=["refused", "no answer"],
)
def test_nobody_reads_while_the_api_server_cannot_tell(error: Exception, caplog: pytest.LogCaptureFixture) -> None:
    api = Api()
    access = MetricsAccess(api)
    api.error = error
    assert access.check("Bearer good", "/metrics") is HTTPStatus.SERVICE_UNAVAILABLE
    assert [record.__dict__["dljob_fields"] for record in caplog.records] == [{"error": str(error)}]
    api.error = None
    assert access.check("Bearer good", "/metrics") is HTTPStatus.OK, "an error is not kept"


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (["--metrics-tls-cert-file", "a"], "--metrics-tls-cert-file and --metrics-tls-key-file need each other"),
        (["--metrics-tls-key-file", "a"], "--metrics-tls-cert-file and --metrics-tls-key-file need each other"),
        (
            ["--metrics-authentication"],
            "--metrics-authentication would receive tokens without TLS: add --metrics-tls-cert",
        ),
        (["--metrics-tls-cert-file", "/no.crt", "--metrics-tls-key-file", "/no.key"], "the certificate /no.crt with"),
    ],
)
def test_options_that_are_not_secure(given: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["run", "--metrics-bind-address", "127.0.0.1:0", *given]) == 1
    assert says in capsys.readouterr().err
