"""How to reach and authenticate to a cluster: the kubernetes client's configuration, with kubectl's choice of a proxy.

The ``proxy-url`` of a kubeconfig comes first, for every server. Without one, :mod:`.proxies` decides.
"""

from __future__ import annotations

import base64
import importlib.util
import os
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote, urlsplit

from ansible_collections.dljob.operator.plugins.module_utils.shared.proxies import proxy_for
from kubernetes import client, config
from kubernetes.config import kube_config


def from_kubeconfig(kubeconfig: str | None = None, context: str | None = None, **options: Any) -> client.Configuration:
    """Return the configuration of a kubeconfig; ``options`` are more options of ``load_kube_config``.

    Raises ``ConfigException`` and ``OSError`` as the library does, and ValueError for an unusable proxy.
    """

    def load(made: client.Configuration) -> None:
        config.load_kube_config(kubeconfig, context, made, **options)
        if not made.proxy:  # before 34 the library does not read it
            made.proxy = _proxy_url(kubeconfig or kube_config.KUBE_CONFIG_DEFAULT_LOCATION, context)

    return _configuration(load)


def from_service_account() -> client.Configuration:
    """Return the configuration of the pod that this process runs in. Raises as :func:`from_kubeconfig`."""
    return _configuration(config.load_incluster_config)


def _configuration(load: Callable[[client.Configuration], None]) -> client.Configuration:
    made = client.Configuration()
    made.proxy = None  # what the library read from the environment, since 34
    load(made)
    if not made.proxy:
        made.proxy = proxy_for(made.host, os.environ)
    made.no_proxy = ""  # the library applies it to `proxy-url` too
    if made.proxy:
        _check(made.proxy)
        made.proxy_headers = _proxy_headers(made.proxy)
    return made


def _proxy_url(kubeconfig: str, context: str | None) -> str | None:
    """The ``proxy-url`` of the context's cluster in a kubeconfig that the library has read without an error."""
    merged = kube_config.KubeConfigMerger(kubeconfig).config
    name = merged["contexts"].get_with_name(context or merged["current-context"])["context"]["cluster"]
    url = merged["clusters"].get_with_name(name)["cluster"].safe_get("proxy-url")
    return str(url) if url else None


def _check(proxy: str) -> None:
    """Raise ValueError for a proxy that the library could not use. The message omits its credentials."""
    try:
        parts = urlsplit(proxy)
        host, scheme, _ = parts.hostname, parts.scheme, parts.port
    except ValueError:
        host, scheme = None, ""
    if not host or scheme not in ("http", "https", *_socks_schemes()):
        shown = proxy.rpartition("@")[2] if "@" in proxy else proxy
        raise ValueError(
            f"the proxy {shown!r}, of proxy-url in the kubeconfig or of HTTPS_PROXY or HTTP_PROXY, is no usable URL; "
            "give it as http://HOST:PORT, or name the API server in NO_PROXY"
        )


def _socks_schemes() -> tuple[str, ...]:
    """Those that the library supports: none before 34, and later only with the package PySocks."""
    if not hasattr(client.rest, "is_socks_proxy_url") or importlib.util.find_spec("socks") is None:
        return ()
    return ("socks5", "socks5h", "socks4", "socks4a")


def _proxy_headers(proxy: str) -> dict[str, str] | None:
    """The credentials of the proxy's URL, which urllib3 does not send by itself."""
    parts = urlsplit(proxy)
    if parts.username is None or not parts.scheme.startswith("http"):
        return None
    credentials = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    return {"Proxy-Authorization": f"Basic {base64.b64encode(credentials.encode()).decode()}"}
