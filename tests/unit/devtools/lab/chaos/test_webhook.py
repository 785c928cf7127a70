"""Admission webhooks of a run that do not answer."""

from __future__ import annotations

import socket
import urllib.parse
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from devtools.lab.chaos.faults import Fault
from devtools.lab.chaos.webhook import PATH, SilentWebhook
from devtools.testbed.client import Client

NODE = {"status": {"addresses": [{"type": "InternalIP", "address": "127.0.0.1"}]}}
Later = list[tuple[float, Callable[[], None]]]


@dataclass
class FakeClient:
    """Has the created configurations by name."""

    present: dict[str, dict[str, Any]] = field(default_factory=dict)

    def items(self, path: str) -> list[dict[str, Any]]:
        return [NODE]

    def request(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        if method == "POST":
            assert path == PATH
            self.present[body["metadata"]["name"]] = body
        else:
            assert method == "DELETE"
            self.present.pop(path.removeprefix(f"{PATH}/"), None)
        return {}


def fault(number: int = 7, pick: float = 0.0) -> Fault:
    return Fault(number, "webhook silent", 0, 0.0, seconds=4.0, pick=pick)


@pytest.mark.parametrize(
    ("pick", "hit", "rules"),
    [
        (0.4, "pods", {("CREATE", "", "pods")}),
        (
            0.5,
            "all writes",
            {("CREATE", "", "pods"), ("CREATE", "batch", "jobs"), ("UPDATE", "kubeflow.org", "mxjobs/status")},
        ),
    ],
)
def test_it_ends_after_its_seconds(pick: float, hit: str, rules: set[tuple[str, str, str]]) -> None:
    client, due = FakeClient(), cast(Later, [])
    with SilentWebhook(cast(Client, client), "chaos") as webhook:
        assert webhook.apply(fault(pick=pick), lambda *one: due.append(one)) == hit
        (hook,) = client.present["chaos-7"]["webhooks"]
        assert hook["namespaceSelector"] == {"matchLabels": {"kubernetes.io/metadata.name": "chaos"}}
        assert hook["failurePolicy"] == "Fail", "without an answer a write is refused"
        found = {(*one["operations"], *one["apiGroups"], *one["resources"]) for one in hook["rules"]}
        assert rules <= found
        assert (len(found) == 1) is (hit == "pods")
        ((seconds, action),) = due
        assert seconds == 4.0
        action()
        assert client.present == {}
        assert webhook.names == []


def test_none_is_left_when_a_round_settles_or_the_run_ends() -> None:
    client = FakeClient()
    with SilentWebhook(cast(Client, client), "chaos") as webhook:
        webhook.apply(fault(1), lambda *_: None)
        webhook.apply(fault(2), lambda *_: None)
        webhook.remove_all()
        assert client.present == {}
        webhook.apply(fault(3), lambda *_: None)
    assert client.present == {}


def test_its_server_accepts_connections_and_does_not_answer() -> None:
    client = FakeClient()
    with SilentWebhook(cast(Client, client), "chaos") as webhook:
        webhook.apply(fault(), lambda *_: None)
        url = urllib.parse.urlsplit(client.present["chaos-7"]["webhooks"][0]["clientConfig"]["url"])
        with socket.create_connection((str(url.hostname), int(url.port or 0)), timeout=0.2) as connection:
            connection.sendall(b"hello")
            with pytest.raises(TimeoutError):
                connection.recv(1)
