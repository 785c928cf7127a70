"""The engine's API client beside a server whose answers the tests script."""

from __future__ import annotations

import json
import logging
import socket
import ssl
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import urllib3
import yaml
from ansible_collections.dljob.operator.plugins.module_utils.shared import connection
from ansible_collections.dljob.operator.plugins.module_utils.shared.response import ApiError
from kubernetes import client
from kubernetes.config import incluster_config
from support import service_account
from support.certificates import write_certificate
from support.connect_timeouts import record_connect_timeouts
from support.scripted_server import Exchange, ScriptedServer, scripted

from dljob_operator.engine import kube
from dljob_operator.engine.cache import nesting
from dljob_operator.engine.kube import (
    ApiConnectionError,
    KubeApi,
    NoCluster,
    NotLeading,
    UntrustedServer,
    find_kubeconfig,
)


def connect(url: str) -> KubeApi:
    return KubeApi(client.ApiClient(client.Configuration(host=url)))


class Scripted:
    """A server that answers with `respond`, and an API that is connected to it."""

    def __init__(self, server: ScriptedServer) -> None:
        self.server = server
        self.api = connect(server.url)
        self.respond: Callable[[Exchange], None] = lambda exchange: exchange.answer({"kind": "Pod"})

    @property
    def ports(self) -> set[int]:
        """The client's port of each connection."""
        return {one.handler.client_address[1] for one in self.server.requests}


@pytest.fixture
def server() -> Iterator[Scripted]:
    made: Scripted

    def respond(exchange: Exchange) -> None:
        made.respond(exchange)

    with scripted(respond) as listening:
        made = Scripted(listening)
        yield made


# --- which cluster


@pytest.mark.parametrize(
    ("given", "environ", "in_pod", "expected"),
    [
        ("given", {"KUBECONFIG": "named", "KUBERNETES_SERVICE_HOST": "10.0.0.1"}, True, "given"),
        (None, {"KUBECONFIG": "named", "KUBERNETES_SERVICE_HOST": "10.0.0.1"}, True, "named"),
        (None, {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, True, None),
        (None, {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, False, "home/.kube/config"),
        (None, {}, True, "home/.kube/config"),
        ("", {"KUBECONFIG": ""}, False, "home/.kube/config"),
        ("~/mine", {}, False, "home/mine"),
    ],
)
def test_which_kubeconfig_is_used(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    given: str | None,
    environ: dict[str, str],
    in_pod: bool,
    expected: str | None,
) -> None:
    token = tmp_path / "token"
    if in_pod:
        token.touch()
    monkeypatch.setattr(kube, "_SERVICE_ACCOUNT", token)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    assert find_kubeconfig(given, environ) == (tmp_path.resolve() / expected if expected else None)


def kubeconfig(folder: Path, url: str, **cluster: Any) -> Path:
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "test",
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
        "clusters": [{"name": "test", "cluster": {"server": url, **cluster}}],
        "users": [{"name": "test", "user": {"token": "secret"}}],
    }
    path = folder / "config"
    path.write_text(yaml.safe_dump(content))
    return path


def test_the_cluster_and_the_credentials_are_those_of_the_kubeconfig(server: Scripted, tmp_path: Path) -> None:
    api = KubeApi.connect(kubeconfig(tmp_path, server.server.url))
    assert api.server == server.server.url
    assert api.get("/api/v1/pods") == {"kind": "Pod"}
    assert server.server.requests[0].token == "Bearer secret"


def test_each_watch_may_have_a_connection_of_its_own(server: Scripted, tmp_path: Path) -> None:
    api = KubeApi.connect(kubeconfig(tmp_path, server.server.url))
    assert api.connection.pool.connection_pool_kw["maxsize"] == 32


@pytest.mark.parametrize("content", [None, "a: b"])
def test_a_kubeconfig_that_cannot_be_used_is_named(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "config"
    if content:
        path.write_text(content)
    with pytest.raises(
        NoCluster, match=rf"no cluster configuration \({path}: .*set --kubeconfig or KUBECONFIG"
    ) as raised:
        KubeApi.connect(path)
    assert raised.value.__suppress_context__, "the message has the cause"


def test_outside_of_a_pod_there_is_no_service_account(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with pytest.raises(NoCluster, match="the pod's service account: "):
        KubeApi.connect(None)


def test_a_pod_uses_its_service_account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The library reads the token as the pod starts; what the kubelet has written since counts."""
    first = tmp_path / "first"
    first.write_text("first")
    tokens: list[str | None] = []
    with tls_server(tmp_path, lambda headers: tokens.append(headers["Authorization"])) as (port, certificate):
        service_account.mount(monkeypatch, tmp_path, "now", ("localhost", port), certificate)
        monkeypatch.setattr(incluster_config, "SERVICE_TOKEN_FILENAME", str(first))
        api = KubeApi.connect(None)
        assert api.server == f"https://localhost:{port}"
        assert api.get("/api") == {}
    assert tokens == ["Bearer now"]


@pytest.mark.parametrize("skips", [True, False])
def test_a_certificate_that_is_not_verified_is_logged_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, skips: bool
) -> None:
    path = kubeconfig(tmp_path, "https://127.0.0.1:1", **{"insecure-skip-tls-verify": skips})
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        KubeApi.connect(path)
        warnings.warn_explicit("for each request", urllib3.exceptions.InsecureRequestWarning, "urllib3", 1)
    assert len(warned) == (0 if skips else 1)
    found = [record for record in caplog.records if "certificate is not verified" in record.message]
    assert [record.__dict__["dljob_fields"] for record in found] == (
        [{"server": "https://127.0.0.1:1"}] if skips else []
    )


# --- requests and responses


def test_a_request_has_its_query_body_and_type(server: Scripted) -> None:
    types: list[tuple[str, str]] = []

    def respond(exchange: Exchange) -> None:
        headers = exchange.handler.headers
        types.append((headers["Content-Type"], headers["Accept"]))
        exchange.answer({"kind": "Pod"})

    server.respond = respond
    body: dict[str, Any] = {"spec": {}}
    found = server.api.request("PATCH", "/api/v1/pods/a", body, query={"force": "true"}, content_type="application/x")
    assert found == {"kind": "Pod"}
    (exchange,) = server.server.requests
    assert (exchange.method, exchange.path, exchange.query, exchange.body) == (
        "PATCH",
        "/api/v1/pods/a",
        {"force": "true"},
        body,
    )
    server.api.request("POST", "/api/v1/pods", body)
    assert types == [("application/x", "application/json"), ("application/json", "application/json")]


def test_get_passes_its_query(server: Scripted) -> None:
    assert server.api.get("/api/v1/pods", {"limit": 1}) == {"kind": "Pod"}
    assert (server.server.requests[0].method, server.server.requests[0].query) == ("GET", {"limit": "1"})


def test_a_list_passes_its_query(server: Scripted) -> None:
    assert server.api.list_objects("/api/v1/pods", {"limit": 1}) == {"kind": "Pod"}
    (exchange,) = server.server.requests
    assert (exchange.method, exchange.query) == ("GET", {"limit": "1"})


def test_a_list_that_cannot_be_decoded_has_the_identity_of_the_objects_to_blame(
    server: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    metadata = {"name": "deep", "uid": "deep-uid", "resourceVersion": "1"}
    deep: dict[str, Any] = {}
    for _ in range(nesting.LIMIT):
        deep = {"a": deep}
    plain = {"metadata": {"name": "plain"}, "spec": {}}
    items = [plain, {"metadata": metadata, "spec": deep}]
    server.respond = lambda one: one.answer({"metadata": {"resourceVersion": "7"}, "items": items})

    def too_deep(*_: Any) -> dict[str, Any]:
        raise RecursionError

    monkeypatch.setattr(kube, "decode", too_deep)
    assert server.api.list_objects("/api/v1/pods", {"limit": 1}) == {
        "metadata": {"resourceVersion": "7"},
        "items": [plain, {nesting.UNREADABLE: True, "metadata": metadata}],
    }
    assert [one.query for one in server.server.requests] == [{"limit": "1"}]


@pytest.mark.parametrize(
    "request_", [KubeApi.get, KubeApi.list_objects, lambda api, path: api.request("POST", path, {})]
)
def test_an_error_of_the_api_server_has_its_status_and_its_reason(
    server: Scripted, request_: Callable[[KubeApi, str], Any]
) -> None:
    server.respond = lambda one: one.answer({"reason": "Invalid", "message": "a field is wrong"}, 422)
    with pytest.raises(ApiError, match="a field is wrong") as raised:
        request_(server.api, "/api/v1/pods")
    assert (raised.value.status, raised.value.reason) == (422, "Invalid")


def test_a_missing_permission_is_explained_with_the_rule_that_grants_it(server: Scripted) -> None:
    message = 'User "a" cannot list resource "nodes" in API group "" at the cluster scope'
    server.respond = lambda one: one.answer({"reason": "Forbidden", "message": message}, 403)
    with pytest.raises(ApiError, match=r"add to the operator's role: .*resources: \[nodes\], verbs: \[list\]"):
        server.api.get("/api/v1/nodes")


def test_a_redirect_is_not_followed(server: Scripted) -> None:
    def respond(exchange: Exchange) -> None:
        exchange.handler.send_response(302)
        exchange.handler.send_header("Location", "/elsewhere")
        exchange.handler.send_header("Content-Length", "0")
        exchange.handler.end_headers()

    server.respond = respond
    with pytest.raises(ApiError) as raised:
        server.api.get("/api/v1/pods")
    assert raised.value.status == 302
    assert len(server.server.requests) == 1


def test_a_request_without_a_response_is_not_repeated(server: Scripted) -> None:
    def respond(exchange: Exchange) -> None:
        exchange.handler.close_connection = True

    server.respond = respond
    with pytest.raises(ApiConnectionError, match=rf"POST {server.server.url}/api/v1/pods: ") as raised:
        server.api.request("POST", "/api/v1/pods", {})
    assert type(raised.value) is ApiConnectionError
    assert len(server.server.requests) == 1


def test_without_a_server_there_is_no_connection() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
    with pytest.raises(ApiConnectionError, match=f"GET {url}/api: "):
        connect(url).get("/api")


def test_requests_share_a_connection(server: Scripted) -> None:
    server.api.get("/api")
    server.api.request("POST", "/api", {})
    server.api.list_objects("/api")
    assert len(server.ports) == 1


def test_a_watch_of_which_not_all_was_read_is_closed(server: Scripted) -> None:
    closed = threading.Event()

    def respond(exchange: Exchange) -> None:
        if not exchange.watches:
            return exchange.answer({})
        exchange.begin_stream()
        try:
            while not exchange.closing.wait(0.001):
                exchange.line({"type": "ADDED"})
        except OSError:
            closed.set()
            raise

    server.respond = respond
    with server.api.watch("/pods", {}, 10) as events:
        lines = iter(events)
        assert next(lines) == {"type": "ADDED"}
    assert closed.wait(10)
    server.api.get("/api")
    assert len(server.ports) == 2
    del lines  # kept until here: its end would close the connection too


def test_an_api_with_a_shorter_timeout_leaves_that_of_the_other(server: Scripted) -> None:
    hanging = threading.Event()

    def respond(exchange: Exchange) -> None:
        if exchange.path == "/hangs":
            hanging.set()
            return exchange.hang()
        return exchange.answer({})

    server.respond = respond
    short = server.api.with_timeout(0.2)
    with pytest.raises(ApiConnectionError, match="timed out"):
        short.get("/hangs")
    with pytest.raises(ApiConnectionError, match="timed out"):
        short.list_objects("/hangs")
    assert hanging.wait(10)
    assert (short.timeout, server.api.timeout) == (0.2, 60.0)


def test_the_credentials_of_a_write_are_renewed_before_the_time_that_is_left_is_compared(
    server: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program of the kubeconfig may take longer than the Lease."""
    monkeypatch.setattr(connection, "CREDENTIALS_TTL", 0.0)
    left = 4.0

    def renew(configuration: client.Configuration) -> None:
        nonlocal left
        left -= 2.0

    configuration = server.api.connection.configuration
    configuration.api_key["authorization"] = "Bearer old"
    configuration.api_key["BearerToken"] = "Bearer old"
    configuration.refresh_api_key_hook = renew
    api = server.api.writing_while(lambda: left)
    api.request("POST", "/pods", {})
    assert left == 2.0, "they are renewed once"
    with pytest.raises(NotLeading):
        api.request("POST", "/pods", {})


def test_a_leader_does_not_wait_longer_for_the_connection_of_a_write_than_it_leads(
    server: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    api = server.api.writing_while(lambda: 3.0)
    limits = record_connect_timeouts(monkeypatch)
    api.request("POST", "/pods", {})
    api.get("/pods")
    assert limits == [1.5, 10.0], "TCP and TLS take so long each"


def test_an_api_of_a_leader_sends_writes_only_while_it_leads(server: Scripted) -> None:
    left = 3.0
    api = server.api.writing_while(lambda: left)
    api.request("DELETE", "/pods/a")
    left = 0.0
    api.get("/pods")
    with pytest.raises(NotLeading, match="POST /pods was not sent: this operator is no longer the leader"):
        api.request("POST", "/pods", {})
    with pytest.raises(NotLeading):
        api.with_timeout(5).request("PATCH", "/pods/a", {})
    server.api.request("POST", "/leases", {})
    assert [f"{one.method} {one.path}" for one in server.server.requests] == [
        "DELETE /pods/a",
        "GET /pods",
        "POST /leases",
    ]


@contextmanager
def tls_server(folder: Path, on_get: Callable[[Message], None] = lambda headers: None) -> Iterator[tuple[int, Path]]:
    """A server at localhost that answers {} and gives `on_get` the headers; its port and its certificate."""
    certificate, key = write_certificate(folder)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            on_get(self.headers)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        listening.handle_error = lambda *_: None  # type: ignore[method-assign]
        listening.daemon_threads = True
        listening.socket = context.wrap_socket(listening.socket, server_side=True)
        threading.Thread(target=listening.serve_forever, args=(0.01,), daemon=True).start()  # seconds to shut down
        yield listening.server_port, certificate
        listening.shutdown()


def test_a_server_with_an_unknown_certificate_is_not_trusted(tmp_path: Path) -> None:
    with tls_server(tmp_path) as (port, certificate):
        url = f"https://localhost:{port}"
        with pytest.raises(UntrustedServer, match="certificate verify failed"):
            connect(url).get("/api")
        trusted = client.Configuration(host=url)
        trusted.ssl_ca_cert = str(certificate)
        assert KubeApi(client.ApiClient(trusted)).get("/api") == {}


# --- servers that hang, and sockets


def hangs(exchange: Exchange) -> None:
    exchange.hang()


def test_a_request_to_a_server_that_accepts_and_hangs_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kube, "_READ_TIMEOUT", 0.3)
    with scripted(hangs) as server:
        api = connect(server.url)
        for attempt in (
            lambda: api.get("/api"),
            lambda: api.list_objects("/api"),
            lambda: api.request("PUT", "/x", {}),
        ):
            began = time.monotonic()
            with pytest.raises(ApiConnectionError, match="timed out"):
                attempt()
            assert time.monotonic() - began < 5
        assert len(server.requests) == 3  # a write is not repeated: the server may have done it


def test_a_connection_that_nothing_accepts_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kube, "_CONNECT_TIMEOUT", 0.3)
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        waiting = []
        for _ in range(3):  # the kernel accepts one or two; it drops the SYN of the others
            one = socket.socket()
            one.setblocking(False)
            one.connect_ex(full.getsockname())
            waiting.append(one)
        began = time.monotonic()
        with pytest.raises(ApiConnectionError, match="timed out"):
            connect(f"http://127.0.0.1:{full.getsockname()[1]}").get("/api")
        assert time.monotonic() - began < 5
        for one in waiting:
            one.close()


def test_a_watch_that_sends_only_empty_lines_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kube, "_WATCH_MARGIN", 0.3)

    def trickle(exchange: Exchange) -> None:
        exchange.begin_stream()
        while not exchange.closing.wait(0.05):
            exchange.send(b"\n")

    with scripted(trickle) as server, connect(server.url).watch("/pods", {"timeoutSeconds": 0}, 5) as stream:
        began = time.monotonic()
        assert list(stream) == []
        assert time.monotonic() - began < 5


def test_the_kernel_probes_the_peer_of_an_idle_connection() -> None:
    with scripted(lambda exchange: exchange.answer({})) as server:
        kube_api = connect(server.url)
        kube_api.get("/api")
        pool = kube_api.connection.pool.connection_from_url(server.url)
        used_connection = pool._get_conn()  # noqa: SLF001 - of urllib3
        used: socket.socket = used_connection.sock
        assert used.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        values = [
            used.getsockopt(socket.IPPROTO_TCP, getattr(socket, name))
            for name in ("TCP_KEEPIDLE", "TCP_KEEPINTVL", "TCP_KEEPCNT", "TCP_NODELAY")
        ]
        assert values == [30, 10, 3, 1]
        used_connection.close()


def raising(error: Exception) -> Callable[..., Any]:
    def send(*_: Any, **__: Any) -> Any:
        raise error

    return send


def test_a_refused_certificate_is_told_from_a_server_that_is_starting(monkeypatch: pytest.MonkeyPatch) -> None:
    refused = urllib3.exceptions.SSLError(ssl.SSLCertVerificationError("certificate verify failed"))
    starting = urllib3.exceptions.SSLError(ssl.SSLEOFError("EOF occurred"))
    away = urllib3.exceptions.ProtocolError("Connection aborted.")
    api = connect("http://127.0.0.1:1")
    for error, kind in ((refused, UntrustedServer), (starting, ApiConnectionError), (away, ApiConnectionError)):
        monkeypatch.setattr(api.connection, "send", raising(error))
        with pytest.raises(ApiConnectionError) as caught:
            api.get("/api")
        assert type(caught.value) is kind


# --- watches


def stream(*chunks: bytes) -> Callable[[Exchange], None]:
    """A complete watch of these chunks."""

    def respond(exchange: Exchange) -> None:
        exchange.begin_stream()
        for chunk in chunks:
            exchange.send(chunk)
        exchange.send(b"")

    return respond


def event(name: str) -> bytes:
    return json.dumps({"type": "ADDED", "object": {"metadata": {"name": name}}}, ensure_ascii=False).encode() + b"\n"


def names(events: Any) -> list[str]:
    return [one["object"]["metadata"]["name"] for one in events]


@pytest.mark.parametrize(
    "chunks",
    [
        [event("a"), event("ü")],
        [event("a") + event("ü")],
        [bytes([byte]) for byte in event("a") + event("ü")],
        [b"\n", event("a"), b" \n\n", event("ü")],
    ],
    ids=["one each", "one for both", "bytes", "empty lines"],
)
def test_events_are_lines_however_they_are_sent(server: Scripted, chunks: list[bytes]) -> None:
    server.respond = stream(*chunks)
    with server.api.watch("/pods", {"resourceVersion": "7", "timeoutSeconds": 30}, 10) as events:
        assert names(events) == ["a", "ü"]
    (exchange,) = server.server.requests
    assert (exchange.path, exchange.query) == (
        "/pods",
        {"resourceVersion": "7", "timeoutSeconds": "30", "watch": "true"},
    )


def test_a_watch_that_is_refused_is_an_error_of_the_api_server(server: Scripted) -> None:
    server.respond = lambda one: one.answer({"reason": "Expired", "message": "too old"}, 410)
    with pytest.raises(ApiError, match="too old") as raised, server.api.watch("/pods", {}, 10):
        pass
    assert raised.value.status == 410


@pytest.mark.parametrize("way", ["reset", "silence"])
def test_a_watch_that_breaks_is_an_error_after_its_events(server: Scripted, way: str) -> None:
    def respond(exchange: Exchange) -> None:
        exchange.begin_stream()
        exchange.send(event("a"))
        if way == "silence":
            exchange.hang()

    server.respond = respond
    seen: list[Any] = []
    quiet_for = 1.0 if way == "silence" else 30.0
    with server.api.watch("/pods", {}, quiet_for) as events, pytest.raises(ApiConnectionError, match=r"^watch: "):
        for one in events:
            seen.append(one)
    assert names(seen) == ["a"]


def test_another_thread_may_stop_a_watch(server: Scripted) -> None:
    def respond(exchange: Exchange) -> None:
        exchange.begin_stream()
        exchange.send(event("a"))
        exchange.hang()

    server.respond = respond
    seen: list[str] = []
    with server.api.watch("/pods", {}, 30) as events:
        for one in events:
            seen += names([one])
            threading.Thread(target=events.stop).start()
        assert seen == ["a"]
        events.stop()  # once more, after the end


def test_a_watch_ends_after_its_time_whatever_the_server_sends(
    server: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 100.0

    class Clock:
        def monotonic(self) -> float:
            return now

    monkeypatch.setattr(kube, "time", Clock())

    def respond(exchange: Exchange) -> None:
        exchange.begin_stream()
        while not exchange.closing.wait(0.001):
            exchange.send(event("a"))

    server.respond = respond
    count = 0
    with server.api.watch("/pods", {"timeoutSeconds": 60}, 10) as events:
        for _ in events:
            count += 1
            if count == 10:
                now += 60.0 + 20.0  # the server has a margin
            if count == 20:
                now += 20.0
    assert 20 <= count < 1000


def test_a_watch_without_a_time_has_no_end_of_its_own(server: Scripted, monkeypatch: pytest.MonkeyPatch) -> None:
    server.respond = stream(event("a"), event("b"))
    monkeypatch.setattr(kube, "_WATCH_MARGIN", 0.0)
    with server.api.watch("/pods", {}, 10) as events:
        assert names(events) == ["a", "b"]


# --- the token of a pod


@pytest.fixture
def token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return service_account.mount(monkeypatch, tmp_path, "old", ("127.0.0.1", 443))


@pytest.fixture
def configuration(token: Path, monkeypatch: pytest.MonkeyPatch) -> client.Configuration:
    """That of a client in a pod, whose server speaks no TLS."""
    plain = client.ApiClient

    def without_tls(configuration: client.Configuration) -> client.ApiClient:
        configuration.ssl_ca_cert = None
        return plain(configuration)

    monkeypatch.setattr(client, "ApiClient", without_tls)
    return KubeApi.connect(None).connection.configuration


@pytest.mark.parametrize(
    ("keys", "content", "expected"),
    [
        ({"BearerToken": "Bearer old"}, "new\n", {"BearerToken": "Bearer new"}),
        ({"authorization": "Bearer old"}, "new\n", {"authorization": "Bearer new"}),
        ({"BearerToken": "Bearer old"}, "\n", {"BearerToken": "Bearer old"}),
    ],
    ids=["the client's key", "the key before 34", "an empty file"],
)
def test_the_token_is_read_anew(
    token: Path, configuration: client.Configuration, keys: dict[str, str], content: str, expected: dict[str, str]
) -> None:
    token.write_text(content)
    configuration.api_key = dict(keys)
    configuration.refresh_api_key_hook(configuration)
    assert configuration.api_key == expected


def test_a_token_that_cannot_be_read_is_logged_and_the_old_one_stays(
    token: Path, configuration: client.Configuration, caplog: pytest.LogCaptureFixture
) -> None:
    token.unlink()
    configuration.api_key = {"BearerToken": "Bearer old"}
    configuration.refresh_api_key_hook(configuration)
    assert configuration.api_key == {"BearerToken": "Bearer old"}
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert str(token) in str(record.__dict__["dljob_fields"]["error"])
