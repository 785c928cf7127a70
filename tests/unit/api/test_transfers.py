"""Requests over libcurl: how many at a time, in which order, to whom, and what is not sent."""

from __future__ import annotations

import math
import ssl
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.api.attempts import NoResponse, Response
from ansible_collections.dljob.operator.plugins.module_utils.api.steps import Steps, ask
from ansible_collections.dljob.operator.plugins.module_utils.api.transfers import Transfers
from ansible_collections.dljob.operator.plugins.module_utils.shared.connection import ApiRequest, Connection, TooLate
from kubernetes import client
from support.certificates import write_certificate
from support.polling import until
from support.scripted_server import Exchange, ScriptedServer, scripted

pytest.importorskip("pycurl", reason="the oldest versions run without it")
LONG = 20.0


class Barred:
    """A server whose answers wait until ``free`` is set; ``most`` requests were there at the same time."""

    def __init__(self) -> None:
        self.free = threading.Event()
        self.lock = threading.Lock()
        self.present = self.most = 0

    def __call__(self, exchange: Exchange) -> None:
        with self.lock:
            self.present += 1
            self.most = max(self.most, self.present)
        self.free.wait(LONG)
        with self.lock:
            self.present -= 1
        exchange.answer({})


def transfers(
    url: str, width: int = 4, seconds_left: Callable[[], float] | None = None, timeout: float = LONG, **settings: Any
) -> Transfers:
    configuration = client.Configuration(host=url)
    configuration.proxy = None
    for name, value in settings.items():
        setattr(configuration, name, value)
    return Transfers(Connection(client.ApiClient(configuration)), width, lambda: timeout, seconds_left)


def get(path: str = "/p") -> Steps[Response]:
    return ask(ApiRequest("GET", path))


def paths(server: ScriptedServer) -> list[str]:
    return [exchange.path for exchange in server.requests]


def test_results_have_the_order_of_the_steps() -> None:
    last = threading.Event()

    def respond(exchange: Exchange) -> None:
        if exchange.path == "/0":
            last.wait(LONG)
        exchange.answer({"path": exchange.path})
        if exchange.path == "/3":
            last.set()

    with scripted(respond) as server:
        found = transfers(server.url).each(get(f"/{number}") for number in range(4))
    assert [one.data for one in found] == [b'{"path": "/%d"}' % number for number in range(4)]


@pytest.mark.parametrize(("width", "at_once", "most"), [(4, math.inf, 4), (4, 2, 2), (1, 9, 1), (4, 0, 1)])
def test_no_more_at_a_time_than_the_caller_and_the_width_permit(width: int, at_once: float, most: int) -> None:
    respond = Barred()
    with scripted(respond) as server, ThreadPoolExecutor(1) as threads:
        done = threads.submit(transfers(server.url, width).each, (get() for _ in range(9)), lambda: at_once)
        until(lambda: respond.present == most)
        respond.free.set()
        assert len(done.result(LONG)) == 9
    assert respond.most == most


def test_several_callers_share_the_width() -> None:
    respond = Barred()
    with scripted(respond) as server, ThreadPoolExecutor(2) as threads:
        made = transfers(server.url, width=6)
        first = threads.submit(made.each, (get("/first") for _ in range(20)))
        until(lambda: respond.present == 6)
        second = threads.submit(made.each, (get("/second") for _ in range(20)))
        until(lambda: paths(server).count("/second") == 3)
        assert respond.present == 9, "the first caller's six, which nothing takes back, and half for the second"
        respond.free.set()
        assert len(first.result(LONG)) == len(second.result(LONG)) == 20


def test_the_next_caller_takes_over_the_connections() -> None:
    with scripted(lambda exchange: exchange.answer({})) as server:
        made = transfers(server.url)
        for _ in range(5):
            made.each([get()])
        assert len({exchange.connection for exchange in server.requests}) == 1


def test_the_error_of_the_first_steps_is_raised_once_all_have_ended() -> None:
    ended: list[int] = []

    def steps(number: int) -> Steps[None]:
        yield ApiRequest("GET", f"/{number}")
        if number in (1, 2):
            raise ValueError(number)
        ended.append(number)

    with scripted(lambda exchange: exchange.answer({})) as server, pytest.raises(ValueError, match="1"):
        transfers(server.url).each(steps(number) for number in range(5))
    assert sorted(ended) == [0, 3, 4]


def test_others_go_on_during_a_pause() -> None:
    order: list[str] = []

    def waits() -> Steps[None]:
        yield 0.2
        order.append("after the pause")

    def asks() -> Steps[None]:
        yield ApiRequest("GET", "/p")
        order.append("answer")

    with scripted(lambda exchange: exchange.answer({})) as server:
        transfers(server.url).each([waits(), asks(), asks()])
    assert order == ["answer", "answer", "after the pause"]


def test_what_interrupts_the_steps_ends_the_requests_in_progress() -> None:
    respond = Barred()

    def interrupted() -> Steps[None]:
        until(lambda: respond.present == 0)
        yield 0.05
        raise KeyboardInterrupt

    with scripted(respond) as server:
        made = transfers(server.url)
        with pytest.raises(KeyboardInterrupt):
            made.each([get("/lost"), interrupted()])
        respond.free.set()
        (found,) = made.each([get("/next")])
    assert found.status == 200


def test_nothing_is_sent_once_it_is_closed() -> None:
    with scripted(lambda exchange: exchange.answer({})) as server:
        made = transfers(server.url)
        made.each([get()])
        made.close()
        with pytest.raises(RuntimeError, match="closed"):
            made.each([get()])


# --- what a request needs


def test_a_body_after_a_request_without_one() -> None:
    with scripted(lambda exchange: exchange.answer({})) as server:
        made = transfers(server.url)
        for method, body in (("GET", None), ("POST", {"a": 1}), ("DELETE", None), ("PATCH", []), ("GET", None)):
            made.each([ask(ApiRequest(method, "/p", body))])
    assert [(exchange.method, exchange.body) for exchange in server.requests] == [
        ("GET", None), ("POST", {"a": 1}), ("DELETE", None), ("PATCH", []), ("GET", None),
    ]  # fmt: skip


@pytest.mark.parametrize("status", [429, 503])
def test_a_response_says_when_to_try_again(status: int) -> None:
    def respond(exchange: Exchange) -> None:
        exchange.handler.send_response(status)
        exchange.handler.send_header("Retry-After", "3")
        exchange.handler.send_header("Content-Length", "0")
        exchange.handler.end_headers()

    with scripted(respond) as server:
        (found,) = transfers(server.url).each([get()])
    assert found == Response(status, b"", "3")


def caught(made: Transfers, request: ApiRequest) -> NoResponse | TooLate:
    with pytest.raises((NoResponse, TooLate)) as error:
        made.each([ask(request)])
    assert isinstance(error.value, NoResponse | TooLate)
    return error.value


def test_a_server_that_cannot_be_reached_has_not_got_the_request() -> None:
    error = caught(transfers("http://127.0.0.1:1"), ApiRequest("POST", "/p", {}))
    assert isinstance(error, NoResponse)
    assert not error.was_sent


def test_a_server_that_answers_nothing_may_have_got_it() -> None:
    with scripted(Exchange.hang) as server:
        error = caught(transfers(server.url, timeout=0.2), ApiRequest("POST", "/p", {}))
    assert isinstance(error, NoResponse)
    assert (error.was_sent, error.timed_out) == (True, True)


def test_a_server_that_closes_the_connection_may_have_got_it() -> None:
    def close(exchange: Exchange) -> None:
        exchange.handler.close_connection = True

    with scripted(close) as server:
        error = caught(transfers(server.url), ApiRequest("POST", "/p", {}))
    assert isinstance(error, NoResponse)
    assert (error.was_sent, error.timed_out) == (True, False)


# --- the deadline of the leader


def test_a_write_is_not_sent_if_the_deadline_passes_while_its_connection_opens() -> None:
    left = iter([5.0, 0.0])
    with scripted(lambda exchange: exchange.answer({})) as server:
        made = transfers(server.url, seconds_left=lambda: next(left))
        error = caught(made, ApiRequest("POST", "/p", {}))
        assert str(error) == "POST /p was not sent: this operator is no longer the leader"
        assert isinstance(error, TooLate)
        made.each([get("/read")])
    assert paths(server) == ["/read"]


@pytest.mark.parametrize(("still_leads", "sent"), [(True, 2), (False, 1)])
def test_what_a_kept_connection_loses_is_sent_again_only_by_the_leader(still_leads: bool, sent: int) -> None:
    left = [math.inf]

    def respond(exchange: Exchange) -> None:
        if paths(server).count("/lost") == 1 and exchange.path == "/lost":
            if not still_leads:
                left[0] = 0.0
            exchange.handler.close_connection = True
            return
        exchange.answer({})

    with scripted(respond) as server:
        made = transfers(server.url, seconds_left=lambda: left[0])
        made.each([get()])
        if still_leads:
            (found,) = made.each([ask(ApiRequest("POST", "/lost", {"a": 1}))])
            assert found.status == 200
        else:
            assert isinstance(caught(made, ApiRequest("POST", "/lost", {"a": 1})), TooLate)
    assert [exchange.body for exchange in server.requests if exchange.path == "/lost"] == [{"a": 1}] * sent


# --- to whom


class _Answer(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def tls_server(certificate: Path, key: Path, trusted: Path | None = None) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Answer) as server:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        if trusted is not None:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(trusted)
        server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"https://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture
def folder(tmp_path: Path) -> Callable[[str], Path]:
    def made(name: str) -> Path:
        (tmp_path / name).mkdir()
        return tmp_path / name

    return made


def test_the_certificate_of_the_server_is_verified(folder: Callable[[str], Path]) -> None:
    names = ["IP:127.0.0.1"]
    certificate, key = write_certificate(folder("server"), names)
    other, _ = write_certificate(folder("other"), names)
    with tls_server(certificate, key) as url:
        (found,) = transfers(url, ssl_ca_cert=str(certificate)).each([get()])
        assert found.status == 200
        for untrusting in ({"ssl_ca_cert": str(other)}, {}):
            assert isinstance(caught(transfers(url, **untrusting), ApiRequest("GET", "/p")), NoResponse)
        (found,) = transfers(url, verify_ssl=False).each([get()])
        assert found.status == 200


def test_the_certificate_may_be_for_another_name(folder: Callable[[str], Path]) -> None:
    certificate, key = write_certificate(folder("server"), ["DNS:kubernetes.test"])
    trusting = {"ssl_ca_cert": str(certificate)}
    with tls_server(certificate, key) as url:
        assert isinstance(caught(transfers(url, **trusting), ApiRequest("GET", "/p")), NoResponse)
        for settings in ({"tls_server_name": "kubernetes.test"}, {"assert_hostname": False}):
            (found,) = transfers(url, **trusting, **settings).each([get()])
            assert found.status == 200


def test_a_client_shows_its_certificate(folder: Callable[[str], Path]) -> None:
    certificate, key = write_certificate(folder("server"), ["IP:127.0.0.1"])
    own, own_key = write_certificate(folder("client"))
    with tls_server(certificate, key, trusted=own) as url:
        trusting = {"ssl_ca_cert": str(certificate)}
        assert isinstance(caught(transfers(url, **trusting), ApiRequest("GET", "/p")), NoResponse)
        (found,) = transfers(url, **trusting, cert_file=str(own), key_file=str(own_key)).each([get()])
    assert found.status == 200


def test_the_proxy_is_that_of_the_configuration_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    monkeypatch.setenv("NO_PROXY", "*")
    with scripted(lambda exchange: exchange.answer({})) as server:
        transfers(server.url + "/prefix/").each([get("/direct")])
        proxy = server.url.replace("http://", "http://user:p%40ss@")
        transfers("http://cluster.invalid:6443/prefix", proxy=proxy).each([get("/proxied")])
    direct, proxied = (exchange.handler for exchange in server.requests)
    assert direct.path == "/prefix/direct"
    assert proxied.path == "http://cluster.invalid:6443/prefix/proxied"
    assert proxied.headers["Proxy-Authorization"] == "Basic dXNlcjpwQHNz"
