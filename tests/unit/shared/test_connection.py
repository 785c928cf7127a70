"""Where requests go, and their credentials, which the kubernetes client renews."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.api.rest_client import RestClient
from ansible_collections.dljob.operator.plugins.module_utils.shared import connection
from ansible_collections.dljob.operator.plugins.module_utils.shared.connection import (
    CREDENTIALS_TTL,
    ApiRequest,
    Connection,
    TooLate,
    check_deadline,
)
from kubernetes import client

TIMEOUT = 5.0, 5.0


class Clock:
    now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(connection, "time", made)
    return made


@pytest.fixture
def server() -> Iterator[str]:
    """Responds to every request with the request's target and headers."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            data = json.dumps(
                {"target": self.path, **{key.lower(): value for key, value in self.headers.items()}}
            ).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        listening.daemon_threads = True
        threading.Thread(target=listening.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{listening.server_port}"
        listening.shutdown()


@pytest.fixture
def renewed() -> list[str]:
    """The tokens that were issued."""
    return []


@pytest.fixture
def token_client(server: str, renewed: list[str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[RestClient]:
    configuration = client.Configuration(host=server, api_key={"authorization": "Bearer old"})

    def renew(held: client.Configuration) -> None:
        renewed.append(f"Bearer {len(renewed)}")
        held.api_key["authorization"] = renewed[-1]

    configuration.refresh_api_key_hook = renew
    with RestClient(client.ApiClient(configuration), str(tmp_path_factory.mktemp("credentials"))) as made:
        yield made


def test_the_token_is_renewed_by_the_library(token_client: RestClient, clock: Clock) -> None:
    assert token_client.request("GET", "/")["authorization"] == "Bearer 0"
    clock.now += CREDENTIALS_TTL
    assert token_client.request("GET", "/")["authorization"] == "Bearer 1"


def test_the_library_is_not_asked_at_each_request(token_client: RestClient, clock: Clock, renewed: list[str]) -> None:
    for _ in range(5):
        assert token_client.request("GET", "/")["authorization"] == "Bearer 0"
    assert renewed == ["Bearer 0"]


def test_credentials_that_took_long_are_cached_too(token_client: RestClient, clock: Clock, renewed: list[str]) -> None:
    configuration = token_client.connection.configuration
    renew = configuration.refresh_api_key_hook

    def take_long(held: client.Configuration) -> None:
        clock.now += 2 * CREDENTIALS_TTL
        renew(held)

    configuration.refresh_api_key_hook = take_long
    for _ in range(3):
        token_client.request("GET", "/")
    assert renewed == ["Bearer 0"]


@pytest.mark.parametrize("prefix", ["", "/", "/k8s/clusters/c-1", "/k8s/clusters/c-1/"])
def test_the_url_of_the_server_may_have_a_path(server: str, prefix: str) -> None:
    made = Connection(client.ApiClient(client.Configuration(host=server + prefix)))
    for query, text in ((None, ""), ({"limit": 5, "labelSelector": "a=b"}, "?limit=5&labelSelector=a%3Db")):
        response = made.send(ApiRequest("GET", "/api/v1/pods", query=query), TIMEOUT, lambda: math.inf)
        assert response.json()["target"] == f"{prefix.rstrip('/')}/api/v1/pods{text}"


def test_a_proxy_gets_the_whole_url(server: str) -> None:
    configuration = client.Configuration(host="http://cluster.invalid:6443/prefix")
    configuration.proxy = server
    response = Connection(client.ApiClient(configuration)).send(ApiRequest("GET", "/api"), TIMEOUT, lambda: math.inf)
    assert response.json()["target"] == "http://cluster.invalid:6443/prefix/api"


@pytest.mark.parametrize(("left", "seconds"), [(5.0, 2.5), (0.5, 0.25), (float("inf"), float("inf"))])
def test_each_step_of_opening_a_connection_takes_at_most_half_of_what_is_left(left: float, seconds: float) -> None:
    assert check_deadline(lambda: left, ApiRequest("POST", "/p")) == seconds, "TCP and TLS are two steps"


@pytest.mark.parametrize("left", [0.0, -1.0, float("-inf")])
def test_no_connection_is_opened_for_a_write_that_is_too_late(left: float) -> None:
    with pytest.raises(TooLate, match=r"^POST /p was not sent: this operator is no longer the leader$"):
        check_deadline(lambda: left, ApiRequest("POST", "/p"))
