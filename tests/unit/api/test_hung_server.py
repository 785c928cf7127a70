"""A reconcile beside an API server that accepts connections and answers nothing."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.api import rest_client
from ansible_collections.dljob.operator.plugins.module_utils.api.rest_client import RestClient
from ansible_collections.dljob.operator.plugins.module_utils.shared.response import ApiError
from kubernetes import client
from support.scripted_server import Exchange, scripted


@pytest.mark.parametrize(("method", "most"), [("GET", 4), ("POST", 1), ("PATCH", 1)])
def test_a_request_ends_and_is_not_repeated_where_it_may_have_been_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str, most: int
) -> None:
    monkeypatch.setattr(rest_client, "TIMEOUT", 0.3)
    arrived = threading.Event()

    def hang(exchange: Exchange) -> None:
        arrived.set()
        exchange.hang()

    with scripted(hang) as server:
        with RestClient(client.ApiClient(client.Configuration(host=server.url)), str(tmp_path)) as api:
            began = time.monotonic()
            with pytest.raises(ApiError, match="timed out") as failed:
                api.request(method, "/api/v1/pods", None if method == "GET" else {})
            assert time.monotonic() - began < 10
        assert (failed.value.status, failed.value.reason) == (0, "NoAnswer")
        assert arrived.wait(10), "on a loaded machine the server may read the request after the client has given up"
        assert len(server.requests) <= most
