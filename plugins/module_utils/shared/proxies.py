"""The HTTP proxy for requests to a server, chosen from the environment as kubectl and all programs in Go do.

The rules are those of Go's ``golang.org/x/net/http/httpproxy``, whatever the version of the kubernetes client. That
library's own differ between its versions: before 34 it reads no variable, since 34 it sends requests for the loopback
interface to the proxy too.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

_PORTS = {"http": "80", "https": "443"}
_HOST_AND_PORT = re.compile(r"(?:\[(?P<address>[^\[\]]+)\]|(?P<name>[^:\[\]]+)):(?P<port>[^:\[\]]*)")

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address


@dataclass(frozen=True, slots=True)
class _Server:
    host: str
    port: str
    address: _Address | None
    """The host, if it is an IP address."""


def proxy_for(url: str, environ: Mapping[str, str]) -> str | None:
    """Return the URL of the proxy for requests to ``url``, ``None`` for no proxy.

    ``HTTPS_PROXY`` or ``HTTP_PROXY`` names it, by the scheme of ``url``, unless ``NO_PROXY`` names the server. Each may
    be in lower case instead. Nothing is proxied that is on the loopback interface.
    """
    try:
        parts = urlsplit(url)
        port = str(parts.port or _PORTS.get(parts.scheme, ""))
    except ValueError:
        return None
    if parts.scheme not in _PORTS or not parts.hostname:
        return None
    proxy = _variable(environ, f"{parts.scheme.upper()}_PROXY")
    if not proxy:
        return None
    server = _Server(parts.hostname, port, _address(parts.hostname))
    if _is_loopback(server) or any(_matches(server, entry) for entry in _entries(_variable(environ, "NO_PROXY"))):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


def _variable(environ: Mapping[str, str], name: str) -> str:
    return (environ.get(name) or environ.get(name.lower()) or "").strip()


def _entries(no_proxy: str) -> Iterator[str]:
    return (entry for entry in (part.strip().lower() for part in no_proxy.split(",")) if entry)


def _address(text: str) -> _Address | None:
    try:
        found = ipaddress.ip_address(text)
    except ValueError:
        return None
    return getattr(found, "ipv4_mapped", None) or found


def _is_loopback(server: _Server) -> bool:
    return server.host == "localhost" if server.address is None else server.address.is_loopback


def _matches(server: _Server, entry: str) -> bool:
    """Whether an entry of ``NO_PROXY`` names the server: by ``*``, a range of addresses, an address or a domain."""
    if entry == "*":
        return True
    if server.address is not None and _is_in_range(server.address, entry):
        return True
    host, port = entry, ""
    if found := _HOST_AND_PORT.fullmatch(entry):
        host, port = found["address"] or found["name"], found["port"]
    if port not in ("", server.port):
        return False
    address = _address(host)
    if address is not None:
        return address == server.address
    domain = host.removeprefix("*")
    if domain.startswith("."):
        return server.host.endswith(domain)
    return server.host == domain or server.host.endswith(f".{domain}")


def _is_in_range(address: _Address, entry: str) -> bool:
    _, slash, prefix = entry.partition("/")
    if not slash or not prefix.isdecimal():
        return False
    try:
        return address in ipaddress.ip_network(entry, strict=False)
    except ValueError:
        return False
