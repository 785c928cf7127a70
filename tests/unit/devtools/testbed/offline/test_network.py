"""Chosen addresses do not overlap those in use, and rules are in a separate table."""

from ipaddress import IPv4Network

import pytest
from devtools.testbed.base.errors import ClusterError
from devtools.testbed.offline import network

ROUTES = """Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT
eth0\t00000000\t0102000A\t0003\t0\t0\t0\t00000000\t0\t0\t0
eth0\t0002000A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0
br0\t00641EAC\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0
"""


def test_routes_are_read_without_the_default_one() -> None:
    assert network.parse_routes(ROUTES) == [IPv4Network("10.0.2.0/24"), IPv4Network("172.30.100.0/24")]
    assert network.default_interface(ROUTES) == "eth0"
    assert network.default_interface("Iface\n") == ""


def test_the_first_free_block_is_taken() -> None:
    assert network.choose_block(network.parse_routes(ROUTES)) == IPv4Network("172.30.104.0/22")
    assert network.choose_block([]) == IPv4Network("172.30.100.0/22")


def test_no_free_block_is_an_error_that_names_them() -> None:
    with pytest.raises(ClusterError, match=r"172\.30\.100\.0"):
        network.choose_block([IPv4Network("172.16.0.0/12")])


def test_parts_of_a_block_do_not_overlap() -> None:
    block = IPv4Network("172.30.104.0/22")
    parts = [network.cluster_subnet(block), network.default_bridge_subnet(block), network.spare_pool(block)]
    assert [str(p) for p in parts] == ["172.30.104.0/24", "172.30.105.0/24", "172.30.106.0/23"]


def test_pods_services_and_nodes_have_addresses_of_their_own() -> None:
    pods, services = IPv4Network(network.POD_SUBNET), IPv4Network(network.SERVICE_SUBNET)
    assert not pods.overlaps(services)
    assert not any(pods.overlaps(block) or services.overlaps(block) for block in network.CANDIDATES)
    assert 2 ** (32 - network.NODE_MASK) > 250 + 2, "a node's 250 pods, its network and gateway"
    assert 2 ** (network.NODE_MASK - pods.prefixlen) >= 2000


def test_all_rules_are_in_one_table() -> None:
    rules = network.egress_rules("dljob_x", IPv4Network("172.30.104.0/22"))
    assert rules.startswith("table ip dljob_x {")
    assert rules.count("table") == 1
    assert "ip saddr 172.30.104.0/22 ip daddr != 172.30.104.0/22 masquerade" in rules
    assert f"ip saddr 172.30.104.0/22 ip daddr {network.SERVICE_SUBNET} reject" in rules
