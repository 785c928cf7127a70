"""The HTTP server of probes and metrics, with real sockets: what a hostile client cannot do."""

from __future__ import annotations

import errno
import http.client
import os
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from support.certificates import write_certificate
from support.polling import until

from dljob_operator.engine.serving.certificate import Certificate
from dljob_operator.engine.serving.health import Health
from dljob_operator.engine.serving.http_server import HttpLimits, HttpRequest, HttpResponse, HttpServer, parse_address
from dljob_operator.engine.serving.metrics_server import serve_metrics

Start = Callable[..., HttpServer]


@pytest.fixture
def start() -> Iterator[Start]:
    with ExitStack() as stack:

        def started(
            respond: Callable[[HttpRequest], HttpResponse] = lambda request: HttpResponse(200, b"ok\n"),
            certificate: Certificate | None = None,
            **limits: float,
        ) -> HttpServer:
            server = HttpServer(("127.0.0.1", 0), respond, certificate, HttpLimits(**limits))  # type: ignore[arg-type]
            server.start()
            stack.callback(server.stop)
            return server

        yield started


def connect(server: HttpServer) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.port), timeout=20)


def read_all(connection: socket.socket) -> bytes:
    received = b""
    try:
        while chunk := connection.recv(65536):
            received += chunk
    except ConnectionResetError:
        pass
    return received


def get(server: HttpServer, path: str = "/", method: str = "GET") -> tuple[int, bytes]:
    with closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)) as connection:
        connection.request(method, path)
        response = connection.getresponse()
        return response.status, response.read()


def test_the_limits_are_the_documented_ones() -> None:
    """The probes and the metrics have the defaults: nothing gives them other limits."""
    limits, root = HttpLimits(), Path(__file__).parents[5]
    security, deployment = (
        " ".join((root / name).read_text().split()) for name in ("docs/threat-model.md", "docs/deployment.md")
    )
    assert f"hold neither threads nor more than {limits.connections} connections" in security
    assert f"each hold {limits.connections} connections" in deployment
    assert f"A connection has {limits.seconds:g} s for" in deployment
    assert f"and a request {limits.request_bytes // 1024} KiB" in deployment
    assert (limits.connections, limits.threads) == (64, 2), "and use three threads, with the one that reads"
    for server in (Health("127.0.0.1:0").server, serve_metrics(CollectorRegistry(), "127.0.0.1:0")):
        assert server is not None
        assert server.limits == limits
        server.stop()


def test_it_serves_ipv6_too() -> None:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError as error:
        pytest.skip(f"this machine has no IPv6: {error}")
    server = HttpServer(("::1", 0), lambda request: HttpResponse(200, b"ok\n"))
    server.start()
    try:
        with closing(http.client.HTTPConnection("::1", server.port, timeout=20)) as connection:
            connection.request("GET", "/")
            assert connection.getresponse().read() == b"ok\n"
    finally:
        server.stop()


@pytest.mark.parametrize("has_ipv6", [True, False])
def test_without_a_host_it_serves_both_families(has_ipv6: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cluster with IPv6 alone probes a pod by that; a kernel may have none."""
    create = socket.create_server
    try:
        create(("::1", 0), family=socket.AF_INET6).close()
    except OSError as error:
        if has_ipv6:
            pytest.skip(f"this machine has no IPv6: {error}")

    def create_server(address: tuple[str, int], **options: Any) -> socket.socket:
        if options["family"] == socket.AF_INET6 and not has_ipv6:
            raise OSError(errno.EAFNOSUPPORT, "Address family not supported by protocol")
        return create(address, **options)

    monkeypatch.setattr(socket, "create_server", create_server)
    server = HttpServer(("", 0), lambda request: HttpResponse(200, b"ok\n"))
    server.start()
    try:
        for host in ("127.0.0.1", "::1") if has_ipv6 else ("127.0.0.1",):
            with closing(http.client.HTTPConnection(host, server.port, timeout=20)) as connection:
                connection.request("GET", "/")
                assert connection.getresponse().read() == b"ok\n", host
    finally:
        server.stop()


def test_a_response_has_what_was_asked(start: Start) -> None:
    seen: list[HttpRequest] = []

    def respond(request: HttpRequest) -> HttpResponse:
        seen.append(request)
        return HttpResponse(200, b"body\n", {"X-A": "b"})

    server = start(respond)
    assert get(server, "/a?b=c") == (200, b"body\n")
    assert (seen[0].path, seen[0].query, seen[0].headers["host"]) == ("/a", "b=c", f"127.0.0.1:{server.port}")
    assert get(server, "/a", "HEAD") == (200, b"")
    for method, body in ((b"GET", b"body\n"), (b"HEAD", b"")):
        with connect(server) as connection:
            connection.sendall(method + b" /a HTTP/1.1\r\n\r\n")
            head = b"HTTP/1.1 200 OK\r\nX-A: b\r\nContent-Length: 5\r\nConnection: close\r\n\r\n"
            assert read_all(connection) == head + body
    assert get(server, "/a", "POST")[0] == 405


def test_a_response_is_plain_text_unless_it_says_otherwise(start: Start) -> None:
    with connect(start()) as connection:
        connection.sendall(b"GET / HTTP/1.0\r\n\r\n")
        assert b"\r\nContent-Type: text/plain; charset=utf-8\r\n" in read_all(connection)


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"GET / HTTP/1.1\r\nX: " + b"a" * 20_000 + b"\r\n\r\n", 431),
        (b"GET / HTTP/1.1\r\n" + b"X: a\r\n" * 150 + b"\r\n", 400),
        (b"nonsense\r\n\r\n", 400),
        (b"GET http://elsewhere/ HTTP/1.1\r\n\r\n", 400),
        (b"GET / SPDY\r\n\r\n", 400),
        (b"\xff / HTTP/1.1\r\n\r\n", 400),
    ],
)
def test_requests_that_are_none(start: Start, sent: bytes, status: int) -> None:
    with connect(start()) as connection:
        connection.sendall(sent)
        assert read_all(connection).startswith(f"HTTP/1.1 {status} ".encode())


def test_the_limits_are_those_of_the_documentation() -> None:
    """docs/threat-model.md and docs/deployment.md."""
    assert HttpLimits() == HttpLimits(connections=64, seconds=10.0, request_bytes=16 * 1024, threads=2)


def test_a_client_that_sends_one_byte_at_a_time_is_cut_off(start: Start) -> None:
    server = start(seconds=0.5)
    began = time.monotonic()
    with connect(server) as connection:
        closed = False
        for byte in b"GET / HTTP/1.1\r\nX: " + b"a" * 10_000:
            try:
                connection.sendall(bytes([byte]))
                connection.settimeout(0.05)
                closed = connection.recv(1) == b""
            except TimeoutError:
                continue
            except OSError:
                closed = True
            if closed:
                break
    assert closed
    assert time.monotonic() - began < 10
    assert get(server) == (200, b"ok\n")


def test_a_client_that_does_not_read_its_response_is_cut_off(start: Start) -> None:
    more_than_the_kernel_buffers = HttpResponse(200, b"a" * 50_000_000)
    server = start(lambda request: more_than_the_kernel_buffers, seconds=3)
    with connect(server) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\n\r\n")
        assert connection.recv(1, socket.MSG_PEEK)
        until(lambda: not server.open_connections)


def test_a_response_that_the_kernel_does_not_take_at_once_arrives_as_a_whole(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    listen = socket.create_server

    def with_a_small_buffer(*given: Any, **options: Any) -> socket.socket:
        listening = listen(*given, **options)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)  # its connections inherit that
        return listening

    monkeypatch.setattr(socket, "create_server", with_a_small_buffer)
    body = b"a" * 50_000  # less than what asyncio holds back without a pause
    server = start(lambda request: HttpResponse(200, body, {}))
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.settimeout(20)
        connection.connect(("127.0.0.1", server.port))
        connection.sendall(b"GET / HTTP/1.1\r\n\r\n")
        head, _, received = read_all(connection).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 OK")
    assert len(received) == len(body)


def test_without_a_free_descriptor_it_pauses_and_goes_on(
    start: Start, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A loop without a pause would take a whole processor from the workers."""
    failures = [OSError(errno.EMFILE, "Too many open files")] * 3
    accept = socket.socket.accept

    def full(listening: socket.socket) -> tuple[socket.socket, object]:
        if failures:
            raise failures.pop()
        return accept(listening)

    monkeypatch.setattr(socket.socket, "accept", full)
    server = start()
    began = time.monotonic()
    assert get(server) == (200, b"ok\n")
    assert time.monotonic() - began > 0.25
    assert [(record.getMessage(), record.__dict__["dljob_fields"]) for record in caplog.records] == [
        ("cannot accept a connection", {"port": server.port, "error": "[Errno 24] Too many open files"})
    ] * 3


def descriptors() -> int:
    """Open ones of this process; other tests may have left some."""
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208


def test_open_connections_lock_nobody_out_and_cost_no_threads(start: Start) -> None:
    server = start(connections=20)
    before, open_before = threading.active_count(), descriptors()
    with ExitStack() as stack:
        idle = [stack.enter_context(connect(server)) for _ in range(200)]
        for connection in idle:
            connection.sendall(b"GET / HT")
        assert get(server) == (200, b"ok\n")
        assert threading.active_count() <= before + 2
        assert server.open_connections <= 20
        assert descriptors() < open_before + 200 + 20 + 50, "the ends of our own 200 connections are here too"
        idle[0].settimeout(20)
        assert read_all(idle[0]) == b"", "the oldest are closed"
    assert get(server) == (200, b"ok\n")


def test_at_the_largest_number_of_connections_a_new_one_ends_the_oldest(start: Start) -> None:
    server = start(connections=2, seconds=60)
    with connect(server) as first, connect(server) as second, connect(server) as third:
        assert read_all(first) == b""
        for connection in (second, third):
            connection.sendall(b"GET / HTTP/1.1\r\n\r\n")
            assert read_all(connection).endswith(b"ok\n")


def test_a_connection_that_is_gone_before_it_is_taken_holds_up_no_other(
    start: Start, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    accept, goes = socket.socket.accept, threading.Event()

    def accept_none(listening: socket.socket) -> tuple[socket.socket, object]:
        taken = accept(listening)
        if goes.is_set():
            goes.clear()
            taken[0].close()
            return accept(listening)
        return taken

    monkeypatch.setattr(socket.socket, "accept", accept_none)
    server = start()
    with connect(server) as other:
        until(lambda: server.open_connections == 1)
        goes.set()
        with connect(server) as gone:
            assert read_all(gone) == b""
            other.sendall(b"GET / HTTP/1.1\r\n\r\n")
            assert read_all(other).endswith(b"ok\n")
    assert caplog.records == []


def test_two_responses_are_computed_at_a_time(start: Start) -> None:
    running, most, release = [0], [0], threading.Event()
    lock, busy = threading.Lock(), threading.Semaphore(0)

    def respond(request: HttpRequest) -> HttpResponse:
        with lock:
            running[0] += 1
            most[0] = max(most[0], running[0])
        busy.release()
        release.wait(20)
        with lock:
            running[0] -= 1
        return HttpResponse(200, b"ok\n")

    server = start(respond)
    with ExitStack() as stack:
        clients = [stack.enter_context(connect(server)) for _ in range(10)]
        for client in clients:
            client.sendall(b"GET / HTTP/1.1\r\n\r\n")
        assert busy.acquire(timeout=20)
        assert busy.acquire(timeout=20)
        release.set()
        assert all(read_all(client).endswith(b"ok\n") for client in clients)
    assert most[0] == 2


def test_an_error_is_a_response_and_ends_nothing(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    failures = [ValueError("x")]

    def respond(request: HttpRequest) -> HttpResponse:
        if failures:
            raise failures.pop()
        return HttpResponse(200, b"ok\n")

    server = start(respond)
    assert get(server) == (500, b"Internal Server Error\n")
    assert get(server) == (200, b"ok\n")
    (record,) = caplog.records
    assert (record.getMessage(), record.__dict__["dljob_fields"]) == (
        "no response to an HTTP request",
        {"port": server.port},
    )
    assert "ValueError: x" in caplog.text


def trusting(path: Path) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(path))


def get_securely(server: HttpServer, context: ssl.SSLContext) -> int:
    with closing(http.client.HTTPSConnection("localhost", server.port, timeout=20, context=context)) as connection:
        connection.request("GET", "/")
        return connection.getresponse().status


def test_tls_with_a_certificate_that_changes(start: Start, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "dljob_operator")
    certificate, key = write_certificate(tmp_path)
    server = start(certificate=Certificate(certificate, key))
    first = trusting(certificate)
    assert get_securely(server, first) == 200
    write_certificate(tmp_path)
    second = trusting(certificate)
    assert get_securely(server, second) == 200
    with pytest.raises(ssl.SSLCertVerificationError):
        get_securely(server, first)
    key.write_text("half written")
    assert get_securely(server, second) == 200, "the previous certificate stays"
    loaded, failed = [record.__dict__["dljob_fields"] for record in caplog.records]
    assert loaded == {"file": certificate}
    assert (failed["file"], "PEM" in failed["error"]) == (certificate, True)


def test_a_handshake_has_to_end_in_time(start: Start, tmp_path: Path) -> None:
    server = start(certificate=Certificate(*write_certificate(tmp_path)), seconds=0.5)
    with connect(server) as silent, connect(server) as plain:
        assert read_all(silent) == b""
        plain.sendall(b"GET / HTTP/1.1\r\n\r\n")
        assert not read_all(plain).startswith(b"HTTP")
    until(lambda: not server.open_connections)


def test_an_unusable_certificate_is_reported_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(
        ValueError, match=r"the certificate .*none\.crt with the key .*none\.key is unusable: .*No such"
    ):
        Certificate(tmp_path / "none.crt", tmp_path / "none.key")


def test_a_stopped_server_refuses_connections(start: Start) -> None:
    server = start()
    assert get(server)[0] == 200
    port = server.port
    with connect(server) as open_:
        server.stop()
        assert read_all(open_) == b""
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=5)


@pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("clients", [0, 3])
def test_a_stop_leaves_nothing_open(start: Start, clients: int) -> None:
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    server = start()
    with ExitStack() as stack:
        connections = [stack.enter_context(connect(server)) for _ in range(clients)]
        until(lambda: server.open_connections == clients)
        server.stop()
        assert [read_all(connection) for connection in connections] == [b""] * clients
    assert len(os.listdir("/proc/self/fd")) <= before  # noqa: PTH208


def threads_of(server: HttpServer) -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith(f"http-{server.port}")]


def test_a_stop_ends_the_threads_and_does_not_wait_for_a_response(start: Start) -> None:
    asked, release = threading.Event(), threading.Event()

    def respond(request: HttpRequest) -> HttpResponse:
        asked.set()
        release.wait(20)
        return HttpResponse(200, b"late\n")

    server = start(respond)
    own, *others = threads_of(server)
    assert (own.daemon, others) == (True, []), "a process that ends without a stop does not wait for it"
    with connect(server) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\n\r\n")
        assert asked.wait(20)
        threads = threads_of(server)
        assert len(threads) == 2
        is_left: list[bool] = []

        def stop() -> None:
            server.stop()
            is_left.append(own.is_alive())

        stopping = threading.Thread(target=stop, daemon=True)
        stopping.start()
        stopping.join(10)
        assert is_left == [False]
        assert read_all(connection) == b""
        release.set()
    until(lambda: not any(thread.is_alive() for thread in threads))


@pytest.mark.parametrize(
    ("text", "expected"), [(":80", ("", 80)), ("127.0.0.1:0", ("127.0.0.1", 0)), ("[::1]:8080", ("::1", 8080))]
)
def test_addresses(text: str, expected: tuple[str, int]) -> None:
    assert parse_address("--x", text, ":80") == expected
