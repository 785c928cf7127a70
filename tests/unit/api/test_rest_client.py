"""The REST client against an HTTP server: responses, errors, time limits, and what it leaves behind."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import urllib3
import yaml
from ansible_collections.dljob.operator.plugins.module_utils.api import rest_client
from ansible_collections.dljob.operator.plugins.module_utils.api.rest_client import connect
from ansible_collections.dljob.operator.plugins.module_utils.shared.response import ApiError


class Server(ThreadingHTTPServer):
    """Answers each request with ``answer``, and records it."""

    daemon_threads = True
    answer: tuple[int, bytes] = (200, b"{}")

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked: list[tuple[str, str, str, bytes]] = []
        self.free = threading.Event()
        self.free.set()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def _answer(self) -> None:
        data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.server.asked.append((self.command, self.path, self.headers.get("Content-Type") or "", data))
        self.server.free.wait(5)
        status, body = self.server.answer
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = do_PATCH = _answer

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as made:
        threading.Thread(target=made.serve_forever, daemon=True).start()
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
    monkeypatch.setattr(rest_client, "TIMEOUT", urllib3.Timeout(connect=5, read=0.1))
    server.free.clear()
    with connect(kubeconfig) as client, pytest.raises(ApiError, match="GET /p") as caught:
        client.request("GET", "/p")
    assert (caught.value.status, caught.value.reason, caught.value.permanent) == (0, "NoAnswer", False)


def test_nothing_is_left_of_a_connection(kubeconfig: str, server: Server) -> None:
    with connect(kubeconfig) as client:
        folder = Path(client.folder)
        assert folder.is_dir()
    assert not folder.exists()


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
        assert client.client.configuration.connection_pool_maxsize == 3
