"""The REST client against an HTTP server: responses, errors, time limits, and what it leaves behind."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest
import urllib3
import yaml
from ansible_collections.dljob.operator.plugins.module_utils.api import rest_client, transfers
from ansible_collections.dljob.operator.plugins.module_utils.api.attempts import NoResponse
from ansible_collections.dljob.operator.plugins.module_utils.api.rest_client import connect
from ansible_collections.dljob.operator.plugins.module_utils.api.steps import Steps, ask
from ansible_collections.dljob.operator.plugins.module_utils.shared import connection
from ansible_collections.dljob.operator.plugins.module_utils.shared.boottime import boottime
from ansible_collections.dljob.operator.plugins.module_utils.shared.connection import ApiRequest
from ansible_collections.dljob.operator.plugins.module_utils.shared.response import ApiError
from ansible_collections.dljob.operator.plugins.module_utils.shared.write_deadline import VARIABLE, WriteDeadline
from support.certificates import write_certificate
from support.connect_timeouts import record_connect_timeouts
from support.polling import until


class Server(ThreadingHTTPServer):
    """Answers each request with ``answer``, and records it."""

    daemon_threads = True
    answer: tuple[int, bytes] = (200, b"{}")

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked: list[tuple[str, str, str, bytes]] = []
        self.ports: set[int] = set()
        """Of the client, one for each connection."""
        self.tokens: list[str] = []
        self.ended = 0
        """Connections that are closed."""
        self.closes = False
        """Whether the connection ends after the response, without a notice."""
        self.drops = False
        """Whether it ends without a response."""
        self.headers: dict[str, str] = {}
        """Of each response."""
        self.free = threading.Event()
        self.free.set()
        self.on_answer: Callable[[], object] = lambda: None
        """Called before each response."""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def _answer(self) -> None:
        data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.server.asked.append((self.command, self.path, self.headers.get("Content-Type") or "", data))
        self.server.ports.add(self.client_address[1])
        self.server.tokens.append(self.headers.get("Authorization") or "")
        self.server.free.wait(5)
        if self.server.drops:
            self.close_connection = True
            return
        self.server.on_answer()
        status, body = self.server.answer
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **self.server.headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)
        self.close_connection = self.server.closes

    do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = _answer

    def finish(self) -> None:
        super().finish()
        self.server.ended += 1

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(params=[*["libcurl"] * transfers.is_available, "urllib3"], autouse=True)
def transport(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Each test runs with both, where pycurl is installed."""
    monkeypatch.setattr(transfers, "is_available", request.param == "libcurl")
    return str(request.param)


only_urllib3 = pytest.mark.parametrize("transport", ["urllib3"], indirect=True)


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as made:
        threading.Thread(target=made.serve_forever, args=(0.01,), daemon=True).start()  # seconds to shut down
        yield made
        made.free.set()
        made.shutdown()


@pytest.fixture
def kubeconfig(server: Server, tmp_path: Path) -> str:
    named = {
        "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{server.server_port}"}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
        "current-context": "x",
    }
    path = tmp_path / "kubeconfig"
    path.write_text(yaml.safe_dump(named), encoding="utf-8")
    return str(path)


def test_a_request_and_its_response(server: Server, kubeconfig: str) -> None:
    server.answer = 200, b'{"kind": "Pod"}'
    with connect(kubeconfig) as client:
        assert client.request("POST", "/p", {"a": 1}, {"dryRun": "All"}) == {"kind": "Pod"}
        client.request("PATCH", "/p", [], content_type="application/json-patch+json")
    (method, path, kind, data), (_, _, patch, _) = server.asked
    assert (method, path, kind, json.loads(data)) == ("POST", "/p?dryRun=All", "application/json", {"a": 1})
    assert patch == "application/json-patch+json"


def test_an_error_has_the_status_and_the_reason(server: Server, kubeconfig: str) -> None:
    server.answer = 409, b'{"kind": "Status", "reason": "AlreadyExists", "message": "there"}'
    with connect(kubeconfig) as client, pytest.raises(ApiError) as caught:
        client.request("GET", "/p")
    assert (caught.value.status, caught.value.reason, caught.value.message) == (409, "AlreadyExists", "there")


def test_a_server_that_does_not_answer_is_an_error_within_the_time_limit(
    server: Server, kubeconfig: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rest_client, "TIMEOUT", 0.1)
    server.free.clear()
    with connect(kubeconfig) as client, pytest.raises(ApiError, match="GET /p") as caught:
        client.request("GET", "/p")
    assert (caught.value.status, caught.value.reason, caught.value.permanent) == (0, "NoAnswer", False)
    assert len(server.asked) == 1, "four times the limit would be two minutes"


def test_after_the_deadline_of_the_leader_only_reads_are_sent(
    server: Server, kubeconfig: str, leader: WriteDeadline
) -> None:
    with connect(kubeconfig) as client:
        client.request("POST", "/p", {})
        leader.extend(0.0)
        with pytest.raises(ApiError, match="PATCH /p was not sent: this operator is no longer the leader") as caught:
            client.request("PATCH", "/p", {})
        assert (caught.value.status, caught.value.reason, caught.value.permanent) == (0, "NotLeading", False)
        client.request("GET", "/p")
    assert [method for method, *_ in server.asked] == ["POST", "GET"]


@pytest.fixture
def leader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> WriteDeadline:
    made = WriteDeadline(tmp_path / "deadline", create=True)
    monkeypatch.setenv(VARIABLE, str(tmp_path / "deadline"))
    made.extend(float("inf"))
    return made


def test_a_write_whose_connection_closes_is_not_repeated_after_the_deadline(
    server: Server, kubeconfig: str, leader: WriteDeadline
) -> None:
    server.free.clear()
    server.drops = True
    with connect(kubeconfig) as client, ThreadPoolExecutor(1) as threads:
        written = threads.submit(client.request, "DELETE", "/p")
        until(lambda: len(server.asked) == 1)
        leader.extend(0.0)
        server.free.set()
        with pytest.raises(ApiError, match="no longer the leader"):
            written.result(10)
    assert len(server.asked) == 1


class Waited(threading.BoundedSemaphore):
    """Says when a thread waits for it."""

    waits: ClassVar[threading.Event]

    def acquire(self, blocking: bool = True, timeout: float | None = None) -> bool:
        if super().acquire(blocking=False):
            return True
        self.waits.set()
        return super().acquire(blocking, timeout)

    __enter__ = acquire


@only_urllib3
def test_a_write_that_waits_for_a_connection_is_not_sent_after_the_deadline(
    server: Server, kubeconfig: str, leader: WriteDeadline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rest_client, "BoundedSemaphore", Waited)
    monkeypatch.setattr(Waited, "waits", threading.Event(), raising=False)
    server.free.clear()
    with connect(kubeconfig, connections=1) as client, ThreadPoolExecutor(2) as threads:
        first = threads.submit(client.request, "POST", "/first")
        until(lambda: len(server.asked) == 1)
        second = threads.submit(client.request, "POST", "/second")
        assert Waited.waits.wait(10)
        leader.extend(0.0)
        server.free.set()
        first.result(10)
        with pytest.raises(ApiError, match="no longer the leader"):
            second.result(10)
    assert [path for _, path, *_ in server.asked] == ["/first"]


@only_urllib3
def test_no_connection_for_a_write_is_opened_for_longer_than_until_the_deadline(
    server: Server, kubeconfig: str, leader: WriteDeadline, monkeypatch: pytest.MonkeyPatch
) -> None:
    leader.extend(boottime() + 5.0)
    limits = record_connect_timeouts(monkeypatch)
    with connect(kubeconfig) as client:
        client.request("POST", "/p")
        client.request("GET", "/p")
    assert 0 < limits[0] <= 2.5, "TCP and TLS take so long each"
    assert limits[1] == rest_client.TIMEOUT


@pytest.mark.parametrize(("method", "tries"), [("GET", 4), ("PUT", 4), ("DELETE", 4), ("POST", 1), ("PATCH", 1)])
def test_what_has_an_effect_at_each_try_is_not_repeated(
    server: Server, kubeconfig: str, method: str, tries: int
) -> None:
    server.drops = True
    with connect(kubeconfig) as client, pytest.raises(ApiError) as caught:
        client.request(method, "/p")
    assert (caught.value.reason, len(server.asked)) == ("NoAnswer", tries)


REFUSED = urllib3.exceptions.NewConnectionError(None, "refused")  # type: ignore[arg-type]
LATE = urllib3.exceptions.ConnectTimeoutError(None, "timed out")


@only_urllib3
@pytest.mark.parametrize(
    ("error", "was_sent", "timed_out"),
    [
        (REFUSED, False, False),
        (LATE, True, True),
        (urllib3.exceptions.SSLError("EOF occurred in violation of protocol"), True, False),
        (urllib3.exceptions.ProxyError("refused", REFUSED), False, False),
        (urllib3.exceptions.ProxyError("timed out", LATE), True, True),
        (urllib3.exceptions.ProxyError("closed", OSError()), True, False),
    ],
)
def test_what_an_error_of_urllib3_says_of_the_request(
    kubeconfig: str, error: Exception, was_sent: bool, timed_out: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[NoResponse] = []

    def attempt(request: ApiRequest) -> Steps[dict[str, Any]]:
        try:
            yield request
        except NoResponse as e:
            seen.append(e)
        return {}

    def fail(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr(rest_client, "answered", attempt)
    with connect(kubeconfig) as client:
        monkeypatch.setattr(client.connection, "send", fail)
        client.request("GET", "/p")
    assert [(one.was_sent, one.was_sent and one.timed_out) for one in seen] == [(was_sent, timed_out)]


def test_a_write_that_the_api_server_postponed_is_not_sent_after_the_deadline(
    server: Server, kubeconfig: str, leader: WriteDeadline, transport: str
) -> None:
    server.on_answer = lambda: leader.extend(0.0)
    server.answer = 429, b"{}"
    server.headers = {"Retry-After": "0" if transport == "urllib3" else "1"}
    with connect(kubeconfig) as client, pytest.raises(ApiError, match="no longer the leader"):
        client.request("DELETE", "/p", {})
    assert len(server.asked) == 1


def test_the_credentials_are_renewed_before_the_deadline_is_compared(
    server: Server, kubeconfig: str, leader: WriteDeadline, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And not once more after it: a program of the kubeconfig may take longer than the Lease."""
    monkeypatch.setattr(connection, "CREDENTIALS_TTL", 0.0)
    renewed: list[None] = []

    def renew(configuration: Any) -> None:
        renewed.append(None)
        for name in configuration.api_key:
            configuration.api_key[name] = f"Bearer {len(renewed)}"

    with connect(kubeconfig) as client:
        client.connection.configuration.refresh_api_key_hook = renew
        client.request("PATCH", "/p", {})
        assert server.tokens == ["Bearer 1"]
        client.connection.configuration.refresh_api_key_hook = lambda configuration: leader.extend(0.0)
        with pytest.raises(ApiError, match="no longer the leader"):
            client.request("PATCH", "/p", {})
    assert len(server.asked) == 1


def test_without_the_file_of_the_deadline_there_is_no_connection(
    kubeconfig: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "missing"))
    with pytest.raises(FileNotFoundError, match="missing"):
        connect(kubeconfig)


def test_nothing_is_left_of_a_connection(kubeconfig: str, server: Server) -> None:
    with connect(kubeconfig) as client:
        folder = Path(client.folder)
        assert folder.is_dir()
    assert not folder.exists()


def test_a_connection_that_is_closed_is_not_kept(kubeconfig: str, server: Server, transport: str) -> None:
    client = connect(kubeconfig)
    client.request("GET", "/p")
    pools = client.connection.pool.pools
    assert len(pools) == (transport == "urllib3")
    client.close()
    assert len(pools) == 0
    client.close()  # its folder is gone
    until(lambda: server.ended == 1)
    with pytest.raises(RuntimeError):
        client.each([1, 2], lambda _: ask(ApiRequest("GET", "/p")))


def test_certificates_of_the_kubeconfig_are_files_in_the_folder_that_is_removed(
    kubeconfig: str, tmp_path: Path
) -> None:
    named = yaml.safe_load(Path(kubeconfig).read_text(encoding="utf-8"))
    certificate = write_certificate(tmp_path)[0].read_bytes()
    authority = {"certificate-authority-data": base64.b64encode(certificate).decode()}
    named["clusters"][0]["cluster"] = {"server": "https://127.0.0.1:1", **authority}
    Path(kubeconfig).write_text(yaml.safe_dump(named), encoding="utf-8")
    with connect(kubeconfig) as client:
        file = Path(client.connection.pool.connection_pool_kw["ca_certs"])
        assert file.read_bytes() == certificate
        assert file.parent == Path(client.folder)
    assert not file.exists()


def test_the_context_may_be_another_than_the_current(kubeconfig: str, server: Server) -> None:
    named = yaml.safe_load(Path(kubeconfig).read_text(encoding="utf-8"))
    named["contexts"].append({"name": "y", "context": {"cluster": "c", "user": "v"}})
    named["users"].append({"name": "v", "user": {"token": "other"}})
    Path(kubeconfig).write_text(yaml.safe_dump(named), encoding="utf-8")
    for context in (None, "x", "y"):
        with connect(kubeconfig, context) as client:
            client.request("GET", "/p")
    assert server.tokens == ["Bearer t", "Bearer t", "Bearer other"]


def test_without_a_kubeconfig_the_account_of_the_pod_is_used(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rest_client.config.kube_config, "KUBE_CONFIG_DEFAULT_LOCATION", str(tmp_path / "missing"))

    def own_account(configuration: Any) -> None:
        configuration.host = f"http://127.0.0.1:{server.server_port}"

    monkeypatch.setattr(rest_client.config, "load_incluster_config", own_account)
    with connect() as client:
        client.request("GET", "/p")
    assert [path for _, path, _, _ in server.asked] == ["/p"]


def test_requests_wait_for_a_free_connection(kubeconfig: str, server: Server) -> None:
    with connect(kubeconfig, connections=2) as client:
        for _ in range(3):
            client.each(range(6), lambda number: ask(ApiRequest("GET", f"/p{number}")))
    assert len(server.asked) == 18
    assert 1 <= len(server.ports) <= 2


@only_urllib3
def test_threads_wait_for_a_free_connection(kubeconfig: str, server: Server) -> None:
    """Those of libcurl have connections of their own."""
    with connect(kubeconfig, connections=2) as client, ThreadPoolExecutor(6) as threads:
        list(threads.map(lambda number: client.request("GET", f"/q{number}"), range(12)))
    assert len(server.asked) == 12
    assert 1 <= len(server.ports) <= 2


def test_a_request_on_a_connection_that_the_server_has_closed_is_repeated(kubeconfig: str, server: Server) -> None:
    server.closes = True
    with connect(kubeconfig) as client:
        for number in range(3):
            client.request("GET", f"/p{number}")
    assert [path for _, path, _, _ in server.asked] == ["/p0", "/p1", "/p2"]


def test_a_kubeconfig_that_is_named_and_missing_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The pod's own account must not take its place."""
    made: list[str] = []

    def folder(prefix: str) -> str:
        made.append(str(tmp_path / prefix))
        Path(made[0]).mkdir()
        return made[0]

    def own_account(*_: Any) -> None:
        pytest.fail("another account was used")

    monkeypatch.setattr(rest_client.tempfile, "mkdtemp", folder)
    monkeypatch.setattr(rest_client.config, "load_incluster_config", own_account)
    with pytest.raises(rest_client.config.ConfigException):
        connect(str(tmp_path / "missing"))
    assert made
    assert not Path(made[0]).exists()


def test_the_connections_are_limited(kubeconfig: str) -> None:
    with connect(kubeconfig, connections=3) as client:
        assert client.connection.pool.connection_pool_kw["maxsize"] == 3
