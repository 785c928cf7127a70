"""Addresses, links and rules of the own engine's cluster network."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping
from pathlib import Path

from devtools.cluster import shell
from devtools.cluster.errors import ClusterError

Network = ipaddress.IPv4Network

CANDIDATES = tuple(Network(f"172.30.{third}.0/22") for third in range(100, 164, 4))
"""Blocks for one engine: a quarter for the cluster, one for the default bridge, the rest for other networks."""
POD_SUBNET = "10.240.0.0/12"
"""With 512 addresses a node: room for 250 pods each on 2,000 (kwok) nodes."""
NODE_MASK = 23
SERVICE_SUBNET = "10.96.0.0/16"


def parse_routes(text: str) -> list[Network]:
    """Destinations in /proc/net/route (hexadecimal, least significant byte first), without the default route."""
    found = []
    for line in text.splitlines()[1:]:
        fields = line.split()
        if len(fields) < 8:
            continue
        destination = int.from_bytes(bytes.fromhex(fields[1])[::-1])
        mask = int.from_bytes(bytes.fromhex(fields[7])[::-1])
        if mask:
            found.append(Network((destination, mask.bit_count())))
    return found


def default_interface(text: str) -> str:
    """The link of the default route in /proc/net/route, "" if there is none."""
    for line in text.splitlines()[1:]:
        fields = line.split()
        if len(fields) >= 8 and fields[1] == fields[7] == "00000000":
            return fields[0]
    return ""


def host_mtu() -> int:
    """The largest packet that leaves this machine; 1500 if that cannot be told."""
    try:
        link = default_interface(Path("/proc/net/route").read_text())
        return int(Path("/sys/class/net", link, "mtu").read_text()) if link else 1500
    except (OSError, ValueError):
        return 1500


def cluster_subnet(block: Network) -> Network:
    return next(block.subnets(new_prefix=24))


def default_bridge_subnet(block: Network) -> Network:
    return list(block.subnets(new_prefix=24))[1]


def spare_pool(block: Network) -> Network:
    return list(block.subnets(prefixlen_diff=1))[1]


def choose_block(taken: Iterable[Network], candidates: Iterable[Network] = CANDIDATES) -> Network:
    """The first candidate that overlaps no route of the host."""
    used = list(taken)
    for candidate in candidates:
        if not any(candidate.overlaps(route) for route in used):
            return candidate
    raise ClusterError(
        "no free subnet for the cluster network among 172.30.100.0 to 172.30.163.255",
        "remove the routes that cover all of it",
    )


def free_block() -> Network:
    return choose_block(parse_routes(Path("/proc/net/route").read_text()))


def egress_rules(table: str, subnet: Network) -> str:
    """An nftables script: what leaves the cluster network leaves with the host's address, and no Service's does.

    A Service's address means nothing outside the node. Until kube-proxy knows it, a connection to it would leave for
    the default route, and whatever answers there would be taken for the Service; so it is refused, and can be tried
    again. In a table of its own, so that one deletion removes all of it and no other rule is touched.
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
    """Load the rules afresh; False if this kernel has no nftables NAT (pods then reach nothing outside the cluster)."""
    remove_egress(table, env)
    return shell.run(["nft", "-f", "-"], stdin=egress_rules(table, subnet), env=env, check=False).returncode == 0


def remove_egress(table: str, env: Mapping[str, str]) -> None:
    shell.run(["nft", "delete", "table", "ip", table], env=env, check=False)


def link_exists(name: str) -> bool:
    return Path("/sys/class/net", name).exists()


def add_bridge(name: str, subnet: Network, mtu: int, env: Mapping[str, str]) -> None:
    """A bridge with the subnet's first address; nothing changes if it is there."""
    if not link_exists(name):
        shell.run(["ip", "link", "add", "name", name, "mtu", str(mtu), "type", "bridge"], env=env)
    shell.run(["ip", "address", "replace", f"{next(subnet.hosts())}/{subnet.prefixlen}", "dev", name], env=env)
    shell.run(["ip", "link", "set", name, "up"], env=env)


def bridge_ports(name: str) -> list[str]:
    """The links attached to a bridge."""
    try:
        return sorted(entry.name for entry in Path("/sys/class/net", name, "brif").iterdir())
    except OSError:
        return []


def remove_ports(name: str, env: Mapping[str, str]) -> None:
    """Remove the links attached to a bridge whose containers have all ended.

    A killed container's link stays as long as its last connection is not given up: minutes.
    """
    for link in bridge_ports(name):
        # gone by itself in between is as good
        shell.run(["ip", "link", "delete", link], env=env, check=False)


def remove_bridge(name: str, env: Mapping[str, str]) -> None:
    """Remove a bridge, if it is there, with the links attached to it."""
    remove_ports(name, env)
    if link_exists(name):
        shell.run(["ip", "link", "delete", name], env=env)
