"""Whether requests go through a proxy: both REST clients beside a server and a proxy that record what they get.

`make test-oldest` runs it with the oldest kubernetes client, whose own choice is another.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.dljob.operator.plugins.module_utils.api.rest_client import connect
from ansible_collections.dljob.operator.plugins.module_utils.shared import cluster_config
from kubernetes.config import incluster_config
from support import service_account
from support.scripted_server import Exchange, ScriptedServer, scripted

from dljob_operator.engine.kube import KubeApi, NoCluster

VARIABLES = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY")
ELSEWHERE = "http://api.cluster.invalid:6443"
"""A server of this name has no address, so only a proxy can answer for it."""


def _ask_engine(kubeconfig: Path) -> Any:
    return KubeApi.connect(kubeconfig).get("/api")


def _ask_as_leader(kubeconfig: Path) -> Any:
    return KubeApi.connect(kubeconfig).with_own_connections().get("/api")


def _ask_reconcile(kubeconfig: Path) -> Any:
    with connect(str(kubeconfig)) as api:
        return api.request("GET", "/api")


CLIENTS = pytest.mark.parametrize("ask", [_ask_engine, _ask_as_leader, _ask_reconcile])


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.upper() in VARIABLES]:
        monkeypatch.delenv(name)


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with scripted(lambda exchange: exchange.answer({"from": "the server"})) as listening:
        yield listening


@pytest.fixture
def credentials() -> list[str | None]:
    """The proxy's credentials that came with each request."""
    return []


@pytest.fixture
def proxy(credentials: list[str | None]) -> Iterator[ScriptedServer]:
    def answer(exchange: Exchange) -> None:
        credentials.append(exchange.handler.headers["Proxy-Authorization"])
        exchange.answer({"from": "the proxy", "target": exchange.handler.path})

    with scripted(answer) as listening:
        yield listening


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Callable[..., Path]:
    def write(url: str, **cluster: Any) -> Path:
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "here",
            "contexts": [
                {"name": "there", "context": {"cluster": "there", "user": "u"}},
                {"name": "here", "context": {"cluster": "here", "user": "u"}},
            ],
            "clusters": [
                {"name": "there", "cluster": {"server": "http://there.invalid", "proxy-url": "http://there.invalid"}},
                {"name": "here", "cluster": {"server": url, **cluster}},
            ],
            "users": [{"name": "u", "user": {"token": "t"}}],
        }
        path = tmp_path / "config"
        path.write_text(yaml.safe_dump(content))
        return path

    return write


@CLIENTS
def test_a_server_on_loopback_is_asked_directly(
    ask: Callable[[Path], Any],
    server: ScriptedServer,
    proxy: ScriptedServer,
    kubeconfig: Callable[..., Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HTTP_PROXY", proxy.url)
    assert ask(kubeconfig(server.url)) == {"from": "the server"}
    assert ask(kubeconfig(server.url.replace("127.0.0.1", "localhost"))) == {"from": "the server"}
    assert proxy.requests == []


@CLIENTS
@pytest.mark.parametrize("variable", ["HTTP_PROXY", "http_proxy"])
def test_another_server_is_asked_through_the_proxy(
    ask: Callable[[Path], Any],
    variable: str,
    proxy: ScriptedServer,
    kubeconfig: Callable[..., Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(variable, proxy.url)
    monkeypatch.setenv("NO_PROXY", "10.0.0.0/8,cluster.local")
    assert ask(kubeconfig(ELSEWHERE)) == {"from": "the proxy", "target": f"{ELSEWHERE}/api"}


@CLIENTS
@pytest.mark.parametrize("no_proxy", ["", "*", "127.0.0.0/8", "127.0.0.1"])
def test_the_proxy_of_the_kubeconfig_comes_first(
    ask: Callable[[Path], Any],
    no_proxy: str,
    server: ScriptedServer,
    proxy: ScriptedServer,
    kubeconfig: Callable[..., Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As kubectl has it: neither loopback nor NO_PROXY is an exception."""
    monkeypatch.setenv("HTTP_PROXY", "http://other.invalid")
    monkeypatch.setenv("NO_PROXY", no_proxy)
    path = kubeconfig(server.url, **{"proxy-url": proxy.url})
    assert ask(path) == {"from": "the proxy", "target": f"{server.url}/api"}


@pytest.mark.parametrize("no_proxy", ["10.0.0.0/8", "10.96.0.1:443", "*"])
def test_no_proxy_holds_for_both_clients(
    no_proxy: str, kubeconfig: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.invalid")
    path = kubeconfig("https://10.96.0.1")
    assert [proxy.host for proxy in _proxies(path) if proxy] == ["proxy.invalid"] * 2
    monkeypatch.setenv("NO_PROXY", no_proxy)
    assert _proxies(path) == [None, None]


def _proxies(kubeconfig: Path) -> list[Any]:
    with connect(str(kubeconfig)) as api:
        return [KubeApi.connect(kubeconfig).connection.pool.proxy, api.connection.pool.proxy]


@CLIENTS
@pytest.mark.parametrize(
    ("text", "sent"), [("user:pass", "user:pass"), ("us%40er:p%C3%A4ss", "us@er:päss"), ("u", "u:")]
)
def test_the_credentials_of_a_proxy(
    ask: Callable[[Path], Any],
    text: str,
    sent: str,
    proxy: ScriptedServer,
    credentials: list[str | None],
    kubeconfig: Callable[..., Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HTTP_PROXY", proxy.url.replace("//", f"//{text}@"))
    ask(kubeconfig(ELSEWHERE))
    assert credentials == [f"Basic {base64.b64encode(sent.encode()).decode()}"]


@pytest.mark.parametrize("context", ["there", None])
def test_the_proxy_is_that_of_the_context(context: str | None, kubeconfig: Callable[..., Path]) -> None:
    made = cluster_config.from_kubeconfig(str(kubeconfig(ELSEWHERE)), context)
    assert made.proxy == ("http://there.invalid" if context else None)


@pytest.mark.parametrize("host", ["127.0.0.1", "10.96.0.1", "10.97.0.1"])
def test_a_pod_has_the_same_rules(host: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    service_account.mount(monkeypatch, tmp_path, "t", (host, 443))
    monkeypatch.setattr(incluster_config, "SERVICE_CERT_FILENAME", str(tmp_path / "ca.crt"))
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.invalid")
    monkeypatch.setenv("NO_PROXY", "10.96.0.0/16")
    expected = "http://proxy.invalid" if host == "10.97.0.1" else None
    assert cluster_config.from_service_account().proxy == expected


@pytest.mark.parametrize("url", ["ftp://proxy.example:1", "http://", "http://proxy:port", "http://user:secret@:1"])
def test_a_proxy_that_cannot_be_used_is_named(
    url: str, kubeconfig: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", url)
    path = kubeconfig(ELSEWHERE)
    with pytest.raises(ValueError, match="HTTP_PROXY, is no usable URL; give it as http://HOST:PORT") as caught:
        connect(str(path))
    assert "secret" not in str(caught.value)
    with pytest.raises(NoCluster, match="HTTP_PROXY, is no usable URL"):
        KubeApi.connect(path)
