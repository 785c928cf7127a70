"""What a client gets through the proxy, and what reaches the API server: here a server of this test."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from devtools.lab.chaos.faults import BY_NAME, Fault
from devtools.lab.chaos.injector import Injector
from devtools.lab.chaos.proxy import Proxy, Trail, write_kubeconfig
from support.polling import until

PODS = "/api/v1/namespaces/n/pods"
EVENTS = [json.dumps({"type": "ADDED", "object": {"metadata": {"resourceVersion": str(n)}}}) for n in (1, 2, 3)]


class Server(BaseHTTPRequestHandler):
    """Answers a write with its body, and a watch with EVENTS."""

    protocol_version = "HTTP/1.1"
    bodies: list[bytes]

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""

    def do_GET(self) -> None:
        text = "".join(f"{event}\n" for event in EVENTS) if "watch" in self.path else '{"items": []}'
        self.answer(text.encode())

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.bodies.append(body)
        self.answer(body)

    do_PUT = do_POST

    def answer(self, data: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def address(server: ThreadingHTTPServer) -> str:
    """Its URL; it needs no certificate."""
    return f"http://127.0.0.1:{server.server_address[1]}"


@pytest.fixture
def bodies() -> list[bytes]:
    """The bodies of the writes that took effect."""
    return []


@pytest.fixture
def proxy(bodies: list[bytes]) -> Iterator[Proxy]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (Server,), {"bodies": bodies}))
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    with Proxy("a", address(server), None, Trail(), Injector()) as made:
        yield made
    server.shutdown()
    server.server_close()
    thread.join(10)


def arm(proxy: Proxy, kind: str, seconds: float = 0.3) -> None:
    proxy.injector.arm(Fault(0, kind, 0, 0.0, seconds=seconds))


def request(proxy: Proxy, method: str = "POST", path: str = PODS, body: bytes | None = b"{}") -> Any:
    """The response, None where the connection closed without one."""
    connection = http.client.HTTPConnection(proxy.url.removeprefix("http://"), timeout=20)
    try:
        connection.request(method, path, body)
        response = connection.getresponse()
        response.body = response.read()  # type: ignore[attr-defined]
        return response
    except (ConnectionError, http.client.HTTPException):
        return None
    finally:
        connection.close()


def watch(proxy: Proxy) -> tuple[list[str], bool]:
    """The lines of a watch, and whether it ended as HTTP demands."""
    connection = http.client.HTTPConnection(proxy.url.removeprefix("http://"), timeout=20)
    try:
        connection.request("GET", f"{PODS}?watch=true")
        return connection.getresponse().read().decode().splitlines(), True
    except http.client.IncompleteRead as error:
        return error.partial.decode().splitlines(), False
    finally:
        connection.close()


def test_a_request_passes_and_is_logged(proxy: Proxy, bodies: list[bytes]) -> None:
    response = request(proxy)
    assert (response.status, response.body) == (200, b"{}")
    assert bodies == [b"{}"]
    assert [(one.method, one.path, one.status) for one in proxy.trail.writes_since(0, "n")] == [("POST", PODS, 200)]


@pytest.mark.parametrize("path", [PODS.replace("/n/", "/other/"), "/apis/coordination.k8s.io/v1/namespaces/n/leases/x"])
def test_the_lease_and_other_namespaces_are_no_writes_for_a_job(proxy: Proxy, path: str) -> None:
    assert request(proxy, path=path).status == 200
    assert proxy.trail.writes_since(0, "n") == []


@pytest.mark.parametrize(
    ("kind", "status", "effect"),
    [
        ("conflict", 409, False),
        ("throttled", 429, False),
        ("server error", 500, False),
        ("error after write", 500, True),
        ("slow response", 200, True),
        ("timeout", None, False),
        ("lost response", None, True),
        ("half-open", None, False),
        ("half-open after write", None, True),
        ("kill before write", None, False),
        ("kill after write", None, True),
    ],
)
def test_a_fault_of_a_request(proxy: Proxy, bodies: list[bytes], kind: str, status: int | None, effect: bool) -> None:
    arm(proxy, kind)
    response = request(proxy, "PUT")
    assert (response.status if response else None) == status
    assert bool(bodies) == effect
    if status == 429:
        assert response.getheader("Retry-After") == "1"
    assert request(proxy, "PUT").status == 200, "the next request has no fault"


@pytest.mark.parametrize("kind", ["late write", "kill during write"])
def test_a_write_takes_effect_after_its_connection_has_closed(proxy: Proxy, bodies: list[bytes], kind: str) -> None:
    arm(proxy, kind, seconds=1.0)
    assert request(proxy) is None
    assert bodies == []
    until(lambda: bodies)


@pytest.mark.parametrize("when", ["before", "during", "after"])
def test_a_kill_hits_the_process_that_the_fault_names(proxy: Proxy, when: str) -> None:
    killed: list[str] = []
    proxy.kill = lambda fault: killed.append(fault.process)
    proxy.injector.arm(Fault(0, f"kill {when} write", 0, 0.0, process="worker"))
    request(proxy)
    assert killed == ["worker"]


def test_a_watch_passes(proxy: Proxy) -> None:
    assert watch(proxy) == (EVENTS, True)


@pytest.mark.parametrize(
    ("kind", "lines", "ended"),
    [
        ("event dropped", [], False),
        ("event cut", [EVENTS[0][: (len(EVENTS[0]) + 1) // 2]], False),
        ("event delayed", EVENTS, True),
        ("event duplicated", [EVENTS[0], *EVENTS], True),
        ("watch silent", [], False),
    ],
)
def test_a_fault_of_an_event(proxy: Proxy, kind: str, lines: list[str], ended: bool) -> None:
    """No watch goes on after an event that it has not delivered."""
    arm(proxy, kind)
    assert watch(proxy) == (lines, ended)


def test_gone_replaces_an_event_and_ends_the_watch(proxy: Proxy) -> None:
    arm(proxy, "event gone")
    lines, _ = watch(proxy)
    assert [json.loads(line)["object"]["code"] for line in lines] == [410]


def test_a_partition_ends(proxy: Proxy) -> None:
    proxy.partition(0.5)
    assert request(proxy) is None
    until(lambda: not proxy.refuses)
    assert request(proxy).status == 200


def test_it_ends_while_a_watch_is_open(proxy: Proxy) -> None:
    with Proxy("b", proxy.server, None, Trail(), Injector()) as ending:
        arm(ending, "watch silent", 60)
        connection = http.client.HTTPConnection(ending.url.removeprefix("http://"), timeout=20)
        connection.request("GET", f"{PODS}?watch=true")
        connection.getresponse()
        began = time.monotonic()
    connection.close()
    assert time.monotonic() - began < 10


def test_every_duration_of_a_half_open_request_exceeds_the_clients_timeout() -> None:
    """A reconcile gives up after 30 s."""
    assert BY_NAME["half-open"].seconds[0] > 30


def test_the_operator_finds_the_proxy_in_the_kubeconfig(tmp_path: Path, proxy: Proxy) -> None:
    write_kubeconfig(tmp_path / "kubeconfig", proxy.url)
    assert json.loads((tmp_path / "kubeconfig").read_text())["clusters"][0]["cluster"] == {"server": proxy.url}


def test_a_write_is_of_a_time_before_its_effect(proxy: Proxy, bodies: list[bytes]) -> None:
    """Others see the effect before the answer, on a loaded machine long before."""
    answered = threading.Event()

    class Slow(list[bytes]):
        def append(self, body: bytes) -> None:
            super().append(body)
            answered.wait(10)

    slow = Slow()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (Server,), {"bodies": slow}))
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    proxy.server = address(server)
    writer = threading.Thread(target=request, args=(proxy,), daemon=True)
    writer.start()
    until(lambda: bool(slow))
    seen = time.monotonic()
    answered.set()
    writer.join(10)
    server.shutdown()
    server.server_close()
    assert len(proxy.trail.writes_since(0, "n")) == 1
    assert proxy.trail.writes_since(seen, "n") == []
