"""Which requests of the client go through a proxy: those that kubectl sends there."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator

import pytest
from dljob.api import Api, Request
from dljob.config import Config
from support.scripted_server import Exchange, ScriptedServer, scripted

VARIABLES = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY")
ELSEWHERE = "http://api.cluster.invalid:6443"
"""A server of this name has no address, so only a proxy can answer for it."""


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.upper() in VARIABLES]:
        monkeypatch.delenv(name)


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with scripted(lambda exchange: exchange.answer({"from": "the server"})) as listening:
        yield listening


@pytest.fixture
def proxy() -> Iterator[ScriptedServer]:
    def answer(exchange: Exchange) -> None:
        exchange.answer({"from": "the proxy", "target": exchange.handler.path})

    with scripted(answer) as listening:
        yield listening


@pytest.mark.parametrize("variable", ["HTTP_PROXY", "http_proxy"])
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_server_on_loopback_is_asked_directly(
    host: str, variable: str, server: ScriptedServer, proxy: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, proxy.url)
    api = Api(Config(server.url.replace("127.0.0.1", host)))
    assert api.get("/x") == {"from": "the server"}
    assert [line for _, line in api.lines({"": Request("/x", {"watch": "true"})}, 5)], "a stream, too"
    assert proxy.requests == []


def test_a_server_on_loopback_of_ipv6_is_asked_directly(proxy: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    if not _has_ipv6():
        pytest.skip("this machine has no ::1")
    monkeypatch.setenv("http_proxy", proxy.url)
    with scripted(lambda exchange: exchange.answer({"from": "the server"}), "::1") as server:
        assert Api(Config(server.url)).get("/x") == {"from": "the server"}
    assert proxy.requests == []


def _has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as one:
            one.bind(("::1", 0))
    except OSError:
        return False
    return True


@pytest.mark.parametrize("variable", ["HTTP_PROXY", "http_proxy"])
def test_another_server_is_asked_through_the_proxy(
    variable: str, proxy: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, proxy.url)
    monkeypatch.setenv("NO_PROXY", "10.0.0.0/8,cluster.local")
    assert Api(Config(ELSEWHERE)).get("/x") == {"from": "the proxy", "target": f"{ELSEWHERE}/x"}


@pytest.mark.parametrize("variable", ["NO_PROXY", "no_proxy"])
@pytest.mark.parametrize(
    ("no_proxy", "is_direct"),
    [
        ("{ip}/32", True),
        ("10.0.0.0/8, {ip}/8", True),
        ("{ip}:{port}", True),
        ("*", True),
        ("{ip}:1", False),
        ("203.0.113.0/24", False),
    ],
)
def test_no_proxy_lists_addresses_ranges_and_ports(  # the rule itself: tests/unit/shared/test_proxies.py
    variable: str, no_proxy: str, is_direct: bool, proxy: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with scripted(lambda exchange: exchange.answer({"from": "the server"}), "0.0.0.0") as server:
        port = server.url.rpartition(":")[2]
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        monkeypatch.setenv(variable, no_proxy.format(ip="0.0.0.0", port=port))
        found = Api(Config(server.url)).get("/x")
    assert found["from"] == ("the server" if is_direct else "the proxy")


@pytest.mark.parametrize("no_proxy", ["", "*", "127.0.0.0/8", "127.0.0.1"])
def test_the_proxy_of_the_kubeconfig_comes_first(
    no_proxy: str, server: ScriptedServer, proxy: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As kubectl has it: neither loopback nor NO_PROXY is an exception."""
    monkeypatch.setenv("HTTP_PROXY", "http://other.invalid")
    monkeypatch.setenv("NO_PROXY", no_proxy)
    found = Api(Config(server.url, proxy=proxy.url)).get("/x")
    assert found == {"from": "the proxy", "target": f"{server.url}/x"}


def test_all_proxy_has_no_effect(proxy: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", proxy.url)
    with scripted(lambda exchange: exchange.answer({"from": "the server"}), "0.0.0.0") as server:
        assert Api(Config(server.url)).get("/x") == {"from": "the server"}
