"""Which servers are asked through a proxy. The expected values are those of Go's httpproxy, and so of kubectl."""

from __future__ import annotations

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.shared.proxies import proxy_for

PROXY = "http://proxy.example:3128"
SERVER = "https://api.cluster.example:6443"


@pytest.mark.parametrize(
    "url",
    [
        "https://127.0.0.1:6443",
        "https://127.0.0.1",
        "https://127.8.9.10:6443/prefix",
        "https://localhost:6443",
        "https://LOCALHOST:6443",
        "https://[::1]:6443",
        "https://[::ffff:127.0.0.1]:6443",
        "http://localhost:8888",
        "http://127.0.0.1:8888",
    ],
)
@pytest.mark.parametrize("no_proxy", ["", "example.com"])
def test_loopback_is_never_proxied(url: str, no_proxy: str) -> None:
    assert proxy_for(url, {"HTTPS_PROXY": PROXY, "HTTP_PROXY": PROXY, "NO_PROXY": no_proxy}) is None


@pytest.mark.parametrize(
    "url",
    [
        SERVER,
        "https://10.0.0.1:443",
        "https://[2001:db8::1]:6443",
        "https://localhost.example:6443",
        "https://my-localhost",
        "https://127.0.0.1.example",
        "https://128.0.0.1",
    ],
)
def test_other_servers_are(url: str) -> None:
    assert proxy_for(url, {"HTTPS_PROXY": PROXY}) == PROXY


@pytest.mark.parametrize(
    ("url", "environ", "expected"),
    [
        pytest.param(SERVER, {}, None, id="no variable"),
        pytest.param(SERVER, {"HTTPS_PROXY": ""}, None, id="empty"),
        pytest.param(SERVER, {"https_proxy": PROXY}, PROXY, id="lower case"),
        pytest.param(SERVER, {"HTTPS_PROXY": PROXY, "https_proxy": "http://other:1"}, PROXY, id="upper case first"),
        pytest.param(SERVER, {"HTTPS_PROXY": "", "https_proxy": PROXY}, PROXY, id="an empty one is none"),
        pytest.param(SERVER, {"HTTP_PROXY": PROXY}, None, id="of the other scheme"),
        pytest.param("http://api.example", {"HTTP_PROXY": PROXY}, PROXY, id="http"),
        pytest.param("http://api.example", {"http_proxy": PROXY}, PROXY, id="http in lower case"),
        pytest.param("http://api.example", {"HTTPS_PROXY": PROXY}, None, id="http, of the other scheme"),
        pytest.param(SERVER, {"ALL_PROXY": PROXY, "all_proxy": PROXY}, None, id="which Go does not know"),
        pytest.param(SERVER, {"HTTPS_PROXY": "proxy.example:3128"}, PROXY, id="without a scheme"),
        pytest.param(SERVER, {"HTTPS_PROXY": "https://u:p@proxy:1"}, "https://u:p@proxy:1", id="as it is"),
        pytest.param(SERVER, {"HTTPS_PROXY": "socks5://proxy:1080"}, "socks5://proxy:1080", id="socks"),
        pytest.param("api.cluster.example:6443", {"HTTPS_PROXY": PROXY}, None, id="a server without a scheme"),
        pytest.param("https://", {"HTTPS_PROXY": PROXY}, None, id="a server without a host"),
        pytest.param("https://[::1", {"HTTPS_PROXY": PROXY}, None, id="no URL"),
        pytest.param("https://api.example:port", {"HTTPS_PROXY": PROXY}, None, id="no port"),
    ],
)
def test_which_variable_names_the_proxy(url: str, environ: dict[str, str], expected: str | None) -> None:
    assert proxy_for(url, environ) == expected


@pytest.mark.parametrize("name", ["NO_PROXY", "no_proxy"])
@pytest.mark.parametrize(
    ("url", "no_proxy", "is_direct"),
    [
        (SERVER, "*", True),
        (SERVER, "other.example,*", True),
        (SERVER, "api.cluster.example", True),
        (SERVER, "API.Cluster.Example", True),
        ("https://API.CLUSTER.EXAMPLE", "api.cluster.example", True),
        (SERVER, " other.example , api.cluster.example ", True),
        (SERVER, ",,", False),
        (SERVER, "cluster.example", True),
        (SERVER, ".cluster.example", True),
        (SERVER, "*.cluster.example", True),
        (SERVER, "luster.example", False),
        (SERVER, "*.luster.example", False),
        (SERVER, "v1.api.cluster.example", False),
        ("https://cluster.example", "cluster.example", True),
        ("https://cluster.example", ".cluster.example", False),
        ("https://cluster.example", "*.cluster.example", False),
        (SERVER, "api.cluster.example:6443", True),
        (SERVER, "api.cluster.example:443", False),
        (SERVER, ".example:6443", True),
        (SERVER, "example:", True),
        (SERVER, ":6443", False),
        ("https://api.example", "api.example:443", True),
        ("http://api.example", "api.example:80", True),
        ("http://api.example", "api.example:443", False),
        ("https://10.96.0.1:443", "10.96.0.1", True),
        ("https://10.96.0.1:443", "10.96.0.1:443", True),
        ("https://10.96.0.1:443", "10.96.0.1:6443", False),
        ("https://10.96.0.1:443", "10.96.0.11", False),
        ("https://10.96.0.1:443", "10.96.0.0/12", True),
        ("https://10.96.0.1:443", "10.96.0.7/12", True),
        ("https://10.112.0.1:443", "10.96.0.0/12", False),
        ("https://10.96.0.1:443", "10.96.0.0/255.240.0.0", False),
        ("https://10.96.0.1:443", "10.96.0.0/33", False),
        ("https://10.96.0.1:443", "2001:db8::/32", False),
        ("https://10.96.0.1:443", "96.0.1", True),  # as a domain
        ("https://10.96.0.1:443", ".svc,.cluster.local,10.0.0.0/8", True),
        ("https://[2001:db8::1]:6443", "2001:db8::/32", True),
        ("https://[2001:db8::1]:6443", "2001:db8::1", True),
        ("https://[2001:db8::1]:6443", "2001:DB8:0::1", True),
        ("https://[2001:db8::1]:6443", "[2001:db8::1]:6443", True),
        ("https://[2001:db8::1]:6443", "[2001:db8::1]:443", False),
        ("https://[2001:db8::1]:6443", "2001:db9::/32", False),
        (SERVER, "10.0.0.0/8", False),
        (SERVER, "", False),
    ],
)
def test_what_no_proxy_names(name: str, url: str, no_proxy: str, is_direct: bool) -> None:
    environ = {"HTTP_PROXY": PROXY, "HTTPS_PROXY": PROXY, name: no_proxy}
    assert proxy_for(url, environ) == (None if is_direct else PROXY)


def test_the_upper_case_comes_first() -> None:
    environ = {"HTTPS_PROXY": PROXY, "NO_PROXY": "other.example", "no_proxy": "*"}
    assert proxy_for(SERVER, environ) == PROXY
