"""Addresses, links and nftables rules of the private engine's cluster network."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from devtools.testbed.base import shell
from devtools.testbed.base.errors import ClusterError

Network = ipaddress.IPv4Network

LINKS = Path("/sys/class/net")
ROUTES = Path("/proc/net/route")
CANDIDATES = tuple(Network(f"172.30.{third}.0/22") for third in range(100, 164, 4))
"""Blocks for one engine: a quarter for the cluster, one for the default bridge, the rest for other networks."""
POD_SUBNET = "10.240.0.0/12"
"""With 512 addresses per node it has room for 2,000 (kwok) nodes of 250 pods."""
NODE_MASK = 23
SERVICE_SUBNET = "10.96.0.0/16"


# ---- addresses


def _routes(text: str) -> Iterator[tuple[str, Network]]:
    """Interface and destination of each line of /proc/net/route (hexadecimal, least significant byte first)."""
    for line in text.splitlines()[1:]:
        fields = line.split()
        destination, mask = (int.from_bytes(bytes.fromhex(fields[number])[::-1]) for number in (1, 7))
        yield fields[0], Network((destination, mask.bit_count()))


def parse_routes(text: str) -> list[Network]:
    """The destinations, without that of the default route."""
    return [destination for _, destination in _routes(text) if destination.prefixlen]


def default_interface(text: str) -> str:
    """The interface of the default route, "" if there is none."""
    return next((interface for interface, destination in _routes(text) if not destination.prefixlen), "")


def routes() -> list[Network]:
    """The destinations of the host's routes."""
    return parse_routes(ROUTES.read_text())


def host_mtu() -> int:
    """The MTU of the host's default interface; 1500 if it is unknown."""
    try:
        return int((LINKS / default_interface(ROUTES.read_text()) / "mtu").read_text())
    except (OSError, ValueError):
        return 1500


def cluster_subnet(block: Network) -> Network:
    return next(block.subnets(new_prefix=24))


def default_bridge_subnet(block: Network) -> Network:
    return list(block.subnets(new_prefix=24))[1]


def spare_pool(block: Network) -> Network:
    return list(block.subnets(prefixlen_diff=1))[1]


def choose_block(taken: Iterable[Network], candidates: Iterable[Network] = CANDIDATES) -> Network:
    """The first candidate that overlaps none of ``taken``."""
    used = list(taken)
    for candidate in candidates:
        if not any(candidate.overlaps(other) for other in used):
            return candidate
    raise ClusterError(
        "no free subnet for the cluster network among 172.30.100.0 to 172.30.163.255",
        "stop the clusters, or remove the routes, that use this range",
    )


# ---- packet rules


def egress_rules(table: str, subnet: Network) -> str:
    """An nftables script that masquerades egress of the cluster network and rejects egress to Service addresses.

    Until kube-proxy has rules for a Service, a connection to its address would leave by the default route, and any host
    that responds there would be taken for the Service; a rejected connection can be retried. The rules are in a
    separate table, so that they can be removed together without touching other rules.
    """
    return (
        f"table ip {table} {{\n"
        "  chain forward {\n"
        "    type filter hook forward priority filter; policy accept;\n"
        f"    ip saddr {subnet} ip daddr {SERVICE_SUBNET} reject\n"
        "  }\n"
        "  chain postrouting {\n"
        "    type nat hook postrouting priority srcnat; policy accept;\n"
        f"    ip saddr {subnet} ip daddr != {subnet} masquerade\n"
        "  }\n"
        "}\n"
    )


def add_egress(table: str, subnet: Network, env: Mapping[str, str]) -> bool:
    """Replace the rules; returns False if this kernel has no nftables NAT (pods then cannot leave the cluster)."""
    remove_egress(table, env)
    return shell.run(["nft", "-f", "-"], stdin=egress_rules(table, subnet), env=env, check=False).returncode == 0


def remove_egress(table: str, env: Mapping[str, str]) -> None:
    shell.run(["nft", "delete", "table", "ip", table], env=env, check=False)


# ---- links


def link_exists(name: str) -> bool:
    return (LINKS / name).exists()


def add_bridge(name: str, subnet: Network, mtu: int, env: Mapping[str, str]) -> None:
    """Create a bridge with the subnet's first address, unless it exists."""
    if not link_exists(name):
        shell.run(["ip", "link", "add", "name", name, "mtu", str(mtu), "type", "bridge"], env=env)
    shell.run(["ip", "address", "replace", f"{next(subnet.hosts())}/{subnet.prefixlen}", "dev", name], env=env)
    shell.run(["ip", "link", "set", name, "up"], env=env)


def remove_ports(name: str, env: Mapping[str, str]) -> None:
    """Remove the interfaces attached to a bridge, which may not exist, whose containers have all stopped.

    The kernel keeps a killed container's interface until its last connection times out, which takes minutes.
    """
    for port in sorted((LINKS / name).glob("brif/*")):
        # the interface may have disappeared meanwhile
        shell.run(["ip", "link", "delete", port.name], env=env, check=False)


def remove_bridge(name: str, env: Mapping[str, str]) -> None:
    """Remove a bridge, if it exists, and the interfaces attached to it."""
    remove_ports(name, env)
    if link_exists(name):
        shell.run(["ip", "link", "delete", name], env=env)
