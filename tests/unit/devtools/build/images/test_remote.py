"""Reads of an image's label from the registry, over HTTP."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from devtools.build.images import context, remote


class Registry:
    """A registry that serves the two requests of the tool from a table."""

    def __init__(self) -> None:
        table: dict[str, Any] = {}

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                found = table.get(self.path)
                self.send_response(200 if found is not None else 404)
                self.end_headers()
                self.wfile.write(json.dumps(found).encode())

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self.table = table
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def put(self, repository: str, tag: str, config: Any) -> None:
        self.table[f"/v2/{repository}/manifests/{tag}"] = {"config": {"digest": "sha256:1"}}
        self.table[f"/v2/{repository}/blobs/sha256:1"] = config


@pytest.fixture
def registry() -> Iterator[Registry]:
    started = Registry()
    yield started
    started.server.shutdown()
    started.server.server_close()


def test_the_label_of_what_is_served(registry: Registry) -> None:
    registry.put("docker.io/example/mxnet", "test", {"config": {"Labels": {context.LABEL: "k1"}}})
    assert remote.content(registry.port, "example/mxnet:test") == "k1"
    registry.put("gcr.io/a/b", "latest", {"config": {"Labels": {context.LABEL: "k2"}}})
    assert remote.content(registry.port, "gcr.io/a/b") == "k2"


@pytest.mark.parametrize(
    "config", [{}, {"config": None}, {"config": {"Labels": None}}, {"config": {"Labels": {"a": "b"}}}]
)
def test_an_image_without_the_label(registry: Registry, config: Any) -> None:
    registry.put("docker.io/a/b", "1", config)
    assert remote.content(registry.port, "a/b:1") is None


def test_an_image_that_is_not_there_or_only_half(registry: Registry) -> None:
    assert remote.content(registry.port, "a/b:1") is None
    registry.put("docker.io/a/b", "1", {})
    del registry.table["/v2/docker.io/a/b/blobs/sha256:1"]
    assert remote.content(registry.port, "a/b:1") is None


def test_a_list_of_images_is_not_one_of_ours(registry: Registry) -> None:
    registry.table["/v2/docker.io/a/b/manifests/1"] = {"manifests": []}
    assert remote.content(registry.port, "a/b:1") is None


def test_no_registry_at_all() -> None:
    stopped = Registry()
    stopped.server.shutdown()
    stopped.server.server_close()
    assert remote.content(stopped.port, "a/b:1") is None
